"""What the card of one explanation tells, as plain data that a template only has to place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.blackbox import BlackBox
from limis.columns import MISSING
from limis.explanation import Explanation, Explanations
from limis.local_view import FIXED, UNKNOWN_HERE, promise_words
from limis.report import curves
from limis.report.chart import Bar, bars, shown_reasons
from limis.report.effects import Effect, effects
from limis.report.suggested import Suggested, suggested
from limis.report.tree import Drawing, draw
from limis.report.words import Numbers, count, is_zero, percent
from limis.suggest import RowSuggestions

MOST_APART = 3
CLEARLY_APART = 0.1  # standard deviations, or share of the weight
TOP_ROWS = 5
TABLE_COLUMNS = 4
MOST_NAMED = 6
SMALL_BAR = 0.05  # of the outputs' standard deviation: a bar that fills the drawing is at least this long


@dataclass
class Amount:
    """An output: as a number and, where that is a logit, as a probability too."""

    number: str
    probability: str | None


@dataclass
class Note:
    """Columns whose contribution must not be read as "no effect", and why."""

    status: str
    meaning: str
    values: list[str]
    more: int


@dataclass
class Apart:
    """A column that sets the neighbourhood apart: here, and over all training rows."""

    here: str
    overall: str


@dataclass
class Steps:
    """From the mean of all training rows to rows like this one, and from there to this row."""

    neighbourhood: Amount | None  # None: no training row had weight
    shift: str
    apart: list[Apart]
    own: str


@dataclass
class Curves:
    """Why, from the reference on, and what other values would lead to."""

    reference: str
    base: Amount
    base_error: str  # where the reference has few rows
    columns: str  # what all columns add
    rest: str  # empty where it does not show

    drawings: list[curves.Drawing]
    what_ifs: list[curves.WhatIf]
    pairs: list[tuple[str, str, str]]  # two columns, and how much they do only together
    stand_in: bool
    units: str  # of what columns add


@dataclass
class Line:
    """A row of the table of training rows, by its label; ``differs`` marks the values unlike the explained row's."""

    name: str
    weight: str
    output: Amount | None
    values: list[str]
    differs: list[bool]


@dataclass
class Card:
    """One explanation, told."""

    label: str
    classes: tuple[str, str] | None  # the one that counts as 0, and the one that counts as 1
    trusted: bool
    model: Amount | None
    local: Amount
    miss: str | None
    overall: Amount
    steps: Steps | None  # None: of curves
    bars: list[Bar]
    tree: Drawing | None
    curves: Curves | None
    effects: list[Effect]
    suggested: Suggested | None  # None: nothing was searched
    notes: list[Note]
    bound: str | None
    holds_for: str  # the rows whose values a column may take, for the bound to hold
    tolerance: str
    in_tolerance: bool
    doubts: list[str]
    promise: str  # of curves: what may be expected, and what is promised of those trusted
    effective_rows: str
    weighted_rows: str
    table_columns: list[str]
    table: list[Line]


MEANINGS = {
    FIXED: "all comparable rows, or nearly all, have one value, so its effect cannot be seen from them",
    UNKNOWN_HERE: "no comparable row has this value, so its effect is not known",
}


def amount(found: Explanations, numbers: Numbers, output: float) -> Amount:
    """An output in words."""
    box = found.training.black_box
    probability = percent(float(box.to_probability(np.asarray(output)))) if box.scale == "logit" else None
    return Amount(numbers.show(output), probability)


def card(one: Explanation, numbers: Numbers, suggestions: RowSuggestions | None = None) -> Card:
    """Everything the card of one explanation says, with what would change the prediction where that is known."""
    found, fidelity = one.all, one.fidelity
    shown, rest = shown_reasons(one) if found.fits.has_contributions else ([], None)
    bound = float(fidelity.get("change_error_bound", np.inf))
    columns = [name for reason in shown for name in reason.columns][:TABLE_COLUMNS]
    lines = training_lines(one, columns, numbers, TOP_ROWS)
    return Card(
        label=str(one.label),
        classes=class_names(found.training.black_box),
        trusted=one.trusted,
        model=_model_amount(one, numbers),
        local=amount(found, numbers, one.local_prediction),
        miss=None if found.outputs is None else numbers.show(float(fidelity["error"])),
        overall=amount(found, numbers, found.training.overall_mean),
        steps=None if found.fits.has_curves else _steps(one, numbers),
        bars=bars(shown, rest, numbers, SMALL_BAR * found.training.output_deviation),
        tree=draw(one, numbers) if found.fits.has_rules else None,
        curves=_curves(one, numbers) if found.fits.has_curves else None,
        effects=effects(one, numbers),
        suggested=None if suggestions is None else suggested(suggestions),
        notes=[] if found.fits.has_rules else _notes(one),
        bound=numbers.show(bound) if np.isfinite(bound) else None,
        holds_for="" if found.bound is None else found.bound.holds_for,
        tolerance=numbers.show(found.tolerance),
        in_tolerance=bound <= found.tolerance,
        doubts=list(fidelity["doubts"]),
        promise=promise_words(one),
        effective_rows=count(round(float(fidelity["effective_rows"])), "row", "rows"),
        weighted_rows=count(len(one.weights), "training row", "training rows"),
        table_columns=columns,
        table=lines if len(lines) > 1 else [],
    )


