"""Two scales on an accelerator: what the compiled code does, done to the tensors of many rows at a time.

All numbers are float64 and shares are added up as whole numbers, so that the rows found are the same as on a CPU and
everything else agrees up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from limis.changes import ColumnSystems
from limis.retrieval import Forest, LeafIndex, Retriever
from limis.retrieval.finding import WHOLE, Groups
from limis.spans import BEYOND, NOWHERE, POINTS, ROUNDING, RecordedValues
from limis.weighting.level import TAIL

ROWS_ON_DEVICE = 8192  # at a time, at most
CELLS_ON_DEVICE = 2**28  # candidates' features at a time: 2 GiB, three times over


@dataclass
class Nearest:
    """Each row's strongest rows, in row order, padded with row 0 at weight 0."""

    rows: torch.Tensor  # (rows, candidates)
    weights: torch.Tensor  # (rows, candidates)

    def fewer(self, most: int) -> Nearest:
        """The strongest ``most`` of them."""
        if self.rows.shape[1] <= most:
            return self
        # A stable sort: ties go to the lower row, and candidates without weight come last.
        kept = torch.sort(self.weights, dim=1, descending=True, stable=True).indices[:, :most].sort(dim=1).values
        return Nearest(self.rows.gather(1, kept), self.weights.gather(1, kept))

    def shares(self) -> torch.Tensor:
        """The weights as shares of their sum."""
        return self.weights / self.weights.sum(dim=1, keepdim=True).clamp(min=1e-300)


