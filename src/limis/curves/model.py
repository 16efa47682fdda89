"""Local models that are response curves: what the rows that speak for a row said, and how it differs from them.

The curve of a unit is Σ wᵢ · recordedᵢ + (taught(x) − Σ wᵢ · taughtᵢ): what near rows were seen to answer when the unit
took other values, corrected by the taught model for how the row differs from them. It is zero at the row's own value,
and flat beyond the values that were seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numba import prange

from limis.around import Heights, Near, around
from limis.curves.grids import Between, Grids
from limis.curves.intervals import CurveIntervals
from limis.curves.pairs import importance
from limis.curves.questions import Responses
from limis.curves.taught import TaughtModel
from limis.curves.weights import ResponseWeights
from limis.fidelity.units import Units
from limis.perturb import MovedRows
from limis.retrieval import Retriever
from limis.rows import TrainingRows
from limis.table import Table
from limis.threads import in_parallel
from limis.walk import GlobalFit, LocalFits, Shared, blocks

SMALL_BLOCK = 1024  # rows
CELLS_AT_ONCE = 4_000_000  # of curves that are worked out together


@dataclass(eq=False)
class RecordedRows(Shared):
    """Rows whose responses were recorded, and what the taught model, as far as it counts, did not foresee of them."""

    origin: np.ndarray  # (rows,) the training row that each stands for
    values: np.ndarray  # (rows, columns)
    ranks: np.ndarray  # (rows, columns)
    level: np.ndarray  # (rows,) f(row) − taught(row)
    residual: np.ndarray  # (rows, cells) f − reliance · taught, as each unit takes the values of its grid
    residual_square: np.ndarray  # (rows,) mean square of the changes that the taught model did not foresee
    change_square: np.ndarray  # (rows,) mean square of the changes themselves
    _features: np.ndarray | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(
        cls,
        table: Table,
        grids: Grids,
        taught: TaughtModel,
        responses: Responses,
        reliance: np.ndarray,
        expected: np.ndarray,
    ) -> RecordedRows:
        """What is left of recorded responses.

        reliance : (units,) how far the taught model counts; expected : (rows, cells) what it says of the responses.
        """
        values = responses.base.values
        residual = responses.outputs - expected * np.repeat(reliance, grids.sizes)
        return cls(
            responses.origin,
            values,
            table.ranks(values),
            responses.base.outputs - taught.predict(values),
            residual,
            _mean_square(residual, grids),
            _mean_square(responses.outputs, grids),
        )

    def __len__(self) -> int:
        return len(self.origin)

    def features(self, table: Table) -> np.ndarray:
        """What ridges would see of the rows, worked out once: (rows, features)."""
        if self._features is None:
            self._features = table.features(self.values)
        return self._features


def _mean_square(responses: np.ndarray, grids: Grids) -> np.ndarray:
    """Mean over units of the variance of a row's responses over the unit's values: (rows,)."""
    parts = [
        responses[:, grids.starts[unit] : grids.starts[unit + 1]].var(axis=1)
        for unit in range(len(grids.units))
        if grids.sizes[unit]
    ]
    return np.mean(parts, axis=0) if parts else np.zeros(len(responses))


@dataclass(eq=False)
class Intervals(Shared):
    """How far curves may be off, once that was learned."""

    learned: CurveIntervals | None = None


@dataclass(eq=False)
class CurveGround(Shared):
    """What the curves of all rows are drawn from."""

    table: Table
    units: Units
    grids: Grids
    taught: TaughtModel
    reliance: np.ndarray  # (units,) how far the taught model counts in each unit's curve, from 0 to 1
    recorded: RecordedRows
    pairs: np.ndarray  # (pairs, 2) units whose joint changes are more than the sum of single ones
    shown: Grids  # the values at which curves are shown
    stand_in: bool = False  # whether there was no model to ask, and the taught model is what is explained
    # What is worked out of the taught model for each reference, as long as that is there.
    patterns: WeakKeyDictionary[Any, Any] = field(default_factory=WeakKeyDictionary, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "patterns": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "patterns": WeakKeyDictionary()}

    @cached_property
    def overall_level(self) -> float:
        """What the taught model says on average of the rows whose responses were recorded."""
        return float(self.taught.predict(self.recorded.values).mean()) if len(self.recorded) else self.taught.baseline

    @cached_property
    def unit_shares(self) -> np.ndarray:
        """How much each unit does on average, as a share of what all of them do alone: (units,)."""
        values = self.recorded.values
        matters = np.zeros(len(self.units))
        if len(values):
            matters = np.sqrt(importance(self.taught, values, self.unit_of, np.random.default_rng(0)))
        total = matters.sum()
        return matters / total if total > 0 else np.full(len(matters), 1 / len(matters))

    @cached_property
    def recorded_doubt(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean square of what was missed of each unit's responses: by recorded row, and by unit over all of them."""
        by_unit = np.zeros((len(self.recorded), len(self.units)))
        for unit in np.flatnonzero(self.grids.sizes):
            cells = slice(self.grids.starts[unit], self.grids.starts[unit + 1])
            by_unit[:, unit] = self.recorded.residual[:, cells].var(axis=1)
        overall = by_unit.mean(axis=0) if len(self.recorded) else np.ones(len(self.units))
        return by_unit, np.maximum(overall, 1e-6 * max(overall.max(initial=0.0), 1e-300))  # none is quite sure

    @cached_property
    def shown_unit(self) -> np.ndarray:
        """The unit of each value shown: (cells,)."""
        return np.repeat(np.arange(len(self.units)), self.shown.sizes)

    @cached_property
    def shown_values(self) -> np.ndarray:
        """The values shown, each in the columns of its unit among zeros: (cells, columns)."""
        whole = np.zeros((len(self.shown_unit), len(self.table.columns)))
        for unit, members in enumerate(self.units.members):
            whole[self.shown.starts[unit] : self.shown.starts[unit + 1], members] = self.shown.values[unit]
        return whole

    @cached_property
    def shown_between(self) -> Between:
        """Where each value shown stands on the grids: (cells,) in each."""
        whole, cells = self.grids.between(self.table, self.shown_values), np.arange(len(self.shown_unit))
        return Between(*(held[cells, self.shown_unit] for held in whole))

    @cached_property
    def shown_taught_cells(self) -> np.ndarray:
        """The taught model's cells of the values shown: (cells, columns)."""
        return self.taught.cells(self.shown_values)

    @cached_property
    def shown_places(self) -> np.ndarray:
        """Where the taught model's curves have each value shown, by the first column of its unit: (cells,)."""
        column = np.array([members[0] for members in self.units.members])[self.shown_unit]
        cells = self.shown_taught_cells[np.arange(len(column)), column]
        return np.where(cells < 0, self.taught.starts[column + 1] - 1, self.taught.starts[column] + cells)

    @cached_property
    def unit_of(self) -> np.ndarray:
        """The unit of each column: (columns,)."""
        return self.units.of_column()


