"""What trees split on: the features of the table without jumps, in bins whose borders are round numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.columns import Column, roundest
from limis.rows import TrainingRows
from limis.surrogate.tree import Bins
from limis.walk import Shared


@dataclass(eq=False)
class TreeInputs(Shared):
    """The features that trees split on. Jumps are left out: a tree finds its own places to split a number at."""

    bins: Bins
    borders: np.ndarray  # (tree's features, most borders) the bins' thresholds in original units
    kept: np.ndarray  # (tree's features,) their places among all features of the table
    column: np.ndarray  # (tree's features,) the column each belongs to
    place: np.ndarray  # (tree's features,) its place among the tree's features of that column
    row_bins: np.ndarray  # (training rows, tree's features) uint8

    @classmethod
    def learn(cls, training: TrainingRows) -> TreeInputs:
        """From the training rows, which bin the numbers."""
        table = training.table
        kept = np.flatnonzero(~table.is_jump)
        column = table.feature_column[kept]
        place = np.arange(len(kept)) - np.searchsorted(column, column)
        features = table.features(training.values)[:, kept]
        bins = Bins.learn(features)
        borders = bins.thresholds.copy()
        for feature in np.flatnonzero(~table.is_level[kept]).tolist():
            n = int(bins.count[feature]) - 1
            own = table.columns[column[feature]]
            borders[feature, :n] = _round_borders(
                own, training.values[:, column[feature]], bins.thresholds[feature, :n]
            )
            bins.thresholds[feature, :n] = (borders[feature, :n] - own.offset) / own.scale
        return cls(bins, borders, kept, column, place, bins.transform(features))

    def bins_of(self, features: np.ndarray) -> np.ndarray:
        """The bins of rows given by all features of the table: (rows, tree's features) uint8."""
        return self.bins.transform(features[:, self.kept])


def _round_borders(column: Column, values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """For each threshold the roundest number, in original units, that divides the same training rows."""
    # A missing number stands where the feature is zero.
    distinct = np.unique(np.where(np.isfinite(values), values, column.offset))
    features = (distinct - column.offset) / column.scale
    at = np.searchsorted(features, thresholds, side="right")
    borders = np.array([roundest(*ends) for ends in zip(distinct[at - 1].tolist(), distinct[at].tolist(), strict=True)])
    rounded = (borders - column.offset) / column.scale
    safe = (features[at - 1] <= rounded) & (rounded < features[at])
    return np.where(safe, borders, thresholds * column.scale + column.offset)
