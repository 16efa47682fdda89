"""Weighted regression trees, many at once: one for every row to explain.

Each is the tree that scikit-learn's ``DecisionTreeRegressor`` grows on the same bins and weights, except that of
equally good splits it takes that of the first feature, at the lowest bin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.errors import InputError
from limis.surrogate.growing import Nodes, grow_all

MOST_BINS = 255


@dataclass(eq=False)
class Bins:
    """Numbers in at most 256 bins a feature: bin b holds what is above threshold b − 1, up to threshold b."""

    thresholds: np.ndarray  # (features, most bins − 1), ascending; infinity where a feature has no more bins

    @classmethod
    def learn(cls, features: np.ndarray, most: int = MOST_BINS) -> Bins:
        """One bin a distinct value; where there are too many values, about as many rows in each bin.

        Thresholds lie midway between the largest value seen in one bin and the smallest seen in the next.

        Examples
        --------
        >>> bins = Bins.learn(np.array([[1.0], [4.0], [2.0], [4.0]]))
        >>> bins.thresholds
        array([[1.5, 3. ]])
        >>> bins.transform(np.array([[-9.0], [1.6], [3.0], [7.0]])).ravel()
        array([0, 1, 1, 2], dtype=uint8)
        """
        found = [_thresholds(column, most) for column in np.asarray(features, dtype=np.float64).T]
        thresholds = np.full((len(found), max(map(len, found), default=0)), np.inf)
        for padded, own in zip(thresholds, found, strict=True):
            padded[: len(own)] = own
        return cls(thresholds)

    @property
    def count(self) -> np.ndarray:
        """How many bins each feature has: (features,)."""
        return 1 + (self.thresholds < np.inf).sum(axis=1)

    def transform(self, features: np.ndarray) -> np.ndarray:
        """The bins of rows: (rows, features) uint8. Unseen values fall where the thresholds say."""
        bins = np.empty(features.shape, dtype=np.uint8)
        for feature in range(features.shape[1]):
            bins[:, feature] = self.transform_one(feature, features[:, feature])
        return bins

    def transform_one(self, feature: int, values: np.ndarray) -> np.ndarray:
        """The bins of some values of one feature."""
        return np.searchsorted(self.thresholds[feature], values).astype(np.uint8)


@dataclass(eq=False)
class LocalTrees:
    """Fitted trees; the queries are the first dimension.

    Nodes are in heap order: 0 is the root, and the children of node k are 2k + 1, with the rows whose bin is at most
    the split's, and 2k + 2. Places where a tree has no node have count 0.
    """

    feature: np.ndarray  # (queries, 2^depth − 1) int32, that the node splits on; −1: a leaf, or no node
    bin: np.ndarray  # (queries, 2^depth − 1) uint8, the highest that goes left
    value: np.ndarray  # (queries, 2^(depth + 1) − 1, outputs), weighted means
    weight: np.ndarray  # (queries, 2^(depth + 1) − 1)
    count: np.ndarray  # (queries, 2^(depth + 1) − 1) int32, rows with weight
    impurity: np.ndarray  # (queries, 2^(depth + 1) − 1), weighted mean squared error, summed over outputs
    empty: np.ndarray  # (queries,) bool: fewer than two rows had weight

    @property
    def depth(self) -> int:
        """The most splits between a root and a leaf."""
        return int(self.feature.shape[1]).bit_length()

    def paths(self, bins: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """The nodes that points pass from the root to their leaf, which is repeated at the end: (points, depth + 1).

        bins : (points, features); queries : (points,), which tree each point is for.
        """
        nodes = np.zeros((len(bins), self.depth + 1), dtype=np.int64)
        for level in range(self.depth):
            # The place of a leaf above this level holds no split, so it is safe to look up.
            here = nodes[:, level]
            feature = self.feature[queries, here]
            right = bins[np.arange(len(bins)), feature] > self.bin[queries, here]
            nodes[:, level + 1] = np.where(feature < 0, here, 2 * here + 1 + right)
        return nodes

    def apply(self, bins: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """The leaf each point ends in: (points,)."""
        return self.paths(bins, queries)[:, -1]

    def predict(self, bins: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """g at each point: (points, outputs)."""
        return self.value[queries, self.apply(bins, queries)]


def fit_local_trees(
    bins: np.ndarray,
    targets: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    *,
    depth: int = 3,
    min_samples_leaf: int = 1,
    min_weight_leaf: float = 0.0,
) -> LocalTrees:
    """Grow one tree a query, each on its own weighted rows.

    A query's tree is the same, bit for bit, in whatever batch and on however many threads it is grown.

    Parameters
    ----------
    bins : array of shape (n, features), uint8
        The features of all rows.
    targets : array of shape (n,) or (n, outputs)
        What the trees predict.
    rows : array of shape (queries, candidates)
        Places in ``bins`` of the rows that each tree is grown on.
    weights : array of shape (queries, candidates)
        Theirs, not negative. A place with weight 0 is left out, whatever row it names.
    depth : int, default=3
        The most splits between the root and a leaf.
    min_samples_leaf : int, default=1
        Rows with weight that a leaf must have.
    min_weight_leaf : float, default=0.0
        Share of the query's weight that a leaf must have.

    Returns
    -------
    LocalTrees
        The trees.

    Examples
    --------
    >>> bins = np.array([[0, 3], [1, 3], [2, 5], [3, 5]], dtype=np.uint8)
    >>> targets, rows = np.array([1.0, 1.0, 1.0, 5.0]), np.array([[0, 1, 2, 3]])
    >>> trees = fit_local_trees(bins, targets, rows, np.ones((1, 4)), depth=1)
    >>> int(trees.feature[0, 0]), int(trees.bin[0, 0])
    (0, 2)
    >>> trees.value[0, :, 0]
    array([2., 1., 5.])
    """
    # Arrays that may not be written to are another type to the compiler, which would take its time again.
    bins, rows = np.require(bins, np.uint8, ["C", "W"]), np.require(rows, np.int64, ["C", "W"])
    targets, weights = np.require(targets, np.float64, ["C", "W"]), np.require(weights, np.float64, ["C", "W"])
    if targets.ndim == 1:
        targets = targets[:, None]
    used = rows[weights > 0]
    if used.size and not 0 <= used.min() <= used.max() < len(bins):
        raise InputError(f"rows {used.min()} to {used.max()} have weight, but there are only {len(bins)} rows")
    shape = (len(rows), 2 ** (depth + 1) - 1)
    trees = LocalTrees(
        feature=np.full((len(rows), 2**depth - 1), -1, dtype=np.int32),
        bin=np.zeros((len(rows), 2**depth - 1), dtype=np.uint8),
        value=np.zeros((*shape, targets.shape[1])),
        weight=np.zeros(shape),
        count=np.zeros(shape, dtype=np.int32),
        impurity=np.zeros(shape),
        empty=np.zeros(len(rows), dtype=bool),
    )
    nodes = Nodes(trees.feature, trees.bin, trees.value, trees.weight, trees.count, trees.impurity)
    grow_all(bins, targets, rows, weights, int(min_samples_leaf), float(min_weight_leaf), nodes)
    trees.empty = trees.count[:, 0] < 2
    return trees


def _thresholds(column: np.ndarray, most: int) -> np.ndarray:
    """The borders between a feature's bins, ascending."""
    values, counts = np.unique(column, return_counts=True)
    last = np.arange(len(values) - 1)
    if len(values) > most:
        middle_rank = np.cumsum(counts) - counts / 2
        last = np.flatnonzero(np.diff((middle_rank * (most / len(column))).astype(int)))
    below, above = values[last], values[last + 1]
    middle = below / 2 + above / 2
    # Between neighbouring numbers there is no third, and rounding may reach the upper one.
    return np.where((below <= middle) & (middle < above), middle, below)
