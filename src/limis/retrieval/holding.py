"""Which rows each leaf of a tree holds, compiled."""

from __future__ import annotations

import numpy as np

from limis.threads import compiled


@compiled
def hold_rows(
    leaves: np.ndarray, counted: np.ndarray, n_leaves: int, most: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of each leaf in row order, one leaf after another: where each leaf's begin, the rows, their shares.

    leaves, counted : (rows,) the leaf of each row, from 0, and how much it counts there; rows that count nothing are in
    no leaf. Of a leaf with more rows than ``most`` so many are drawn, each as likely as any other.
    """
    holding = np.flatnonzero(counted > 0)
    sizes = np.zeros(n_leaves, dtype=np.int64)
    for row in holding:
        sizes[leaves[row]] += 1
    starts = np.zeros(n_leaves + 1, dtype=np.int64)
    starts[1:] = np.cumsum(np.minimum(sizes, most))
    rows = np.empty(starts[-1], dtype=np.int32)
    seen = np.zeros(n_leaves, dtype=np.int64)
    state = np.uint64(seed)
    for row in holding:
        leaf = leaves[row]
        place = seen[leaf]
        seen[leaf] += 1
        if place >= most:
            # The row takes a random place of all that were seen; beyond the last one it is left out.
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            place = np.int64(state >> np.uint64(33)) % seen[leaf]
        if place < most:
            rows[starts[leaf] + place] = row
    shares = np.empty(len(rows))
    for leaf in range(n_leaves):
        own, share = rows[starts[leaf] : starts[leaf + 1]], shares[starts[leaf] : starts[leaf + 1]]
        if sizes[leaf] > most:
            own.sort()
        share[:] = counted[own]
        share /= share.sum()
    return starts, rows, shares
