"""Growing weighted regression trees, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel

# As in scikit-learn, a node whose targets vary less than this is not split.
PURE = float(np.finfo(np.float64).eps)
# What a split must gain over one found before it, as a share of the node's impurity. Two splits into the same halves
# differ by rounding, which must not decide between them.
TIE = 1e-12
# The weight that a half must have where no more is asked for: rounding may leave it none, and the product of both
# halves' must not vanish.
SMALLEST = float(np.sqrt(np.finfo(np.float64).tiny))


class Nodes(NamedTuple):
    """What `_grow` writes: the fields of `LocalTrees`."""

    feature: np.ndarray
    bin: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    n_rows: np.ndarray
    impurity: np.ndarray


class _Rows(NamedTuple):
    """The rows of one query that have weight, with their bins counted from the lowest that occurs among them."""

    bins: np.ndarray  # (rows, features) uint8
    columns: np.ndarray  # (features, rows) uint8, the same; filled only for features that span more than two bins
    lowest: np.ndarray  # (features,) uint8, the bin that counts as 0
    span: np.ndarray  # (features,) uint8, the highest bin
    weights: np.ndarray  # (rows,)
    targets: np.ndarray  # (outputs, rows)


class _Scratch(NamedTuple):
    """Where a node's sums are made: of the weights, then of the weighted residuals of each output."""

    moments: np.ndarray  # (1 + outputs, rows): what is summed
    above: np.ndarray  # (1 + outputs, features): over the rows above the lowest bin
    histogram: np.ndarray  # (1 + outputs, 256 + 4): by bin of one feature
    squares: np.ndarray  # (256,)
    counts: np.ndarray  # (256,)
    right: np.ndarray  # (rows,) uint32


class _Limits(NamedTuple):
    """What both halves of a split must have."""

    n_rows: int
    weight: float


class _Node(NamedTuple):
    """What all splits of a node have in common."""

    n_rows: int
    n_outputs: int
    weight: float
    impurity: float


@in_parallel
def grow_all(
    bins: np.ndarray,
    targets: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    min_rows: int,
    min_share: float,
    nodes: Nodes,
) -> None:
    """Grow the trees of all queries, each in a thread."""
    for query in prange(len(rows)):
        own = _take_rows(bins, targets, rows[query], weights[query])
        _grow(own, min_rows, min_share, nodes, np.int64(query))


