"""Categories as numbers a tree can split: each level by its mean output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import prange

from limis.table import Table
from limis.threads import in_parallel

# How many rows' worth of trust the overall mean gets when a level's mean output is computed.
PRIOR = 20.0


@dataclass
class LevelMeans:
    """Sums and counts of the outputs of every level of every category."""

    sums: list[np.ndarray]  # a column each, empty for numbers
    counts: list[np.ndarray]
    overall: float

    @classmethod
    def learn(cls, table: Table, values: np.ndarray, outputs: np.ndarray, weights: np.ndarray) -> LevelMeans:
        """From the training rows."""
        sums, counts = [], []
        for j, column in enumerate(table.columns):
            size = len(column.levels) if column.is_category else 0
            level = values[:, j].astype(np.int64) if column.is_category else np.empty(0, dtype=np.int64)
            some = weights if column.is_category else np.empty(0)
            known = outputs if column.is_category else np.empty(0)
            sums.append(np.bincount(level, weights=some * known, minlength=size))
            counts.append(np.bincount(level, weights=some, minlength=size))
        return cls(sums, counts, float(np.average(outputs, weights=weights)))

    def inputs(
        self, table: Table, values: np.ndarray, left_out: tuple[np.ndarray, np.ndarray] | None = None
    ) -> np.ndarray:
        """What the forest sees: numbers by rank with missing below all, levels by their mean output.

        left_out : sum and count of the outputs that must not speak for each row, because they are its own.
        """
        inputs = table.ranks(values)
        less_sum, less_count = (np.zeros(len(values)),) * 2 if left_out is None else left_out
        write_means(np.ascontiguousarray(values, dtype=np.float64), self._packed, less_sum, less_count, inputs)
        return inputs

    @cached_property
    def _packed(self) -> Sums:
        sizes = [len(own) for own in self.sums]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return Sums(starts, np.concatenate(self.sums), np.concatenate(self.counts), self.overall)


class Sums(NamedTuple):
    """The levels of all categories, one column after another."""

    starts: np.ndarray  # (columns + 1,) where each column's levels begin; a number has none
    sums: np.ndarray
    counts: np.ndarray
    overall: float


@in_parallel
def write_means(
    values: np.ndarray, levels: Sums, less_sum: np.ndarray, less_count: np.ndarray, inputs: np.ndarray
) -> None:
    """Write the mean outputs of levels over their codes in ``inputs``, (rows, columns), and -1 over missing numbers."""
    for row in prange(len(values)):
        for column in range(values.shape[1]):
            first = levels.starts[column]
            if first == levels.starts[column + 1]:
                if np.isnan(inputs[row, column]):
                    inputs[row, column] = -1.0
                continue
            total = count = 0.0
            code = np.int64(values[row, column])
            if code >= 0:
                total = levels.sums[first + code] - less_sum[row]
                count = levels.counts[first + code] - less_count[row]
            inputs[row, column] = (total + PRIOR * levels.overall) / (count + PRIOR)
