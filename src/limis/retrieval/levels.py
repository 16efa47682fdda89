"""Categories as numbers a tree can split: each level by its mean output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.table import Table

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
        less_sum, less_count = left_out if left_out is not None else (0.0, 0.0)
        for j, column in enumerate(table.columns):
            if not column.is_category:
                inputs[np.isnan(inputs[:, j]), j] = -1.0
                continue
            level = values[:, j].astype(np.int64)
            known = level >= 0
            place = np.where(known, level, 0)
            total = np.where(known, self.sums[j][place] - less_sum, 0.0)
            count = np.where(known, self.counts[j][place] - less_count, 0.0)
            inputs[:, j] = (total + PRIOR * self.overall) / (count + PRIOR)
        return inputs
