"""Between which values of a number a slope holds: those of the changes, or of the rows, that it rests on.

Where a model is flat a slope would lead on without end. So what a local model says of a change is flat from the ends
of a span on; the slope itself stays what it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import prange

from limis.column_systems import Lines
from limis.perturb import MovedRows
from limis.table import Table
from limis.threads import compiled, in_parallel

if TYPE_CHECKING:
    from limis.changes import RecordedChanges
    from limis.rows import TrainingRows

POINTS = 255  # values of a number that spans may end at
NOWHERE = POINTS  # the cell of what was not recorded
# A slope hardly rests on the furthest of the changes: of their weight, so much lies beyond either end.
BEYOND = 0.05
ROUNDING = 1e-9  # by which sums that are taken in another order may differ, and more


@dataclass
class Spans:
    """Of some rows, from where and up to where the slopes of numbers hold, in feature units.

    Each holds the row's own value: from there the slope leads at least towards the values that it rests on.
    """

    lowest: np.ndarray  # (rows, numbers)
    highest: np.ndarray  # (rows, numbers)

    @classmethod
    def around(cls, table: Table, features: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> Spans:
        """Spans of rows with these features; NaN where the slope rests on no value."""
        own = features[:, table.number_features]
        return cls(np.fmin(own, lowest), np.fmax(own, highest))

    @classmethod
    def of_values(cls, table: Table, features: np.ndarray, values: np.ndarray, weights: np.ndarray) -> Spans:
        """From the least to the greatest of the values of weighted rows.

        values : (rows, candidates, numbers), NaN where missing; weights : (rows, candidates).
        """
        held = np.where((weights > 0)[:, :, None], values, np.nan)
        return cls.around(table, features, np.fmin.reduce(held, axis=1), np.fmax.reduce(held, axis=1))

    def reach_all(self, table: Table, chosen: np.ndarray) -> None:
        """Let those of some rows, whose slopes rest on all training rows, reach from end to end."""
        lowest, highest = (table.quantiles[table.number_columns, end] for end in (0, -1))
        places = table.number_features
        offset, scale = table.feature_offset[places], table.feature_scale[places]
        self.lowest[chosen] = np.fmin(self.lowest[chosen], (lowest - offset) / scale)
        self.highest[chosen] = np.fmax(self.highest[chosen], (highest - offset) / scale)

    def shorten(self, steps: np.ndarray, features: np.ndarray, rows: np.ndarray, moved: MovedRows) -> None:
        """Let steps from rows with these features, (moves, features), end where the rows' spans do."""
        places = moved.table.number_features
        ends = np.clip(moved.features[:, places], self.lowest[rows], self.highest[rows])
        known = np.isfinite(moved.values[:, moved.table.number_columns])  # what is missing stands nowhere
        steps[:, places] = np.where(known, ends - features[rows][:, places], steps[:, places])


class Cells(NamedTuple):
    """Where each recorded row's changes of each number begin and end, as places among the points; or nowhere."""

    lowest: np.ndarray  # (recorded rows, numbers) uint8
    highest: np.ndarray  # (recorded rows, numbers) uint8


