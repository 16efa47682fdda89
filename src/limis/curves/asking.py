"""Questions at explain time: what the black box says of the row itself with other values, where curves are least sure.

At a value that was asked about the curve is the black box's own answer. Between two of them it moves by what was missed
at both, and beyond them by as much as recorded responses show to carry from one value to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from limis.changes import ask_moved
from limis.curves.model import CurveFits, CurveGround
from limis.perturb import MovedRows, Moves
from limis.rows import TrainingRows
from limis.walk import blocks

VALUES_AT_ONCE = 20_000_000  # of changed rows that are asked about together


@dataclass
class UnitAnswers:
    """What a row's curve of one unit missed at the values asked about, its own among them, in their order."""

    places: np.ndarray  # (values,) ranks of numbers, in order
    missed: np.ndarray  # (values,)
    carries: float  # how much carries over beyond the last value, from 0 to 1

    def between(self, places: np.ndarray) -> np.ndarray:
        """What is expected to be missed at other places: between two that were asked what both missed, flat beyond.

        What only one of them missed, or each in another direction, is not carried over: an outlier's answer would lead
        astray all the way to the next.
        """
        right = np.clip(np.searchsorted(self.places, places), 1, max(1, len(self.places) - 1))
        left, right = right - 1, np.minimum(right, len(self.places) - 1)
        low, high = self.missed[left], self.missed[right]
        found = np.where(np.sign(low) == np.sign(high), np.sign(low) * np.minimum(np.abs(low), np.abs(high)), 0.0)
        found = np.where(places == self.places[left], low, np.where(places == self.places[right], high, found))
        beyond = (places < self.places[0]) | (places > self.places[-1])
        ends = np.where(places < self.places[0], self.missed[0], self.missed[-1])
        return np.where(beyond, self.carries * ends, found)


