"""From leaves to the nearest rows, compiled: the work depends on how many rows the leaves hold, not on all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel

# Shares are added up as whole numbers of this part: their sum is the same in any order, and equal weights are equal.
WHOLE = 2.0**40


class Held(NamedTuple):
    """The rows of each leaf, one leaf after another."""

    starts: np.ndarray  # (leaves + 1,) where each leaf's begin
    rows: np.ndarray
    shares: np.ndarray  # what share of the leaf each row holds


class Groups(NamedTuple):
    """Rows that are equal to each other."""

    own: np.ndarray  # (queries,) the group that each query equals, -1 where none
    of_row: np.ndarray  # (rows,) the group that each row in a leaf stands for


@in_parallel
def find_nearest(
    leaves: np.ndarray, used: np.ndarray, held: Held, groups: Groups, rows: np.ndarray, weights: np.ndarray
) -> None:
    """Write each query's strongest rows, in row order, and their weights into zeroed ``rows`` and ``weights``.

    leaves, used : (queries, trees) the leaf in each tree, and whether the tree counts. A weight is the mean, over
    trees, of a row's share in the leaf; of equal weights the lower row counts as the stronger. Rows that equal the
    query, or stand for one that does, are left out.
    """
    for query in prange(len(leaves)):
        found, weight = _add_up(leaves[query], used[query], held)
        if groups.own[query] >= 0:
            other = groups.of_row[found] != groups.own[query]
            found, weight = found[other], weight[other]
        if len(found) > rows.shape[1]:
            strong = _strongest(found, weight, rows.shape[1])
            found, weight = found[strong], weight[strong]
        order = np.argsort(found)
        for i in range(len(order)):
            rows[query, i] = found[order[i]]
            weights[query, i] = weight[order[i]]


@compiled
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


@compiled
def _strongest(found: np.ndarray, weight: np.ndarray, most: int) -> np.ndarray:
    """Which ``most`` of the rows found are the strongest."""
    least = np.partition(weight, len(weight) - most)[len(weight) - most]
    kept = weight > least
    tied = np.flatnonzero(weight == least)
    by_row = tied[np.argsort(found[tied])]
    kept[by_row[: most - np.count_nonzero(kept)]] = True
    return kept
