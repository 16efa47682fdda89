"""Retrieval as the explainer uses it: rows in, their candidate training rows with forest weights out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from limis.retrieval.forest import Forest, grow_forest
from limis.retrieval.index import LeafIndex
from limis.table import Table

N_TREES = 100
MIN_LEAF = 3
FEATURE_SHARE = 0.5
# Fitting cost stays bounded however long the table is.
MAX_FOREST_ROWS = 100_000
# How many rows' worth of trust the overall mean gets when a category's mean output is computed.
LEVEL_PRIOR = 20.0


@dataclass
class Retriever:
    """The forest, its index, and the codes that turn categories into numbers it can split."""

    forest: Forest
    index: LeafIndex
    in_bag: np.ndarray  # (training rows, trees) bool
    level_codes: list[np.ndarray]  # a column's mean output a level; empty for numbers

    @classmethod
    def fit(
        cls,
        table: Table,
        values: np.ndarray,
        outputs: np.ndarray,
        *,
        rng: np.random.Generator,
        n_jobs: int | None = None,
        n_trees: int = N_TREES,
        min_leaf: int = MIN_LEAF,
    ) -> Retriever:
        """Grow the forest on the training rows and their outputs, and index its leaves."""
        codes = _learn_level_codes(table, values, outputs)
        inputs = forest_inputs(table, values, codes)
        grow = np.arange(len(values))
        if len(grow) > MAX_FOREST_ROWS:
            grow = np.sort(rng.choice(grow, MAX_FOREST_ROWS, replace=False))
        forest, in_bag = grow_forest(
            inputs[grow],
            outputs[grow],
            n_trees=n_trees,
            min_leaf=min(min_leaf, max(1, len(grow) // 4)),
            feature_share=FEATURE_SHARE,
            n_jobs=n_jobs,
            seed=int(rng.integers(2**31)),
        )
        # Rows the trees never grew on are in nobody's bag, yet may be retrieved: each counts once in its leaf.
        members = np.ones((len(values), n_trees), dtype=np.uint8)
        members[grow] = in_bag
        seen = np.zeros((len(values), n_trees), dtype=bool)
        seen[grow] = in_bag > 0
        index = LeafIndex.build(forest.leaves(inputs), members, forest.n_leaves)
        return cls(forest, index, seen, codes)

    def proximity(self, table: Table, values: np.ndarray, used: np.ndarray | None = None) -> sp.csr_array:
        """Forest weights of all training rows for each row: (rows, training rows)."""
        leaves = self.forest.leaves(forest_inputs(table, values, self.level_codes))
        return self.index.proximity(leaves, used)

    def out_of_bag(self, training_rows: np.ndarray) -> np.ndarray:
        """The trees that did not see these training rows: (rows, trees) bool."""
        return ~self.in_bag[training_rows]


def forest_inputs(table: Table, values: np.ndarray, level_codes: list[np.ndarray]) -> np.ndarray:
    """Numbers by rank with missing below all, categories by their level's mean output: (rows, columns)."""
    inputs = table.ranks(values)
    for j, codes in enumerate(level_codes):
        if table.columns[j].is_category:
            # The last code is the overall mean: it stands for a level never seen (code -1).
            inputs[:, j] = codes[values[:, j].astype(np.int64)]
        else:
            inputs[np.isnan(inputs[:, j]), j] = -1.0
    return inputs


def _learn_level_codes(table: Table, values: np.ndarray, outputs: np.ndarray) -> list[np.ndarray]:
    overall = float(outputs.mean())
    codes = []
    for j, column in enumerate(table.columns):
        if not column.is_category:
            codes.append(np.empty(0))
            continue
        level = values[:, j].astype(np.int64)
        counts = np.bincount(level, minlength=len(column.levels))
        sums = np.bincount(level, weights=outputs, minlength=len(column.levels))
        means = (sums + LEVEL_PRIOR * overall) / (counts + LEVEL_PRIOR)
        codes.append(np.append(means, overall))
    return codes