class RetrieverOnDevice:
    """A forest and the rows of its leaves."""

    def __init__(
        self,
        retriever: Retriever,
        device: str,
        index: LeafIndex | None = None,
        like: RetrieverOnDevice | None = None,
    ) -> None:
        """``index`` is another than the retriever's own; ``like`` has the same forest, which is then shared."""
        if like is not None:
            self.__dict__ |= like.__dict__
        else:
            self._put_forest(retriever, device)
        held = (retriever.index if index is None else index).shares
        self.starts, self.members = on_device(held.indptr, device).long(), on_device(held.indices, device).long()
        self.shares = torch.floor(on_device(held.data, device) * WHOLE + 0.5).long()

    def _put_forest(self, retriever: Retriever, device: str) -> None:
        forest = retriever.forest
        self.device, self.depth = device, _depth(forest)
        self.feature, self.left, self.right = (
            on_device(part, device).long() for part in (forest.feature, forest.left, forest.right)
        )
        self.threshold, self.roots = on_device(forest.threshold, device), on_device(forest.roots, device).long()
        self.leaf_number = on_device(forest.leaf_number, device).long()
        self.origin = on_device(retriever.origin, device).long()
        self.n_training = len(retriever.in_bag)

    def nearest(self, leaves: torch.Tensor, used: np.ndarray, groups: Groups, most: int) -> Nearest:
        """As `Retriever.nearest` finds them, from the leaves of rows."""
        counted = on_device(used, self.device)
        n_rows, n_all = len(leaves), len(self.origin)
        sizes = ((self.starts[leaves + 1] - self.starts[leaves]) * counted).flatten()
        line = torch.repeat_interleave(torch.arange(len(sizes), device=self.device), sizes)
        within = torch.arange(len(line), device=self.device) - (sizes.cumsum(0) - sizes)[line]
        place = self.starts[leaves].flatten()[line] + within
        keys, totals = _added_up(line // leaves.shape[1] * n_all + self.members[place], self.shares[place])
        row, member = keys // n_all, keys % n_all
        if (groups.own >= 0).any():
            other = on_device(groups.of_row, self.device)[member] != on_device(groups.own, self.device)[row]
            row, member, totals = row[other], member[other], totals[other]
        counts = torch.bincount(row, minlength=n_rows)
        width = max(most, int(counts.max()) if len(row) else 0)
        at = torch.arange(len(row), device=self.device) - (counts.cumsum(0) - counts)[row]
        found = torch.zeros((n_rows, width), dtype=torch.int64, device=self.device)
        weights = torch.zeros((n_rows, width), dtype=torch.float64, device=self.device)
        found[row, at] = member
        weights[row, at] = totals.double() / (WHOLE * counted.sum(dim=1).clamp(min=1).double()[row])
        return Nearest(found, weights).fewer(most)

    def leaves(self, inputs: np.ndarray) -> torch.Tensor:
        """The leaf each row falls into, for every tree: (rows, trees)."""
        own = on_device(inputs.astype(np.float32), self.device).double()
        at = self.roots.expand(len(own), -1)
        for _ in range(self.depth):
            goes_left = own.gather(1, self.feature[at]) <= self.threshold[at]
            at = torch.where(goes_left, self.left[at], self.right[at])
        return self.leaf_number[at]

    def by_training_row(self, rows: torch.Tensor, shares: torch.Tensor) -> sp.csr_array:
        """Shares of training rows, (rows, candidates) both, added up by training row: (rows, training rows)."""
        kept = shares > 0
        row = torch.arange(len(shares), device=self.device)[:, None].expand_as(shares)[kept]
        keys, totals = _added_up(row * self.n_training + rows[kept], shares[kept])
        starts = torch.zeros(len(shares) + 1, dtype=torch.int64, device=self.device)
        starts[1:] = torch.bincount(keys // self.n_training, minlength=len(shares)).cumsum(0)
        # In the type that a sparse matrix has: else it is copied once more.
        parts = (totals.cpu().numpy(), (keys % self.n_training).int().cpu().numpy(), starts.int().cpu().numpy())
        return sp.csr_array(parts, shape=(len(shares), self.n_training))


class SystemsOnDevice:
    """The columns' systems of the training rows whose changes were recorded."""

    def __init__(self, systems: ColumnSystems, device: str) -> None:
        recorded = np.flatnonzero(np.diff(systems.grams.indptr))
        place = np.full(len(systems.share), len(recorded))  # a row without records adds nothing
        place[recorded] = np.arange(len(recorded))
        self.device, self.place = device, on_device(place, device)
        self.grams, self.moments = (_dense(part[recorded], device) for part in (systems.grams, systems.moments))
        self.systems = systems
        starts = np.concatenate([[0], np.cumsum(systems.width**2)])
        firsts = np.concatenate([[0], np.cumsum(systems.width)])
        # Columns of one width are solved together.
        self.columns = {
            int(size): (
                on_device(starts[:-1][systems.width == size][:, None] + np.arange(size**2), device),
                on_device(firsts[:-1][systems.width == size][:, None] + np.arange(size), device),
            )
            for size in np.unique(systems.width)
        }
        squares = [start + np.arange(size) * (size + 1) for start, size in zip(starts[:-1], systems.width, strict=True)]
        self.diagonal = on_device(np.concatenate(squares), device)

    def slopes(self, broad: Nearest, prior: float, penalty: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Slopes, standardised, and which features some weighted row's changes moved: (rows, features) both."""
        shares, chosen, added = broad.shares(), self.place[broad.rows], self.systems.added(prior, penalty)
        n = len(shares)
        gram, moment = (
            torch.nn.functional.embedding_bag(chosen, part, per_sample_weights=shares, mode="sum")
            for part in (self.grams, self.moments)
        )
        touched = gram[:, self.diagonal] > 0
        gram, moment = gram + on_device(added.gram, self.device), moment + on_device(added.moment, self.device)
        slopes = torch.empty_like(moment)
        for size, (cells, features) in self.columns.items():
            system, target = gram[:, cells].reshape(n, -1, size, size), moment[:, features]
            solved = target / system[:, :, 0] if size == 1 else torch.linalg.solve(system, target)
            slopes[:, features] = solved
        return slopes, touched


class RecordedValuesOnDevice:
    """Between which values the recorded changes of training rows took them."""

    def __init__(self, values: RecordedValues, n_training: int, device: str) -> None:
        # The last line is of the rows without records.
        self.slots = on_device(values.slots(n_training), device)
        self.cells = [
            on_device(np.pad(held.astype(np.int64), ((0, 1), (0, 0)), constant_values=NOWHERE), device)
            for held in values.cells
        ]
        self.overall = on_device(values.overall, device)

    def ends(self, broad: Nearest, prior: float) -> np.ndarray:
        """As `RecordedValues.ends` finds them."""
        shares, slots, found = broad.shares(), self.slots[broad.rows], []
        for held, overall in zip(self.cells, self.overall, strict=True):
            cells = held[slots].transpose(1, 2)  # (rows, numbers, candidates)
            sizes = torch.zeros((*cells.shape[:2], POINTS + 1), dtype=torch.float64, device=shares.device)
            sizes.scatter_add_(2, cells, shares[:, None].expand(cells.shape))
            found.append(sizes[:, :, :POINTS] + prior * overall)
        lowest, last = _within(found[0]), _within(found[1].flip(2))
        return torch.stack([lowest, torch.where(last < 0, last, POINTS - 1 - last)]).cpu().numpy()


class LevelsOnDevice:
    """Training rows and copies as the levels rest on them."""

    def __init__(self, features: np.ndarray, heights: np.ndarray, device: str) -> None:
        self.device, self.features, self.heights = device, on_device(features, device), on_device(heights, device)

    def around(
        self, here: torch.Tensor, near: torch.Tensor, share: torch.Tensor, slopes: torch.Tensor, most: float
    ) -> Around:
        """How the near rows, (rows, candidates), lie around rows with these features.

        most : how much of the way from the near rows' mean to a row its slopes may hold.
        """
        rows, heights = self.features[near], self.heights[near]
        means = (share[:, None] @ rows)[:, 0]
        centred = rows - means[:, None]
        spread = (share[:, None] @ centred**2)[:, 0].sqrt()
        along = (centred @ slopes[:, :, None])[:, :, 0]
        levels = (heights * share).sum(dim=1)
        deviations = heights - levels[:, None]
        told = (share * along * deviations).sum(dim=1)
        held = (told / (share * along**2).sum(dim=1).clamp(min=1e-300)).clamp(0.0, most)
        left_out = (1 - held) * (slopes * (here - means)).sum(dim=1)
        residuals = deviations - along + left_out[:, None]
        return Around(means, spread, levels, held, _leave_one_out(residuals, share), _leave_one_out(deviations, share))

    def carried(self, here: torch.Tensor, near: torch.Tensor, slopes: torch.Tensor) -> torch.Tensor:
        """What slopes add on the way from each near row: (rows, candidates)."""
        return ((here[:, None] - self.features[near]) @ slopes[:, :, None])[:, :, 0]


class Around(NamedTuple):
    """What `limis.walk.LocalFits` tells of the near rows, by the same names."""

    feature_means: torch.Tensor
    feature_spread: torch.Tensor
    levels: torch.Tensor
    reach: torch.Tensor
    residual_mean_square: torch.Tensor
    spread_mean_square: torch.Tensor


def metric_shares(own: torch.Tensor, others: torch.Tensor, weights: torch.Tensor, power: float) -> torch.Tensor:
    """As `LevelMetric.shares` has them."""
    apart = ((others - own[:, None]) ** 2).sum(dim=2)
    logits = power * weights.clamp(min=1e-300).log() - TAIL * torch.log1p(apart / TAIL)
    return torch.softmax(logits.masked_fill(weights <= 0, -torch.inf), dim=1).nan_to_num()


def _within(sizes: torch.Tensor) -> torch.Tensor:
    """The first cell that all but little of the weight does not lie behind, −1 where there is none: (rows, numbers)."""
    total = sizes.sum(dim=2, keepdim=True)
    first = (sizes.cumsum(dim=2) >= (BEYOND - ROUNDING) * total).int().argmax(dim=2)
    return torch.where(total[:, :, 0] > 0, first, -1)


def _leave_one_out(residuals: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    return (share * (residuals / (1 - share).clamp(min=1e-3)) ** 2).sum(dim=1)


def _added_up(keys: torch.Tensor, sizes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The distinct keys in order, and the sum of the sizes of each."""
    keys, order = torch.sort(keys)
    distinct, group = torch.unique_consecutive(keys, return_inverse=True)
    totals = torch.zeros(len(distinct), dtype=sizes.dtype, device=sizes.device)
    return distinct, totals.index_add_(0, group, sizes[order])


def _depth(forest: Forest) -> int:
    """How many steps lead from a root to the deepest leaf."""
    at, depth = forest.roots, 0
    while True:
        inner = at[forest.left[at] != at]
        if len(inner) == 0:
            return depth
        at, depth = np.concatenate([forest.left[inner], forest.right[inner]]), depth + 1


def _dense(matrix: sp.csr_array, device: str) -> torch.Tensor:
    """The matrix with one more line, of zeros."""
    dense = torch.zeros((matrix.shape[0] + 1, matrix.shape[1]), dtype=torch.float64, device=device)
    line = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    dense[on_device(line, device), on_device(matrix.indices, device).long()] = on_device(matrix.data, device)
    return dense


def on_device(array: np.ndarray, device: str) -> torch.Tensor:
    """A tensor of the same numbers."""
    return torch.as_tensor(array).to(device)