@dataclass(eq=False, kw_only=True)
class CurveFits(LocalFits):
    """The surrogates of some rows, each a curve a unit and a few pairs.

    ``levels`` are what is expected of the rows without asking about them. ``coefficients`` are none.
    """

    ground: CurveGround
    values: np.ndarray  # (rows, columns)
    corrections: np.ndarray  # (rows, cells) what the rows that speak add to the taught model's responses
    intervals: Intervals
    answers: np.ndarray  # (rows,) of `limis.curves.asking.RowAnswers`; None where nothing was asked about the row

    @property
    def has_coefficients(self) -> bool:
        """Curves have none."""
        return False

    @property
    def has_curves(self) -> bool:
        """A curve a unit."""
        return True

    @property
    def has_stand_in(self) -> bool:
        """Where there was no model to ask at fit."""
        return self.ground.stand_in

    def predictions(self) -> np.ndarray:
        """What is expected of the rows where the black box was not asked about them."""
        return self.levels

    def changes(self, rows: np.ndarray, moved: MovedRows) -> np.ndarray:
        """What g says of moves: g(moved) − g(row), for each move."""
        by_unit, by_pair = self.parts(rows, moved)
        return by_unit.sum(axis=1) + by_pair.sum(axis=1)

    def parts(self, rows: np.ndarray, moved: MovedRows) -> tuple[np.ndarray, np.ndarray]:
        """What each unit's curve adds to the answer to a move, and each pair beyond that: (moves, units or pairs)."""
        ground = self.ground
        own, cells = self._cells, ground.taught.cells(moved.values)
        expected = ground.taught.unit_changes(own, rows, cells, ground.unit_of)
        by_unit = self._corrected(rows, moved.values) + ground.reliance * expected
        by_pair = np.zeros((len(rows), len(ground.pairs)))
        if len(ground.pairs):
            both = ground.taught.pair_changes(own, rows, cells, ground.unit_of, ground.pairs)
            first, second = ground.pairs.T
            together = self._move_cells(rows, cells, ground.pairs)
            by_pair = np.where(together, both - expected[:, first] - expected[:, second], 0.0)
        return by_unit + shared_out(self._answered(rows, moved.values)), by_pair

    def _move_cells(self, rows: np.ndarray, cells: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Whether both units of a pair move to other cells of the taught model: (moves, pairs) bool."""
        moves = cells != self._cells[rows]
        by_unit = np.stack([moves[:, members].any(axis=1) for members in self.ground.units.members], axis=1)
        return by_unit[:, pairs[:, 0]] & by_unit[:, pairs[:, 1]]

    def _answered(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What the black box's answers about the rows themselves add when each unit takes its new value."""
        found = np.zeros((len(rows), len(self.ground.units)))
        informed = np.array([answers is not None for answers in self.answers], dtype=bool)
        if not informed[rows].any():
            return found
        ranks, cells = self.ground.table.ranks(values), self.ground.shown.cells(self.ground.table, values)
        cells = np.where(self.ground.shown.holds(values, cells), cells, -1)
        order = np.argsort(rows, kind="stable")
        for mine in np.split(order, np.flatnonzero(np.diff(rows[order])) + 1):
            row = rows[mine[0]]
            if informed[row]:
                found[mine] = self.answers[row].missed(self.ground, ranks[mine], cells[mine])
        return np.where(self.changed_units(rows, values), found, 0.0)

    def curves(self, rows: np.ndarray) -> np.ndarray:
        """What g changes by as each unit takes each of the values shown: (rows, cells of ``ground.shown``).

        Of all rows it is kept, as trust asks for it before a reader does.
        """
        n = len(self.values)
        if len(rows) == n and n * len(self.ground.shown_unit) <= CELLS_AT_ONCE and (rows == np.arange(n)).all():
            return self._all_curves
        return self._curves(rows)

    @cached_property
    def _all_curves(self) -> np.ndarray:
        found = self._curves(np.arange(len(self.values)))
        found.flags.writeable = False
        return found

    def _curves(self, rows: np.ndarray) -> np.ndarray:
        ground, unit = self.ground, self.ground.shown_unit
        found = np.zeros((len(rows), len(unit)))
        if self.corrections.shape[1]:
            lines, there = rows[:, None], ground.shown_between
            here = self._between.part(rows, unit)
            moved = there.read(self.corrections, lines) - here.read(self.corrections, lines)
            found += np.where(here.known & there.known, moved, 0.0)
        for place in np.flatnonzero([self.answers[row] is not None for row in rows]).tolist():
            moved = np.where(unit[:, None] == ground.unit_of, ground.shown_values, self.values[rows[place]])
            found[place] += self._answered(np.full(len(unit), rows[place]), moved).sum(axis=1)
        for block in blocks(len(rows), max(1, CELLS_AT_ONCE // (len(unit) + int(ground.taught.starts[-1])))):
            found[block] += ground.reliance[unit] * self._taught_curves(ground.taught, rows[block])
        return found

    def _taught_curves(self, taught: TaughtModel, rows: np.ndarray) -> np.ndarray:
        """The taught model's part in the curves of rows: (rows, cells of ``ground.shown``)."""
        ground, there, own = self.ground, self.ground.shown_taught_cells, self._cells[rows]
        found = self._drawn(rows)[:, ground.shown_places]
        for unit, members in enumerate(ground.units.members):
            if len(members) > 1:
                cells = np.flatnonzero(ground.shown_unit == unit)
                found[:, cells] = taught.one_unit_changes(own, members, there[cells])
        return found

    def _drawn(self, rows: np.ndarray) -> np.ndarray:
        """The taught model's curves of rows in all of its cells; of a whole block they are kept for who asks next."""
        taught, n = self.ground.taught, len(self.values)
        if len(rows) < n or n * int(taught.starts[-1]) > CELLS_AT_ONCE:
            return taught.curves(self._cells[rows])
        return self._all_drawn[rows]

    @cached_property
    def _all_drawn(self) -> np.ndarray:
        return self.ground.taught.curves(self._cells)

    def contributions(self, table: Table) -> np.ndarray:
        """Those of curves lead from a reference to the row: `limis.curves.reasons`."""
        raise NotImplementedError

    def corrected_removals(self, others: np.ndarray) -> np.ndarray:
        """What the rows that speak say is lost, on average, where a unit alone takes other rows' values.

        Without what the taught model says: (rows, units).
        """
        ground, n = self.ground, len(self.values)
        lost, starts = np.zeros((n, len(ground.units))), ground.grids.starts
        if not starts[-1]:
            return lost
        at, n_cells = ground.grids.between(ground.table, others), int(starts[-1])
        low, high, share = at.low[at.known], at.high[at.known], at.share[at.known]
        # A row between two cells counts in both, one without a near one in none.
        weight = (np.bincount(low, 1 - share, n_cells) + np.bincount(high, share, n_cells)) / len(others)
        own = self._between.read(self.corrections, np.arange(n)[:, None])
        for unit in np.flatnonzero(ground.grids.sizes).tolist():
            cells = slice(starts[unit], starts[unit + 1])
            mean = (self.corrections[:, cells] * weight[cells]).sum(axis=1)
            lost[:, unit] = np.where(self._between.known[:, unit], own[:, unit] * weight[cells].sum() - mean, 0.0)
        return lost

    def changed_units(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Which units hold other values than the rows do: (moves, units) bool."""
        here = self.values[rows]
        same = (values == here) | (np.isnan(values) & np.isnan(here))
        return np.stack([~same[:, members].all(axis=1) for members in self.ground.units.members], axis=1)

    def doubt(self) -> np.ndarray:
        """Mean square of what the taught model missed of each unit's responses, among the rows that speak.

        (rows, units); half of it is what it missed among all rows.
        """
        by_unit, overall = self.ground.recorded_doubt
        slot = np.zeros(self.weights.shape[1], dtype=np.int64)
        slot[self.ground.recorded.origin] = np.arange(len(self.ground.recorded))
        shares = self.weights
        n_speaking = np.diff(shares.indptr)
        speaking = np.flatnonzero(n_speaking)
        found = np.tile(overall, (len(self.values), 1))
        if len(speaking):
            shape = (len(self.values), len(by_unit))
            total = np.add.reduceat(shares.data, shares.indptr[speaking])
            here = sp.csr_array((shares.data, slot[shares.indices], shares.indptr), shape=shape) @ by_unit
            found[speaking] = (here[speaking] / total[:, None] + overall) / 2
        return found

    def half_widths(self, rows: np.ndarray, changes: np.ndarray) -> np.ndarray:
        """How far curves may be off at each of the values shown, (rows, cells); NaN where that is not known."""
        found = np.full(changes.shape, np.nan)
        if self.intervals.learned is None:
            return found
        known = np.flatnonzero([self.answers[row] is None for row in rows])
        unit = self.ground.shown_unit
        for block in blocks(len(known), max(1, CELLS_AT_ONCE // max(1, len(unit)))):
            own = known[block]
            row, units = np.repeat(np.arange(len(own)), len(unit)), np.tile(unit, len(own))
            doubt, said = self.part(rows[own]).doubt(), changes[own].ravel()
            found[own] = self.intervals.learned.half_widths(doubt, row, units, said).reshape(len(own), -1)
        return found

    def single_changes(self, rows: np.ndarray, moved: MovedRows) -> tuple[np.ndarray, np.ndarray]:
        """Of moves of one unit each: the unit, and what its curve says of the move: (moves,) both."""
        by_unit, _ = self.parts(rows, moved)
        own = self.changed_units(rows, moved.values).argmax(axis=1)
        return own, by_unit[np.arange(len(rows)), own]

    def change_widths(self, rows: np.ndarray, moved: MovedRows) -> np.ndarray:
        """How far what is said of moves of one unit each may be off, (moves,); NaN where that is not known."""
        if self.intervals.learned is None:
            return np.full(len(rows), np.nan)
        own, said = self.single_changes(rows, moved)
        widths = self.intervals.learned.half_widths(self.doubt(), rows, own, said)
        return np.where([self.answers[row] is None for row in rows], widths, np.nan)

    def size(self) -> np.ndarray:
        """How much the rows that speak correct: (rows,)."""
        return np.sqrt((self.corrections**2).mean(axis=1)) if self.corrections.shape[1] else np.zeros(len(self.values))

    def _corrected(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What the rows that speak add when each unit takes its new value: (moves, units)."""
        if self.corrections.shape[1] == 0:
            return np.zeros((len(rows), len(self.ground.units)))
        here, there = self._between.part(rows), self.ground.grids.between(self.ground.table, values)
        lines = rows[:, None]
        moved = there.read(self.corrections, lines) - here.read(self.corrections, lines)
        return np.where(here.known & there.known, moved, 0.0)

    @cached_property
    def _cells(self) -> np.ndarray:
        return self.ground.taught.cells(self.values)

    @cached_property
    def _between(self) -> Between:
        return self.ground.grids.between(self.ground.table, self.values)


@dataclass
class CurveModel:
    """Curves for each row, on the responses of the rows that speak for it."""

    retriever: Retriever
    ground: CurveGround
    weights: ResponseWeights
    intervals: Intervals = field(default_factory=Intervals)
    _slots: dict[int, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def rows_at_once(self, training: TrainingRows, memory_limit: float) -> int:
        """As many as fit with their corrections and lines of features."""
        a_row = 8 * (4 * len(self.ground.recorded.residual[0]) + 8 * training.features.shape[1] + 20 * self.most)
        return int(max(1, min(SMALL_BLOCK, memory_limit * 2**30 // a_row)))

    @property
    def most(self) -> int:
        """How many rows may speak for a row."""
        return max(1, min(self.weights.n_candidates, len(self.ground.recorded)))

    def near(self, training: TrainingRows, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The recorded rows that the forest finds near, by their places among them, and how near: (rows, most) both."""
        n_recorded, kind = len(self.ground.recorded), self.weights.kind
        if n_recorded == 0:
            return np.zeros((len(values), 1), dtype=np.int64), np.zeros((len(values), 1))
        if kind in ("uniform", "random"):
            chosen = np.arange(n_recorded)
            if kind == "random":
                chosen = np.random.default_rng(self.weights.seed).permutation(n_recorded)[: self.most]
            others = training.group[self.ground.recorded.origin[chosen]] != training.group_of(values)[:, None]
            return np.tile(chosen, (len(values), 1)), others.astype(np.float64)
        index = self.retriever.marked_index or self.retriever.index
        rows, proximity = self.retriever.nearest(training, values, self.most, index)
        slots = self._slot_of(len(training))[rows]
        return np.maximum(slots, 0), np.where(slots >= 0, proximity, 0.0)

    def _slot_of(self, n_training: int) -> np.ndarray:
        if n_training not in self._slots:
            slots = np.full(n_training, -1, dtype=np.int64)
            slots[self.ground.recorded.origin] = np.arange(len(self.ground.recorded))
            self._slots = {n_training: slots}
        return self._slots[n_training]

    def shares(
        self, training: TrainingRows, values: np.ndarray, slots: np.ndarray, proximity: np.ndarray
    ) -> np.ndarray:
        """How much each of them counts: (rows, most)."""
        table, recorded = training.table, self.ground.recorded
        if self.weights.kind == "none":
            return np.zeros_like(proximity)
        return self.weights.shares(proximity, table.ranks(values), slots, recorded.ranks, table.is_category)

    def fit(
        self,
        training: TrainingRows,
        fallback: GlobalFit | None,  # noqa: ARG002 - the taught model is what is left when no row has weight
        values: np.ndarray,
    ) -> CurveFits:
        """The curves of one block of rows."""
        ground, recorded = self.ground, self.ground.recorded
        slots, proximity = self.near(training, values)
        shares = self.shares(training, values, slots, proximity)
        corrections = np.zeros((len(values), recorded.residual.shape[1]))
        _add_up(recorded.residual, slots, shares, corrections)
        # Where none speaks, those that are near still show how far the stand-in may be off.
        heard = proximity if self.weights.kind == "none" else shares
        whole = heard / np.maximum(heard.sum(axis=1, keepdims=True), 1e-300)
        expected = ground.taught.predict(values) + (shares * recorded.level[slots]).sum(axis=1)
        features = training.table.features(values)
        origin = recorded.origin[slots]
        told = around(
            Heights(recorded.features(training.table), recorded.level),
            Near(slots, whole),
            features,
            np.zeros_like(features),
            1.0,
            False,
        )
        weights = _by_training_row(origin, shares, len(training))
        return CurveFits(
            features=features,
            coefficients=np.zeros_like(features),
            feature_means=told.feature_means,
            feature_spread=told.feature_spread,
            levels=expected,
            reach=np.ones(len(values)),
            residual_mean_square=(whole * recorded.residual_square[slots]).sum(axis=1),
            spread_mean_square=(whole * recorded.change_square[slots]).sum(axis=1),
            unknown=np.zeros(features.shape, dtype=bool),
            empty=np.zeros(len(values), dtype=bool),  # the taught model has something to say of every row
            weights=weights,
            slope_weights=weights,
            scale=np.ones(len(values)),
            ground=ground,
            values=values,
            corrections=corrections,
            intervals=self.intervals,
            answers=np.full(len(values), None, dtype=object),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_slots": {}}


def shared_out(missed: np.ndarray) -> np.ndarray:
    """What single changes were seen to miss, as it counts when several units change at once: (moves, units).

    Much of it is the same for all of them: whichever unit changes, the row leaves what was special about it. So many
    alike count as their mean, and one alone, or one that is far larger than the others, as it is.
    """
    size, square = np.abs(missed).sum(axis=1), (missed**2).sum(axis=1)
    alike = np.divide(size**2, square, out=np.ones(len(missed)), where=square > 0)
    return missed / alike[:, None]


def _by_training_row(origin: np.ndarray, shares: np.ndarray, n_training: int) -> sp.csr_array:
    """(rows, candidates) → (rows, training rows), without those that do not speak."""
    rows, candidates = np.nonzero(shares > 0)
    found = sp.csr_array((shares[rows, candidates], (rows, origin[rows, candidates])), shape=(len(shares), n_training))
    found.sum_duplicates()
    found.sort_indices()
    return found


@in_parallel
def _add_up(responses: np.ndarray, slots: np.ndarray, shares: np.ndarray, found: np.ndarray) -> None:
    """Add up responses, (recorded rows, cells), of each row's candidates: (rows, cells)."""
    for row in prange(len(slots)):
        for candidate in range(slots.shape[1]):
            share = shares[row, candidate]
            if share > 0:
                found[row] += share * responses[slots[row, candidate]]
