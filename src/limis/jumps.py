"""Where the black box jumps along a column: steps that no slope can tell.

A capital gain above 7,000 decides an income where one of 3,000 does nothing. A slope spreads that over all gains and
foresees neither. So a number may have jumps beside its slope, features that are 1 above a value and 0 below. They are
found in the recorded changes, and only where they foresee much: a surrogate of few features is the readable one.
"""

from __future__ import annotations

import numpy as np

from limis.changes import RecordedChanges
from limis.columns import roundest
from limis.rows import TrainingRows

MAX_JUMPS = 3  # a column
# What a jump must foresee, of the squared changes of the black box under all recorded moves.
MIN_GAIN = 0.01
CERTAINTY = 3.0  # standard errors by which that must exceed nothing
BENDS = 8  # slopes along a column that a jump has to beat
PLACES = 63  # tried a column
MOST_CHANGES = 20_000  # looked at, a column
PENALTY = 0.001  # in shares of the features' mean square change


def find_jumps(training: TrainingRows, recorded: RecordedChanges, rng: np.random.Generator) -> list[list[float]]:
    """The jumps of every column, in rising order; most have none.

    Of a column without any in the changes as they are, those in changes counted from copies: a black box that remembers
    its rows hides them.
    """
    found = _jumps_in(training, recorded, rng)
    beside = _jumps_in(training, recorded.counted(training, "copies"), rng)
    return [own or others for own, others in zip(found, beside, strict=True)]


def _jumps_in(training: TrainingRows, recorded: RecordedChanges, rng: np.random.Generator) -> list[list[float]]:
    jumps: list[list[float]] = [[] for _ in training.table.columns]
    counts = np.ones(len(training)) if training.sample_weight is None else training.sample_weight
    squares = counts[recorded.rows] * recorded.answers**2
    # A row's changes are all in one half: what is chosen on some rows must hold on others.
    half = rng.random(len(training)) < 0.5
    for j in training.table.number_columns:
        before, after = training.values[recorded.rows, j], recorded.values[:, j]
        own = np.flatnonzero((recorded.columns == j) & np.isfinite(before) & np.isfinite(after))
        in_column = float(squares[own].sum())
        if in_column == 0 or in_column < MIN_GAIN * squares.sum():
            continue
        if len(own) > MOST_CHANGES:
            own = np.sort(rng.choice(own, MOST_CHANGES, replace=False))
        rows = recorded.rows[own]
        column = _ColumnChanges(
            rows, before[own], after[own], recorded.answers[own], counts[rows], training.table.columns[j].scale
        )
        jumps[j] = column.jumps(half[rows], MIN_GAIN * float(squares.sum()) / in_column)
    return jumps


class _ColumnChanges:
    """Recorded changes of one number column."""

    def __init__(
        self,
        rows: np.ndarray,
        before: np.ndarray,
        after: np.ndarray,
        answers: np.ndarray,
        counts: np.ndarray,
        scale: float,
    ) -> None:
        self.rows = rows
        self.answers = answers * np.sqrt(counts)
        self.places = _places(np.concatenate([before, after]))
        # Slopes that differ along the column tell what bends: a jump must foresee what they cannot.
        parts = np.searchsorted(np.unique(np.quantile(before, np.linspace(0, 1, BENDS + 1)[1:-1])), before)
        self.bends = int(parts.max()) + 1
        sloped = np.equal.outer(parts, np.arange(self.bends)) * ((after - before) / scale)[:, None]
        crossed = [(after > place).astype(float) - (before > place) for place in self.places]
        self.steps = np.column_stack([sloped, *crossed]) * np.sqrt(counts)[:, None]

    def jumps(self, half: np.ndarray, min_gain: float) -> list[float]:
        """Chosen one after another on one half of the changes, kept while the other half gains enough by it."""
        if not 1 < half.sum() < len(half) - 1:
            return []
        chosen = list(range(self.bends))
        choosing = _System(self.steps[half], self.answers[half])
        steps, answers = self.steps[~half], self.answers[~half]
        left = (answers - steps[:, chosen] @ choosing.solve(chosen)) ** 2
        while len(chosen) < self.bends + MAX_JUMPS:
            tries = [[*chosen, place] for place in range(self.bends, steps.shape[1]) if place not in chosen]
            if not tries:
                break
            best = min(tries, key=choosing.error)
            then = (answers - steps[:, best] @ choosing.solve(best)) ** 2
            # Several changes of one row are one witness.
            gain = np.bincount(self.rows[~half], weights=left - then)[np.unique(self.rows[~half])]
            sure = gain.sum() > CERTAINTY * np.sqrt(len(gain)) * gain.std()
            if not sure or gain.sum() < min_gain * (answers**2).sum():
                break
            chosen, left = best, then
        return sorted(self.places[place - self.bends] for place in chosen[self.bends :])


class _System:
    """Normal equations of the answers over all steps, of which any few can be solved."""

    def __init__(self, steps: np.ndarray, answers: np.ndarray) -> None:
        self.gram, self.moment = steps.T @ steps, steps.T @ answers
        self.total = float((answers**2).sum())

    def solve(self, kept: list[int]) -> np.ndarray:
        """The slopes of some of the steps."""
        gram = self.gram[np.ix_(kept, kept)]
        ridge = PENALTY * np.trace(gram) / len(kept) or 1.0
        return np.linalg.solve(gram + ridge * np.eye(len(kept)), self.moment[kept])

    def error(self, kept: list[int]) -> float:
        """Squared error that these steps leave."""
        slopes = self.solve(kept)
        return float(self.total - 2 * slopes @ self.moment[kept] + slopes @ self.gram[np.ix_(kept, kept)] @ slopes)


def _places(values: np.ndarray) -> list[float]:
    """Round numbers between neighbouring values: all of them, or a spread of at most `PLACES`."""
    distinct = np.unique(values)
    if len(distinct) - 1 <= PLACES:
        below = np.arange(len(distinct) - 1)
    else:
        wanted = np.quantile(values, np.linspace(0, 1, PLACES + 2)[1:-1], method="lower")
        below = np.unique(np.searchsorted(distinct, wanted).clip(max=len(distinct) - 2))
    return [roundest(float(distinct[at]), float(distinct[at + 1])) for at in below]
