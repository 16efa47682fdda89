"""Which explanations by curves may be trusted: those expected to foresee changes, and to give reasons that hold.

Foresight is the share of the model's answers to changes (to values of near rows) that the curves foresee, and what
reasons miss is the error on groups of columns taken away, against what those take away. Both are measured on rows that
chose nothing: how good an explanation will be is learned from what is known without asking, and the cutoff is found
above which promises are broken seldom enough, each row judged by what the others taught.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from scipy.special import ndtr
from scipy.stats import beta
from sklearn.linear_model import Ridge

from limis.check import Expected, known_signs
from limis.curves.model import CurveFits
from limis.curves.reasons import reasons_of
from limis.fidelity.units import Units
from limis.reference import EVERYBODY, Reference, References
from limis.rows import TrainingRows
from limis.training.measuring import FLAT, GroupAnswers, MeasuringRows
from limis.walk import blocks

FORESIGHT, WHY_ERROR = 0.5, 0.5  # what is promised of a trusted row: at least, and at most
MOST_BROKEN, CONFIDENCE = 0.05, 0.9  # of trusted rows may break a promise, and how sure that is to be
REMEMBERED, LITTLE = 0.9, 0.02  # of mean squares, and of the outputs' deviation: a smaller error is no memory
CAPPED, RESAMPLED, SURE = 0.95, 400, 0.95
REMEMBERS = (
    "the model answers for the rows that explanations were measured on as it does nowhere near them: it remembers them "
    "or changes faster than rows show, and nothing is known of others; probe_rows that it was not fitted to tell which"
)
FEWEST, FOLDS = 60, 5  # rows to learn from, in so many parts
TINY, SOFT = 1e-3, 0.05  # added before logarithms: of signs, and of what is measured
GROUPS_AT_ONCE = 500
N_SIGNS = 7


@dataclass
class Trust:
    """How good explanations are expected to be, and which are good enough."""

    unit: float  # the outputs' standard deviation
    middle: list[float]  # of each sign, over the rows learned from
    spread: list[float]
    foresight: list[float]  # coefficients, and last an intercept, of log(1 − foresight)
    why: list[float]  # the same of log(what reasons miss)
    uncertain: list[float]  # standard deviations of what both leave unexplained
    cutoff: float  # of the chance that either promise is broken
    measured_on: int
    trusted: int  # of the calibration rows
    broken: int  # of those
    usual_error: float  # at the row, where it is not known
    # How far the model is from what is expected a step away from the rows measured, against these rows themselves, at
    # most. A model that remembers the very rows is nearer to it one step away.
    beside: float = 1.0

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
        if len(known) < FEWEST:
            return None
        signs, foresight, missed, flat = (held[known] for held in (signs, foresight, missed, flat))
        middle, spread = signs.mean(axis=0), np.maximum(signs.std(axis=0), 1e-9)
        inputs = (signs - middle) / spread
        targets = np.log(np.maximum(1 - foresight, 0.0) + SOFT), np.log(missed + SOFT)
        # Each row is doubted by what was learned from the others.
        own, why = (_from_others(inputs, target) for target in targets)
        uncertain = [float(np.std(target - said)) for target, said in zip(targets, (own, why), strict=True)]
        made = cls(
            unit,
            middle.tolist(),
            spread.tolist(),
            foresight=_line(inputs, targets[0]),
            why=_line(inputs, targets[1]),
            uncertain=uncertain,
            cutoff=-np.inf,
            measured_on=len(known),
            trusted=0,
            broken=0,
            usual_error=float(np.median(np.exp(signs[:, 4])) * unit),
            beside=_beside(parts, unit, rng),
        )
        if made.remembers:
            return made
        broken = ~flat & ((foresight < FORESIGHT) | (missed > WHY_ERROR))
        made._choose_cutoff(made._doubt(own, why), broken, flat)
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

    def expect(self, fits: CurveFits, outputs: np.ndarray | None) -> Expected:
        """How good explanations will be, and which of them are trusted; outputs are the rows', where known."""
        own, why = self._expected(signs_of(fits, outputs, self.unit, self.usual_error))
        enough, withheld = self._doubt(own, why) <= self.cutoff, REMEMBERS if self.remembers else ""
        return Expected(1 + SOFT - np.exp(own), np.exp(why) - SOFT, enough, withheld)

    def _expected(self, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        terms = _terms((signs - self.middle) / self.spread)
        # Not matrix products: their rounding would depend on how many rows are explained together.
        own, why = ((terms * line[:-1]).sum(axis=1) + line[-1] for line in map(np.array, (self.foresight, self.why)))
        return own, why

    def _doubt(self, own: np.ndarray, why: np.ndarray) -> np.ndarray:
        """How likely rows are to break either promise, at most: (rows,)."""
        limits = np.log(1 - FORESIGHT + SOFT), np.log(WHY_ERROR + SOFT)
        both = zip((own, why), limits, self.uncertain, strict=True)
        return sum((ndtr((said - limit) / (spread + TINY)) for said, limit, spread in both), np.zeros(len(own)))

    @property
    def remembers(self) -> bool:
        """Whether the model remembers the rows that were measured, so that they tell nothing of others."""
        return self.beside < REMEMBERED

    @property
    def promise(self) -> str:
        """What holds for those trusted, in words."""
        if self.remembers:
            return REMEMBERS[0].upper() + REMEMBERS[1:] + "."
        if not self.trusted:
            return f"Of {self.measured_on:,} rows measured none could be told apart as good enough."
        return (
            f"Of rows trusted like it, at most {MOST_BROKEN:.0%} foresee less than {FORESIGHT:.0%}, or miss more than "
            f"{WHY_ERROR:.0%} (measured on {self.trusted:,} such rows, of which {self.broken:,} did)."
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data; where none is trusted there is no cutoff."""
        return {**asdict(self), "cutoff": self.cutoff if np.isfinite(self.cutoff) else None}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Trust:
        """The inverse of `to_dict`."""
        found = cls(**{**data, "cutoff": -np.inf if data["cutoff"] is None else float(data["cutoff"])})
        wanted = [N_SIGNS, N_SIGNS, 2 * N_SIGNS + 1, 2 * N_SIGNS + 1, 2]
        if [len(held) for held in (found.middle, found.spread, found.foresight, found.why, found.uncertain)] != wanted:
            raise ValueError("what is known of trust is not whole")
        return found


def _from_others(inputs: np.ndarray, target: np.ndarray) -> np.ndarray:
    """What a line through the other rows says of each, in `FOLDS` parts."""
    found, fold = np.empty(len(target)), np.arange(len(target)) % FOLDS
    for part in range(FOLDS):
        line = np.array(_line(inputs[fold != part], target[fold != part]))
        found[fold == part] = _terms(inputs[fold == part]) @ line[:-1] + line[-1]
    return found


def _line(inputs: np.ndarray, target: np.ndarray) -> list[float]:
    """Coefficients of the terms, and the intercept."""
    ridge = Ridge(alpha=1.0).fit(_terms(inputs), target)
    return [*ridge.coef_.tolist(), float(ridge.intercept_)]


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


def _beside(parts: Sequence[tuple[CurveFits, MeasuringRows]], unit: float, rng: np.random.Generator) -> float:
    """Upper limit of how much the taught model misses one near step away from rows, against that at the rows.

    Mean squares, of which few rows cannot carry most.
    """
    at_rows, a_step_away = [], []
    for fits, rows in parts:
        taught, near = fits.ground.taught, next(iter(rows.by_range.values()), None)
        if near is None or near.asked is None:
            continue
        known, place = rows.rows.outputs, near.asked.rows
        counts = np.bincount(place, minlength=len(known))
        missed = (known[place] + near.asked.changes - taught.predict(near.asked.values)) ** 2
        stepped = counts > 0
        a_step_away.append(np.bincount(place, missed, len(known))[stepped] / counts[stepped])
        at_rows.append((known - taught.predict(fits.values))[stepped] ** 2)
    own, away = np.concatenate([[], *at_rows]), np.concatenate([[], *a_step_away])
    if len(own) < FEWEST or own.mean() <= (LITTLE * unit) ** 2:
        return 1.0
    most = np.quantile(np.concatenate([own, away]), CAPPED)
    own, away = np.minimum(own, most), np.minimum(away, most)
    again = rng.integers(len(own), size=(RESAMPLED, len(own)))
    return float(np.quantile(away[again].mean(axis=1) / np.maximum(own[again].mean(axis=1), TINY**4 * unit**2), SURE))


def _measured(
    fits: CurveFits, rows: MeasuringRows, reference: Reference, unit: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Signs, foresight, what reasons miss, and where nothing matters, of some rows; NaN where nothing was asked."""
    n = len(fits.values)
    outputs, asked, groups = rows.rows.outputs, rows.promised.asked, rows.groups
    foresight, missed = np.full(n, np.nan), np.full(n, np.nan)
    flat = rows.flat(unit)
    if asked is not None:
        left = asked.changes - fits.changes(asked.rows, asked.moved(fits.ground.table))
        counts, least = np.bincount(asked.rows, minlength=n), (FLAT * unit) ** 2
        moved, lost = (np.bincount(asked.rows, weights=held**2, minlength=n) for held in (asked.changes, left))
        some = counts > 0
        foresight[some] = 1 - lost[some] / np.maximum(moved[some], counts[some] * least)
    if groups is not None and len(groups):
        mine = np.unique(groups.rows)
        reasons = reasons_of(fits.part(mine), References.one(reference, len(mine)), outputs[mine])
        truth, noise = taken_away(fits, groups, outputs, reference, fits.ground.units)
        said = reasons.removed(np.searchsorted(mine, groups.rows), groups.units)
        counts = np.bincount(groups.rows, minlength=n)[mine]
        left, size = (
            np.sqrt(np.maximum(np.bincount(groups.rows, weights=held**2 - noise, minlength=n)[mine], 0.0) / counts)
            for held in (truth - said, truth)
        )
        missed[mine] = left / np.maximum(size, FLAT * unit)
    return signs_of(fits, outputs, unit), foresight, missed, flat


def taken_away(
    fits: CurveFits, groups: GroupAnswers, outputs: np.ndarray, reference: Reference, units: Units
) -> tuple[np.ndarray, np.ndarray]:
    """What is lost without each group, from few questions and what the taught model says beyond them; its variance.

    The taught model's own mean over all reference rows takes the place of that over the few that were asked about.
    """
    taught = fits.ground.taught
    changed = groups.units @ units.matrix(fits.values.shape[1])
    many = taught.mean_with(taught.cells(fits.values), groups.rows, changed, taught.cells(reference.values))
    few = np.empty(groups.outputs.shape)
    for part in blocks(len(groups), GROUPS_AT_ONCE):
        moved = np.where(changed[part][:, None], groups.donors[part], fits.values[groups.rows[part]][:, None])
        few[part] = taught.predict(moved.reshape(-1, moved.shape[2])).reshape(len(moved), -1)
    missed = groups.outputs - few
    noise = missed.var(axis=1, ddof=1) / missed.shape[1]
    return outputs[groups.rows] - missed.mean(axis=1) - many, noise


def learn_trust(
    parts: Sequence[tuple[Any, MeasuringRows]], training: TrainingRows, unit: float, rng: np.random.Generator
) -> Trust | None:
    """`Trust.learn` of surrogates that are curves; of others None."""
    if not parts or not all(isinstance(fits, CurveFits) for fits, _ in parts):
        return None
    return Trust.learn(cast(Sequence[tuple[CurveFits, MeasuringRows]], parts), training, unit, rng)
