"""Pages from templates that escape every name and value, and the style of the cards in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from limis.report import cards
from limis.report.words import printable
from limis.serve.words import Explained

STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


def page(
    template: str, shared: Mapping[str, Any] | None = None, *, status: int = 200, headers: Any = None, **told: Any
) -> HTMLResponse:
    """An answer made from a template."""
    return HTMLResponse(_templates().get_template(template).render(**(shared or {}), **told), status, headers)


def card(found: Explained) -> Markup:
    """The cards of explanations, without their style: a page may only use styles that have an address of their own."""
    return Markup(_split(cards(found, total=len(found)))[1])  # noqa: S704 - what made it has escaped every name and value


def card_style(found: Explained) -> str:
    """The style of all cards."""
    return _split(cards(found, total=len(found)))[0]


@cache
def static_file(name: str) -> str:
    """The text of one of the files in `STATIC`."""
    return (files("limis.serve") / "static" / name).read_text(encoding="utf-8")


def _split(html: str) -> tuple[str, str]:
    style, _, rest = html.partition("</style>")
    return style.partition("<style>")[2], rest


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("limis.serve"),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalize(value: Any) -> Any:
    return value if isinstance(value, Markup) else printable(str(value))
