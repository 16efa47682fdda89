"""How a row's narrow neighbours lie around it, compiled: no (rows × candidates × features) array is ever made."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from limis.threads import in_parallel


class Heights(NamedTuple):
    """All rows that may be near, and the outputs they have."""

    features: np.ndarray  # (all rows, features)
    outputs: np.ndarray  # (all rows,)


class Near(NamedTuple):
    """Which of them are near each row."""

    rows: np.ndarray  # (rows, candidates)
    share: np.ndarray  # (rows, candidates) how much each counts, summing to 1


class Around(NamedTuple):
    """What is told of the near rows: the fields of `limis.walk.LocalFits` of the same names."""

    feature_means: np.ndarray  # (rows, features)
    feature_spread: np.ndarray  # (rows, features)
    levels: np.ndarray  # (rows,)
    reach: np.ndarray  # (rows,)
    residual_mean_square: np.ndarray  # (rows,)
    spread_mean_square: np.ndarray  # (rows,)


def around(known: Heights, near: Near, here: np.ndarray, slopes: np.ndarray, most: float, told: bool) -> Around:
    """How the near rows of each row lie around it, and what its slopes say of them.

    here, slopes : (rows, features). most : how much of the way from the near rows' mean to a row its slopes may hold.
    Where ``told``, they hold no more of it than they tell of the near rows themselves: where these are far and the
    black box bends, slopes that are right at the row lead astray on that way.
    """
    by_feature, sums = np.empty((2, *here.shape)), np.full((4, len(here)), most)
    _look_around(known, near, here, slopes, told, by_feature, sums)
    return Around(*by_feature, *sums)


@in_parallel
def _look_around(
    known: Heights,
    near: Near,
    here: np.ndarray,
    slopes: np.ndarray,
    told: bool,
    by_feature: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Write means and spread into ``by_feature``, and what else `Around` holds into ``sums``."""
    features, heights = known
    n_features, n_near = features.shape[1], near.rows.shape[1]
    for row in prange(len(here)):
        mean, square, slope = by_feature[0, row], by_feature[1, row], slopes[row]
        places, share = near.rows[row], near.share[row]
        mean[:] = 0.0
        square[:] = 0.0
        level = 0.0
        for candidate in range(n_near):
            weight = share[candidate]
            if weight > 0:
                one = features[places[candidate]]
                level += weight * heights[places[candidate]]
                for feature in range(n_features):
                    mean[feature] += weight * one[feature]
        along = np.empty(n_near)
        both = squared = 0.0
        for candidate in range(n_near):
            weight = share[candidate]
            one = features[places[candidate]]
            way = 0.0
            for feature in range(n_features):
                step = one[feature] - mean[feature]
                square[feature] += weight * step * step
                way += slope[feature] * step
            along[candidate] = way
            both += weight * way * (heights[places[candidate]] - level)
            squared += weight * way * way
        if told:
            sums[1, row] = min(sums[1, row], max(0.0, min(1.0, both / max(squared, 1e-300))))
        left_out = 0.0
        for feature in range(n_features):
            square[feature] = np.sqrt(square[feature])
            left_out += (1 - sums[1, row]) * slope[feature] * (here[row, feature] - mean[feature])
        residual = spread = 0.0
        for candidate in range(n_near):
            weight = share[candidate]
            # Each near row is left out of the mean in turn.
            others = max(1 - weight, 1e-3)
            deviation = heights[places[candidate]] - level
            residual += weight * ((deviation - along[candidate] + left_out) / others) ** 2
            spread += weight * (deviation / others) ** 2
        sums[0, row], sums[2, row], sums[3, row] = level, residual, spread


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
