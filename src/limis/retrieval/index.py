"""Leaf → rows: which training rows share a leaf with a row to explain, and how strongly.

The proximity of a row to training row i is the mean, over trees, of i's share of the leaf's in-bag sample; the
weighted mean of the outputs is then the forest's own prediction. For a training row only the trees count that did not
see it (out of bag): its leaf mates in the others were chosen knowing its output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass
class LeafIndex:
    """The share of each leaf's in-bag sample that each training row holds."""

    shares: sp.csr_array  # (leaves, training rows)

    @classmethod
    def build(cls, leaves: np.ndarray, counted: np.ndarray, n_leaves: int) -> LeafIndex:
        """From the training rows' leaves and how much each counts in each tree, both (rows, trees)."""
        n_rows, n_trees = leaves.shape
        rows = np.repeat(np.arange(n_rows), n_trees)
        counts = sp.csr_array((counted.ravel().astype(np.float64), (leaves.ravel(), rows)), shape=(n_leaves, n_rows))
        counts.eliminate_zeros()
        counts.sort_indices()
        totals = np.asarray(counts.sum(axis=1)).ravel()
        counts.data /= np.repeat(totals, np.diff(counts.indptr))
        return cls(counts)

    def proximity(self, leaves: np.ndarray, used: np.ndarray | None = None) -> sp.csr_array:
        """(queries, training rows), each query's summing to 1 over its rows.

        leaves : (queries, trees). used : (queries, trees) bool, the trees that count; all of them where None.
        """
        n_queries, n_trees = leaves.shape
        if used is None:
            used = np.ones(leaves.shape, dtype=bool)
        count = used.sum(axis=1)
        # A row that every tree has seen has no tree that may speak for it, and gets no weights.
        weight = used / np.maximum(count, 1)[:, None]
        starts = np.arange(n_queries + 1) * n_trees
        member = sp.csr_array(
            (weight.ravel(), leaves.ravel().astype(np.int64), starts), shape=(n_queries, self.shares.shape[0])
        )
        near = sp.csr_array(member @ self.shares)
        near.eliminate_zeros()
        near.sort_indices()
        return near


def strongest(proximity: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Each query's ``k`` strongest rows in row order, padded with row 0 at weight 0: rows and weights (queries, k)."""
    rows = np.zeros((proximity.shape[0], k), dtype=np.int64)
    weights = np.zeros((proximity.shape[0], k))
    counts = np.diff(proximity.indptr)
    for query in range(proximity.shape[0]):
        start, count = proximity.indptr[query], counts[query]
        found = proximity.indices[start : start + count]
        weight = proximity.data[start : start + count]
        if count > k:
            # A stable sort: ties go to the lower row number, whatever else is in the batch.
            keep = np.sort(np.argsort(-weight, kind="stable")[:k])
            found, weight = found[keep], weight[keep]
        rows[query, : len(found)] = found
        weights[query, : len(found)] = weight
    return rows, weights
