"""Weighing and solving the small systems of all columns, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel

ROUNDING = 1e-14


class Lines(NamedTuple):
    """A sparse matrix, one line after another."""

    starts: np.ndarray  # (lines + 1,) where each line's begin
    places: np.ndarray
    sizes: np.ndarray


class Added(NamedTuple):
    """What stands in the systems of all rows, whatever they weigh."""

    width: np.ndarray  # (columns,) features of each column
    gram: np.ndarray  # (cells of all columns' squares,) the prior's and the ridge's
    moment: np.ndarray  # (features,)


@in_parallel
def solve_columns(
    weights: Lines,
    grams: Lines,
    moments: Lines,
    added: Added,
    slopes: np.ndarray,
    touched: np.ndarray,
) -> None:
    """Write the slopes of rows that weigh the training rows so, and which features some change moved: (rows, features).

    grams, moments : every training row's part in the systems, (training rows, cells) and (training rows, features).
    """
    for row in prange(len(slopes)):
        gram, moment = np.zeros_like(added.gram), np.zeros_like(added.moment)
        for place in range(weights.starts[row], weights.starts[row + 1]):
            other, weight = weights.places[place], weights.sizes[place]
            _add_line(grams, other, weight, gram)
            _add_line(moments, other, weight, moment)
        touched[row] = False
        _mark_touched(gram, added.width, touched[row])
        gram += added.gram
        moment += added.moment
        cell = feature = 0
        for size in added.width:
            solved = _solve(gram[cell : cell + size * size].reshape(size, size), moment[feature : feature + size])
            slopes[row, feature : feature + size] = solved
            cell, feature = cell + size * size, feature + size


@compiled
def _add_line(lines: Lines, line: int, weight: float, total: np.ndarray) -> None:
    for place in range(lines.starts[line], lines.starts[line + 1]):
        total[lines.places[place]] += weight * lines.sizes[place]


@compiled
def _mark_touched(gram: np.ndarray, width: np.ndarray, touched: np.ndarray) -> None:
    """Mark the features that meet themselves somewhere: those that some change moved."""
    cell = feature = 0
    for size in width:
        for place in range(size):
            if gram[cell + place * (size + 1)] > 0:
                touched[feature + place] = True
        cell, feature = cell + size * size, feature + size


@compiled
def _solve(system: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Solve a symmetric, positive definite system by Cholesky's way, in place."""
    n = len(target)
    for i in range(n):
        for j in range(i + 1):
            left = system[i, j]
            for k in range(j):
                left -= system[i, k] * system[j, k]
            if i == j:
                # Of a diagonal that would vanish, rounding decides the sign.
                system[i, i] = np.sqrt(max(left, ROUNDING * system[i, i]))
            else:
                system[i, j] = left / system[j, j]
    for i in range(n):
        for k in range(i):
            target[i] -= system[i, k] * target[k]
        target[i] /= system[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            target[i] -= system[k, i] * target[k]
        target[i] /= system[i, i]
    return target
