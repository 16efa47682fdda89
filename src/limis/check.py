"""How far a finished explanation can be trusted, from what is known when it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

from limis.columns import UNKNOWN
from limis.metrics.conformal import conformal_quantile
from limis.table import Table
from limis.training.probes import ProbeRows
from limis.walk import LocalFits

COVERAGE = 0.95
TOLERANCE = 0.25  # of the outputs' standard deviation
STAND_IN = "the curves are those of a stand-in, taught on the outputs given: there was no model to ask"


@dataclass
class Expected:
    """How good explanations by curves are expected to be, from what is known without asking; one number a row."""

    foresight: np.ndarray  # share of what changes do that is foreseen
    why_error: np.ndarray  # what reasons miss, of what groups of columns do
    enough: np.ndarray  # bool: far enough above what is promised
    withheld: str = ""  # why none is trusted, where that is so whatever is expected
    asked: np.ndarray | None = None  # bool: known by asking about the very row


@dataclass
class Measured:
    """The same as it was found out by questions about the rows themselves; NaN for those that were not asked about."""

    foresight: np.ndarray
    why_error: np.ndarray
    enough: np.ndarray
    questions: np.ndarray  # (rows,)

    @classmethod
    def none(cls, n_rows: int) -> Measured:
        """Nothing was asked yet."""
        unknown = np.full(n_rows, np.nan)
        return cls(unknown.copy(), unknown, np.zeros(n_rows, dtype=bool), np.zeros(n_rows, dtype=np.int64))

    def put(self, row: int, found: Expected, questions: int) -> None:
        """Fill in one row."""
        self.foresight[row], self.why_error[row] = found.foresight[0], found.why_error[0]
        self.enough[row], self.questions[row] = found.enough[0], questions

    def part(self, chosen: np.ndarray) -> Measured:
        """Of some of the rows."""
        return Measured(self.foresight[chosen], self.why_error[chosen], self.enough[chosen], self.questions[chosen])

    def over(self, expected: Expected | None) -> Expected:
        """What was found out, and what is expected where nothing was."""
        asked = self.questions > 0
        if expected is None:
            return Expected(self.foresight, self.why_error, self.enough, asked=asked)
        return Expected(
            np.where(asked, self.foresight, expected.foresight),
            np.where(asked, self.why_error, expected.why_error),
            np.where(asked, self.enough, expected.enough),
            expected.withheld,
            asked,
        )


@dataclass
class ChangeBound:
    """A split-conformal bound on an explanation's error on changes.

    On one half of the probe rows a small regression learns how large the error on changes (its root mean square over
    a row's moves) tends to be, from what is known without asking the black box. On the other half the factor is found
    by which that estimate must be raised to hold for `COVERAGE` of the rows.
    """

    unit: float  # the outputs' standard deviation
    slopes: np.ndarray  # over `known_signs`
    intercept: float
    factor: float
    measured_on: int  # calibration rows
    reach: str = "any"  # how far the changes go that it holds for: to values of so many nearest training rows, or any
    # Whether it was measured on fits without some of the rows, and not on the very one it is a bound of: the promise
    # then holds as far as the two are alike, which is no guarantee.
    cross_fitted: bool = False

    @classmethod
    def learn(
        cls,
        table: Table,
        parts: Sequence[tuple[LocalFits, ProbeRows]],
        unit: float,
        rng: np.random.Generator,
        reach: str = "any",
        cross_fitted: bool = False,
    ) -> ChangeBound:
        """Learn the bound from finished fits of probe rows whose moves the black box was asked about.

        Cross-fitted: each part's fits are of rows of a small table that were kept from them.
        """
        signs = np.concatenate([known_signs(fits, unit) for fits, _ in parts])
        errors = np.concatenate([errors_on_changes(table, fits, probes)[0] for fits, probes in parts])
        asked = np.flatnonzero(np.isfinite(errors))
        asked = rng.permutation(asked)
        fitting, calibration = asked[: len(asked) // 2], asked[len(asked) // 2 :]
        if len(fitting) == 0:
            return cls.unknown(unit)
        floor = 1e-9 * unit + 1e-3 * np.median(errors[fitting])
        ridge = Ridge(alpha=1.0).fit(signs[fitting], np.log((errors[fitting] + floor) / unit))
        scores = errors[calibration] / unit / np.exp(ridge.predict(signs[calibration]))
        factor = conformal_quantile(scores, COVERAGE)
        return cls(unit, ridge.coef_, float(ridge.intercept_), factor, len(calibration), reach, cross_fitted)

    @classmethod
    def unknown(cls, unit: float) -> ChangeBound:
        """The bound where no probe row could be asked: infinite."""
        return cls(unit, np.zeros(4), 0.0, float("inf"), 0)

    def bound(self, fits: LocalFits, effective: np.ndarray | None = None) -> np.ndarray:
        """(rows,); infinite where too few probe rows could be asked to say anything.

        ``effective`` are the fits' effective rows, where they are known.
        """
        # Not a matrix product: its rounding would depend on how many rows are explained together.
        logarithm = (known_signs(fits, self.unit, effective) * self.slopes).sum(axis=1) + self.intercept
        return self.factor * self.unit * np.exp(logarithm)

    @property
    def holds_for(self) -> str:
        """The rows whose values a column may take, in words."""
        reach = "any training row" if self.reach == "any" else f"the {self.reach} nearest training rows"
        return f"{reach} (measured on fits without each row)" if self.cross_fitted else reach

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data; an infinite factor, which JSON has no word for, is None."""
        factor = self.factor if np.isfinite(self.factor) else None
        return {
            "unit": self.unit,
            "slopes": self.slopes.tolist(),
            "intercept": self.intercept,
            "factor": factor,
            "measured_on": self.measured_on,
            "reach": self.reach,
            "cross_fitted": self.cross_fitted,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ChangeBound:
        """The inverse of `to_dict`."""
        factor = np.inf if data["factor"] is None else data["factor"]
        return cls(**{**data, "slopes": np.array(data["slopes"]), "factor": factor})


def known_signs(fits: LocalFits, unit: float, effective: np.ndarray | None = None) -> np.ndarray:
    """What an explanation shows of its own quality: (rows, 4), on log scales, in units of the outputs' deviation."""
    tiny = 1e-9
    return np.column_stack(
        [
            np.log(np.sqrt(fits.residual_mean_square) / unit + tiny),
            np.log(np.sqrt(fits.spread_mean_square) / unit + tiny),
            np.log(fits.size() / unit + tiny),
            np.log((effective_rows(fits) if effective is None else effective) + 1),
        ]
    )


def errors_on_changes(table: Table, fits: LocalFits, probes: ProbeRows) -> tuple[np.ndarray, np.ndarray]:
    """Root mean square error over each row's moves (NaN without any), and the rows that have moves."""
    if probes.asked is None:
        return np.full(len(probes), np.nan), np.empty(0, dtype=np.int64)
    rows = probes.asked.rows
    missed = probes.asked.changes - fits.changes(rows, probes.asked.moved(table))
    counts = np.bincount(rows, minlength=len(probes))
    sums = np.bincount(rows, weights=missed**2, minlength=len(probes))
    with np.errstate(invalid="ignore"):
        return np.sqrt(sums / np.where(counts, counts, np.nan)), np.flatnonzero(counts)


def effective_rows(fits: LocalFits) -> np.ndarray:
    """How many equally weighted rows would tell as much: (Σw)² / Σw²."""
    weights, n_rows = fits.weights, fits.weights.shape[0]
    row = np.repeat(np.arange(n_rows), np.diff(weights.indptr))
    sums = (np.bincount(row, sizes, minlength=n_rows) for sizes in (weights.data, weights.data**2))
    total, squares = (found.astype(np.float64) for found in sums)  # of nothing numpy makes whole numbers
    return np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)


def fidelity_frame(
    fits: LocalFits,
    values: np.ndarray,
    table: Table,
    *,
    outputs: np.ndarray | None,
    bound: ChangeBound | None,
    bound_fits: LocalFits | None,
    tolerance: float,
    expected: Expected | None,
    questions: np.ndarray | None,
    index: pd.Index,
) -> pd.DataFrame:
    """One line an explanation; what could not be known is left out, not filled in."""
    residual, spread, effective = fits.residual_mean_square, fits.spread_mean_square, effective_rows(fits)
    columns: dict[str, Any] = {}
    if outputs is not None:
        columns["error"] = np.abs(fits.predictions() - outputs)
    columns["neighbourhood_error"] = np.sqrt(residual)
    bounds = None
    if bound is not None:
        other = None if bound_fits is fits else bound_fits
        bounds = bound.bound(fits, effective) if other is None else bound.bound(other)
        columns["change_error_bound"] = bounds
    columns["gain"] = 1 - np.divide(residual, spread, out=np.ones_like(residual), where=spread > 0)
    columns["effective_rows"] = effective
    if expected is not None:
        columns["foresight"], columns["why_error"] = expected.foresight, expected.why_error
    if questions is not None:
        columns["questions"] = questions
    doubts: list[list[str]] = [[STAND_IN] if fits.has_stand_in else [] for _ in effective]
    if fits.has_curves:
        _add_expected(doubts, expected, was_asked=bound is not None)
    else:
        _add_bounds(doubts, fits.empty, bounds, tolerance)
    _add_out_of_range(table, values, doubts)
    columns["trusted"] = np.array([not found for found in doubts], dtype=bool)
    columns["doubts"] = np.empty(len(doubts), dtype=object)
    columns["doubts"][:] = doubts
    # Named afterwards, by names that pandas knows: for one row, learning them takes as long as all the rest.
    frame = pd.DataFrame(dict(enumerate(columns.values())), index=index)
    frame.columns = _names(tuple(columns)).view()
    return frame


@cache
def _names(columns: tuple[str, ...]) -> pd.Index:
    return pd.Index(columns)


def _add_expected(doubts: list[list[str]], expected: Expected | None, *, was_asked: bool) -> None:
    """Add where curves and what is said with them may be worse than is promised of those trusted."""
    for row, found in enumerate(doubts):
        if expected is None or np.isnan(expected.foresight[row]):
            found.append(
                "too few rows to measure how good explanations are; give more probe_rows, or max_questions"
                if was_asked
                else "how good explanations are was not measured"
            )
        elif not expected.enough[row]:
            asked = expected.asked is not None and bool(expected.asked[row])
            if expected.withheld and not asked:
                found.append(expected.withheld)
                continue
            foreseen, missed = max(0.0, float(expected.foresight[row])), float(expected.why_error[row])
            how = "found" if asked else "expected"
            found.append(
                f"{how} to foresee {foreseen:.0%} of what changes do, and to miss {missed:.0%} of what groups of "
                "columns do: too near the worst that is promised, or beyond it"
            )


def _add_bounds(doubts: list[list[str]], empty: np.ndarray, bounds: np.ndarray | None, tolerance: float) -> None:
    """Add where too few rows speak, and where the error on changes may be large or is not known."""
    for row in np.flatnonzero(empty):
        doubts[row].append("fewer than two training rows had weight, so this is the global model")
    if bounds is None:
        for found in doubts:
            found.append("the error on changes was not measured")
        return
    for row in np.flatnonzero(~(bounds <= tolerance)):
        doubts[row].append(
            f"the error on changes may reach {bounds[row]:.3g}, above the tolerance of {tolerance:.3g}"
            if np.isfinite(bounds[row])
            else "too few probe rows to bound the error on changes; give more probe_rows"
        )


def _add_out_of_range(table: Table, values: np.ndarray, doubts: list[list[str]]) -> None:
    """Add what no training row holds, a reason a cell."""
    lowest, highest = table.quantiles[:, 0], table.quantiles[:, -1]
    beyond = np.where(np.isnan(values), ~table.has_missing, (values < lowest) | (values > highest))
    strange = np.where(table.is_category, values == UNKNOWN, beyond)
    for row, j in np.argwhere(strange).tolist():
        column, value = table.columns[j], values[row, j]
        if column.is_category:
            doubts[row].append(f"{column.name} has a value never seen in training")
        elif np.isnan(value):
            doubts[row].append(f"{column.name} is missing, which it never was in training")
        elif value < lowest[j]:
            least = column.show_amount(float(lowest[j]))
            doubts[row].append(f"{column.name} is below all training rows (from {least})")
        else:
            most = column.show_amount(float(highest[j]))
            doubts[row].append(f"{column.name} is above all training rows (up to {most})")
