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
