"""Trees on an accelerator: what `limis.trees.carrying` and `limis.surrogate.growing` do, done to many rows at a time.

A point is a row to explain with one column changed, so only that column's bins are written down: in every other feature
it stands in the row's own bin. Sums are of whole numbers, so that they are the same in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from limis.surrogate.growing import PURE, SMALLEST, TIE
from limis.surrogate.tree import LocalTrees
from limis.trees.carried import CarriedChanges, Known, Ragged, Rows
from limis.trees.carrying import OTHER_LEVEL
from limis.trees.inputs import TreeInputs
from limis.two_scales_on_device import on_device

CELLS_AT_ONCE = 2**26  # of histograms, or bins of points: each takes some 100 bytes
BITS = 60  # that a sum of whole numbers may take; sums over several features wrap around, and their differences do not


class Points(NamedTuple):
    """What the trees of some rows are fitted on, those of the first row first."""

    query: torch.Tensor  # (points,) the row that each is made of
    column: torch.Tensor  # (points,) the column that is changed; for the row itself one beyond the last
    start: torch.Tensor  # (points,) where the bins of that column begin among those written down
    outputs: torch.Tensor  # (points,)
    weights: torch.Tensor  # (points,)


class Written:
    """Numbers of records, each those of its changed column, and after them those of all training rows, all columns."""

    def __init__(self, records: Ragged, rows: np.ndarray, device: str) -> None:
        self.numbers = torch.cat([on_device(records.numbers, device), on_device(rows, device).flatten()])
        self.starts = on_device(records.starts, device).long()
        first = on_device(records.first, device).long()
        self.first = torch.cat([first, first[-1:]])  # with a column beyond the last, which has no features
        self.n_recorded, self.n_features = len(records.numbers), rows.shape[1]

    def start(
        self, of_record: torch.Tensor, record: torch.Tensor, row: torch.Tensor, column: torch.Tensor
    ) -> torch.Tensor:
        """Where the numbers of a column begin: of a record, or of a training row."""
        return torch.where(of_record, self.starts[record], self.n_recorded + row * self.n_features + self.first[column])

    def spread(self, start: torch.Tensor, column: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """All numbers of some columns, one after another: which of the columns each is of, its feature, and itself."""
        width = self.width(column)
        which = torch.repeat_interleave(torch.arange(len(column), device=column.device), width)
        place = torch.arange(len(which), device=column.device) - (width.cumsum(0) - width)[which]
        return which, self.first[column][which] + place, self.numbers[start[which] + place]

    def width(self, column: torch.Tensor) -> torch.Tensor:
        """How many features columns have."""
        return self.first[column + 1] - self.first[column]


class CarriedOnDevice:
    """The recorded changes of all training rows."""

    def __init__(self, carried: CarriedChanges, features: np.ndarray, is_category: np.ndarray, device: str) -> None:
        self.device = device
        self.starts, self.columns = (on_device(part, device).long() for part in (carried.starts, carried.columns))
        self.answers, self.ranks = on_device(carried.answers, device), on_device(carried.value_ranks, device)
        self.row_ranks, self.is_category = on_device(carried.row_ranks, device), on_device(is_category, device)
        self.features = Written(carried.value_features, features, device)
        bins = Written(carried.value_bins, carried.inputs.row_bins, device)
        self.binned = Binned(bins, Layout.of(carried.inputs.bins.count, carried.inputs.column, device))

    def points(self, own: Rows, known: Known, reach: float) -> Points:
        """As `CarriedChanges.carry` makes them: the row itself, then two points a record of a near row."""
        n_columns = len(self.is_category)
        height, slope, near, near_weight = (on_device(part, self.device) for part in known)
        n_records = (self.starts[near + 1] - self.starts[near]) * (near_weight > 0)
        sizes = torch.cat([torch.ones_like(n_records[:, :1]), 2 * n_records], dim=1).flatten()
        line = torch.repeat_interleave(torch.arange(len(sizes), device=self.device), sizes)
        within = torch.arange(len(line), device=self.device) - (sizes.cumsum(0) - sizes)[line]
        query, place = line // (1 + near.shape[1]), line % (1 + near.shape[1])
        itself, place = place == 0, (place - 1).clamp(min=0)
        row, weight = near[query, place], near_weight[query, place]
        record = torch.where(itself, 0, self.starts[row] + within // 2)
        forward = within % 2 == 0
        column = torch.where(itself, n_columns, self.columns[record])

        # From the row's own value to where the record begins, which read backwards is where it ended.
        begins = self.features.start(~forward, record, row, column)
        which, feature, number = self.features.spread(begins, column)
        here = on_device(own.features, self.device)[query[which], feature]
        steps = slope[query[which], feature] * (number.double() - here)
        way = torch.segment_reduce(steps, "sum", lengths=self.features.width(column), initial=0.0)
        answer = torch.where(forward, self.answers[record], -self.answers[record])
        told = torch.where(itself, 0.0, way + answer)

        at = column.clamp(max=n_columns - 1)
        other = torch.where(forward, self.row_ranks[row, at], self.ranks[record])
        nearness = self._nearness(on_device(own.ranks, self.device)[query, at], other, self.is_category[at], reach)
        weights = torch.where(itself, near_weight.sum(dim=1)[query], weight * nearness)
        start = self.binned.written.start(forward, record, row, column)
        found = Points(query, column, start, height[query] + told, weights)
        kept = weights > 0
        return Points(*(part[kept] for part in found))

    def _nearness(self, own: torch.Tensor, other: torch.Tensor, category: torch.Tensor, reach: float) -> torch.Tensor:
        missing = own.isnan(), other.isnan()
        apart = torch.where(missing[0] | missing[1], (missing[0] ^ missing[1]).double(), (own - other).abs())
        of_levels = torch.where(own == other, torch.ones_like(own), OTHER_LEVEL)
        return torch.where(category, of_levels, torch.exp(-apart / reach))


class Layout(NamedTuple):
    """Where the bins of each feature stand in a line of all bins."""

    starts: torch.Tensor  # (features,)
    column: torch.Tensor  # (features,)
    feature: torch.Tensor  # (bins,)
    can_cut: torch.Tensor  # (bins,) bool: whether a higher bin of the same feature follows
    n_columns: int

    @classmethod
    def of(cls, counts: np.ndarray, column: np.ndarray, device: str) -> Layout:
        """From how many bins each feature has, and the column it belongs to."""
        ends = np.cumsum(counts)
        can_cut = np.ones(ends[-1], dtype=bool)
        can_cut[ends - 1] = False
        return cls(
            starts=on_device(ends - counts, device),
            column=on_device(column, device),
            feature=on_device(np.repeat(np.arange(len(counts)), counts), device),
            can_cut=on_device(can_cut, device),
            n_columns=int(column[-1]) + 1,
        )


class Binned(NamedTuple):
    """The bins that points may have in the features of a column."""

    written: Written
    layout: Layout

    @classmethod
    def of_rows(cls, inputs: TreeInputs, device: str) -> Binned:
        """For points that are training rows: all features count as those of one column."""
        n_features = inputs.row_bins.shape[1]
        none = Ragged(np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int64), np.array([0, n_features]))
        layout = Layout.of(inputs.bins.count, np.zeros(n_features, dtype=np.int64), device)
        return cls(Written(none, inputs.row_bins, device), layout)

    def points(self, rows: np.ndarray, weights: np.ndarray, outputs: torch.Tensor) -> Points:
        """Training rows, (queries, candidates), with their weights, and the outputs of all training rows."""
        device = str(outputs.device)
        query, place = (on_device(part, device) for part in np.nonzero(weights > 0))
        row = on_device(rows, device)[query, place]
        column = torch.zeros_like(row)
        start = row * self.written.n_features
        return Points(query, column, start, outputs[row], on_device(weights, device)[query, place])


@dataclass
class Grown:
    """Fitted trees, and how their own points lie in them."""

    trees: LocalTrees
    residual: np.ndarray  # (queries,) weighted mean square of what a tree misses of points left out of their means
    spread: np.ndarray  # (queries,) the same for its root alone


def grow(points: Points, binned: Binned, own: torch.Tensor, depth: int, min_in_leaf: int) -> Grown:
    """Grow a tree for each row, level by level; ``own`` are the rows' bins, (rows, tree's features)."""
    n, layout = len(own), binned.layout
    which, feature, number = binned.written.spread(points.start, points.column)
    cell = layout.starts[feature] + number.long()
    node, every, splits = torch.zeros_like(points.query), [], []
    for level in range(depth + 1):
        first, width = 2**level - 1, 2**level
        at = torch.where(node >= first, points.query * width + node - first, n * width)  # the last: ended before
        sums = _Sums.of(points, at, n * width)
        every.append(sums)
        if level < depth:
            own_bins = own.repeat_interleave(width, dim=0)
            histograms = _Histograms.of(points, sums, at, (which, cell), own_bins, layout)
            found, best = histograms.best(sums, layout, min_in_leaf)
            found &= (sums.n_points >= 2 * min_in_leaf) & (sums.impurity > PURE)
            split = torch.where(found, layout.feature[best], -1)
            cut = torch.where(found, best - layout.starts[split], 0)
            splits.append((split, cut))
            split, cut = (torch.cat([part, part.new_full((1,), -1)])[at] for part in (split, cut))
            right = _bins(points, binned, own, split.clamp(min=0)) > cut
            node = torch.where(split < 0, node, 2 * node + 1 + right)
    return _grown(points, node, every, splits, n)


def _bins(points: Points, binned: Binned, own: torch.Tensor, feature: torch.Tensor) -> torch.Tensor:
    """The bin in which each point stands in a feature of its own."""
    column, bins = binned.layout.column[feature], binned.written
    changed = points.column == column
    place = torch.where(changed, points.start + feature - bins.first[column], 0)
    return torch.where(changed, bins.numbers[place], own[points.query, feature]).long()


class _Sums(NamedTuple):
    """Nodes' sums, with those of the weights and weighted residuals of points as whole numbers."""

    n_points: torch.Tensor  # (nodes,)
    weight: torch.Tensor  # (nodes,)
    value: torch.Tensor  # (nodes,)
    impurity: torch.Tensor  # (nodes,)
    whole: tuple[torch.Tensor, torch.Tensor]  # (points,) both
    units: tuple[torch.Tensor, torch.Tensor]  # (nodes,) both: how many of them make one

    @classmethod
    def of(cls, points: Points, at: torch.Tensor, n_nodes: int) -> _Sums:
        """Of the points in each of so many nodes; those at the number beyond are left out."""
        count = torch.bincount(at, minlength=n_nodes + 1)

        def total(sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            whole, unit = _whole(sizes, at, count)
            return torch.zeros_like(count).index_add_(0, at, whole) / unit, whole, unit

        weight, whole_weights, weight_unit = total(points.weights)
        # Counted from an output that occurs, equal outputs have exactly no residuals.
        origin = torch.full_like(weight, torch.inf).scatter_reduce_(0, at, points.outputs, "amin")
        offset = points.outputs - origin[at]
        shift = total(points.weights * offset)[0] / weight
        residual = offset - shift[at]
        _, whole, unit = total(points.weights * residual)
        impurity = total(points.weights * residual**2)[0] / weight
        none = count == 0
        return cls(
            n_points=count[:-1],
            weight=weight[:-1],
            value=torch.where(none, 0, origin + shift)[:-1],
            impurity=torch.where(none, 0, impurity)[:-1],
            whole=(whole_weights, whole),
            units=(weight_unit[:-1], unit[:-1]),
        )


class _Histograms(NamedTuple):
    """Sums up to each bin of each feature: of weights and weighted residuals as whole numbers, and of points."""

    below: tuple[torch.Tensor, ...]  # (nodes, bins) each
    total: tuple[torch.Tensor, ...]  # (nodes,) each

    @classmethod
    def of(
        cls,
        points: Points,
        sums: _Sums,
        at: torch.Tensor,
        entries: tuple[torch.Tensor, torch.Tensor],
        own: torch.Tensor,
        layout: Layout,
    ) -> _Histograms:
        n_nodes, n_cells, n_columns = len(own), len(layout.feature), layout.n_columns + 1
        inside = at < n_nodes
        which, cell = entries
        kept = inside[which]
        which, cell = which[kept], cell[kept]
        own_cell = layout.starts + own.long()
        below, total = [], []
        for sizes in (sums.whole[0] * inside, sums.whole[1] * inside, inside.long()):
            histogram = sizes.new_zeros(n_nodes * n_cells).index_add_(0, at[which] * n_cells + cell, sizes[which])
            by_column = sizes.new_zeros((n_nodes + 1) * n_columns).index_add_(0, at * n_columns + points.column, sizes)
            by_column = by_column.reshape(n_nodes + 1, n_columns)[:-1]
            total.append(by_column.sum(dim=1))
            # In the features of other columns a point stands where the row does.
            elsewhere = total[-1][:, None] - by_column[:, layout.column]
            histogram = histogram.reshape(n_nodes, n_cells).scatter_add_(1, own_cell, elsewhere)
            running = histogram.cumsum(dim=1)
            before = running[:, layout.starts] - histogram[:, layout.starts]
            below.append(running - before[:, layout.feature])
        return cls(tuple(below), tuple(total))

    def best(self, sums: _Sums, layout: Layout, min_in_leaf: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Whether nodes can be divided, and the highest bin to go left of the first of all best ways: (nodes,) both."""
        weight_unit, unit = (part[:, None] for part in sums.units)
        left, right = self.below[0] / weight_unit, (self.total[0][:, None] - self.below[0]) / weight_unit
        n_right = self.total[2][:, None] - self.below[2]
        allowed = layout.can_cut & (left >= SMALLEST) & (right >= SMALLEST)
        allowed &= (self.below[2] >= min_in_leaf) & (n_right >= min_in_leaf)
        # A node's residuals sum to zero but for rounding, which must not tell one half from the other.
        apart = self.below[1] / unit - (self.total[1][:, None] / unit) * (left / (left + right))
        gain = torch.where(allowed, apart**2 / (left * right), -torch.inf)
        bar = gain.max(dim=1, keepdim=True).values - TIE * sums.impurity[:, None]
        return allowed.any(dim=1), (allowed & (gain >= bar)).int().argmax(dim=1)


def _whole(sizes: torch.Tensor, at: torch.Tensor, count: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of some groups as whole ones, and how many of these make one, so that no group's sum overflows."""
    largest = torch.zeros(len(count), dtype=torch.float64, device=sizes.device).scatter_reduce_(
        0, at, sizes.abs(), "amax"
    )
    unit = torch.exp2(torch.floor(BITS - torch.log2((largest * count).clamp(min=SMALLEST))))
    return (sizes * unit[at]).round().long(), unit


def _grown(
    points: Points,
    node: torch.Tensor,
    every: list[_Sums],
    splits: list[tuple[torch.Tensor, torch.Tensor]],
    n: int,
) -> Grown:
    def joined(parts: Iterable[torch.Tensor]) -> torch.Tensor:
        return torch.cat([part.reshape(n, -1) for part in parts], dim=1)

    weight, value = joined(sums.weight for sums in every), joined(sums.value for sums in every)
    count = torch.bincount(points.query, minlength=n)

    def mean_square(where: torch.Tensor) -> np.ndarray:
        others = 1 - points.weights / weight[points.query, where]
        missed = (points.outputs - value[points.query, where]) / others.clamp(min=1e-3)
        whole, unit = _whole(points.weights * missed**2, points.query, count)
        total = torch.zeros_like(count).index_add_(0, points.query, whole) / unit
        return (total / torch.where(weight[:, 0] > 0, weight[:, 0], 1.0)).cpu().numpy()

    counts = joined(sums.n_points for sums in every).int().cpu().numpy()
    trees = LocalTrees(
        feature=joined(split for split, _ in splits).int().cpu().numpy(),
        bin=joined(cut for _, cut in splits).byte().cpu().numpy(),
        value=value[:, :, None].cpu().numpy(),
        weight=weight.cpu().numpy(),
        count=counts,
        impurity=joined(sums.impurity for sums in every).cpu().numpy(),
        empty=counts[:, 0] < 2,
    )
    return Grown(trees, mean_square(node), mean_square(torch.zeros_like(node)))
