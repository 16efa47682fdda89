"""A shallow tree of scikit-learn as a local model: what it says, and which splits led there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeRegressor

MAX_DEPTH = 3


@dataclass
class FittedTree:
    """A fitted tree and what it answers at each of its nodes."""

    tree: Any  # scikit-learn's Tree
    node_values: np.ndarray  # (nodes,)

    @classmethod
    def fit(cls, features: np.ndarray, outputs: np.ndarray, weights: np.ndarray) -> FittedTree:
        """Fit a regression tree of depth `MAX_DEPTH` on weighted rows."""
        grown = DecisionTreeRegressor(max_depth=MAX_DEPTH, random_state=0)
        tree = grown.fit(features, outputs, sample_weight=weights).tree_
        return cls(tree, tree.value[:, 0, 0])

    @classmethod
    def of_classifier(cls, classifier: Any, answer: Callable[[np.ndarray], np.ndarray]) -> FittedTree:
        """A fitted tree of two classes, its nodes' probabilities of the second turned into answers."""
        values = classifier.tree_.value[:, 0, :]
        return cls(classifier.tree_, answer(values[:, 1] / values.sum(axis=1)))

    @property
    def level(self) -> float:
        """What it answers before any split."""
        return float(self.node_values[0])

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """What it says of rows: (n,)."""
        return self.node_values[self.leaves(features)]

    def leaves(self, features: np.ndarray) -> np.ndarray:
        """The leaf each row ends in, by its number among all nodes: (n,)."""
        return self.tree.apply(features.astype(np.float32))

    def parts(self, features: np.ndarray) -> np.ndarray:
        """How the answer moves at each split on the way of each row, under the feature split on: (n, features)."""
        parts = np.zeros(features.shape)
        seen = features.astype(np.float32)
        rows = np.arange(len(features))
        at = np.zeros(len(features), dtype=np.int64)
        for _ in range(self.tree.max_depth):
            inner = self.tree.children_left[at] >= 0
            rows, at = rows[inner], at[inner]
            split = self.tree.feature[at]
            goes_left = seen[rows, split] <= self.tree.threshold[at]
            child = np.where(goes_left, self.tree.children_left[at], self.tree.children_right[at])
            parts[rows, split] += self.node_values[child] - self.node_values[at]
            at = child
        return parts
