"""Retrieval as the weighting uses it: rows in, forest weights of the training rows out.

Trees are grown on the black box's outputs, and find rows of which it says the same. Where slopes come from elsewhere
and carry the level to the row, half of the trees are grown on what one ridge for all rows leaves of the outputs: their
rows may lie far along the trend, which the slopes make up for, and are alike in what slopes cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import Ridge

from limis.copies import ChangedCopies
from limis.retrieval.finding import Groups, Held, find_nearest
from limis.retrieval.forest import Forest, grow_forest
from limis.retrieval.index import LeafIndex
from limis.retrieval.levels import LevelMeans
from limis.retrieval.origins import add_by_origin
from limis.rows import TrainingRows

N_TREES = 100
MIN_LEAF = 3
FEATURE_SHARE = 0.5
ALPHA = 0.001  # of the ridge whose trend is taken off: only to make it solvable
MIN_LEFT = 1e-3  # deviations of the outputs: of a black box that is a line nothing is left but rounding
# Fitting cost stays bounded however long the table is.
MAX_FOREST_ROWS = 100_000
MAX_IN_LEAF = 64  # rows that a leaf keeps, where more rows fall into it than the trees were grown on


@dataclass
class Retriever:
    """The forest, its index over training rows and copies, and the codes that turn categories into numbers."""

    forest: Forest
    index: LeafIndex  # over the training rows, then the copies
    in_bag: np.ndarray  # (training rows, trees) bool
    levels: LevelMeans
    origin: np.ndarray  # (training rows + copies,) the training row each one stands for
    marked_index: LeafIndex | None = None  # over those that stand for marked training rows alone
    _groups: np.ndarray | None = field(default=None, init=False, repr=False)
    _recorded: tuple[np.ndarray, LeafIndex] | None = field(default=None, init=False, repr=False)

    @classmethod
    def fit(
        cls,
        training: TrainingRows,
        *,
        rng: np.random.Generator,
        copies: ChangedCopies | None = None,
        n_jobs: int | None = None,
        n_trees: int = N_TREES,
        min_leaf: int = MIN_LEAF,
        beyond_trend: bool = False,
        marked: np.ndarray | None = None,
    ) -> Retriever:
        """Grow the forest on the training rows (and copies) and their outputs, and index its leaves.

        ``beyond_trend`` grows every second tree on what one ridge for all rows leaves of the outputs. ``marked`` are
        training rows, (rows,) bool, that can be retrieved alone; among many others they would hardly turn up.
        """
        if copies is None:
            n_classes = None if training.every is None else training.every.shape[1]
            copies = ChangedCopies.none(training.values.shape[1], n_classes)
        weights = np.ones(len(training)) if training.sample_weight is None else training.sample_weight
        # Rounded, so that the same outputs in another unit grow the same trees.
        outputs = training.seen_outputs.round(6)
        levels = LevelMeans.learn(training.table, training.values, outputs, weights)
        inputs = levels.inputs(training.table, np.concatenate([training.values, copies.values]))
        origin = np.concatenate([np.arange(len(training)), copies.origin])

        # Equal rows and copies enter a tree's sample with the row they belong to: else most trees would have seen
        # something of every row. Weights decide how much a row counts in its leaf, not how the trees grow.
        places, group = training.distinct()
        count = np.bincount(group, weights=weights)
        grown_on, of_copies = outputs[:, None], copies.outputs[:, None].round(6)
        if training.every is not None and copies.every is not None:
            # Of several classes all outputs decide who is near.
            grown_on, of_copies = (training.standardised(part).round(6) for part in (training.every, copies.every))
        sums = [np.bincount(group, weights=weights * column) for column in grown_on.T]
        mean = np.stack(sums, axis=1) / np.where(count > 0, count, 1)[:, None]
        used = np.flatnonzero(count > 0)
        if len(used) > MAX_FOREST_ROWS:
            used = np.sort(rng.choice(used, MAX_FOREST_ROWS, replace=False))
        number = np.full(len(places), -1)
        number[used] = np.arange(len(used))
        kept = np.flatnonzero(number[group[copies.origin]] >= 0)
        targets = [np.concatenate([mean[used], of_copies[kept]])]
        if beyond_trend:
            trend = _trend(training, copies, places, mean, count)
            left = targets[0] - np.concatenate([trend[used], trend[len(places) :][kept]])
            if left.std() > MIN_LEFT:
                targets.append((left / left.std()).round(6))
        forest, drawn = grow_forest(
            np.concatenate([inputs[places[used]], inputs[len(training) :][kept]]),
            targets,
            np.concatenate([np.arange(len(used)), number[group[copies.origin[kept]]]]),
            n_trees=n_trees,
            min_leaf=min(min_leaf, max(1, len(used) // 4)),
            feature_share=FEATURE_SHARE,
            n_jobs=n_jobs,
            seed=int(rng.integers(2**31)),
        )
        # Rows the trees never grew on are in nobody's bag, yet may be retrieved: each counts once in its leaf.
        times = np.ones((n_trees, len(places)), dtype=np.uint8)
        times[:, used] = drawn.T
        seen = np.zeros((len(places), n_trees), dtype=bool)
        seen[used] = drawn > 0
        most = MAX_IN_LEAF if len(training) > MAX_FOREST_ROWS else None

        def index_of(held: np.ndarray) -> LeafIndex:
            of_group, weight = group[origin[held]], weights[origin[held]]
            by_tree = enumerate(forest.leaves_by_tree(inputs[held]))
            counted = ((leaves, times[tree][of_group] * weight) for tree, leaves in by_tree)
            return LeafIndex.build(counted, forest.n_leaves, len(origin), most, held)

        index = index_of(np.arange(len(origin)))
        marked_index = None if marked is None else index_of(np.flatnonzero(marked[origin]))
        return cls(forest, index, seen[group], levels, origin, marked_index)

    def proximity(self, training: TrainingRows, values: np.ndarray) -> sp.csr_array:
        """Forest weights for each row: (rows, training rows + copies).

        A row that equals training rows is kept from them altogether: they and their copies get no weight, no tree
        that saw them is used, and its categories are coded without their outputs.
        """
        inputs, used, own = self.asked(training, values)
        near = self.index.proximity(self.forest.leaves(inputs), used)
        if (own >= 0).any():
            row = np.repeat(np.arange(len(values)), np.diff(near.indptr))
            near.data[self.groups(training)[near.indices] == own[row]] = 0.0
            near.eliminate_zeros()
        return near

    def nearest(
        self, training: TrainingRows, values: np.ndarray, most: int, index: LeafIndex | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The strongest rows of `proximity`, in row order, and their weights: (rows, most) both, padded with zeros.

        Of equal weights the lower row counts as the stronger. ``index`` is another than over all rows and copies, such
        as `marked_index`.
        """
        return self.each_nearest(training, values, [(self.index if index is None else index, most)])[0]

    def each_nearest(
        self, training: TrainingRows, values: np.ndarray, wanted: Sequence[tuple[LeafIndex, int]]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The same in several indexes, of each so many."""
        inputs, used, own = self.asked(training, values)
        leaves, groups, found = self.forest.leaves(inputs), Groups(own, self.groups(training)), []
        for index, most in wanted:
            rows, weights = np.zeros((len(values), most), dtype=np.int64), np.zeros((len(values), most))
            held = Held(index.shares.indptr, index.shares.indices, index.shares.data)
            find_nearest(leaves, used, held, groups, rows, weights)
            found.append((rows, weights))
        return found

    def index_of_recorded(self, record_starts: np.ndarray) -> LeafIndex:
        """An index of the training rows that have records, in which copies stand for their origins.

        record_starts : (training rows + 1,) where each row's records begin. The last index made is kept.
        """
        if self._recorded is not None and self._recorded[0] is record_starts:
            return self._recorded[1]
        shares = self.index.shares
        origin = self.origin[shares.indices]
        held = (np.diff(record_starts) > 0)[origin]
        starts = np.concatenate([[0], np.cumsum(held)])[shares.indptr]
        index = LeafIndex(sp.csr_array((shares.data[held], origin[held], starts), shape=shares.shape))
        self._recorded = (record_starts, index)
        return index

    def __getstate__(self) -> dict[str, Any]:
        # What can be made again need not travel.
        return {**self.__dict__, "_groups": None, "_recorded": None}

    def groups(self, training: TrainingRows) -> np.ndarray:
        """The group of equal training rows that each row or copy stands for: (training rows + copies,)."""
        if self._groups is None:
            self._groups = training.group[self.origin]
        return self._groups

    def asked(self, training: TrainingRows, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The inputs of rows, which trees may speak for them, and the group of training rows that equal each."""
        own = training.group_of(values)
        used = np.ones((len(values), self.forest.n_trees), dtype=bool)
        equal = np.flatnonzero(own >= 0)
        left_out = None
        if len(equal):
            sums, counts = training.group_sums
            left_out = (np.where(own >= 0, sums[own], 0.0), np.where(own >= 0, counts[own], 0.0))
            # Equal rows are in the same trees' samples.
            used[equal] = ~self.in_bag[training.distinct()[0][own[equal]]]
        return self.levels.inputs(training.table, values, left_out), used, own

    def by_origin(self, rows: np.ndarray, weights: np.ndarray) -> sp.csr_array:
        """Weights of rows and copies, (rows, candidates) both, added up by training row: (rows, training rows)."""
        # In the type that sparse matrices have: else they are copied once more.
        counts = np.empty(len(rows), dtype=np.int32)
        places, sizes = np.empty(rows.shape, dtype=np.int32), np.empty(rows.shape)
        add_by_origin(rows, weights, self.origin, counts, places, sizes)
        kept = np.arange(rows.shape[1]) < counts[:, None]
        starts = np.zeros(len(rows) + 1, dtype=np.int32)
        np.cumsum(counts, out=starts[1:])
        return sp.csr_array((sizes[kept], places[kept], starts), shape=(len(rows), len(self.in_bag)))


def _trend(
    training: TrainingRows, copies: ChangedCopies, places: np.ndarray, outputs: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """What one ridge for all rows says of the distinct rows, given by their places, then of the copies."""
    features = training.features[torch.as_tensor(places)].double().numpy()
    ridge = Ridge(alpha=ALPHA).fit(features, outputs, sample_weight=counts)
    said = ridge.predict(np.concatenate([features, training.table.features(copies.values)]))
    return said.reshape(len(said), -1)
