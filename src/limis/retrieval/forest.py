"""A random forest fitted to the black box's outputs, kept as flat arrays and walked without scikit-learn.

scikit-learn grows the trees. Its own walk costs tens of milliseconds for a single row, so the trees are copied into
arrays that hold all nodes of all trees, and compiled code walks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor

from limis.retrieval.walking import NODE, walk

LEAF = -1
TREES_AT_ONCE = 20  # a thread each


@dataclass
class Forest:
    """All trees in one set of arrays; a node's children are positions in the same arrays."""

    feature: np.ndarray  # (nodes,) int32, LEAF at leaves
    threshold: np.ndarray  # (nodes,) float64
    left: np.ndarray  # (nodes,) int32; leaves point to themselves
    right: np.ndarray  # (nodes,) int32
    leaf_number: np.ndarray  # (nodes,) int32, numbering the leaves of the whole forest; LEAF at inner nodes
    roots: np.ndarray  # (trees,) int32

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self.roots)

    @property
    def n_leaves(self) -> int:
        """How many leaves all trees have together."""
        return int(self.leaf_number.max()) + 1

    def leaves(self, inputs: np.ndarray) -> np.ndarray:
        """The leaf each row falls into, for every tree: (rows, trees)."""
        return np.ascontiguousarray(self._walk(inputs, self.roots).T)

    def leaves_by_tree(self, inputs: np.ndarray) -> Iterator[np.ndarray]:
        """The same, one tree after another, (rows,) each: of many rows not all of it is needed at once."""
        for some in np.array_split(self.roots, max(1, self.n_trees // TREES_AT_ONCE)):
            yield from self._walk(inputs, some)

    def _walk(self, inputs: np.ndarray, roots: np.ndarray) -> np.ndarray:
        ends = np.empty((len(roots), len(inputs)), dtype=np.int32)
        inputs = np.ascontiguousarray(inputs, dtype=np.float32)
        walk(inputs, self._nodes, roots, ends)
        return self.leaf_number[ends]

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in self.__dict__.items() if name != "_nodes"}

    @cached_property
    def _nodes(self) -> np.ndarray:
        nodes = np.empty(len(self.feature), dtype=NODE)
        for name in ("threshold", "feature", "left", "right"):
            nodes[name] = getattr(self, name)
        return nodes


def grow_forest(
    inputs: np.ndarray,
    targets: Sequence[np.ndarray],
    group: np.ndarray,
    *,
    n_trees: int,
    min_leaf: int,
    feature_share: float,
    n_jobs: int | None,
    seed: int,
) -> tuple[Forest, np.ndarray]:
    """Grow a forest; returns it and how often each group is in each tree's sample: (groups, trees) uint8.

    Trees take turns with the targets. Rows of one group enter a tree's sample together or not at all. Targets should
    be standardised: scikit-learn stops splitting at an impurity that is small in absolute terms.
    """
    inputs = inputs.astype(np.float32)
    n_groups = int(group.max()) + 1
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, n_groups, size=(n_trees, n_groups))
    seeds = rng.integers(2**31, size=n_trees)

    def grow(tree: int) -> tuple[Any, np.ndarray]:
        drawn = np.bincount(draws[tree], minlength=n_groups)
        regressor = DecisionTreeRegressor(
            min_samples_leaf=min_leaf, max_features=feature_share, random_state=int(seeds[tree])
        )
        target = targets[tree % len(targets)]
        with config_context(skip_parameter_validation=True):  # counts where rows are few
            return regressor.fit(inputs, target, sample_weight=drawn[group], check_input=False).tree_, drawn

    # Threads, not processes: scikit-learn's trees grow without holding Python's lock.
    grown = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(grow)(tree) for tree in range(n_trees))
    in_bag = np.minimum(np.stack([drawn for _, drawn in grown], axis=1), 255).astype(np.uint8)
    return _flatten([tree for tree, _ in grown]), in_bag


def _flatten(trees: list) -> Forest:
    sizes = np.array([tree.node_count for tree in trees])
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    feature = np.concatenate([tree.feature for tree in trees])
    is_leaf = np.concatenate([tree.children_left for tree in trees]) == LEAF
    nodes = np.arange(len(feature))
    left, right = (
        np.where(
            is_leaf, nodes, np.concatenate([getattr(t, side) + root for t, root in zip(trees, roots, strict=True)])
        )
        for side in ("children_left", "children_right")
    )
    leaf_number = np.full(len(feature), LEAF)
    leaf_number[is_leaf] = np.arange(is_leaf.sum())
    return Forest(
        # A leaf compares feature 0 and stays where it is, whatever the answer.
        feature=np.where(is_leaf, 0, feature).astype(np.int32),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        leaf_number=leaf_number.astype(np.int32),
        roots=roots.astype(np.int32),
    )
