"""Walking rows down the trees of a forest, compiled."""

from __future__ import annotations

import numpy as np
from numba import prange

from limis.threads import in_parallel


@in_parallel
def walk(
    inputs: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    roots: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Write the node that each row, (rows, features) float32, ends at in each tree into ``ends``, (rows, trees).

    At a leaf both children are the leaf itself.
    """
    for row in prange(len(inputs)):
        own = inputs[row]
        for tree in range(len(roots)):
            at = roots[tree]
            while left[at] != at:
                at = left[at] if own[feature[at]] <= threshold[at] else right[at]
            ends[row, tree] = at
