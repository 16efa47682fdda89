"""Two scales: narrow rows say how high, broad rows say which way.

The level comes from the rows a forest finds nearest to the row, where the black box says much the same. The slopes come
from what the black box did when columns of such rows were changed (`limis.changes`), with weights of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp
import torch

from limis.around import Heights, Near, around, carry
from limis.changes import ColumnSystems
from limis.column_systems import Lines
from limis.copies import ChangedCopies
from limis.retrieval import Retriever
from limis.retrieval.finding import Groups
from limis.retrieval.index import LeafIndex, strongest
from limis.rows import TrainingRows
from limis.spans import RecordedValues
from limis.table import Table
from limis.two_scales_on_device import (
    CELLS_ON_DEVICE,
    ROWS_ON_DEVICE,
    LevelsOnDevice,
    Nearest,
    RecordedValuesOnDevice,
    RetrieverOnDevice,
    SystemsOnDevice,
    metric_shares,
    on_device,
)
from limis.walk import GlobalFit, LocalFits
from limis.weighting.learned import seen_by_estimators
from limis.weighting.level import LevelMetric

PENALTY = 0.001  # on the slopes, in shares of the mean square of a column's recorded changes


class SlopeWeighting(Protocol):
    """Which training rows' recorded changes speak for a row."""

    def weights(self, training: TrainingRows, values: np.ndarray) -> sp.csr_array:
        """(rows, training rows), a row's equals without weight."""
        ...


