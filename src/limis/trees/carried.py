"""Recorded changes of near rows, carried over to the row to explain: the points that its tree is fitted on.

A record says what it did to the black box's answer that one column of a training row went from a to b, as it is counted
and as much of it as is told (`limis.changes`). Carried over to a row, it becomes a point: the row itself with that
column at b. What the black box would say there is put together from the row's own level, what its slopes say of the way
from its own value to a, and the record from there to b. Read backwards the same record gives the point at a. Records
that begin near the row's own value count most, since slopes lead astray on long ways.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from limis.changes import RecordedChanges
from limis.rows import TrainingRows
from limis.table import Table
from limis.trees.inputs import TreeInputs


class Points(NamedTuple):
    """What the trees of some rows are fitted on; the rows are the first dimension, padded with weight 0."""

    bins: np.ndarray  # (rows, points, features) uint8
    outputs: np.ndarray  # (rows, points)
    weights: np.ndarray  # (rows, points)


class Ragged(NamedTuple):
    """The features of each record's changed column, one after another."""

    numbers: np.ndarray
    starts: np.ndarray  # (records,)
    first: np.ndarray  # (columns + 1,) where each column's features begin among all


class Rows(NamedTuple):
    """Rows, to explain or to learn from, in the forms that carrying needs."""

    bins: np.ndarray  # (rows, tree's features) uint8
    ranks: np.ndarray  # (rows, columns)
    features: np.ndarray  # (rows, features)


class Records(NamedTuple):
    """All recorded changes."""

    starts: np.ndarray
    columns: np.ndarray
    answers: np.ndarray
    ranks: np.ndarray
    is_category: np.ndarray  # (columns,) bool


class Known(NamedTuple):
    """What is known of the rows to explain."""

    levels: np.ndarray  # (rows,)
    slopes: np.ndarray  # (rows, features)
    near: np.ndarray  # (rows, candidates) training rows
    weights: np.ndarray  # (rows, candidates)


@dataclass
class CarriedChanges:
    """The recorded changes of all training rows, in their order, as the carrying needs them."""

    starts: np.ndarray  # (training rows + 1,) where each row's records begin
    columns: np.ndarray  # (records,)
    values: np.ndarray  # (records,) the column's value after the change
    answers: np.ndarray  # (records,) what the change did to the output, in its own units
    inputs: TreeInputs
    row_ranks: np.ndarray  # (training rows, columns)
    value_ranks: np.ndarray  # (records,)
    value_bins: Ragged
    value_features: Ragged  # of the slopes' table, jumps among them
    told_share: float = 1.0  # how much of what was seen the answers tell

    @classmethod
    def of(cls, training: TrainingRows, inputs: TreeInputs, recorded: RecordedChanges) -> CarriedChanges:
        """From what was recorded at fit."""
        order = np.argsort(recorded.rows, kind="stable")
        columns = recorded.columns[order]
        values = recorded.values[order, columns]
        starts = np.searchsorted(recorded.rows[order], np.arange(len(training) + 1))
        found = cls.prepared(training, inputs, starts, columns, values, recorded.answers[order] * training.unit)
        return replace(found, told_share=recorded.told_share)

    def telling(self, told_share: float) -> CarriedChanges:
        """The same, all of whose answers are told, with a share of them."""
        assert self.told_share == 1
        return replace(self, answers=self.answers * told_share, told_share=told_share)

    @classmethod
    def prepared(
        cls,
        training: TrainingRows,
        inputs: TreeInputs,
        starts: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        answers: np.ndarray,
    ) -> CarriedChanges:
        """From the records alone: the rest follows from the training rows."""
        table = training.table
        return cls(
            starts=starts,
            columns=columns,
            values=values,
            answers=answers,
            inputs=inputs,
            row_ranks=table.ranks(training.values),
            value_ranks=_ranks(table, columns, values),
            value_bins=_ragged(table, columns, values, inputs),
            value_features=_ragged(table, columns, values),
        )

    @property
    def per_row(self) -> float:
        """How many records a training row that has any has, on average."""
        recorded = np.count_nonzero(np.diff(self.starts))
        return len(self.columns) / recorded if recorded else 0.0

    def carry(
        self,
        training: TrainingRows,
        values: np.ndarray,
        near: tuple[np.ndarray, np.ndarray],
        levels: np.ndarray,
        slopes: np.ndarray,
        reach: float,
    ) -> Points:
        """The points of some rows.

        Parameters
        ----------
        training : TrainingRows
            Whose changes were recorded.
        values : ndarray of shape (rows, columns)
            The rows to explain.
        near : pair of ndarray of shape (rows, candidates)
            Training rows and their weights, whose records are carried.
        levels : ndarray of shape (rows,)
            What is known of the rows themselves.
        slopes : ndarray of shape (rows, features)
            Along the features of the training table.
        reach : float
            How far from the row's own value, in ranks, a record may begin before it counts a third.
        """
        rows, weights = near
        counts = np.diff(self.starts)[rows] * (weights > 0)
        width = 1 + 2 * int(counts.sum(axis=1).max(initial=0))
        features = training.table.features(values)
        n, n_bins = len(values), len(self.inputs.kept)
        points = Points(np.empty((n, width, n_bins), dtype=np.uint8), np.zeros((n, width)), np.zeros((n, width)))
        from limis.trees.carrying import carry  # which is made of the tuples above

        carry(
            Rows(self.inputs.bins_of(features), training.table.ranks(values), features),
            Known(levels, np.ascontiguousarray(slopes), rows, weights),
            Rows(self.inputs.row_bins, self.row_ranks, training.features.numpy()),
            Records(self.starts, self.columns, self.answers, self.value_ranks, training.table.is_category),
            self.value_bins,
            self.value_features,
            reach,
            points,
        )
        return points


def _ranks(table: Table, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    ranks = np.empty(len(values))
    for j in range(len(table.columns)):
        own = np.flatnonzero(columns == j)
        row = np.zeros((len(own), len(table.columns)))
        row[:, j] = values[own]
        ranks[own] = table.ranks(row)[:, j]
    return ranks


def _ragged(table: Table, columns: np.ndarray, values: np.ndarray, inputs: TreeInputs | None = None) -> Ragged:
    """Each record's features of its own column; of the tree's inputs, and in their bins, where they are given."""
    owner = table.feature_column if inputs is None else inputs.column
    width = np.bincount(owner, minlength=len(table.columns))
    first = np.concatenate([[0], np.cumsum(width)])
    starts = np.cumsum(width[columns]) - width[columns]
    numbers = np.empty(int(width[columns].sum()), dtype=np.float32 if inputs is None else np.uint8)
    for j, column in enumerate(table.columns):
        own = np.flatnonzero(columns == j)
        features = column.features(values[own])
        if inputs is not None:
            plain = features[:, ~np.array(column.is_jump)]
            features = np.column_stack(
                [inputs.bins.transform_one(first[j] + place, plain[:, place]) for place in range(width[j])]
            )
        numbers[starts[own][:, None] + np.arange(width[j])] = features
    return Ragged(numbers, starts, first)
