"""Pages from templates that escape every name and value, and the cards in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from limis.report import fragment
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
    return Markup(fragment(found))  # noqa: S704 - what made it has escaped every name and value


@cache
def static_file(name: str) -> str:
    """The text of one of the files in `STATIC`."""
    return (files("limis.serve") / "static" / name).read_text(encoding="utf-8")


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