@compiled
def _take_rows(bins: np.ndarray, targets: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> _Rows:
    """Copy what a query needs: the table's rows are far apart, and of each feature only the bins that occur matter."""
    n, n_features = np.count_nonzero(weights > 0), bins.shape[1]
    own, columns = np.empty((n, n_features), dtype=np.uint8), np.empty((n_features, n), dtype=np.uint8)
    own_weights, own_targets = np.empty(n), np.empty((targets.shape[1], n))
    i = 0
    for candidate in range(len(rows)):
        if weights[candidate] > 0:
            source, copy = bins[rows[candidate]], own[i]
            for feature in range(n_features):
                copy[feature] = source[feature]
            own_weights[i] = weights[candidate]
            for k in range(targets.shape[1]):
                own_targets[k, i] = targets[rows[candidate], k]
            i += 1
    lowest, span = _count_from_lowest(own)
    for feature in range(n_features):
        if span[feature] > 1:
            for i in range(n):
                columns[feature, i] = own[i, feature]
    return _Rows(own, columns, lowest, span, own_weights, own_targets)


@compiled
def _count_from_lowest(bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take each feature's lowest bin from all its bins, in place; returns the lowest bins and the highest left."""
    lowest, span = np.full(bins.shape[1], 255, dtype=np.uint8), np.zeros(bins.shape[1], dtype=np.uint8)
    # Every inner loop does one thing, so that the compiler can do it to many features at a time.
    for i in range(len(bins)):
        row = bins[i]
        for feature in range(len(row)):
            lowest[feature] = min(lowest[feature], row[feature])
        for feature in range(len(row)):
            span[feature] = max(span[feature], row[feature])
    for i in range(len(bins)):
        row = bins[i]
        for feature in range(len(row)):
            row[feature] -= lowest[feature]
    for feature in range(len(span)):
        span[feature] -= lowest[feature]
    return lowest, span


@compiled
def _grow(rows: _Rows, min_rows: int, min_share: float, nodes: Nodes, query: np.int64) -> None:
    """Grow the tree of one query, node by node."""
    n, n_outputs, n_nodes = len(rows.weights), len(rows.targets), nodes.weight.shape[1]
    scratch = _Scratch(
        np.empty((1 + n_outputs, n)),
        np.empty((1 + n_outputs, len(rows.span))),
        np.empty((1 + n_outputs, 256 + 4)),
        np.empty(256),
        np.empty(256, dtype=np.int64),
        np.empty(n, dtype=np.uint32),
    )
    limits = _Limits(min_rows, max(SMALLEST, min_share * rows.weights.sum()))
    # Each node's rows lie together, from its start to its stop. They are numbers without sign, which are looked up
    # faster: nothing has to ask whether they count from the end.
    order = np.arange(n).astype(np.uint32)
    start, stop = np.zeros(n_nodes, dtype=np.int64), np.zeros(n_nodes, dtype=np.int64)
    stop[0] = n
    for k in range(n_nodes):
        here = order[start[k] : stop[k]]
        if len(here) == 0:
            continue
        node = _describe(rows, here, scratch.moments, nodes.value[query, k])
        nodes.n_rows[query, k], nodes.weight[query, k], nodes.impurity[query, k] = len(here), node.weight, node.impurity
        if k >= nodes.feature.shape[1] or len(here) < 2 * min_rows or node.impurity <= PURE * n_outputs:
            continue
        feature, cut = _best_split(rows, here, node, limits, scratch)
        if feature >= 0:
            nodes.feature[query, k], nodes.bin[query, k] = feature, rows.lowest[feature] + cut
            middle = start[k] + _separate(here, rows.bins[:, feature], cut, scratch.right)
            start[2 * k + 1], stop[2 * k + 1] = start[k], middle
            start[2 * k + 2], stop[2 * k + 2] = middle, stop[k]


@compiled
def _describe(rows: _Rows, here: np.ndarray, moments: np.ndarray, value: np.ndarray) -> _Node:
    """A node's sums; writes its means, and of its rows the weights and the weighted residuals."""
    weights = moments[0]
    total = 0.0
    for i in range(len(here)):
        weights[i] = rows.weights[here[i]]
        total += weights[i]
    squares = 0.0
    for k in range(len(value)):
        targets, residuals = rows.targets[k], moments[1 + k]
        # Counted from a target that occurs, equal targets have exactly no residuals.
        origin = targets[here[0]]
        shift = 0.0
        for i in range(len(here)):
            residuals[i] = targets[here[i]] - origin
            shift += weights[i] * residuals[i]
        shift /= total
        value[k] = origin + shift
        for i in range(len(here)):
            residual = residuals[i] - shift
            residuals[i] = weights[i] * residual
            squares += residuals[i] * residual
    return _Node(len(here), len(value), total, squares / total)


@compiled
def _best_split(rows: _Rows, here: np.ndarray, node: _Node, limits: _Limits, scratch: _Scratch) -> tuple[int, int]:
    """The feature to split on and the highest of its bins that goes left; feature −1 if no split is allowed.

    The residuals of a node sum to zero, so those of one half say all: with s their sum and u, v the weights of the
    halves, a split lowers the squared error by (u + v) s² / (u v). What is compared is s² / (u v).
    """
    # Any split is better than none: like scikit-learn, take one that gains nothing, since those below it may gain.
    gain = -np.inf
    best_feature, best_cut = -1, -1
    bins, columns, spans = rows.bins, rows.columns, rows.span
    moments, above, histogram, squares = scratch.moments, scratch.above, scratch.histogram, scratch.squares
    total = _sum_above(above, bins, here, moments) if np.any(spans == 1) else 0.0
    for feature in range(len(spans)):
        span = spans[feature]
        cut = -1
        if span == 1:
            new_gain = _gain_of_only_cut(above, feature, total, node, limits)
            if new_gain > gain + TIE * node.impurity and _enough_rows(bins, feature, here, limits):
                cut = 0
        elif span > 1:
            _fill(histogram, columns[feature], span, here, moments)
            if _any_cut(histogram, squares, span, node, gain):
                new_gain, cut = _best_cut(scratch, columns[feature], span, here, node, limits, gain)
        if cut >= 0:
            gain, best_feature, best_cut = new_gain, feature, cut
    return best_feature, best_cut


@compiled
def _sum_above(above: np.ndarray, bins: np.ndarray, here: np.ndarray, moments: np.ndarray) -> float:
    """Sum up the rows above the lowest bin, for all features side by side; returns the weight of all rows.

    That weight is summed in the same order: where all rows are above, it is exactly theirs.
    """
    above[:] = 0
    total = 0.0
    n, n_features = len(here), bins.shape[1]
    for i in range(0, n - 1, 2):
        one, two = bins[here[i]], bins[here[i + 1]]
        total += moments[0, i] + moments[0, i + 1]
        for k in range(len(above)):
            sums, of_one, of_two = above[k], moments[k, i], moments[k, i + 1]
            for feature in range(n_features):
                sums[feature] += (of_one if one[feature] else 0.0) + (of_two if two[feature] else 0.0)
    if n % 2:
        one = bins[here[n - 1]]
        total += moments[0, n - 1]
        for k in range(len(above)):
            sums, of_one = above[k], moments[k, n - 1]
            for feature in range(n_features):
                sums[feature] += of_one if one[feature] else 0.0
    return total


@compiled
def _gain_of_only_cut(above: np.ndarray, feature: int, total: float, node: _Node, limits: _Limits) -> float:
    """The gain of the split between two bins; minus infinity where a half has too little weight."""
    right = above[0, feature]
    left = total - right
    if min(left, right) < limits.weight:
        return -np.inf
    squares = 0.0
    for k in range(node.n_outputs):
        squares += above[1 + k, feature] * above[1 + k, feature]
    return squares / (left * right)


@compiled
def _enough_rows(bins: np.ndarray, feature: int, here: np.ndarray, limits: _Limits) -> bool:
    """Whether both halves of the split between two bins have enough rows. Weight says that each has one."""
    n_right = 0
    if limits.n_rows > 1:
        for i in range(len(here)):
            n_right += bins[here[i], feature]
    return limits.n_rows == 1 or min(n_right, len(here) - n_right) >= limits.n_rows


@compiled
def _fill(histogram: np.ndarray, column: np.ndarray, span: int, here: np.ndarray, moments: np.ndarray) -> None:
    """Sum up the rows by bin of one feature."""
    histogram[:, : span + 4] = 0
    weights, weight_of_bin = moments[0], histogram[0]
    residuals, residual_of_bin = moments[1], histogram[1]
    for i in range(len(here)):
        where = column[here[i]]
        weight_of_bin[where] += weights[i]
        residual_of_bin[where] += residuals[i]
    for k in range(2, len(histogram)):
        more, more_of_bin = moments[k], histogram[k]
        for i in range(len(here)):
            more_of_bin[column[here[i]]] += more[i]


@compiled
def _any_cut(histogram: np.ndarray, squares: np.ndarray, span: int, node: _Node, gain: float) -> bool:
    """Whether any cut of a feature beats a gain; sums up the histogram and the squares to know."""
    left = histogram[0]
    _cumulate(left, span)
    squares[:span] = 0
    for k in range(node.n_outputs):
        sums = histogram[1 + k]
        _cumulate(sums, span)
        for b in range(span):
            squares[b] += sums[b] * sums[b]
    bar, found = gain + TIE * node.impurity, 0
    # Without a branch, the compiler compares many at a time.
    for b in range(span):
        found += squares[b] > bar * (left[b] * (node.weight - left[b]))
    return found > 0


@compiled
def _best_cut(
    scratch: _Scratch, column: np.ndarray, span: int, here: np.ndarray, node: _Node, limits: _Limits, gain: float
) -> tuple[float, int]:
    """The gain of a feature's best cut and its bin, or the gain to beat and −1; the sums must be made."""
    left, squares, counts = scratch.histogram[0], scratch.squares, scratch.counts
    counts[: span + 1] = 0
    for i in range(len(here)):
        counts[column[here[i]]] += 1
    cut, n_left = -1, 0
    for b in range(span):
        n_left += counts[b]
        right = node.weight - left[b]
        if (
            squares[b] > (gain + TIE * node.impurity) * (left[b] * right)
            and min(left[b], right) >= limits.weight
            and min(n_left, node.n_rows - n_left) >= limits.n_rows
        ):
            gain, cut = squares[b] / (left[b] * right), b
    return gain, cut


@compiled
def _cumulate(sums: np.ndarray, span: int) -> None:
    """Sums up to each bin, in place; in fours, so that not every addition waits for the one before."""
    carried = 0.0
    for b in range(0, span, 4):
        two = sums[b] + sums[b + 1]
        three = two + sums[b + 2]
        four = two + (sums[b + 2] + sums[b + 3])
        sums[b] += carried
        sums[b + 1] = carried + two
        sums[b + 2] = carried + three
        carried += four
        sums[b + 3] = carried


@compiled
def _separate(here: np.ndarray, column: np.ndarray, cut: int, right: np.ndarray) -> int:
    """Put the rows up to the cut first, keeping their order on both sides; returns how many they are."""
    n_left, n_right = 0, 0
    for row in here:
        goes_right = column[row] > cut
        here[n_left], right[n_right] = row, row
        n_left, n_right = n_left + 1 - goes_right, n_right + goes_right
    for i in range(n_right):
        here[n_left + i] = right[i]
    return n_left
