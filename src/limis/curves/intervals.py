"""How far curves may be off: intervals that hold for 95% of changes, found on rows that chose nothing.

On half of the rows a small regression learns how large the error of a change tends to be, from what is known without
asking: how much the stand-in misses among the rows that speak, of all columns and of the changed one, and how large
the change is said to be. On the other half the factor is found by which that must be raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.linear_model import Ridge

from limis.metrics.conformal import conformal_quantile
from limis.perturb import MovedRows

if TYPE_CHECKING:
    from limis.curves.model import CurveFits

Asked = tuple[np.ndarray, MovedRows, np.ndarray]  # rows, the same after the change, what the change did

COVERAGE = 0.95
FEWEST = 40  # changes in either half
TINY = 1e-6
N_SIGNS = 3  # by which the size of an error is foreseen


@dataclass
class CurveIntervals:
    """The regression, and for each unit of columns the factor."""

    unit: float  # the outputs' standard deviation
    slopes: np.ndarray  # (3,) over `signs`
    intercept: float
    factors: np.ndarray  # (units,)

    @classmethod
    def learn(
        cls, parts: Iterable[tuple[CurveFits, list[Asked]]], unit: float, rng: np.random.Generator
    ) -> CurveIntervals | None:
        """From fits, and changes of single units of their rows that the black box was asked about."""
        all_rows, all_units, all_signs, all_errors = [], [], [], []
        n_rows = n_units = 0
        for fits, asked in parts:
            doubt = fits.doubt()
            for rows, moved, answers in asked:
                own, said = fits.single_changes(rows, moved)
                n_units = len(fits.ground.units)
                all_rows.append(n_rows + rows)
                all_units.append(own)
                all_signs.append(signs(doubt, rows, own, said, unit))
                all_errors.append(np.abs(answers - said))
            n_rows += len(fits.values)
        if not all_rows:
            return None
        rows, units, found, errors = map(np.concatenate, (all_rows, all_units, all_signs, all_errors))
        first = rng.random(n_rows) < 0.5
        fitting, calibrating = first[rows], ~first[rows]
        if min(fitting.sum(), calibrating.sum()) < FEWEST:
            return None
        floor = TINY * unit + 1e-3 * float(np.median(errors[fitting]))
        ridge = Ridge(alpha=1.0).fit(found[fitting], np.log((errors[fitting] + floor) / unit))
        scores = errors[calibrating] / unit / np.exp(ridge.predict(found[calibrating]))
        factors = np.full(n_units, conformal_quantile(scores, COVERAGE))
        # What holds for all columns together may fail for the few that matter: none is promised more than holds for it.
        for one in range(n_units):
            own = scores[units[calibrating] == one]
            if len(own) >= FEWEST:
                factors[one] = max(factors[one], conformal_quantile(own, COVERAGE))
        return cls(unit, ridge.coef_, float(ridge.intercept_), factors)

    def half_widths(self, doubt: np.ndarray, rows: np.ndarray, units: np.ndarray, said: np.ndarray) -> np.ndarray:
        """How far changes may be off: (changes,)."""
        # Not a matrix product: its rounding would depend on how many rows are explained together.
        known = signs(doubt, rows, units, said, self.unit)
        return self.factors[units] * self.unit * np.exp((known * self.slopes).sum(axis=1) + self.intercept)


def signs(doubt: np.ndarray, rows: np.ndarray, units: np.ndarray, said: np.ndarray, unit: float) -> np.ndarray:
    """What is known of each change: (changes, 3), on log scales.

    doubt : (rows, units) mean square of what the stand-in missed of each unit's responses among the rows that speak.
    """
    whole, own = doubt.mean(axis=1)[rows], doubt[rows, units]
    return np.column_stack(
        [
            np.log(np.sqrt(whole) / unit + TINY),
            np.log(np.sqrt(own) / unit + TINY),
            np.log(np.abs(said) / unit + 1e-3),
        ]
    )
