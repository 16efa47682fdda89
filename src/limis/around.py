"""How a row's narrow neighbours lie around it, compiled: no (rows × candidates × features) array is ever made."""

from __future__ import annotations

import numpy as np
from numba import prange

from limis.threads import in_parallel


@in_parallel
def look_around(
    features: np.ndarray,
    near: np.ndarray,
    share: np.ndarray,
    slopes: np.ndarray,
    means: np.ndarray,
    spread: np.ndarray,
    along: np.ndarray,
) -> None:
    """Write where the near rows of each row lie, and what its slopes say of them.

    features : (all rows, features); near, share : (rows, candidates) which of them, and how much each counts, summing
    to 1; slopes : (rows, features). Written are means and spread : (rows, features), weighted; and along : (rows,
    candidates), what the slopes add on the way from the mean to each near row.
    """
    n_features = features.shape[1]
    for row in prange(len(near)):
        mean, square, slope = means[row], spread[row], slopes[row]
        mean[:] = 0.0
        square[:] = 0.0
        for candidate in range(near.shape[1]):
            weight = share[row, candidate]
            if weight > 0:
                one = features[near[row, candidate]]
                for feature in range(n_features):
                    mean[feature] += weight * one[feature]
        for candidate in range(near.shape[1]):
            weight = share[row, candidate]
            one = features[near[row, candidate]]
            told = 0.0
            for feature in range(n_features):
                step = one[feature] - mean[feature]
                square[feature] += weight * step * step
                told += slope[feature] * step
            along[row, candidate] = told
        for feature in range(n_features):
            square[feature] = np.sqrt(square[feature])


@in_parallel
def carry(features: np.ndarray, near: np.ndarray, here: np.ndarray, slopes: np.ndarray, carried: np.ndarray) -> None:
    """Write what each row's slopes add on the way to it from each of its near rows: (rows, candidates).

    features : (all rows, features); near : (rows, candidates); here, slopes : (rows, features).
    """
    for row in prange(len(near)):
        own, slope = here[row], slopes[row]
        for candidate in range(near.shape[1]):
            one = features[near[row, candidate]]
            told = 0.0
            for feature in range(len(own)):
                told += slope[feature] * (own[feature] - one[feature])
            carried[row, candidate] = told
