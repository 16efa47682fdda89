"""Questions at explain time: what the black box says of the row itself with other values, where curves are least sure.

At a value that was asked about the curve is the black box's own answer. Between two of them what was missed is carried
over, as much of it as recorded responses show to carry from one value to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from limis.changes import ask_moved
from limis.curves.model import CurveFits, CurveGround
from limis.perturb import MovedRows, Moves
from limis.rows import TrainingRows


@dataclass
class UnitAnswers:
    """What a row's curve of one unit missed at the values asked about, its own among them, in their order."""

    places: np.ndarray  # (values,) ranks of numbers, in order
    missed: np.ndarray  # (values,)
    carries: float  # how much carries from one value to the next, from 0 to 1

    def between(self, places: np.ndarray) -> np.ndarray:
        """What is expected to be missed at other places: all of it where it was asked, less between, flat beyond."""
        filled = np.interp(places, self.places, self.missed)
        right = np.clip(np.searchsorted(self.places, places), 1, max(1, len(self.places) - 1))
        low, high = self.places[right - 1], self.places[np.minimum(right, len(self.places) - 1)]
        gap = np.maximum(high - low, 1e-300)
        near = np.minimum(np.abs(places - low), np.abs(places - high)) / gap  # 0 at a value asked about, ½ midway
        inside = (places > low) & (places < high)
        share = np.where(inside, 1 - (1 - self.carries) * np.minimum(2 * near, 1.0), 1.0)
        beyond = (places < self.places[0]) | (places > self.places[-1])
        return filled * np.where(beyond, self.carries, share)


@dataclass
class RowAnswers:
    """All that was asked about one row."""

    numbers: dict[int, UnitAnswers]  # by unit
    cells: dict[int, float]  # by cell of the values shown, for units that are no single number

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
    rows, cells = [], []
    for row in range(len(fits.values)):
        chosen = _choose(ground, energy[row], own_cells[row], n_questions)
        rows.append(np.full(len(chosen), row))
        cells.append(chosen)
    at, cell = np.concatenate(rows), np.concatenate(cells).astype(np.int64)
    unit = np.repeat(np.arange(len(ground.units)), ground.shown.sizes)[cell]
    donors = np.concatenate([np.empty(0, dtype=np.int64), *ground.shown.donors])[cell]
    moves = Moves(at, donors, ground.units.matrix(fits.values.shape[1])[unit])
    _, answers = ask_moved(training, frame, moves)
    changed = np.where(moves.changed, training.values[donors], fits.values[at])
    missed = answers - outputs[at] - fits.changes(at, MovedRows(ground.table, changed))
    ranks, carries = ground.table.ranks(changed), _carries(ground)
    own_ranks = ground.table.ranks(fits.values)
    told = np.empty(len(fits.values), dtype=object)
    for row in range(len(told)):
        mine = np.flatnonzero(at == row)
        told[row] = _row_answers(ground, unit[mine], cell[mine], missed[mine], ranks[mine], own_ranks[row], carries)
    return replace(fits, answers=told)


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
            even = np.linspace(0, len(cells) - 1, counts[unit]).round().astype(np.int64)
            cells = cells[np.unique(even)]
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
