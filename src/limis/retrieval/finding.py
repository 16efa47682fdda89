"""From leaves to the nearest rows, compiled: the work depends on how many rows the leaves hold, not on all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from limis.threads import in_parallel

# Shares are added up as whole numbers of this part: their sum is the same in any order, and equal weights are equal.
WHOLE = 2.0**40


class Held(NamedTuple):
    """The rows of each leaf, one leaf after another."""

    starts: np.ndarray  # (leaves + 1,) where each leaf's begin
    rows: np.ndarray
    shares: np.ndarray  # what share of the leaf each row holds


class Twins(NamedTuple):
    """The training rows that equal each query, one query after another, and whom the rows in the leaves stand for."""

    starts: np.ndarray  # (queries + 1,) where each query's begin
    rows: np.ndarray
    origin: np.ndarray  # (rows,) the training row that each row in a leaf stands for


@in_parallel
def find_nearest(
    leaves: np.ndarray, used: np.ndarray, held: Held, twins: Twins, rows: np.ndarray, weights: np.ndarray
) -> None:
    """Write each query's strongest rows, in row order, and their weights into zeroed ``rows`` and ``weights``.

    leaves, used : (queries, trees) the leaf in each tree, and whether the tree counts. A weight is the mean, over
    trees, of a row's share in the leaf; of equal weights the lower row counts as the stronger. Rows that stand for a
    query's twins are left out.
    """
    for query in prange(len(leaves)):
        found, weight = _add_up(leaves[query], used[query], held)
        own = twins.rows[twins.starts[query] : twins.starts[query + 1]]
        if len(own):
            other = np.empty(len(found), dtype=np.bool_)
            for i in range(len(found)):
                other[i] = not np.any(own == twins.origin[found[i]])
            found, weight = found[other], weight[other]
        if len(found) > rows.shape[1]:
            strong = _strongest(found, weight, rows.shape[1])
            found, weight = found[strong], weight[strong]
        order = np.argsort(found)
        for i in range(len(order)):
            rows[query, i] = found[order[i]]
            weights[query, i] = weight[order[i]]


@njit(cache=True, nogil=True)
def _add_up(leaves: np.ndarray, used: np.ndarray, held: Held) -> tuple[np.ndarray, np.ndarray]:
    """The rows that some leaf holds, each once, and their mean shares; in the order in which they turn up."""
    counted = leaves[used]
    n_rows = 0
    for leaf in counted:
        n_rows += held.starts[leaf + 1] - held.starts[leaf]
    # A hash table with open addressing, at most half full: which place each row has among those found.
    size = 16
    while size < 2 * n_rows:
        size *= 2
    slots = np.full(size, -1, dtype=np.int32)
    found, total = np.empty(n_rows, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
    n_found = 0
    for leaf in counted:
        for place in range(held.starts[leaf], held.starts[leaf + 1]):
            row = np.int64(held.rows[place])
            slot = ((row * 2654435761) >> 7) & (size - 1)
            while slots[slot] >= 0 and found[slots[slot]] != row:
                slot = (slot + 1) & (size - 1)
            if slots[slot] < 0:
                slots[slot] = n_found
                found[n_found] = row
                n_found += 1
            total[slots[slot]] += np.int64(held.shares[place] * WHOLE + 0.5)
    return found[:n_found], total[:n_found] / (WHOLE * max(1, len(counted)))


@njit(cache=True, nogil=True)
def _strongest(found: np.ndarray, weight: np.ndarray, most: int) -> np.ndarray:
    """Which ``most`` of the rows found are the strongest."""
    least = np.partition(weight, len(weight) - most)[len(weight) - most]
    kept = weight > least
    tied = np.flatnonzero(weight == least)
    by_row = tied[np.argsort(found[tied])]
    kept[by_row[: most - np.count_nonzero(kept)]] = True
    return kept
