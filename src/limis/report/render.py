"""Cards and pages from explanations, through templates that escape every name and value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from limis.blackbox import BlackBox
from limis.class_explanations import ClassExplanations
from limis.explanation import Explanation, Explanations
from limis.report.about import about
from limis.report.card import Card, card, class_names
from limis.report.groups import FEWEST_ROWS, groups
from limis.report.index import entries
from limis.report.overall import fidelity, weights
from limis.report.suggested import fitting, suggested
from limis.report.words import Numbers, count, percent, printable
from limis.suggest import RowSuggestions, Suggestions

Explained = Explanations | ClassExplanations


def cards(explanations: Explained, total: int, suggestions: Suggestions | None = None) -> str:
    """An HTML fragment for a notebook: a card an explanation.

    Parameters
    ----------
    explanations : Explanations or ClassExplanations
        Those to show; of several classes the predicted one.
    total : int
        How many there are in all, of which these are the first.
    suggestions : Suggestions, default=None
        What would change the predictions of the same rows, to be told on their cards.

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
    drawn = list(explanations)
    return _render("cards.html", explanations, cards=_cards(drawn, suggestions), note=note)


def fragment(explanations: Explained) -> str:
    """Cards without their style, for pages that have it from `style`; of several classes those of the predicted one."""
    return _render("fragment.html", explanations, cards=_cards(list(explanations), None), note="")


def suggestion_cards(rows: Sequence[RowSuggestions], total: int) -> str:
    """An HTML fragment for a notebook: what would change the prediction of each row.

    Parameters
    ----------
    rows : sequence of RowSuggestions
        Those to show.
    total : int
        How many there are in all, of which these are the first.

    Returns
    -------
    str
        HTML as that of `cards`.
    """
    note = (
        f"{len(rows):,} of {count(total, 'row is', 'rows are')} shown; to_frame() has all." if len(rows) < total else ""
    )
    told = [(str(own.label), own.wish, suggested(own)) for own in rows]
    return _templates().get_template("suggestions.html").render(rows=told, note=note)


def page(
    explanations: Explained,
    *,
    title: str,
    suggestions: Suggestions | None = None,
    by: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    labels: Any = None,
    data: Any = None,
    facts: Mapping[str, str] | None = None,
    made: datetime | None = None,
) -> str:
    """A self-contained HTML page: what was explained, how far to trust it, what weighs, and a card an explanation.

    Parameters
    ----------
    explanations : Explanations or ClassExplanations
        All are shown; of several classes the predicted one, and nothing is told of groups.
    title : str
        Heading of the page.
    suggestions : Suggestions, default=None
        What would change the predictions of the same rows, to be told on their cards.
    by : list of str, default=None
        Columns to make groups by, of the rows or of ``data``. By default the sensitive columns and those that weigh
        most, where at least 20 rows are explained; ``[]`` for no groups.
    sensitive : list of str, default=()
        Columns that should not decide; the page tells in which groups they carry weight.
    labels : array-like, default=None
        The rows' true labels, for the black box's own error in each group.
    data : data frame, default=None
        More columns of the same rows, to group by.
    facts : mapping, default=None
        More to say of what was explained, such as the name of a file.
    made : datetime, default=None
        When the page was made; now by default.

    Returns
    -------
    str
        A whole document that loads nothing else, runs no scripts and prints well.
    """
    by, sensitive = _listed(by), _listed(sensitive) or []
    shown = list(explanations)
    drawn = _cards(shown, suggestions)
    return _render(
        "page.html",
        explanations,
        cards=drawn,
        title=title,
        clipped=_clipped(_first(explanations).training.black_box),
        facts=about(explanations, facts, made),
        fidelity=fidelity(shown) if shown else None,
        weights=weights(shown) if shown else None,
        groups=groups(explanations, by, sensitive, labels, data),
        fewest_rows=FEWEST_ROWS,
        n_sensitive=len(sensitive),
        entries=entries(shown, drawn),
        has_suggestions=suggestions is not None,
    )


def _listed(names: Sequence[str] | None) -> list[str] | None:
    """Names as a list; a single one is a list of one."""
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def style() -> str:
    """The style of cards and pages, as CSS: for other pages that show cards, inside an element of class "limis"."""
    return "\n".join(_templates().get_template(name).render() for name in ("style.css", "page.css"))


def _cards(shown: list[Explanation], suggestions: Suggestions | None) -> list[Card]:
    numbers = {id(one.all.training): Numbers.of(one.all.training) for one in shown}
    beside = fitting(suggestions, [one.label for one in shown])
    return [card(one, numbers[id(one.all.training)], own) for one, own in zip(shown, beside, strict=True)]


def _first(explanations: Explained) -> Explanations:
    """Explanations of one output, for what is the same of all."""
    return explanations.parts[0] if isinstance(explanations, ClassExplanations) else explanations


def _render(template: str, explanations: Explained, **more: Any) -> str:
    first = _first(explanations)
    box = first.training.black_box
    return (
        _templates()
        .get_template(template)
        .render(
            scale=box.scale,
            several=isinstance(explanations, ClassExplanations),
            classes=class_names(box),
            is_labels=box.is_classifier and box.reads == "values",
            trees=first.fits.has_rules,
            with_curves=first.fits.has_curves,
            stand_in=first.fits.has_stand_in,
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
