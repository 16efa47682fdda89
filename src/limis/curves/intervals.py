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

COVERAGE = 0.95
FEWEST = 40  # changes in either half
TINY = 1e-6


@dataclass
class CurveIntervals:
    """The regression and the factor."""

    unit: float  # the outputs' standard deviation
    slopes: np.ndarray  # (3,) over `signs`
    intercept: float
    factor: float

    @classmethod
    def learn(
        cls,
        fits: CurveFits,
        asked: Iterable[tuple[np.ndarray, MovedRows, np.ndarray]],
        unit: float,
        rng: np.random.Generator,
    ) -> CurveIntervals | None:
        """From changes of single units that the black box was asked about: rows, rows after the change, answers."""
        parts = list(asked)
        if not parts:
            return None
        all_rows, all_signs, all_errors = [], [], []
        for rows, moved, answers in parts:
            by_unit, _ = fits.parts(rows, moved)
            changed = fits.changed_units(rows, moved.values)
            own = changed.argmax(axis=1)
            said = by_unit[np.arange(len(rows)), own]
            all_rows.append(rows)
            all_signs.append(signs(fits.doubt(), rows, own, said, unit))
            all_errors.append(np.abs(answers - said))
        rows, found, errors = np.concatenate(all_rows), np.concatenate(all_signs), np.concatenate(all_errors)
        first = rng.random(len(fits.values)) < 0.5
        fitting, calibrating = first[rows], ~first[rows]
        if min(fitting.sum(), calibrating.sum()) < FEWEST:
            return None
        floor = TINY * unit + 1e-3 * float(np.median(errors[fitting]))
        ridge = Ridge(alpha=1.0).fit(found[fitting], np.log((errors[fitting] + floor) / unit))
        expected = np.exp(ridge.predict(found[calibrating]))
        factor = conformal_quantile(errors[calibrating] / unit / expected, COVERAGE)
        return cls(unit, ridge.coef_, float(ridge.intercept_), factor)

    def half_widths(self, doubt: np.ndarray, rows: np.ndarray, units: np.ndarray, said: np.ndarray) -> np.ndarray:
        """How far changes may be off: (changes,)."""
        # Not a matrix product: its rounding would depend on how many rows are explained together.
        known = signs(doubt, rows, units, said, self.unit)
        return self.factor * self.unit * np.exp((known * self.slopes).sum(axis=1) + self.intercept)


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
