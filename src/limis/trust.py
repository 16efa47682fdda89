"""Which explanations by curves may be trusted: those expected to foresee changes, and to give reasons that hold.

Foresight is the share of the model's answers to changes (to values of near rows) that the curves foresee, and what
reasons miss is the error on groups of columns taken away, against what those take away. Both are measured on rows that
chose nothing. On half of them it is learned how good an explanation will be, from what is known without asking; on the
other half the cutoff is found above which promises are broken seldom enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from scipy.stats import beta
from sklearn.linear_model import Ridge

from limis.check import known_signs
from limis.curves.model import CurveFits
from limis.curves.reasons import reasons_of
from limis.reference import EVERYBODY, Reference, References
from limis.rows import TrainingRows
from limis.training.measuring import GroupAnswers, MeasuringRows

FORESIGHT, WHY_ERROR = 0.5, 0.5  # what is promised of a trusted row: at least, and at most
FLAT = 0.05  # of the outputs' deviation: where changes do less, nothing matters, and foreseeing little of it is no fault
MOST_BROKEN, CONFIDENCE = 0.05, 0.9  # of trusted rows may break a promise, and how sure that is to be
FEWEST = 40  # rows in either half
TINY = 1e-3
N_SIGNS = 7


@dataclass
class Trust:
    """How good explanations are expected to be, and which are good enough."""

    unit: float  # the outputs' standard deviation
    middle: list[float]  # of each sign, over the rows learned from
    spread: list[float]
    foresight: list[float]  # coefficients, and last an intercept, of log(1 − foresight)
    why: list[float]  # the same of log(what reasons miss)
    cutoff: float  # log of how far either may be from its promise
    measured_on: int
    trusted: int  # of the calibration rows
    broken: int  # of those
    usual_error: float  # at the row, where it is not known

    @classmethod
    def learn(
        cls,
        parts: Sequence[tuple[CurveFits, MeasuringRows]],
        training: TrainingRows,
        unit: float,
        rng: np.random.Generator,
    ) -> Trust | None:
        """From surrogates of rows whose changes and groups the black box was asked about; None of too few."""
        reference = Reference.of(EVERYBODY, training.values, training.outputs)
        found = [_measured(fits, rows, reference, unit) for fits, rows in parts]
        signs, foresight, missed, flat = (np.concatenate(held) for held in zip(*found, strict=True))
        known = rng.permutation(np.flatnonzero(np.isfinite(foresight) & np.isfinite(missed)))
        fitting, calibrating = known[: len(known) // 2], known[len(known) // 2 :]
        if len(fitting) < FEWEST:
            return None
        middle, spread = signs[fitting].mean(axis=0), np.maximum(signs[fitting].std(axis=0), 1e-9)
        inputs = (signs - middle) / spread
        either = []
        for target in (np.log(np.maximum(1 - foresight, 0.0) + TINY), np.log(missed + TINY)):
            ridge = Ridge(alpha=1.0).fit(_terms(inputs[fitting]), target[fitting])
            either.append([*ridge.coef_.tolist(), float(ridge.intercept_)])
        error = float(np.median(np.exp(signs[fitting][:, 4])) * unit)
        made = cls(unit, middle.tolist(), spread.tolist(), *either, -np.inf, len(calibrating), 0, 0, error)
        broken = ~flat & ((foresight < FORESIGHT) | (missed > WHY_ERROR))
        made._choose_cutoff(made._doubt(signs[calibrating]), broken[calibrating], flat[calibrating])
        return made

    def _choose_cutoff(self, doubt: np.ndarray, broken: np.ndarray, flat: np.ndarray) -> None:
        """The widest cutoff whose trusted rows break their promise seldom, as far as so many rows can show."""
        order = np.argsort(doubt, kind="stable")
        n, lost = np.cumsum(~flat[order]), np.cumsum(broken[order])
        upper = beta.ppf(CONFIDENCE, lost + 1, np.maximum(n - lost, 1e-9))
        allowed = np.flatnonzero((upper <= MOST_BROKEN) & (n > lost))
        if len(allowed):
            last = int(allowed[-1])
            self.cutoff, self.trusted, self.broken = float(doubt[order[last]]), int(n[last]), int(lost[last])

    def expected(self, fits: CurveFits, outputs: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The foresight of explanations, and what their reasons will miss: (rows,) both."""
        own, why = self._expected(signs_of(fits, outputs, self.unit, self.usual_error))
        return 1 - np.exp(own), np.exp(why)

    def doubt(self, fits: CurveFits, outputs: np.ndarray | None) -> np.ndarray:
        """How far rows are from being trusted: above the cutoff they are not. (rows,)."""
        return self._doubt(signs_of(fits, outputs, self.unit, self.usual_error))

    def _doubt(self, signs: np.ndarray) -> np.ndarray:
        own, why = self._expected(signs)
        return np.maximum(own - np.log(1 - FORESIGHT), why - np.log(WHY_ERROR))

    def _expected(self, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        terms = _terms((signs - self.middle) / self.spread)
        # Not matrix products: their rounding would depend on how many rows are explained together.
        own, why = ((terms * line[:-1]).sum(axis=1) + line[-1] for line in map(np.array, (self.foresight, self.why)))
        return own, why

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data; where none is trusted there is no cutoff."""
        return {**asdict(self), "cutoff": self.cutoff if np.isfinite(self.cutoff) else None}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Trust:
        """The inverse of `to_dict`."""
        found = cls(**{**data, "cutoff": -np.inf if data["cutoff"] is None else float(data["cutoff"])})
        n_terms = 2 * N_SIGNS + 1
        if {len(found.middle), len(found.spread)} != {N_SIGNS} or {len(found.foresight), len(found.why)} != {n_terms}:
            raise ValueError("what is known of trust is not whole")
        return found


def _terms(inputs: np.ndarray) -> np.ndarray:
    """Signs and their squares, where far ones lead no further: (rows, 2 · signs)."""
    near = np.clip(inputs, -3, 3)
    return np.concatenate([near, near**2], axis=1)


def signs_of(fits: CurveFits, outputs: np.ndarray | None, unit: float, usual_error: float = 0.0) -> np.ndarray:
    """What is known of rows without asking about their changes: (rows, 7), on log scales in the outputs' deviation."""
    expected = fits.predictions()
    error = np.full(len(expected), usual_error) if outputs is None else np.abs(outputs - expected)
    apart = (expected if outputs is None else outputs) - fits.ground.overall_level
    reach = np.sqrt((fits.curves(np.arange(len(expected))) ** 2).mean(axis=1))
    more = [np.log(held / unit + TINY) for held in (error, np.abs(apart), reach)]
    return np.column_stack([known_signs(fits, unit), *more])


def _measured(
    fits: CurveFits, rows: MeasuringRows, reference: Reference, unit: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Signs, foresight, what reasons miss, and where nothing matters, of some rows; NaN where nothing was asked."""
    n = len(fits.values)
    outputs, asked, groups = rows.rows.outputs, rows.promised.asked, rows.groups
    foresight, missed = np.full(n, np.nan), np.full(n, np.nan)
    flat = np.zeros(n, dtype=bool)
    if asked is not None:
        left = asked.changes - fits.changes(asked.rows, asked.moved(fits.ground.table))
        counts, least = np.bincount(asked.rows, minlength=n), (FLAT * unit) ** 2
        moved, lost = (np.bincount(asked.rows, weights=held**2, minlength=n) for held in (asked.changes, left))
        some = counts > 0
        foresight[some] = 1 - lost[some] / np.maximum(moved[some], counts[some] * least)
        flat[some] = moved[some] < counts[some] * least
    if groups is not None and len(groups):
        mine = np.unique(groups.rows)
        reasons = reasons_of(fits.part(mine), References.one(reference, len(mine)), outputs[mine])
        truth = _taken_away(fits, groups, outputs, reference)
        said = reasons.removed(np.searchsorted(mine, groups.rows), groups.units)
        counts = np.bincount(groups.rows, minlength=n)[mine]
        left, size = (
            np.sqrt(np.bincount(groups.rows, weights=held**2, minlength=n)[mine] / counts)
            for held in (truth - said, truth)
        )
        missed[mine] = left / np.maximum(size, FLAT * unit)
    return signs_of(fits, outputs, unit), foresight, missed, flat


def _taken_away(fits: CurveFits, groups: GroupAnswers, outputs: np.ndarray, reference: Reference) -> np.ndarray:
    """What is lost without each group: from few questions, and what the taught model says beyond them.

    Its own mean over all reference rows takes the place of that over the few rows that the model was asked about.
    """
    taught, members = fits.ground.taught, fits.ground.units.matrix(fits.values.shape[1])
    found = np.empty(len(groups))
    for place in range(len(groups)):
        changed, row = groups.units[place] @ members, fits.values[groups.rows[place]]
        few, many = (np.where(changed, others, row) for others in (groups.donors[place], reference.values))
        mean = (groups.outputs[place] - taught.predict(few)).mean() + taught.predict(many).mean()
        found[place] = outputs[groups.rows[place]] - mean
    return found


def learn_trust(
    parts: Sequence[tuple[Any, MeasuringRows]], training: TrainingRows, unit: float, rng: np.random.Generator
) -> Trust | None:
    """`Trust.learn` of surrogates that are curves; of others None."""
    if not parts or not all(isinstance(fits, CurveFits) for fits, _ in parts):
        return None
    return Trust.learn(cast(Sequence[tuple[CurveFits, MeasuringRows]], parts), training, unit, rng)
