"""Leaf → rows: which training rows share a leaf with a row to explain, and how strongly.

The proximity of a row to training row i is the mean, over trees, of i's share of the leaf's in-bag sample; the
weighted mean of the outputs is then the forest's own prediction. For a training row only the trees count that did not
see it (out of bag): its leaf mates in the others were chosen knowing its output.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from limis.retrieval.finding import take_strongest
from limis.retrieval.holding import hold_rows


@dataclass
class LeafIndex:
    """The share of each leaf's in-bag sample that each training row holds."""

    shares: sp.csr_array  # (leaves, training rows)

    @classmethod
    def build(
        cls,
        trees: Iterable[tuple[np.ndarray, np.ndarray]],
        n_leaves: int,
        n_rows: int,
        most: int | None = None,
        held: np.ndarray | None = None,
    ) -> LeafIndex:
        """From the training rows' leaves and how much each row counts there, (rows,) both, for one tree after another.

        Leaves are numbered through all trees. Of a leaf with more rows than ``most`` a random so many are kept.
        ``held`` are the rows that are given, in order, where these are not all.
        """
        most = n_rows if most is None else most
        n_done, work = 0, []
        # In threads: the compiled code does not hold Python's lock.
        with ThreadPoolExecutor() as threads:
            for tree, (leaves, counted) in enumerate(trees):
                n_own = int(leaves.max(initial=n_done - 1)) + 1 - n_done
                work.append(threads.submit(hold_rows, leaves - n_done, counted.astype(np.float64), n_own, most, tree))
                n_done += n_own
        done = [each.result() for each in work]
        before = np.cumsum([0, *(len(rows) for _, rows, _ in done)])
        # Leaves that no row falls into may come last.
        ends = [start + own[1:] for start, (own, _, _) in zip(before, done, strict=False)]
        starts = np.concatenate([[0], *ends, np.full(n_leaves - n_done, before[-1])])
        rows = np.concatenate([np.empty(0, dtype=np.int32), *(own for _, own, _ in done)])
        shares = np.concatenate([np.empty(0), *(own for _, _, own in done)])
        parts = (shares, rows if held is None else held[rows].astype(np.int32), starts)
        return cls(sp.csr_array(parts, shape=(n_leaves, n_rows)))

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
    rows, weights = np.zeros((proximity.shape[0], k), dtype=np.int64), np.zeros((proximity.shape[0], k))
    # Of equal weights the lower row is the stronger, whatever else is in the batch.
    take_strongest(proximity.indptr, proximity.indices, proximity.data, rows, weights)
    return rows, weights
