"""Local models that are shallow trees: fitted on weighted rows, or on recorded changes carried over to the row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from limis.perturb import MovedRows
from limis.retrieval.index import strongest
from limis.rows import TrainingRows
from limis.surrogate.tree import LocalTrees, fit_local_trees
from limis.trees.carried import CarriedChanges, Known, Rows
from limis.trees.inputs import TreeInputs
from limis.trees.on_device import CELLS_AT_ONCE, Binned, CarriedOnDevice, grow
from limis.two_scales import TwoScales
from limis.two_scales_on_device import on_device
from limis.walk import SMALL_BLOCK, GlobalFit, LocalFits, LocalModel, blocks

RecordsFrom = Literal["forest", "slopes"]

MIN_IN_LEAF = 20  # changes that a leaf must rest on
MIN_ROWS_IN_LEAF = 1  # the same for rows, as in the paper
MOST_RECORDS = 2_000  # that one tree is fitted on, about
POINT_BYTES = 2**26  # of points alive at once


@dataclass(eq=False, kw_only=True)
class TreeFits(LocalFits):
    """The surrogates of some rows, each a tree; levels are what the roots say.

    ``coefficients`` are the slopes that stood behind the trees. Neither predictions nor changes are made of them.
    """

    trees: LocalTrees
    inputs: TreeInputs

    @property
    def has_coefficients(self) -> bool:
        """Trees have none."""
        return False

    @property
    def has_rules(self) -> bool:
        """A leaf is a rule."""
        return True

    def predictions(self) -> np.ndarray:
        """g at the explained rows."""
        return self._said

    @cached_property
    def _said(self) -> np.ndarray:
        return self.trees.value[np.arange(len(self.levels)), self.leaves(), 0]

    def leaves(self) -> np.ndarray:
        """The node each explained row ends in: (rows,)."""
        return self.trees.apply(self.inputs.bins_of(self.features), np.arange(len(self.features)))

    def paths(self) -> np.ndarray:
        """The nodes on each row's way from the root to its leaf, which is repeated at the end: (rows, depth + 1)."""
        return self._ways

    @cached_property
    def _ways(self) -> np.ndarray:
        return self.trees.paths(self.inputs.bins_of(self.features), np.arange(len(self.features)))

    def weighted_differences(self) -> np.ndarray:
        """How the answer moves at each split on the row's way, under the feature split on: (rows, features)."""
        parts = np.zeros(self.features.shape)
        ways = self.paths()
        rows = np.arange(len(ways))
        for before, after in zip(ways.T[:-1], ways.T[1:], strict=True):
            moved = before != after
            split = self.inputs.kept[self.trees.feature[rows[moved], before[moved]]]
            step = self.trees.value[rows[moved], after[moved], 0] - self.trees.value[rows[moved], before[moved], 0]
            np.add.at(parts, (rows[moved], split), step)
        return parts

    def changes(self, rows: np.ndarray, moved: MovedRows) -> np.ndarray:
        """What g says of moves: g(moved) − g(row), for each move."""
        after = self.trees.predict(self.inputs.bins_of(moved.features), rows)[:, 0]
        return after - self.predictions()[rows]


class _Sample(NamedTuple):
    """What trees are fitted on, in the order in which `fit_local_trees` takes it."""

    bins: np.ndarray  # (points, tree's features) uint8
    outputs: np.ndarray  # (points,)
    rows: np.ndarray  # (trees, candidates) places among the points
    weights: np.ndarray  # (trees, candidates)