@dataclass
class TwoScales:
    """Level from the forest's narrow rows, slopes from recorded changes."""

    retriever: Retriever
    copies: ChangedCopies
    systems: ColumnSystems
    recorded_values: RecordedValues
    slope_weighting: SlopeWeighting | None  # None: the forest's rows speak for the slopes too
    n_candidates: int  # rows of the forest that may speak for the slopes
    n_level: int  # rows that the level rests on
    prior: float  # how much the changes of all training rows count beside the weighted ones
    level_from: Literal["forest", "slopes"] = "forest"  # whose rows say how high
    reach: float = 1.0  # how much of the way from the narrow rows' mean to the row the slopes may hold, at most
    level_metric: LevelMetric | None = None  # weighs the rows that the level rests on; None: the forest does
    device: str = "cpu"
    _features: np.ndarray | None = field(default=None, init=False, repr=False)
    _heights: np.ndarray | None = field(default=None, init=False, repr=False)
    _places: np.ndarray | None = field(default=None, init=False, repr=False)
    _on_device: dict[str, tuple[Any, str, Any]] = field(default_factory=dict, init=False, repr=False)

    def candidates(self, training: TrainingRows) -> int:
        """How many rows the level rests on."""
        return min(self.n_level, len(training))

    def rows_at_once(self, training: TrainingRows, memory_limit: float) -> int:
        """As many as fit: of each there are its candidates, and some lines of features."""
        if self.on_accelerator(training):
            at_once = max(self.n_candidates, self.n_level) * training.features.shape[1]
            return max(1, min(ROWS_ON_DEVICE, CELLS_ON_DEVICE // at_once))
        a_row = 8 * (20 * max(self.n_candidates, self.n_level) + 20 * training.features.shape[1])
        return int(max(1, min(1024, memory_limit * 2**30 // a_row)))

    def fit(self, training: TrainingRows, fallback: GlobalFit, values: np.ndarray) -> LocalFits:
        """Slopes first; then the level that makes them fit the narrow rows."""
        if self.on_accelerator(training):
            return self._fit_on_device(training, fallback, values)
        rows, weights, broad = self.rows(training, values)
        lonely = weights.max(axis=1) >= 1 - 1e-6
        features = training.table.features(values)
        if self.level_metric is not None:
            here = self.level_metric.places(seen_by_estimators(training.table, values, features))
            weights = self.level_metric.shares(here, self._all_places(training), rows, weights)
        by_origin = self.retriever.by_origin(rows, weights)
        slopes, touched = self.slopes(training, broad)
        # The changes of all rows tell of a jump that no weighted row's change crossed.
        unknown = training.table.is_level & ~touched & ~(training.table.is_jump & (self.prior > 0))
        fits = self._with_level(training, features, (rows, weights), slopes, unknown, (by_origin, broad))
        ends = self.recorded_values.ends(_summing_to_one(broad), len(training), self.prior)
        fits.spans = self.recorded_values.spans(training.table, features, ends)
        return _with_fallback(fits, fallback, training.table, lonely | (weights.sum(axis=1) <= 0))

    def lessons(self, training: TrainingRows, values: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The rows and copies that may say how high, their shares, and what the slopes add on the way from each.

        (rows, candidates) each, on the model's device; what is added is standardised.
        """
        if self.on_accelerator(training):
            narrow, broad = self._near_on_device(training, values)
            slopes, _ = self._systems_on_device().slopes(broad, self.prior, PENALTY)
            here = on_device(training.table.features(values), self.device)
            return narrow.rows, narrow.shares(), self._rows_on_device(training).carried(here, narrow.rows, slopes)
        rows, share, broad = self.rows(training, values)
        standard, carried = self.slopes(training, broad)[0] / training.unit, np.empty_like(share)
        carry(self.all_features(training), rows, training.table.features(values), standard, carried)
        return torch.as_tensor(rows), torch.as_tensor(share), torch.as_tensor(carried)

    def on_accelerator(self, training: TrainingRows) -> bool:
        """Whether this model is one that is fitted there."""
        return self.device != "cpu" and self.slope_weighting is None and training.every is None

    def nearest_recorded(
        self, training: TrainingRows, values: np.ndarray, most: int, record_starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The strongest training rows that have records, and their weights: (rows, most) both."""
        index = self.retriever.index_of_recorded(record_starts)
        if not self.on_accelerator(training):
            return self.retriever.nearest(training, values, most, index)
        inputs, used, own = self.retriever.asked(training, values)
        there = self._of_index(index)
        near = there.nearest(there.leaves(inputs), used, Groups(own, self.retriever.groups(training)), most)
        return near.rows.cpu().numpy(), near.weights.cpu().numpy()

    def _of_index(self, index: LeafIndex) -> RetrieverOnDevice:
        like = self._retriever_on_device()
        return self.kept(
            f"index {id(index)}", lambda: RetrieverOnDevice(self.retriever, self.device, index, like=like), index
        )

    def _near_on_device(self, training: TrainingRows, values: np.ndarray) -> tuple[Nearest, Nearest]:
        """The rows that say how high, and the training rows that say which way."""
        inputs, used, own = self.retriever.asked(training, values)
        groups = Groups(own, self.retriever.groups(training))
        retriever = self._retriever_on_device()
        n_level, n_slopes = self.candidates(training), min(self.n_candidates, len(training))
        leaves = retriever.leaves(inputs)
        near = retriever.nearest(leaves, used, groups, max(n_level, n_slopes))
        broad, marked = near.fewer(n_slopes), self.retriever.marked_index
        if marked is not None:
            broad = self._of_index(marked).nearest(leaves, used, groups, n_slopes)
        return near.fewer(n_level), Nearest(retriever.origin[broad.rows], broad.weights)

    def _retriever_on_device(self) -> RetrieverOnDevice:
        return self.kept("retriever", lambda: RetrieverOnDevice(self.retriever, self.device))

    def _systems_on_device(self) -> SystemsOnDevice:
        return self.kept("systems", lambda: SystemsOnDevice(self.systems, self.device), self.systems)

    def _values_on_device(self, training: TrainingRows) -> RecordedValuesOnDevice:
        values = self.recorded_values
        return self.kept("values", lambda: RecordedValuesOnDevice(values, len(training), self.device), values)

    def _rows_on_device(self, training: TrainingRows) -> LevelsOnDevice:
        def rows() -> LevelsOnDevice:
            return LevelsOnDevice(self.all_features(training), self._all_heights(training), self.device)

        return self.kept("rows", rows)

    def _fit_on_device(self, training: TrainingRows, fallback: GlobalFit, values: np.ndarray) -> LocalFits:
        device, table, retriever = self.device, training.table, self._retriever_on_device()
        narrow, broad = self._near_on_device(training, values)
        share = narrow.shares()
        lonely = share.max(dim=1).values >= 1 - 1e-6
        if self.level_metric is not None:
            metric = self.level_metric
            places = self.kept("places", lambda: on_device(self._all_places(training), device), metric)
            here = on_device(metric.places(seen_by_estimators(table, values)), device)
            share = metric_shares(here, places[narrow.rows], share, metric.power)
        slopes, touched = self._systems_on_device().slopes(broad, self.prior, PENALTY)
        slopes = slopes * training.unit
        features = table.features(values)
        around = self._rows_on_device(training).around(
            on_device(features, device), narrow.rows, share, slopes, self.reach
        )
        found = {name: part.cpu().numpy() for name, part in around._asdict().items()}
        unknown = table.is_level & ~touched.cpu().numpy() & ~(table.is_jump & (self.prior > 0))
        fits = LocalFits(
            features=features,
            coefficients=slopes.cpu().numpy(),
            unknown=unknown & (table.is_jump | (found["feature_means"] <= 0)),
            empty=np.zeros(len(values), dtype=bool),
            weights=retriever.by_training_row(retriever.origin[narrow.rows], share),
            slope_weights=retriever.by_training_row(broad.rows, broad.shares()),
            scale=np.ones(len(values)),
            spans=self.recorded_values.spans(table, features, self._values_on_device(training).ends(broad, self.prior)),
            **found,
        )
        return _with_fallback(fits, fallback, table, (lonely | (share.sum(dim=1) <= 0)).cpu().numpy())

    def kept(self, name: str, make: Callable[[], Any], of: Any = None) -> Any:
        """What was put onto the device before, as long as it was made of the same."""
        known = self._on_device.get(name)
        if known is None or known[0] is not of or known[1] != self.device:
            known = self._on_device[name] = (of, self.device, make())
        return known[2]

    def move(self, device: str) -> None:
        """Work there from now on; what was kept on another device is given up."""
        self.device, self._on_device = device, {}

    def __getstate__(self) -> dict[str, Any]:
        # A device may not be there where this is read again.
        return {**self.__dict__, "_on_device": {}}

    def rows(self, training: TrainingRows, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, sp.csr_array]:
        """The rows and copies that may say how high, their shares, and the weights of the rows that say which way.

        (rows, candidates) both, and (rows, training rows).
        """
        broad = None if self.slope_weighting is None else self.slope_weighting.weights(training, values)
        if broad is not None and self.level_from == "slopes":
            return *_shares(*strongest(broad, self.candidates(training))), broad
        n_level, n_slopes = self.candidates(training), min(self.n_candidates, len(training))
        retriever, marked = self.retriever, self.retriever.marked_index
        if broad is None and marked is not None:
            near, alone = retriever.each_nearest(training, values, [(retriever.index, n_level), (marked, n_slopes)])
            broad = retriever.by_origin(*_shares(*alone))
        else:
            most = n_level if broad is not None else max(n_level, n_slopes)
            near = retriever.nearest(training, values, most)
        if broad is None:
            broad = retriever.by_origin(*_shares(*_fewer(*near, n_slopes)))
        return *_shares(*_fewer(*near, n_level)), broad

    def slopes(self, training: TrainingRows, broad: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of rows for which the training rows' changes count so, and which features these moved.

        (rows, features) both; slopes in feature units.
        """
        slopes, touched = self.systems.slopes(_summing_to_one(broad), self.prior, PENALTY)
        return slopes * training.unit, touched

    def with_options(self, **options: Any) -> TwoScales:
        """The same model with other options; what was worked out of its rows is kept."""
        assert not options.keys() & {"retriever", "copies"}
        found = replace(self, **options)
        found._features, found._heights = self._features, self._heights  # noqa: SLF001 - of the same class, as below
        found._on_device = self._on_device  # noqa: SLF001
        if found.level_metric is self.level_metric:
            found._places = self._places  # noqa: SLF001
        return found

    def _with_level(
        self,
        training: TrainingRows,
        here: np.ndarray,
        narrow: tuple[np.ndarray, np.ndarray],
        slopes: np.ndarray,
        unknown: np.ndarray,
        reported: tuple[sp.csr_array, sp.csr_array],
    ) -> LocalFits:
        rows, share = narrow
        known = Heights(self.all_features(training), self._all_heights(training))
        # Of several classes slopes hold alike for all: else what one class loses no other would gain.
        found = around(known, Near(rows, share), here, slopes, self.reach, told=training.every is None)
        return LocalFits(
            features=here,
            coefficients=slopes,
            unknown=unknown & (training.table.is_jump | (found.feature_means <= 0)),
            empty=np.zeros(len(here), dtype=bool),
            weights=reported[0],
            slope_weights=reported[1],
            scale=np.ones(len(here)),
            **found._asdict(),
        )

    def all_features(self, training: TrainingRows) -> np.ndarray:
        """Of training rows and copies."""
        if self._features is None:
            self._features = training.table.features(self._all_values(training))
        return self._features

    def all_outputs(self, training: TrainingRows) -> np.ndarray:
        """Of training rows and copies, standardised."""
        return np.concatenate([training.standard_outputs, self.copies.outputs])

    def _all_heights(self, training: TrainingRows) -> np.ndarray:
        """The same in the outputs' own units."""
        if self._heights is None:
            self._heights = self.all_outputs(training) * training.unit + training.overall_mean
        return self._heights

    def _all_places(self, training: TrainingRows) -> np.ndarray:
        if self._places is None:
            assert self.level_metric is not None
            inputs = seen_by_estimators(training.table, self._all_values(training))
            self._places = self.level_metric.places(inputs)
        return self._places

    def _all_values(self, training: TrainingRows) -> np.ndarray:
        return np.concatenate([training.values, self.copies.values])


def _with_fallback(fits: LocalFits, fallback: GlobalFit, table: Table, empty: np.ndarray) -> LocalFits:
    """The one ridge for all rows, for rows that no two others are near to."""
    assert fits.spans is not None
    fits.spans.reach_all(table, empty)
    fits.empty[empty], fits.unknown[empty] = True, False
    fits.reach[empty] = 1.0
    fits.coefficients[empty], fits.feature_means[empty] = fallback.coefficients, fallback.feature_means
    fits.levels[empty] = fallback.level
    fits.residual_mean_square[empty] = fallback.residual_mean_square
    fits.spread_mean_square[empty] = fallback.spread_mean_square
    return fits


def _fewer(rows: np.ndarray, weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The strongest ``most`` of each row's candidates, in row order."""
    if rows.shape[1] <= most:
        return rows, weights
    # A stable sort: ties go to the lower row, and candidates without weight come last.
    kept = np.sort(np.argsort(-weights, axis=1, kind="stable")[:, :most], axis=1)
    return np.take_along_axis(rows, kept, axis=1), np.take_along_axis(weights, kept, axis=1)


def _shares(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same rows, and their shares of the weight: (rows, candidates) both."""
    return rows, weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)


def _summing_to_one(weights: sp.csr_array) -> Lines:
    """A row's weights in the order of the training rows, as shares."""
    row = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    total = np.bincount(row, weights.data, minlength=weights.shape[0])
    shares = weights.data * (1 / np.where(total > 0, total, 1.0))[row]
    return Lines(weights.indptr, weights.indices, shares)
