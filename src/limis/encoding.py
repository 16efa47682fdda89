"""Values as positions and as features, compiled: all columns of a row at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel


class Edges(NamedTuple):
    """For each column of numbers, the distinct quantiles, rising, and the positions that each of them spans."""

    columns: np.ndarray  # (columns of numbers,) their places among all columns
    starts: np.ndarray  # (columns of numbers + 1,) where each one's begin
    points: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray


@in_parallel
def write_ranks(values: np.ndarray, edges: Edges, ranks: np.ndarray) -> None:
    """Write the positions of numbers into ``ranks``, (rows, columns); what is not finite stays as it is there.

    Between two quantiles the position rises evenly. A value that several quantiles share gets the middle of the
    positions they span.
    """
    for row in prange(len(values)):
        for number in range(len(edges.columns)):
            value = values[row, edges.columns[number]]
            if np.isfinite(value):
                own = slice(edges.starts[number], edges.starts[number + 1])
                at = np.searchsorted(edges.points[own], value, side="right") - 1
                low = _between(value, edges.points[own], edges.lowest[own], at)
                high = _between(value, edges.points[own], edges.highest[own], at)
                ranks[row, edges.columns[number]] = (low + high) / 2


@compiled
def _between(value: float, points: np.ndarray, positions: np.ndarray, at: int) -> float:
    if at < 0:
        return positions[0]
    if at >= len(points) - 1:
        return positions[-1]
    if value == points[at]:
        return positions[at]
    slope = (positions[at + 1] - positions[at]) / (points[at + 1] - points[at])
    return slope * (value - points[at]) + positions[at]


class Layout(NamedTuple):
    """How the features of each column are made; the first is a number's own, then come its jumps, then missing."""

    starts: np.ndarray  # (columns + 1,) where each column's features begin
    is_category: np.ndarray  # (columns,)
    has_missing: np.ndarray  # (columns,)
    offset: np.ndarray  # (columns,)
    scale: np.ndarray  # (columns,)
    jump_starts: np.ndarray  # (columns + 1,)
    jumps: np.ndarray


@in_parallel
def write_features(values: np.ndarray, layout: Layout, features: np.ndarray) -> None:
    """Write the features of rows into zeroed ``features``, (rows, features). Codes below zero are of no level."""
    for row in prange(len(values)):
        for column in range(len(layout.is_category)):
            value, first, last = values[row, column], layout.starts[column], layout.starts[column + 1] - 1
            if layout.is_category[column]:
                code = np.int64(value)
                if code >= 0:
                    features[row, min(first + code, last)] = 1.0
                continue
            if np.isfinite(value):
                features[row, first] = (value - layout.offset[column]) / layout.scale[column]
            elif layout.has_missing[column]:
                features[row, last] = 1.0
            for jump in range(layout.jump_starts[column], layout.jump_starts[column + 1]):
                if value > layout.jumps[jump]:
                    features[row, first + 1 + jump - layout.jump_starts[column]] = 1.0
