"""Numbers as positions among those of the training rows, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from limis.threads import in_parallel


@in_parallel
def rank_column(
    values: np.ndarray, points: np.ndarray, lowest: np.ndarray, highest: np.ndarray, ranks: np.ndarray
) -> None:
    """Write the position of each value into ``ranks``; what is not finite stays as it is there.

    points : the distinct quantiles, rising; lowest, highest : the positions that each of them spans. Between two points
    the position rises evenly. A value that several quantiles share gets the middle of the positions they span.
    """
    for row in prange(len(values)):
        if np.isfinite(values[row]):
            at = np.searchsorted(points, values[row], side="right") - 1
            low = _between(values[row], points, lowest, at)
            ranks[row] = (low + _between(values[row], points, highest, at)) / 2


@njit(cache=True, nogil=True)
def _between(value: float, points: np.ndarray, positions: np.ndarray, at: int) -> float:
    if at < 0:
        return positions[0]
    if at >= len(points) - 1:
        return positions[-1]
    slope = (positions[at + 1] - positions[at]) / (points[at + 1] - points[at])
    return slope * (value - points[at]) + positions[at]
