"""The nearest rows by Gower distance, compiled."""

from __future__ import annotations

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel


@in_parallel
def find_near(queries: np.ndarray, pool: np.ndarray, is_category: np.ndarray, nearest: np.ndarray) -> None:
    """Write the places of each query's nearest rows of the pool, nearest first, ties by place: (queries, k).

    queries : (rows, columns) float32, categories as codes and numbers as ranks; pool : the same, (columns, rows).
    """
    for query in prange(len(queries)):
        _lowest(_distances(queries[query], pool, is_category), nearest[query])


@in_parallel
def find_distances(queries: np.ndarray, pool: np.ndarray, is_category: np.ndarray, distances: np.ndarray) -> None:
    """Write the distance of each query from every row of the pool: (queries, rows). Both are given as above."""
    for query in prange(len(queries)):
        distances[query] = _distances(queries[query], pool, is_category)


@in_parallel
def find_others(
    queries: np.ndarray,
    pool: np.ndarray,
    is_category: np.ndarray,
    own_values: np.ndarray,
    pool_values: np.ndarray,
    nearest: np.ndarray,
    counts: np.ndarray,
) -> None:
    """The same of rows that differ from the query somewhere, and how many there are: (queries, k), (queries,).

    own_values, pool_values : (queries, columns), (rows, columns) the values by which rows are equal; ranks may be the
    same for values that are not.
    """
    most = nearest.shape[1]
    for query in prange(len(queries)):
        distances = _distances(queries[query], pool, is_category)
        n = len(distances)
        for place in range(len(distances)):
            if _are_equal(own_values[query], pool_values[place]):
                distances[place] = np.inf
                n -= 1
        counts[query] = min(n, most)
        nearest[query, : counts[query]] = _first(distances, counts[query])


@compiled
def _are_equal(row: np.ndarray, other: np.ndarray) -> bool:
    for column in range(len(row)):
        if row[column] != other[column] and not (np.isnan(row[column]) and np.isnan(other[column])):
            return False
    return True


@compiled
def _first(distances: np.ndarray, most: int) -> np.ndarray:
    """The places of the lowest distances, the lowest first, ties by place: for many of them sooner than `_lowest`."""
    found = np.empty(most, dtype=np.int64)
    if most == 0:
        return found
    limit = np.partition(distances, most - 1)[most - 1]
    ties = most - np.count_nonzero(distances < limit)
    n = 0
    for place in range(len(distances)):
        if distances[place] < limit or (ties > 0 and distances[place] == limit):
            ties -= distances[place] == limit
            found[n] = place
            n += 1
    return found[np.argsort(distances[found], kind="mergesort")]


@compiled
def _distances(query: np.ndarray, pool: np.ndarray, is_category: np.ndarray) -> np.ndarray:
    """From all rows of the pool; missing against present counts as 1."""
    total = np.zeros(pool.shape[1], dtype=np.float32)
    for column in range(len(query)):
        own, others = query[column], pool[column]
        # Every inner loop does one thing, so that the compiler can do it to many rows at a time.
        if is_category[column]:
            for place in range(len(others)):
                total[place] += np.float32(own != others[place])
        elif np.isnan(own):
            for place in range(len(others)):
                total[place] += np.float32(others[place] == others[place])  # whether it is known
        else:
            for place in range(len(others)):
                apart = np.abs(own - others[place])
                total[place] += apart if apart == apart else np.float32(1)  # noqa: PLR0124 - NaN alone differs from itself
    return total / np.float32(len(query))


@compiled
def _lowest(distances: np.ndarray, places: np.ndarray) -> None:
    """Write the places of the lowest distances, the lowest first, ties by place."""
    n = 0
    for place in range(len(distances)):
        if n == len(places) and distances[place] >= distances[places[n - 1]]:
            continue
        at = n if n < len(places) else n - 1
        while at > 0 and distances[places[at - 1]] > distances[place]:
            places[at] = places[at - 1]
            at -= 1
        places[at] = place
        n = min(n + 1, len(places))
