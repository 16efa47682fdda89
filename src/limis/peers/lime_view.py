"""Rows as LIME sees them, and the way back: to frames that the black box can be asked with, and to our features.

LIME's rows have one number an original column, in original units: the number itself, or the code of a level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from limis.columns import Column
from limis.rows import TrainingRows
from limis.table import Table


@dataclass
class LimeView:
    """The training rows in LIME's form, and what is needed to read others like them."""

    training: TrainingRows
    fill: np.ndarray  # (columns,) what stands for a missing number
    training_rows: np.ndarray  # (training rows, columns)
    donors: list[np.ndarray]  # for each category, a training row that holds each of its levels (0 where none does)
    firsts: np.ndarray  # (columns,) the first feature of each column

    @classmethod
    def of(cls, training: TrainingRows) -> LimeView:
        """Of the training rows of an explainer."""
        table, values = training.table, training.values
        known = np.isfinite(values)
        counts = np.maximum(known.sum(axis=0), 1)
        fill = np.where(known, values, 0.0).sum(axis=0) / counts
        donors = []
        for j, column in enumerate(table.columns):
            holder = np.zeros(len(column.levels), dtype=np.int64)
            if column.is_category:
                codes = values[:, j].astype(np.int64)
                holder[codes[::-1]] = np.arange(len(codes))[::-1]  # the first holder of each level is written last
            donors.append(holder)
        firsts = np.flatnonzero(np.diff(table.feature_column, prepend=-1))
        view = cls(training, fill, values, donors, firsts)
        view.training_rows = view.rows(values)
        return view

    @property
    def table(self) -> Table:
        """What the columns are."""
        return self.training.table

    def rows(self, values: np.ndarray) -> np.ndarray:
        """LIME's rows from a table's values: the same without gaps."""
        return np.where(np.isnan(values), self.fill, values)

    def features(self, rows: np.ndarray) -> np.ndarray:
        """Our features of LIME's rows."""
        return self.table.features(rows)

    def frame(self, rows: np.ndarray) -> pd.DataFrame:
        """LIME's rows as the black box knows rows: levels are those of training rows that hold them."""
        made: dict[str, pd.Series] = {}
        for j, column in enumerate(self.table.columns):
            for source in column.sources:
                seen = self.training.frame[source]
                if column.is_category:
                    made[source] = seen.take(self.donors[j][rows[:, j].astype(np.int64)]).reset_index(drop=True)
                else:
                    made[source] = _in_type_of(seen, column, rows[:, j])
        return pd.DataFrame(made)[self.table.source_names]

    def own_feature(self, own: np.ndarray) -> np.ndarray:
        """For each column the feature that speaks for the row ``own``: the number, or the level it has: (columns,)."""
        places = self.firsts.copy()
        for j, column in enumerate(self.table.columns):
            if column.is_category:
                places[j] += int(own[self.span(j)].argmax())
        return places

    def slopes(self, own: np.ndarray, effects: np.ndarray) -> np.ndarray:
        """Effects a column (of one original unit, or of having the row's own level) as slopes of our features."""
        slopes = np.zeros(len(own))
        for j, column in enumerate(self.table.columns):
            span = self.span(j)
            if column.is_category:
                # Own is the level of the row; a level never seen is left by moving to any other.
                slopes[span] = effects[j] * (own[span] if own[span].any() else -1.0)
            else:
                slopes[span.start] = effects[j] * column.scale
                if column.has_missing:
                    slopes[span.start + 1] = effects[j] * (self.fill[j] - column.offset)
        return slopes

    def numbers(self, features: np.ndarray, column: int) -> np.ndarray:
        """A number's feature, what stands for it where it is missing filled in."""
        number = features[:, self.firsts[column]]
        if not self.table.columns[column].has_missing:
            return number
        return np.where(features[:, self.firsts[column] + 1] > 0, self.scaled(column, self.fill[[column]])[0], number)

    def scaled(self, column: int, values: np.ndarray) -> np.ndarray:
        """Values of a number column as its feature has them."""
        return self.table.columns[column].features(np.asarray(values, dtype=np.float64))[:, 0]

    def span(self, column: int) -> slice:
        """The features of a column."""
        ends = [*self.firsts[1:].tolist(), len(self.table.feature_column)]
        return slice(int(self.firsts[column]), ends[column])


@dataclass
class OwnBins:
    """A model linear in whether each column is where the explained row has it: its bin of a number, its level."""

    view: LimeView
    own: np.ndarray  # (features,)
    low: np.ndarray  # (columns,) a number is in the row's bin if it is above low and at most high, as a feature
    high: np.ndarray  # (columns,)
    effects: np.ndarray  # (columns,)
    prediction: float  # at the row itself

    @classmethod
    def of(
        cls,
        view: LimeView,
        own: np.ndarray,
        borders: Mapping[int, list[float]],
        effects: np.ndarray,
        prediction: float,
    ) -> OwnBins:
        """From the borders of each number's bins, in original units."""
        low, high = np.full(len(effects), -np.inf), np.full(len(effects), np.inf)
        for column, inner in borders.items():
            # Scaling rounds, but keeps the order: compared as features, numbers fall into the bins they came from.
            ends = np.array([-np.inf, *view.scaled(column, np.array(inner)), np.inf])
            place = int(np.searchsorted(ends, view.numbers(own[None], column)[0]))
            low[column], high[column] = ends[place - 1], ends[place]
        return cls(view, own, low, high, effects, prediction)

    def inside(self, features: np.ndarray) -> np.ndarray:
        """Whether each column of rows is where the explained row has it: (rows, columns) bool."""
        inside = np.empty((len(features), len(self.effects)), dtype=bool)
        for j, column in enumerate(self.view.table.columns):
            if column.is_category:
                span = self.view.span(j)
                inside[:, j] = (features[:, span] == self.own[span]).all(axis=1)
            else:
                number = self.view.numbers(features, j)
                inside[:, j] = (number > self.low[j]) & (number <= self.high[j])
        return inside

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """What it says of rows: (n,)."""
        return self.prediction - ~self.inside(features) @ self.effects


def _in_type_of(seen: pd.Series, column: Column, values: np.ndarray) -> pd.Series:
    """Numbers as the training column holds them; fractions stay fractions where it holds integers."""
    if column.kind == "number":
        return pd.Series(values, dtype=seen.dtype if seen.dtype.kind == "f" else np.float64)
    spans = pd.Series(pd.to_timedelta(values, unit="D"))
    start = pd.Timestamp(0, tz=None if getattr(seen.dtype, "tz", None) is None else "UTC")
    made = spans if column.kind == "duration" else start + spans
    return made.astype(seen.dtype) if seen.dtype.kind in "mM" else made
