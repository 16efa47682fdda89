"""All explanations together: how faithful they are, and which columns weigh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.explanation import Explanation
from limis.metrics import nse
from limis.report.words import Numbers, count, is_zero
from limis.subgroups import Measure
from limis.subgroups.measure import column_weights, usual_measure
from limis.subgroups.resampling import means

MOST_COLUMNS = 15
FEWEST_FOR_NSE = 5  # rows: of fewer, the share of their differences says little


@dataclass
class Fidelity:
    """How well local models follow the black box, over all rows."""

    trusted: int
    rows: int
    error: str | None  # mean, at the rows; None: the black box was not asked
    worst: str | None
    spread: str  # of the outputs over the training rows, to compare errors with
    share: str | None  # of the differences between rows that is accounted for
    bound: str | None  # median of the bounds on the error on changes
    holds_for: str  # the rows whose values a column may take, for the bounds to hold
    tolerance: str
    beyond: int  # explanations whose bound is above the tolerance
    promise: str  # of curves: what holds for those trusted
    effective_rows: str


@dataclass
class ColumnWeight:
    """How much one column weighs over all rows, and how far it moved their local predictions."""

    name: str
    weight: str
    length: float  # of its bar, in percent
    down: str  # mean move down over all rows, counting those that it moves up as none
    up: str


@dataclass
class Weights:
    """Which columns weigh over all rows, the heaviest first."""

    columns: list[ColumnWeight]
    others: int  # columns that weigh less and are not told of
    measure: Measure
    level: str | None  # mean distance from the overall mean to the level of rows alike; None: of curves


def fidelity(shown: list[Explanation]) -> Fidelity:
    """The fidelity of all explanations in one place; of several classes, of those that are predicted."""
    found = shown[0].all
    numbers = Numbers.of(found.training)
    asked = found.outputs is not None
    errors = np.array([one.fidelity["error"] for one in shown]) if asked else np.empty(0)
    bounds = np.array([one.fidelity.get("change_error_bound", np.inf) for one in shown])
    bound = float(np.median(bounds))
    tolerances = np.array([one.all.tolerance for one in shown])
    return Fidelity(
        trusted=sum(one.trusted for one in shown),
        rows=len(shown),
        error=numbers.show(float(errors.mean())) if asked else None,
        worst=numbers.show(float(errors.max())) if asked else None,
        spread=numbers.show(found.training.output_deviation),
        share=_share(shown) if asked else None,
        bound=numbers.show(bound) if np.isfinite(bound) else None,
        holds_for="" if found.bound is None else found.bound.holds_for,
        tolerance=numbers.show(float(np.median(tolerances))),
        beyond=int((bounds > tolerances).sum()),
        promise="" if found.trust is None else found.trust.promise,
        effective_rows=count(round(float(np.median([one.fidelity["effective_rows"] for one in shown]))), "row", "rows"),
    )


def _share(shown: list[Explanation]) -> str | None:
    """How much of the differences between rows local predictions account for; None where that says little."""
    said = np.array([one.model_output for one in shown])
    if len(shown) < FEWEST_FOR_NSE or np.ptp(said) == 0:
        return None
    # Not the local predictions: curves stand at what the black box says of the row.
    expected = {id(one.all): one.all.fits.predictions() for one in shown}
    return f"{nse(said, np.array([expected[id(one.all)][one.row] for one in shown])):.3f}"


def weights(shown: list[Explanation]) -> Weights | None:
    """What weighs in all explanations; None where local models say nothing of single columns."""
    found = shown[0].all
    if not found.fits.has_contributions:
        return None
    measure = usual_measure(found.fits)
    by_output = {id(one.all): column_weights(one.all, measure).to_numpy() for one in shown}
    weight = means(np.array([by_output[id(one.all)][one.row] for one in shown]))  # (columns,)
    moves = np.array([one.all.column_contributions.to_numpy()[one.row] for one in shown])  # (rows, columns)
    known = np.nan_to_num(weight)
    numbers, longest = Numbers.of(found.training), known.max() or 1.0
    order = [j for j in np.argsort(-known, kind="stable").tolist() if not is_zero(numbers.show(known[j]))]
    columns = [
        ColumnWeight(
            str(found.column_contributions.columns[j]),
            numbers.show(known[j]),
            round(float(100 * known[j] / longest), 1),
            numbers.signed(-float(np.maximum(-moves[:, j], 0).mean())),
            numbers.signed(float(np.maximum(moves[:, j], 0).mean())),
        )
        for j in order[:MOST_COLUMNS]
    ]
    level = None
    if not found.fits.has_curves:
        level = numbers.show(float(np.mean([abs(one.neighbourhood_shift) for one in shown])))
    return Weights(columns, len(weight) - len(columns), measure, level)
