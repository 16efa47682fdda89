"""Cards and pages from explanations, through templates that escape every name and value."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from limis.blackbox import BlackBox
from limis.explanation import Explanations
from limis.report.card import MEANINGS, card
from limis.report.words import Numbers, count, percent, printable
from limis.trees.fits import TreeFits


def cards(explanations: Explanations, total: int) -> str:
    """An HTML fragment for a notebook: a card an explanation.

    Parameters
    ----------
    explanations : Explanations
        Those to show.
    total : int
        How many there are in all, of which these are the first.

    Returns
    -------
    str
        HTML with its own style, without scripts, legible on light and dark backgrounds.
    """
    shown = len(explanations)
    if shown < total:
        note = f"{shown:,} of {count(total, 'explanation is', 'explanations are')} shown; to_html() draws all."
    else:
        note = f"All {shown:,} explanations are shown." if shown > 1 else ""
    return _render("cards.html", explanations, note=note)


def page(explanations: Explanations, *, title: str) -> str:
    """A self-contained HTML page: what was explained, how far to trust it, and a card an explanation.

    Parameters
    ----------
    explanations : Explanations
        All are shown.
    title : str
        Heading of the page.

    Returns
    -------
    str
        A whole document that loads nothing else and prints well.
    """
    return _render("page.html", explanations, title=title, clipped=_clipped(explanations.training.black_box))


def _render(template: str, explanations: Explanations, **more: Any) -> str:
    numbers = Numbers.of(explanations.training)
    box = explanations.training.black_box
    return (
        _templates()
        .get_template(template)
        .render(
            cards=[card(one, numbers) for one in explanations],
            n_rows=count(len(explanations), "row", "rows"),
            n_training=count(len(explanations.training), "training row", "training rows"),
            n_trusted=int(explanations.fidelity["trusted"].sum()),
            scale=box.scale,
            classes=_class_names(box),
            is_labels=box.is_classifier and box.reads == "values",
            meanings=MEANINGS,
            trees=isinstance(explanations.fits, TreeFits),
            **more,
        )
    )


def _class_names(box: BlackBox) -> tuple[str, str] | None:
    """The class that counts as 0 and the one that counts as 1; None where there are no classes."""
    if not box.is_classifier:
        return None
    return (str(box.classes[0]), str(box.classes[1])) if box.classes is not None else ("class 0", "class 1")


def _clipped(box: BlackBox) -> str | None:
    return percent(box.clipped_share) if box.clipped_share > 0 else None


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("limis.report"),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalize(value: Any) -> Any:
    return value if isinstance(value, Markup) else printable(str(value))