def class_names(box: BlackBox) -> tuple[str, str] | None:
    """The class that counts as 0 and the one that counts as 1; None where there are no classes."""
    if not box.is_classifier:
        return None
    return (str(box.classes[0]), str(box.classes[1])) if box.classes is not None else ("class 0", "class 1")


def _model_amount(one: Explanation, numbers: Numbers) -> Amount | None:
    found = one.all
    if found.outputs is None:
        return None
    if found.chances is not None:
        return Amount(numbers.show(one.model_output), percent(float(found.chances[one.row])))
    return amount(found, numbers, one.model_output)


def _steps(one: Explanation, numbers: Numbers) -> Steps:
    found = one.all
    empty = bool(found.fits.empty[one.row])
    return Steps(
        neighbourhood=None if empty else amount(found, numbers, one.base_value),
        shift=numbers.signed(one.neighbourhood_shift),
        apart=[] if empty else _apart(one),
        own=numbers.signed(one.local_prediction - one.base_value),
    )


def _curves(one: Explanation, numbers: Numbers) -> Curves:
    def say(output: float) -> str:
        said = amount(one.all, numbers, output)
        return said.probability or said.number

    own, scale = curves.curves_of(one), one.all.training.black_box.scale
    rest, error = numbers.signed(one.rest), one.reference.error
    return Curves(
        one.reference.name,
        amount(one.all, numbers, one.base_value),
        "" if error is None else numbers.show(2 * float(error)),
        numbers.signed(one.local_prediction - one.base_value - one.rest),
        "" if is_zero(rest) else rest,
        curves.drawings(own, one.reasons(), numbers, say),
        curves.what_ifs(own, numbers, say),
        curves.pairs_told(one, numbers),
        one.all.fits.has_stand_in,
        {"logit": "in logits", "centred": "in log-probabilities"}.get(scale, ""),
    )


def _apart(one: Explanation) -> list[Apart]:
    """The columns that set the neighbourhood apart most, here against overall."""
    category = {column.name: column.is_category for column in one.all.training.table.columns}
    found = one.neighbourhood()
    clearly = found[found["apart"] >= CLEARLY_APART].iloc[:MOST_APART]
    told = []
    for name, here, overall in zip(clearly["column"], clearly["here"], clearly["overall"], strict=True):
        mean = "" if category[name] or here == MISSING else " on average"
        told.append(Apart(f"{name}: {here}{mean}", overall))
    return told


def _notes(one: Explanation) -> list[Note]:
    """One note for the columns that are fixed here, one for those that are unknown here."""
    notes, words = [], one.status.to_dict()
    for status, meaning in MEANINGS.items():
        values = [f"{name} = {value}" for name, value in one.values.items() if words[name] == status]
        if values:
            notes.append(Note(status, meaning, values[:MOST_NAMED], max(0, len(values) - MOST_NAMED)))
    return notes


def training_lines(one: Explanation, columns: list[str], numbers: Numbers, k: int) -> list[Line]:
    """The explained row, and under it the ``k`` training rows that count most, if any do."""
    training = one.all.training
    by_name = {column.name: column for column in training.table.columns}
    own = [one.values[name] for name in columns]
    output = None if one.all.outputs is None else amount(one.all, numbers, one.model_output)
    lines = [Line("This row", "", output, own, [False] * len(own))]
    top = one.weights.iloc[:k]
    shares = (top / one.weights.sum()).to_numpy()
    for place, share in zip(top.index.to_numpy(), shares, strict=True):
        values = [by_name[name].show(training.frame, int(place)) for name in columns]
        differs = [value != mine for value, mine in zip(values, own, strict=True)]
        its_output = amount(one.all, numbers, float(training.outputs[place]))
        lines.append(Line(str(training.frame.index[place]), percent(float(share)), its_output, values, differs))
    return lines
