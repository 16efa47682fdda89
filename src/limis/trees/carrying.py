"""Carrying records over to rows, compiled."""

from __future__ import annotations

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel
from limis.trees.carried import Known, Points, Ragged, Records, Rows

OTHER_LEVEL = 0.2  # what a record counts that begins at another category than the row's own


@in_parallel
def carry(
    own: Rows,
    known: Known,
    others: Rows,
    records: Records,
    bins: Ragged,
    features: Ragged,
    reach: float,
    points: Points,
) -> None:
    """Fill the points of every row: the row itself, then two points a record."""
    # What a parallel loop writes must be arrays by themselves: those inside a tuple it would copy.
    out_bins, out_outputs, out_weights = points.bins, points.outputs, points.weights
    for q in prange(len(known.near)):
        # The row itself, worth as much as all its near rows' changes of one column.
        out_bins[q, 0] = own.bins[q]
        out_outputs[q, 0] = known.levels[q]
        out_weights[q, 0] = known.weights[q].sum()
        at = 1
        for place in range(known.near.shape[1]):
            i, weight = known.near[q, place], known.weights[q, place]
            if weight <= 0.0:
                continue
            for record in range(records.starts[i], records.starts[i + 1]):
                j = records.columns[record]
                ends = (features.first[j], features.first[j + 1], features.starts[record])
                before, after = _ways(own.features[q], known.slopes[q], others.features[i], features.numbers, ends)
                out_bins[q, at] = own.bins[q]
                out_bins[q, at + 1] = own.bins[q]
                first = bins.first[j]
                for k in range(first, bins.first[j + 1]):
                    out_bins[q, at, k] = bins.numbers[bins.starts[record] + k - first]
                    out_bins[q, at + 1, k] = others.bins[i, k]
                out_outputs[q, at] = known.levels[q] + before + records.answers[record]
                out_outputs[q, at + 1] = known.levels[q] + after - records.answers[record]
                rank = own.ranks[q, j]
                out_weights[q, at] = weight * _nearness(rank, others.ranks[i, j], records.is_category[j], reach)
                out_weights[q, at + 1] = weight * _nearness(rank, records.ranks[record], records.is_category[j], reach)
                at += 2


@compiled
def _ways(
    own: np.ndarray, slopes: np.ndarray, other: np.ndarray, recorded: np.ndarray, ends: tuple[int, int, int]
) -> tuple[float, float]:
    """What the slopes say of the way from the row's own value to where a record begins, and to where it ends."""
    first, last, start = ends
    before = after = 0.0
    for k in range(first, last):
        before += slopes[k] * (other[k] - own[k])
        after += slopes[k] * (recorded[start + k - first] - own[k])
    return before, after


@compiled
def _nearness(own: float, other: float, category: bool, reach: float) -> float:
    if category:
        return 1.0 if own == other else OTHER_LEVEL
    if np.isnan(own) or np.isnan(other):
        return 1.0 if np.isnan(own) and np.isnan(other) else np.exp(-1.0 / reach)
    return np.exp(-abs(own - other) / reach)
