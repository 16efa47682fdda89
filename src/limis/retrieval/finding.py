"""From leaves to the nearest rows, compiled: the work depends on how many rows the leaves hold, not on all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel

# Shares are added up as whole numbers of this part: their sum is the same in any order, and equal weights are equal.
WHOLE = 2.0**40
BITS = 11  # by which rows are sorted at a time


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
        _write_strongest(found, weight, rows[query], weights[query])


@in_parallel
def take_strongest(
    starts: np.ndarray, places: np.ndarray, sizes: np.ndarray, rows: np.ndarray, weights: np.ndarray
) -> None:
    """The same from the lines of a sparse matrix, (queries, all rows), that has the weights."""
    for query in prange(len(rows)):
        own = slice(starts[query], starts[query + 1])
        _write_strongest(places[own].astype(np.int64), sizes[own], rows[query], weights[query])


@compiled
def _write_strongest(found: np.ndarray, weight: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> None:
    """Write the strongest of the rows found, which are in row order."""
    if len(found) > len(rows):
        strong = _strongest(weight, len(rows))
        found, weight = found[strong], weight[strong]
    rows[: len(found)] = found
    weights[: len(found)] = weight


@compiled
def _add_up(leaves: np.ndarray, used: np.ndarray, held: Held) -> tuple[np.ndarray, np.ndarray]:
    """The rows that some leaf holds, each once and in order, and their mean shares."""
    counted = leaves[used]
    n, last = 0, 0
    for leaf in counted:
        n += held.starts[leaf + 1] - held.starts[leaf]
    found, total = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    at = 0
    for leaf in counted:
        for place in range(held.starts[leaf], held.starts[leaf + 1]):
            found[at], total[at] = held.rows[place], np.int64(held.shares[place] * WHOLE + 0.5)
            last = max(last, found[at])
            at += 1
    found, total = _sorted(found, total, last)
    n_found = 0
    for i in range(n):
        if n_found > 0 and found[n_found - 1] == found[i]:
            total[n_found - 1] += total[i]
        else:
            found[n_found], total[n_found] = found[i], total[i]
            n_found += 1
    return found[:n_found], total[:n_found] / (WHOLE * max(1, len(counted)))


@compiled
def _sorted(rows: np.ndarray, sizes: np.ndarray, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in order, the highest of which is ``last``, and their sizes: sorted by some bits after others."""
    starts = np.empty((1 << BITS) + 1, dtype=np.int64)
    shift = 0
    while shift == 0 or last >> shift:
        starts[:] = 0
        for row in rows:
            starts[((row >> shift) & ((1 << BITS) - 1)) + 1] += 1
        for place in range(1 << BITS):
            starts[place + 1] += starts[place]
        ordered, of_them = np.empty_like(rows), np.empty_like(sizes)
        for i in range(len(rows)):
            digit = (rows[i] >> shift) & ((1 << BITS) - 1)
            ordered[starts[digit]], of_them[starts[digit]] = rows[i], sizes[i]
            starts[digit] += 1
        rows, sizes = ordered, of_them
        shift += BITS
    return rows, sizes


@compiled
def _strongest(weight: np.ndarray, most: int) -> np.ndarray:
    """Which ``most`` are the strongest; of equal ones the first."""
    least = np.partition(weight, len(weight) - most)[len(weight) - most]
    kept = weight > least
    left = most - np.count_nonzero(kept)
    for i in range(len(weight)):
        if left > 0 and weight[i] == least:
            kept[i] = True
            left -= 1
    return kept
