"""Weights of rows and copies, added up by the training rows that they stand for, compiled."""

from __future__ import annotations

import numpy as np
from numba import prange

from limis.threads import in_parallel


@in_parallel
def add_by_origin(
    rows: np.ndarray,
    weights: np.ndarray,
    origin: np.ndarray,
    counts: np.ndarray,
    places: np.ndarray,
    sizes: np.ndarray,
) -> None:
    """Write for each query its training rows in order, how many they are, and their weights.

    rows, weights : (queries, candidates); what has no weight is left out. origin : the training row that each row
    stands for. counts : (queries,); places, sizes : (queries, candidates).
    """
    for query in prange(len(rows)):
        kept = np.flatnonzero(weights[query] > 0)
        own = origin[rows[query][kept]]
        n = 0
        for at in np.argsort(own, kind="mergesort"):
            if n == 0 or places[query, n - 1] != own[at]:
                places[query, n] = own[at]
                sizes[query, n] = 0.0
                n += 1
            sizes[query, n - 1] += weights[query, kept[at]]
        counts[query] = n