@dataclass
class RowAnswers:
    """All that was asked about one row."""

    numbers: dict[int, UnitAnswers]  # by unit
    cells: dict[int, float]  # by cell of the values shown, for units that are no single number

    @property
    def n_questions(self) -> int:
        """How many answers these are."""
        return len(self.cells) + sum(len(own.places) - 1 for own in self.numbers.values())

    def missed(self, ground: CurveGround, ranks: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """What the curves miss at other rows, given by ranks and by cells of the values shown: (rows, units)."""
        found = np.zeros(cells.shape)
        for unit, own in self.numbers.items():
            places = ranks[:, ground.units.members[unit][0]]
            found[:, unit] = np.where(np.isnan(places), 0.0, own.between(np.nan_to_num(places)))
        if self.cells:
            known = np.vectorize(lambda cell: self.cells.get(int(cell), 0.0), otypes=[float])
            found += np.where(cells >= 0, known(cells), 0.0)
        return found


def ask_curves(
    training: TrainingRows, frame: pd.DataFrame, outputs: np.ndarray, fits: CurveFits, n_questions: int
) -> CurveFits:
    """The same curves with the black box's answers about each row, at most so many questions a row."""
    ground = fits.ground
    energy = fits.doubt()
    own_cells = ground.shown.cells(ground.table, fits.values)
    own_cells = np.where(ground.shown.holds(fits.values, own_cells), own_cells, -1)
    own_ranks, carries = ground.table.ranks(fits.values), _carries(ground)
    told = np.empty(len(fits.values), dtype=object)
    most = max(1, min(n_questions, len(ground.shown_unit)) * fits.values.shape[1])
    for block in blocks(len(told), max(1, VALUES_AT_ONCE // most)):
        rows = np.arange(len(told))[block]
        chosen = [_choose(ground, energy[row], own_cells[row], n_questions) for row in rows]
        unit, cell, missed, ranks = _ask(training, frame, outputs, fits, rows, chosen)
        ends = np.cumsum([0, *map(len, chosen)])
        for place, row in enumerate(rows):
            own = slice(ends[place], ends[place + 1])
            told[row] = _row_answers(ground, unit[own], cell[own], missed[own], ranks[own], own_ranks[row], carries)
    return replace(fits, answers=told)


def _ask(
    training: TrainingRows,
    frame: pd.DataFrame,
    outputs: np.ndarray,
    fits: CurveFits,
    rows: np.ndarray,
    chosen: list[np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The unit and cell of each question, what the curves missed of its answer, and the ranks of the changed row."""
    ground = fits.ground
    at, cell = np.repeat(rows, [len(cells) for cells in chosen]), np.concatenate(chosen)
    unit = ground.shown_unit[cell]
    donors = np.concatenate([np.empty(0, dtype=np.int64), *ground.shown.donors])[cell]
    moves = Moves(at, donors, ground.units.matrix(fits.values.shape[1])[unit])
    _, answers = ask_moved(training, frame, moves)
    changed = np.where(moves.changed, training.values[donors], fits.values[at])
    missed = answers - outputs[at] - fits.changes(at, MovedRows(ground.table, changed))
    return unit, cell, missed, ground.table.ranks(changed)


def _row_answers(
    ground: CurveGround,
    unit: np.ndarray,
    cell: np.ndarray,
    missed: np.ndarray,
    ranks: np.ndarray,
    own_ranks: np.ndarray,
    carries: np.ndarray,
) -> RowAnswers:
    numbers: dict[int, UnitAnswers] = {}
    cells: dict[int, float] = {}
    for one in np.unique(unit).tolist():
        mine = np.flatnonzero(unit == one)
        members = ground.units.members[one]
        places = ranks[mine, members[0]]
        plain = len(members) == 1 and not ground.table.is_category[members[0]]
        known = np.isfinite(places) if plain else np.zeros(len(mine), dtype=bool)
        if known.any() and np.isfinite(own_ranks[members[0]]):
            at = np.append(places[known], own_ranks[members[0]])
            off = np.append(missed[mine][known], 0.0)
            at, first = np.unique(at, return_index=True)
            numbers[one] = UnitAnswers(at, off[first], float(carries[one]))
            known_cells = mine[~known]
        else:
            known_cells = mine
        cells |= dict(zip(cell[known_cells].tolist(), missed[known_cells].tolist(), strict=True))
    return RowAnswers(numbers, cells)


def _choose(ground: CurveGround, energy: np.ndarray, own: np.ndarray, n: int) -> np.ndarray:
    """Cells to ask about: more of the units that are less sure, and in each spread over its values."""
    shown = ground.shown
    sizes = shown.sizes.copy()
    sizes[own >= 0] -= 1  # the own value need not be asked about
    sizes = np.maximum(sizes, 0)
    wish = np.sqrt(energy) * (sizes > 0)
    counts = np.zeros(len(sizes), dtype=np.int64)
    left = n
    while left > 0 and (counts < sizes).any() and wish.sum() > 0:
        open_units = counts < sizes
        share = np.where(open_units, wish, 0.0)
        if share.sum() == 0:
            break
        more = np.minimum((left * share / share.sum()).astype(np.int64), sizes - counts)
        if more.sum() == 0:
            more[np.argsort(-share, kind="stable")[:left]] = 1
            more = np.minimum(more, sizes - counts)
        counts += more
        left = n - int(counts.sum())
    chosen = []
    for unit in np.flatnonzero(counts):
        cells = np.arange(shown.starts[unit], shown.starts[unit + 1])
        cells = cells[cells != own[unit]]
        column = int(ground.units.members[unit][0])
        if len(ground.units.members[unit]) == 1 and not ground.table.is_category[column]:
            order = np.argsort(shown.values[unit][cells - shown.starts[unit], 0], kind="stable")
            cells = cells[order]
            cells = cells[((np.arange(counts[unit]) + 0.5) * len(cells) / counts[unit]).astype(np.int64)]
        chosen.append(cells[: counts[unit]])
    return np.concatenate([np.empty(0, dtype=np.int64), *chosen])


def _carries(ground: CurveGround) -> np.ndarray:
    """How much of what is missed carries from one recorded value of a number to the next: (units,), from 0 to 1.

    The slope of what was missed at a value on the mean of its two neighbours', over all recorded rows.
    """
    found = np.zeros(len(ground.units))
    grids, residual = ground.grids, ground.recorded.residual
    for unit in np.flatnonzero(grids.sizes >= 3):
        members = ground.units.members[unit]
        if len(members) > 1 or ground.table.is_category[members[0]]:
            continue
        order = np.argsort(grids.values[unit][:, 0], kind="stable")
        order = order[np.isfinite(grids.values[unit][order, 0])]
        own = residual[:, grids.starts[unit] + order]
        own = own - own.mean(axis=1, keepdims=True)
        if own.shape[1] < 3:
            continue
        middle, around = own[:, 1:-1], (own[:, :-2] + own[:, 2:]) / 2
        square = float((around**2).sum())
        found[unit] = np.clip(float((middle * around).sum()) / square, 0.0, 1.0) if square > 0 else 0.0
    return found
