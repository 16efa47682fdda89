"""What the black box did when columns of training rows were changed, recorded once at fit.

A slope that rests on such records says "what this change did to rows like this one": the level drops out, and every
original column has its own small system of equations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from limis.column_systems import Added, Lines, solve_columns
from limis.copies import ChangedCopies
from limis.perturb import MAX_SINGLE, Moves, draw_moves, moved_frame, moved_values
from limis.rows import TrainingRows
from limis.table import Table

MAX_QUESTIONS = 600_000
MAX_ROUNDS = 3  # how often each column of a row is changed, where there are questions enough
# Fewer donors than rows: a near value is near enough, and the search costs rows × donors.
DONORS = 6_000
CELLS_AT_ONCE = 20_000_000  # of moved rows, when the black box is asked about them

# What a change is counted from: what the black box says of the row, or of the row's other changed copies. A black box
# that remembers its training rows answers for them as for no other row, and every step away from one forgets it.
Start = Literal["row", "copies"]
STARTS: tuple[Start, ...] = ("row", "copies")


@dataclass
class RecordedChanges:
    """One-column changes of training rows and the black box's answers."""

    rows: np.ndarray  # (changes,) the training row changed
    columns: np.ndarray  # (changes,) its column
    values: np.ndarray  # (changes, columns) the row after the change
    outputs: np.ndarray  # (changes,) f(changed), standardised as the training rows' outputs
    answers: np.ndarray  # (changes,) what the change did, in deviations of the outputs
    every: np.ndarray | None = None  # (changes, classes) f(changed) for each of several classes, in its own units
    start: Start = "row"
    told_share: float = 1.0  # how much of what was seen the answers tell

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def ask(cls, training: TrainingRows, rng: np.random.Generator) -> RecordedChanges:
        """Change every training row's columns, one at a time, and ask the black box.

        Short tables are gone through several times; of long or wide ones only some rows are changed.
        """
        rows = np.arange(len(training))
        most = max(1, MAX_QUESTIONS // min(len(training.table.columns), MAX_SINGLE))
        if len(rows) > most:
            rows = np.sort(rng.choice(rows, most, replace=False))
        rounds = [_single_moves(training, rows, rng) for _ in range(min(MAX_ROUNDS, most // len(rows)))]
        moves = Moves.join(rounds)
        every, outputs = ask_moved(training, training.frame, moves)
        outputs = (outputs - training.overall_mean) / training.unit
        values = moved_values(training.values, training.values, moves)
        answers = outputs - training.standard_outputs[moves.rows]
        return cls(moves.rows, moves.changed.argmax(axis=1), values, outputs, answers, every)

    def of_class(self, training: TrainingRows, place: int) -> RecordedChanges:
        """The same changes with the answers for one of several classes, of which these are the training rows."""
        assert self.every is not None
        outputs = (self.every[:, place] - training.overall_mean) / training.unit
        return replace(self, outputs=outputs, every=None).counted(training, self.start, self.told_share)

    def counted(self, training: TrainingRows, start: Start, told_share: float = 1.0) -> RecordedChanges:
        """The same changes with answers that are counted from another start, and of which only a share is told."""
        before = training.standard_outputs[self.rows]
        if start == "copies":
            before = self._other_copies(before)
        return replace(self, answers=told_share * (self.outputs - before), start=start, told_share=told_share)

    def _other_copies(self, otherwise: np.ndarray) -> np.ndarray:
        """Mean output of the copies of the same row in which another column is changed, else what is given."""
        columns = self.values.shape[1]
        cell = self.rows * columns + self.columns

        def of_others(weights: np.ndarray) -> np.ndarray:
            of_row = np.bincount(self.rows, weights=weights)[self.rows]
            return of_row - np.bincount(cell, weights=weights)[cell]

        counts = of_others(np.ones(len(self)))
        return np.where(counts > 0, of_others(self.outputs) / np.maximum(counts, 1), otherwise)

    def copies(self, most: int, rng: np.random.Generator) -> ChangedCopies:
        """Some of the changed rows, with what the black box says of them."""
        chosen = np.arange(len(self))
        if len(chosen) > most:
            chosen = np.sort(rng.choice(chosen, most, replace=False))
        every = None if self.every is None else self.every[chosen]
        return ChangedCopies(self.values[chosen], self.outputs[chosen], self.rows[chosen], every)

    def systems(self, table: Table, before: np.ndarray, sample_weight: np.ndarray | None = None) -> ColumnSystems:
        """The normal equations of every row, to be weighed and added; ``before`` are the values of all rows.

        Several changes of one column of a row count together as one.
        """
        steps = self._steps(table, before)
        width = np.bincount(table.feature_column)
        first = np.concatenate([[0], np.cumsum(width)[:-1]])
        place = np.concatenate([[0], np.cumsum(width**2)])  # where each column's square begins
        # A change touches one column's features, one or two of them: the outer product of its few entries.
        pairs = _pairs_in_rows(steps)
        column = self.columns[pairs.line]
        cell = place[column] + (pairs.left - first[column]) * width[column] + (pairs.right - first[column])
        n = len(before)
        counts = np.bincount(self.rows * len(width) + self.columns, minlength=n * len(width))
        share = 1 / counts[self.rows * len(width) + self.columns]
        grams = sp.csr_array((pairs.product * share[pairs.line], (self.rows[pairs.line], cell)), shape=(n, place[-1]))
        line = np.repeat(np.arange(len(self)), np.diff(steps.indptr))
        moments = sp.csr_array(
            (steps.data * (self.answers * share)[line], (self.rows[line], steps.indices)), shape=(n, steps.shape[1])
        )
        weight = np.ones(n) if sample_weight is None else sample_weight
        return ColumnSystems(grams, moments, width, weight / weight.sum())

    def _steps(self, table: Table, before: np.ndarray) -> sp.csr_array:
        """How far each change moved the features: (changes, features). Those of the other columns stay as they are."""
        lines, places, sizes = [], [], []
        for j, column in enumerate(table.columns):
            changes = np.flatnonzero(self.columns == j)
            moved = column.features(self.values[changes, j]) - column.features(before[self.rows[changes], j])
            line, place = np.nonzero(moved)
            lines.append(changes[line])
            places.append(np.searchsorted(table.feature_column, j) + place)
            sizes.append(moved[line, place])
        where = (np.concatenate(lines), np.concatenate(places))
        return sp.csr_array((np.concatenate(sizes), where), shape=(len(self), len(table.feature_column)))


def ask_moved(
    training: TrainingRows, frame: pd.DataFrame, moves: Moves, donors: pd.DataFrame | None = None
) -> tuple[np.ndarray | None, np.ndarray]:
    """What the black box says of moved rows: for all classes where there are several, else None; and what is explained.

    donors : the rows that values come from; training rows where not given.

    Of wide tables few moved rows at a time are written out: all of them would take as much memory as the table does,
    many times over.
    """
    box, n_columns = training.black_box, len(training.table.source_names)
    several = box.view is not None and training.every is not None
    at_once = max(1, CELLS_AT_ONCE // max(1, n_columns))
    answers = []
    for start in range(0, len(moves), at_once):
        part = moves.taken(slice(start, start + at_once))
        asked = moved_frame(training.table, frame, training.frame if donors is None else donors, part)
        answers.append(box.every_output(asked) if several else box.outputs(asked))
    if not several:
        return None, np.concatenate(answers) if answers else np.empty(0)
    assert box.view is not None
    assert training.every is not None
    every = np.concatenate([training.every[:0], *answers])
    return every, box.view(every)


def _single_moves(training: TrainingRows, rows: np.ndarray, rng: np.random.Generator) -> Moves:
    """One move of every column of these training rows that can be moved."""
    moves = draw_moves(training.table, training.values[rows], training.values, rng, pool_size=DONORS)
    single = moves.taken(moves.changed.sum(axis=1) == 1)
    single.rows = rows[single.rows]
    return single


@dataclass
class _Pairs:
    line: np.ndarray
    left: np.ndarray
    right: np.ndarray
    product: np.ndarray


def _pairs_in_rows(matrix: sp.csr_array) -> _Pairs:
    """All pairs of entries that stand in one row of a matrix, with their products."""
    counts = np.diff(matrix.indptr)
    line = np.repeat(np.arange(len(counts)), counts)
    repeats = counts[line]
    left = np.repeat(np.arange(matrix.nnz), repeats)
    # For each entry, run through all entries of its row.
    within = np.arange(len(left)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    right = matrix.indptr[line[left]] + within
    return _Pairs(line[left], matrix.indices[left], matrix.indices[right], matrix.data[left] * matrix.data[right])


def lines_of(matrix: sp.csr_array) -> Lines:
    """As compiled code takes it."""
    return Lines(matrix.indptr, matrix.indices, matrix.data)


@dataclass
class ColumnSystems:
    """Every training row's part in the systems Σ Δx Δxᵀ β = Σ Δx Δf, a small one for each original column."""

    grams: sp.csr_array  # (training rows, cells of all columns' squares)
    moments: sp.csr_array  # (training rows, features)
    width: np.ndarray  # (columns,) features of each column
    share: np.ndarray  # (training rows,) how much each counts among all, summing to 1
    _added: dict[tuple[float, float], Added] = field(default_factory=dict, init=False, repr=False, compare=False)

    def slopes(self, weights: Lines, prior: float, penalty: float) -> tuple[np.ndarray, np.ndarray]:
        """Slopes for rows that weigh the training rows so, and which features some weighted row's changes moved.

        (rows, features) both; slopes are in feature units and deviations of f. ``prior`` is how much all training rows
        count together, beside the weighted ones; ``penalty`` pulls to zero, in shares of the mean square of a column's
        changes. Weights of a row sum to 1.
        """
        shape = (len(weights.starts) - 1, self.moments.shape[1])
        slopes, touched = np.empty(shape), np.empty(shape, dtype=bool)
        systems = (lines_of(self.grams), lines_of(self.moments), self.added(prior, penalty))
        solve_columns(weights, *systems, slopes, touched)
        return slopes, touched

    def added(self, prior: float, penalty: float) -> Added:
        """What stands in the systems of all rows: what all training rows count, and what pulls to zero."""
        if (prior, penalty) not in self._added:
            self._added[prior, penalty] = self._add(prior, penalty)
        return self._added[prior, penalty]

    def _add(self, prior: float, penalty: float) -> Added:
        gram = prior * self._every_gram[0]
        for cell, size in zip(self._starts(), self.width.tolist(), strict=True):
            gram[cell : cell + size**2 : size + 1] += penalty * self.mean_square(self._every_gram, cell, size)
        return Added(self.width, gram, prior * self._every_moment[0])

    def telling(self, told_share: float) -> ColumnSystems:
        """The same with a share of what the changes did."""
        return replace(self, moments=sp.csr_array(self.moments * told_share))

    @cached_property
    def _every_gram(self) -> np.ndarray:
        """The systems of all training rows together: (1, cells)."""
        return np.asarray(self.share[None] @ self.grams)

    @cached_property
    def _every_moment(self) -> np.ndarray:
        return np.asarray(self.share[None] @ self.moments)

    def _starts(self) -> list[int]:
        """Where each column's square begins among the cells."""
        return np.concatenate([[0], np.cumsum(self.width**2)[:-1]]).tolist()

    @staticmethod
    def mean_square(every_gram: np.ndarray, cell: int, size: int) -> float:
        """Mean square change of a column's features over all training rows; 1 for a column that was never changed."""
        mean = float(every_gram[0, cell : cell + size**2 : size + 1].mean())
        return mean if mean > 0 else 1.0
