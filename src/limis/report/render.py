"""Cards and pages from explanations, through templates that escape every name and value."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from limis.blackbox import BlackBox
from limis.class_explanations import ClassExplanations
from limis.explanation import Explanations
from limis.report.card import MEANINGS, card, class_names
from limis.report.words import Numbers, count, percent, printable

Explained = Explanations | ClassExplanations


def cards(explanations: Explained, total: int) -> str:
    """An HTML fragment for a notebook: a card an explanation.

    Parameters
    ----------
    explanations : Explanations or ClassExplanations
        Those to show; of several classes the predicted one.
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


def page(explanations: Explained, *, title: str) -> str:
    """A self-contained HTML page: what was explained, how far to trust it, and a card an explanation.

    Parameters
    ----------
    explanations : Explanations or ClassExplanations
        All are shown; of several classes the predicted one.
    title : str
        Heading of the page.

    Returns
    -------
    str
        A whole document that loads nothing else and prints well.
    """
    return _render("page.html", explanations, title=title, clipped=_clipped(_first(explanations).training.black_box))


def _first(explanations: Explained) -> Explanations:
    """Explanations of one output, for what is the same of all."""
    return explanations.parts[0] if isinstance(explanations, ClassExplanations) else explanations


def _render(template: str, explanations: Explained, **more: Any) -> str:
    training = _first(explanations).training
    box = training.black_box
    shown = list(explanations)
    return (
        _templates()
        .get_template(template)
        .render(
            cards=[card(one, Numbers.of(one.all.training)) for one in shown],
            n_rows=count(len(explanations), "row", "rows"),
            n_training=count(len(training), "training row", "training rows"),
            n_trusted=sum(one.trusted for one in shown),
            scale=box.scale,
            several=isinstance(explanations, ClassExplanations),
            classes=class_names(box),
            is_labels=box.is_classifier and box.reads == "values",
            meanings=MEANINGS,
            trees=_first(explanations).fits.has_rules,
            **more,
        )
    )


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
