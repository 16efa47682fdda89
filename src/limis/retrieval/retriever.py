"""Retrieval as the weighting uses it: rows in, forest weights of the training rows out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from limis.retrieval.forest import Forest, grow_forest
from limis.retrieval.index import LeafIndex
from limis.retrieval.levels import LevelMeans, own_outputs
from limis.rows import TrainingRows

N_TREES = 100
MIN_LEAF = 3
FEATURE_SHARE = 0.5
# Fitting cost stays bounded however long the table is.
MAX_FOREST_ROWS = 100_000


@dataclass
class Retriever:
    """The forest, its index, and the codes that turn categories into numbers it can split."""

    forest: Forest
    index: LeafIndex
    in_bag: np.ndarray  # (training rows, trees) bool
    levels: LevelMeans

    @classmethod
    def fit(
        cls,
        training: TrainingRows,
        *,
        rng: np.random.Generator,
        n_jobs: int | None = None,
        n_trees: int = N_TREES,
        min_leaf: int = MIN_LEAF,
    ) -> Retriever:
        """Grow the forest on the training rows and their outputs, and index its leaves."""
        weights = np.ones(len(training)) if training.sample_weight is None else training.sample_weight
        # Rounded, so that the same outputs in another unit grow the same trees.
        outputs = training.standard_outputs.round(6)
        levels = LevelMeans.learn(training.table, training.values, outputs, weights)
        inputs = levels.inputs(training.table, training.values)
        # Equal rows enter a tree's sample together: else every tree would have seen an equal of most rows. Weights
        # decide how much a row counts in its leaf, not how the trees grow.
        places, group = training.distinct()
        count = np.bincount(group, weights=weights)
        mean = np.bincount(group, weights=weights * outputs) / np.where(count > 0, count, 1)
        counted = np.flatnonzero(count > 0)
        if len(counted) > MAX_FOREST_ROWS:
            counted = np.sort(rng.choice(counted, MAX_FOREST_ROWS, replace=False))
        forest, drawn = grow_forest(
            inputs[places[counted]],
            mean[counted],
            n_trees=n_trees,
            min_leaf=min(min_leaf, max(1, len(counted) // 4)),
            feature_share=FEATURE_SHARE,
            n_jobs=n_jobs,
            seed=int(rng.integers(2**31)),
        )
        # Rows the trees never grew on are in nobody's bag, yet may be retrieved: each counts once in its leaf.
        times = np.ones((len(places), n_trees), dtype=np.uint8)
        times[counted] = drawn
        seen = np.zeros((len(places), n_trees), dtype=bool)
        seen[counted] = drawn > 0
        index = LeafIndex.build(forest.leaves(inputs), times[group] * weights[:, None], forest.n_leaves)
        return cls(forest, index, seen[group], levels)

    def proximity(self, training: TrainingRows, values: np.ndarray) -> sp.csr_array:
        """Forest weights of all training rows for each row: (rows, training rows).

        A row that equals training rows is kept from them altogether: they get no weight, no tree that saw them is
        used, and its categories are coded without their outputs.
        """
        twins = training.twins(values)
        if twins.nnz == 0:
            return self.index.proximity(self.forest.leaves(self.levels.inputs(training.table, values)))
        weights = np.ones(len(training)) if training.sample_weight is None else training.sample_weight
        inputs = self.levels.inputs(
            training.table, values, own_outputs(twins, training.standard_outputs.round(6), weights)
        )
        saw_a_twin = (twins @ self.in_bag.astype(np.float32)) > 0
        near = self.index.proximity(self.forest.leaves(inputs), ~saw_a_twin)
        near = sp.csr_array(near - near.multiply(twins))
        near.eliminate_zeros()
        near.sort_indices()
        return near
