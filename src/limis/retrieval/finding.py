"""From leaves to the nearest rows, compiled: the work depends on how many rows the leaves hold, not on all there are."""

from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(parallel=True, cache=True, nogil=True)
def find_nearest(
    leaves: np.ndarray,
    used: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    shares: np.ndarray,
    origin: np.ndarray,
    twin_starts: np.ndarray,
    twins: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Write each query's strongest rows, in row order, and their weights into zeroed ``rows`` and ``weights``.

    leaves, used : (queries, trees) the leaf in each tree, and whether the tree counts. starts, members, shares : the
    rows of each leaf, one leaf after another, and what share of it each holds. origin : the training row that each row
    stands for; those of a query's twins, listed one query after another, are left out. A weight is the mean, over trees,
    of a row's share in the leaf; of equal weights the lower row counts as the stronger.
    """
    for query in prange(len(leaves)):
        found, weight = _add_up(leaves[query], used[query], starts, members, shares)
        own = twins[twin_starts[query] : twin_starts[query + 1]]
        if len(own):
            kept = np.empty(len(found), dtype=np.bool_)
            for i in range(len(found)):
                kept[i] = not np.any(own == origin[found[i]])
            found, weight = found[kept], weight[kept]
        if len(found) > rows.shape[1]:
            kept = _strongest(found, weight, rows.shape[1])
            found, weight = found[kept], weight[kept]
        order = np.argsort(found)
        for i in range(len(order)):
            rows[query, i] = found[order[i]]
            weights[query, i] = weight[order[i]]


@njit(cache=True, nogil=True)
def _add_up(
    leaves: np.ndarray, used: np.ndarray, starts: np.ndarray, members: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows that some leaf holds, each once, and their mean shares; in the order in which they turn up."""
    n_used, n_members = 0, 0
    for tree in range(len(leaves)):
        if used[tree]:
            n_used += 1
            n_members += starts[leaves[tree] + 1] - starts[leaves[tree]]
    # A hash table with open addressing, at most half full: which place each row has among those found.
    size = 16
    while size < 2 * n_members:
        size *= 2
    slots = np.full(size, -1, dtype=np.int32)
    found, weight = np.empty(n_members, dtype=np.int64), np.zeros(n_members)
    n_found = 0
    for tree in range(len(leaves)):
        if not used[tree]:
            continue
        for place in range(starts[leaves[tree]], starts[leaves[tree] + 1]):
            row = np.int64(members[place])
            slot = ((row * 2654435761) >> 7) & (size - 1)
            while slots[slot] >= 0 and found[slots[slot]] != row:
                slot = (slot + 1) & (size - 1)
            if slots[slot] < 0:
                slots[slot] = n_found
                found[n_found] = row
                n_found += 1
            weight[slots[slot]] += shares[place] * (1 / n_used)
    return found[:n_found], weight[:n_found]


@njit(cache=True, nogil=True)
def _strongest(found: np.ndarray, weight: np.ndarray, most: int) -> np.ndarray:
    """Which ``most`` of the rows found are the strongest."""
    least = np.partition(weight, len(weight) - most)[len(weight) - most]
    kept = weight > least
    tied = np.flatnonzero(weight == least)
    by_row = tied[np.argsort(found[tied])]
    kept[by_row[: most - np.count_nonzero(kept)]] = True
    return kept