@dataclass
class RecordedValues:
    """Between which values the recorded changes of training rows took them."""

    rows: np.ndarray  # (recorded rows,) their places among the training rows, rising
    points: np.ndarray  # (numbers, POINTS) in feature units, rising
    cells: Cells
    overall: (
        np.ndarray
    )  # (2, numbers, POINTS) how much all rows together count in each cell, the lowest and the highest

    @classmethod
    def of(cls, recorded: RecordedChanges, training: TrainingRows) -> RecordedValues:
        """From changes of training rows."""
        rows, slots = np.unique(recorded.rows, return_inverse=True)
        columns = training.table.number_columns
        points = np.zeros((len(columns), POINTS))
        cells = Cells(*np.full((2, len(rows), len(columns)), NOWHERE, dtype=np.uint8))
        for number, j in enumerate(columns):
            column, own = training.table.columns[j], np.flatnonzero(recorded.columns == j)
            ends = np.stack([training.values[recorded.rows[own], j], recorded.values[own, j]])
            ends = (ends - column.offset) / column.scale
            lowest, highest = np.full((2, len(rows)), np.nan)
            np.fmin.at(lowest, slots[own], np.fmin(*ends))
            np.fmax.at(highest, slots[own], np.fmax(*ends))
            known = np.isfinite(lowest)
            if known.any():
                points[number] = _points(np.concatenate([lowest[known], highest[known]]))
                cells.lowest[known, number] = np.searchsorted(points[number], lowest[known], side="right") - 1
                cells.highest[known, number] = np.searchsorted(points[number], highest[known])
        counts = np.ones(len(training)) if training.sample_weight is None else training.sample_weight
        overall = np.zeros((2, len(columns), POINTS + 1))
        for number in range(len(columns)):
            for end, held in enumerate(cells):
                overall[end, number] = np.bincount(held[:, number], counts[rows] / counts.sum(), POINTS + 1)
        return cls(rows, points, cells, overall[:, :, :POINTS])

    def slots(self, n_training: int) -> np.ndarray:
        """The place of each training row among the recorded ones, −1 where it is none: (training rows,)."""
        found = np.full(n_training, -1)
        found[self.rows] = np.arange(len(self.rows))
        return found

    def ends(self, weights: Lines, n_training: int, prior: float) -> np.ndarray:
        """Cells where the spans of rows that weigh the training rows so begin and end, −1 for none: (2, rows, numbers).

        Weights of a row sum to 1; ``prior`` is how much all training rows count together, beside them.
        """
        found = np.empty((2, len(weights.starts) - 1, len(self.points)), dtype=np.int64)
        _find_ends(weights, self.slots(n_training), self.cells, prior * self.overall, found)
        return found

    def spans(self, table: Table, features: np.ndarray, ends: np.ndarray) -> Spans:
        """Spans that begin and end in these cells, of rows with these features."""
        numbers = np.arange(len(self.points))
        lowest, highest = np.where(ends >= 0, self.points[numbers, ends], np.nan)
        return Spans.around(table, features, lowest, highest)


def _points(values: np.ndarray) -> np.ndarray:
    """All distinct values, or a spread of them with both ends; the last is repeated."""
    distinct = np.unique(values)
    if len(distinct) > POINTS:
        distinct = np.unique(np.quantile(values, np.linspace(0, 1, POINTS), method="lower"))
    return np.pad(distinct, (0, POINTS - len(distinct)), mode="edge")


@in_parallel
def _find_ends(weights: Lines, slots: np.ndarray, cells: Cells, overall: np.ndarray, found: np.ndarray) -> None:
    """Write the cells into ``found``, (2, rows, numbers)."""
    n_numbers = found.shape[2]
    for row in prange(found.shape[1]):
        lowest, highest = overall[0].copy(), overall[1].copy()
        for place in range(weights.starts[row], weights.starts[row + 1]):
            slot, size = slots[weights.places[place]], weights.sizes[place]
            if slot >= 0 and size > 0:
                for number in range(n_numbers):
                    if cells.lowest[slot, number] != NOWHERE:
                        lowest[number, cells.lowest[slot, number]] += size
                        highest[number, cells.highest[slot, number]] += size
        for number in range(n_numbers):
            found[0, row, number] = _within(lowest[number])
            last = _within(highest[number, ::-1])
            found[1, row, number] = last if last < 0 else POINTS - 1 - last


@compiled
def _within(sizes: np.ndarray) -> int:
    """The first place that less than all but `BEYOND` of the weight lies behind, −1 where there is none."""
    total = sizes.sum()
    if total <= 0:
        return -1
    before = 0.0
    for place in range(len(sizes)):
        before += sizes[place]
        if before >= (BEYOND - ROUNDING) * total:
            return place
    return len(sizes) - 1