@dataclass
class TreeModel:
    """A tree for each row, on what another local model says of its neighbourhood.

    Parameters
    ----------
    base : LocalModel
        Says which rows matter; with carried changes also how high the row stands and which way its slopes go.
    inputs : TreeInputs
        The features that trees split on.
    carried : CarriedChanges, default=None
        Recorded changes to fit trees on; None: the weighted rows themselves.
    records_from : {"forest", "slopes"}, default="forest"
        Whose changes are carried: those of the forest's rows, or of the rows that the slopes rest on.
    reach : float, default=0.1
        How far from the row's own value, in ranks, a record may begin.
    depth : int, default=3
        Of the trees.
    """

    base: LocalModel
    inputs: TreeInputs
    carried: CarriedChanges | None = None
    records_from: RecordsFrom = "forest"
    reach: float = 0.1
    depth: int = 3

    def rows_at_once(self, training: TrainingRows, memory_limit: float) -> int:
        """As many as the base takes; on a CPU few, as their surrogates take more room."""
        most = self.base.rows_at_once(training, memory_limit)
        return most if self._on_accelerator(training) else min(SMALL_BLOCK, most)

    def fit(self, training: TrainingRows, fallback: GlobalFit, values: np.ndarray) -> TreeFits:
        """The trees of one block of rows."""
        return self.grow(training, self.base.fit(training, fallback, values), values)

    def grow(self, training: TrainingRows, base: LocalFits, values: np.ndarray) -> TreeFits:
        """The trees on finished fits of the base, as many at a time as there is room for their points."""
        near, n_points = self._near(training, base, values)
        on_accelerator = self._on_accelerator(training)
        if on_accelerator:
            features_a_point = len(self.inputs.kept) / (1 if self.carried is None else len(training.table.columns))
            cells = 2 ** (self.depth - 1) * int(self.inputs.bins.count.sum())
            size = CELLS_AT_ONCE // int(max(cells, n_points * features_a_point))
        elif self.carried is None:
            size = len(values)  # their points are the training rows themselves
        else:
            size = int(POINT_BYTES / (n_points * len(self.inputs.kept)))
        parts = []
        for block in blocks(len(values), max(1, size)):
            fits, chosen = base.part(np.arange(len(values))[block]), (near[0][block], near[1][block])
            if on_accelerator:
                parts.append(self._on_device(training, fits, values[block], chosen))
            elif self.carried is None:
                sample = _Sample(self.inputs.row_bins, training.outputs, *chosen)
                parts.append(self._grown(fits, sample, MIN_ROWS_IN_LEAF))
            else:
                parts.append(self._on_changes(training, fits, values[block], chosen))
        return TreeFits.join(parts)

    def _near(
        self, training: TrainingRows, base: LocalFits, values: np.ndarray
    ) -> tuple[tuple[np.ndarray, np.ndarray], float]:
        """The rows that trees rest on, and their weights, (rows, candidates) both; and how many points that is about.

        They are the base's or, for trees on changes, the strongest whose changes were recorded.
        """
        if self.carried is None:
            near = strongest(base.weights, int(np.diff(base.weights.indptr).max(initial=1)))
            return near, near[0].shape[1]
        per_row = max(1.0, self.carried.per_row)
        most = min(int(np.clip(MOST_RECORDS / per_row, 8, 64)), len(training))
        if self.records_from == "forest":
            assert isinstance(self.base, TwoScales)  # changes are recorded for two scales alone
            near = self.base.nearest_recorded(training, values, most, self.carried.starts)
        else:
            recorded = np.diff(self.carried.starts) > 0
            weights = sp.csr_array(base.slope_weights.multiply(recorded[None, :]))
            weights.eliminate_zeros()
            near = strongest(weights, most)
        return near, 1 + 2 * most * per_row

    def _on_accelerator(self, training: TrainingRows) -> bool:
        """Whether these trees are grown there: where the base is fitted there, and there is something to grow on."""
        has_points = self.carried is None or len(self.carried.columns) > 0
        return has_points and isinstance(self.base, TwoScales) and self.base.on_accelerator(training)

    def _on_device(
        self, training: TrainingRows, base: LocalFits, values: np.ndarray, near: tuple[np.ndarray, np.ndarray]
    ) -> TreeFits:
        assert isinstance(self.base, TwoScales)
        device, carried = self.base.device, self.carried
        if carried is None:
            binned = self.base.kept("binned", lambda: Binned.of_rows(self.inputs, device), self.inputs)
            points = binned.points(*near, on_device(training.outputs, device))
            nowhere = torch.zeros((len(values), len(self.inputs.kept)), dtype=torch.uint8, device=device)
            grown = grow(points, binned, nowhere, self.depth, MIN_ROWS_IN_LEAF)
        else:
            kept, is_category = training.features.numpy(), training.table.is_category
            held = self.base.kept("carried", lambda: CarriedOnDevice(carried, kept, is_category, device), carried)
            features = training.table.features(values)
            own = Rows(self.inputs.bins_of(features), training.table.ranks(values), features)
            known = Known(base.predictions(), base.coefficients, *near)
            points = held.points(own, known, self.reach)
            grown = grow(points, held.binned, on_device(own.bins, device), self.depth, MIN_IN_LEAF)
        return self._told(base, grown.trees, grown.residual, grown.spread)

    def _on_changes(
        self, training: TrainingRows, base: LocalFits, values: np.ndarray, near: tuple[np.ndarray, np.ndarray]
    ) -> TreeFits:
        assert self.carried is not None
        points = self.carried.carry(training, values, near, base.predictions(), base.coefficients, self.reach)
        n, width, n_features = points.bins.shape
        sample = _Sample(
            points.bins.reshape(n * width, n_features),
            points.outputs.ravel(),
            np.arange(n * width).reshape(n, width),
            points.weights,
        )
        return self._grown(base, sample, MIN_IN_LEAF)

    def _grown(self, base: LocalFits, sample: _Sample, min_in_leaf: int) -> TreeFits:
        trees = fit_local_trees(*sample, depth=self.depth, min_samples_leaf=min_in_leaf)
        return self._told(base, trees, *_left_out(trees, sample))

    def _told(self, base: LocalFits, trees: LocalTrees, residual: np.ndarray, spread: np.ndarray) -> TreeFits:
        alone = base.empty | trees.empty
        # With nothing to rest on, the tree is the one number that the global model says.
        trees.feature[alone] = -1
        trees.value[alone] = base.predictions()[alone, None, None]
        held: dict[str, Any] = {one.name: getattr(base, one.name) for one in fields(LocalFits)}
        held["levels"] = trees.value[:, 0, 0]
        held["empty"] = alone
        held["residual_mean_square"] = np.where(alone, base.residual_mean_square, residual)
        held["spread_mean_square"] = np.where(alone, base.spread_mean_square, spread)
        return TreeFits(**held, trees=trees, inputs=self.inputs)


def _left_out(trees: LocalTrees, sample: _Sample) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean square of what trees, and their roots alone, miss of each point when it is left out of its mean."""
    n, width = sample.weights.shape
    queries = np.repeat(np.arange(n), width)
    rows, weights = sample.rows.ravel(), sample.weights.ravel()
    kept = weights > 0
    queries, rows, weights = queries[kept], rows[kept], weights[kept]
    outputs = sample.outputs[rows]
    total = np.bincount(queries, weights, minlength=n)
    found = []
    for node in (trees.apply(sample.bins[rows], queries), np.zeros(len(rows), dtype=np.int64)):
        others = 1 - weights / trees.weight[queries, node]
        missed = (outputs - trees.value[queries, node, 0]) / np.maximum(others, 1e-3)
        found.append(np.bincount(queries, weights * missed**2, minlength=n) / np.where(total > 0, total, 1.0))
    return found[0], found[1]
