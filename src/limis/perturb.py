"""Changes of original columns to values that exist nearby.

A move takes one or two columns of a row to the values that a near training row holds there and leaves the rest.
Numbers go to values near their own: of those that near rows hold, the few nearest.
Near is Gower distance on rank-transformed columns: the share of columns in which two categories differ, plus the
distance of the numbers' positions. It knows nothing of the black box, so it cannot flatter any explanation of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from limis.cell_types import first_that_fits, with_levels
from limis.near import find_distances, find_near, find_others
from limis.table import Table

NEAR_ROWS = 30
NEAR_VALUES = 5  # of the numbers that near rows hold, the nearest ones a number may move to
DONOR_POOL = 50_000
STUCK_SHARE, STUCK_DONORS = 0.1, 500
MAX_SINGLE = 32  # moves of one column a row; half as many move two
_BLOCK_CELLS = 1_000_000


@dataclass
class Moves:
    """``rows[i]`` takes the columns ``changed[i]`` from training row ``donors[i]``."""

    rows: np.ndarray  # (moves,)
    donors: np.ndarray  # (moves,)
    changed: np.ndarray  # (moves, columns) bool

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def join(parts: list[Moves]) -> Moves:
        """The moves of several draws, one after another."""
        rows, donors, changed = zip(*((part.rows, part.donors, part.changed) for part in parts), strict=True)
        return Moves(np.concatenate(rows), np.concatenate(donors), np.concatenate(changed))

    def taken(self, which: np.ndarray | slice) -> Moves:
        """Some of the moves, by place, by a mask or by a slice."""
        return Moves(self.rows[which], self.donors[which], self.changed[which])


@dataclass(eq=False)
class MovedRows:
    """Rows after a change, as every kind of surrogate reads them."""

    table: Table
    values: np.ndarray  # (rows, columns)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def features(self) -> np.ndarray:
        """What ridges and trees see: (rows, features)."""
        return self.table.features(self.values)


def gower_distance(queries: np.ndarray, others: np.ndarray, is_category: np.ndarray) -> np.ndarray:
    """Distances (queries, others) between rows given as ranks; missing against present counts as 1."""
    distances = np.empty((len(queries), len(others)), dtype=np.float32)
    find_distances(*_compared(queries, others), is_category, distances)
    return distances


def near_rows(queries: np.ndarray, pool: np.ndarray, is_category: np.ndarray, k: int = NEAR_ROWS) -> np.ndarray:
    """For each query its ``k`` nearest rows of the pool, nearest first, ties by row number: (queries, k)."""
    nearest = np.empty((len(queries), min(k, len(pool))), dtype=np.int64)
    find_near(*_compared(queries, pool), is_category, nearest)
    return nearest


def near_others(
    table: Table, values: np.ndarray, pool_values: np.ndarray, pool_ranks: np.ndarray, k: int
) -> list[np.ndarray]:
    """For each row of values the places of its ``k`` nearest rows of the pool that differ from it, in that order."""
    nearest, counts = np.empty((len(values), min(k, len(pool_values))), dtype=np.int64), np.empty(len(values), np.int64)
    compared = _compared(table.ranks(values), pool_ranks)
    find_others(*compared, table.is_category, values, pool_values, nearest, counts)
    return [places[:n] for places, n in zip(nearest, counts, strict=True)]


def _compared(queries: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and the columns of others, in the precision in which they are compared."""
    return np.ascontiguousarray(queries, dtype=np.float32), np.ascontiguousarray(others.T, dtype=np.float32)


def draw_moves(
    table: Table,
    values: np.ndarray,
    training_values: np.ndarray,
    rng: np.random.Generator,
    *,
    pool_size: int = DONOR_POOL,
) -> Moves:
    """For every row one move of each column that its near rows hold otherwise, and half as many of two columns.

    Near are training rows that differ from it, equal ones counted once. A column in which hardly any row's near rows
    differ (a category in a table of few columns) is moved to the value of the nearest row that does differ. Where more
    than `MAX_SINGLE` columns could move, a random `MAX_SINGLE` of them do. The moves come in the order of the rows.
    """
    pool = np.arange(len(training_values))
    if len(pool) > pool_size:
        pool = np.sort(rng.choice(pool, pool_size, replace=False))
    pool = pool[~pd.DataFrame(training_values[pool]).duplicated().to_numpy()]
    # One more than needed: one of them may equal the row itself.
    own_ranks, pool_ranks = table.ranks(values), table.ranks(training_values[pool])
    places = near_rows(own_ranks, pool_ranks, table.is_category, NEAR_ROWS + 1)
    near = pool[places]
    width = values.shape[1]
    drawn = [_move_stuck_columns(table, values, training_values, pool, near, rng)]
    for block in _blocks(len(values), near.shape[1] * width):
        differs = _differing(values[block], training_values[near[block]])
        differs &= _near_values(own_ranks[block], pool_ranks[places[block]], differs, table.is_category)
        drawn.append(_draw_block(differs, near[block], rng, block.start))
    moves = Moves.join(drawn)
    return moves.taken(np.argsort(moves.rows, kind="stable"))


def _move_stuck_columns(
    table: Table,
    values: np.ndarray,
    training_values: np.ndarray,
    pool: np.ndarray,
    near: np.ndarray,
    rng: np.random.Generator,
) -> Moves:
    """Moves of columns that near rows hold otherwise for fewer than `STUCK_SHARE` of the rows."""
    others = [(~_same(training_values[near, j], values[:, None, j])).any(axis=1) for j in range(values.shape[1])]
    if len(pool) > STUCK_DONORS:
        pool = np.sort(rng.choice(pool, STUCK_DONORS, replace=False))
    own_ranks, ranks = table.ranks(values), table.ranks(training_values[pool])
    rows, donors, columns = [], [], []
    for j in np.flatnonzero([other.mean() < STUCK_SHARE for other in others]).tolist():
        for value in np.unique(values[~others[j], j]):  # of missing ones, one
            mine = np.flatnonzero(~others[j] & _same(values[:, j], value))
            unlike = np.flatnonzero(~_same(training_values[pool][:, j], value))
            if len(unlike):
                rows.append(mine)
                donors.append(pool[unlike[near_rows(own_ranks[mine], ranks[unlike], table.is_category, 1)[:, 0]]])
                columns.append(np.full(len(mine), j))
    changed = np.zeros((sum(map(len, rows)), values.shape[1]), dtype=bool)
    empty = np.empty(0, dtype=np.int64)
    changed[np.arange(len(changed)), np.concatenate([empty, *columns])] = True
    return Moves(np.concatenate([empty, *rows]), np.concatenate([empty, *donors]), changed)


def _differing(values: np.ndarray, near_values: np.ndarray) -> np.ndarray:
    """Where the near rows that count hold other values: (rows, near, columns) bool."""
    differs = ~_same(values[:, None, :], near_values)
    other = differs.any(axis=2)
    return differs & (other & (other.cumsum(axis=1) <= NEAR_ROWS))[:, :, None]


def _near_values(ranks: np.ndarray, near_ranks: np.ndarray, differs: np.ndarray, is_category: np.ndarray) -> np.ndarray:
    """Of the numbers that differ, the `NEAR_VALUES` nearest; every level of a category: (rows, near, columns) bool."""
    apart = np.abs(ranks[:, None, :] - near_ranks)
    apart = np.where(differs, np.where(np.isnan(apart), 1.0, apart), np.inf)
    last = min(NEAR_VALUES, apart.shape[1]) - 1
    return is_category | (apart <= np.partition(apart, last, axis=1)[:, [last]])


def _draw_block(differs: np.ndarray, near: np.ndarray, rng: np.random.Generator, start: int) -> Moves:
    """The moves of one block of rows, whose first is row ``start``."""
    n, _, p = differs.shape
    n_single = min(p, MAX_SINGLE)
    n_pairs = n_single // 2
    # A row's lots are drawn together, so that they do not depend on the block it is in.
    lots = rng.random((n, p + n_single + 3 * n_pairs))
    by_column, by_donor, by_pair = np.split(lots, [p, p + n_single], axis=1)
    single = _move_one(differs, near, by_column, by_donor)
    pairs = _move_two(differs, near, by_pair.reshape(n, n_pairs, 3))
    moves = Moves.join([single, pairs])
    moves.rows += start
    return moves.taken(np.argsort(moves.rows, kind="stable"))


def _move_one(differs: np.ndarray, near: np.ndarray, by_column: np.ndarray, by_donor: np.ndarray) -> Moves:
    """One column at a time, each from a near row that differs there; as many columns as there are lots by donor."""
    movable = differs.any(axis=1)  # (rows, columns)
    columns = np.argsort(np.where(movable, by_column, 2.0), axis=1, kind="stable")[:, : by_donor.shape[1]]
    columns.sort(axis=1)
    kept = np.take_along_axis(movable, columns, axis=1)
    rows, column = np.nonzero(kept)[0], columns[kept]
    at = _pick(differs[rows, :, column], by_donor[kept])
    changed = np.zeros((len(rows), movable.shape[1]), dtype=bool)
    changed[np.arange(len(rows)), column] = True
    return Moves(rows, near[rows, at], changed)


def _move_two(differs: np.ndarray, near: np.ndarray, lots: np.ndarray) -> Moves:
    """Two columns at once, from one near row that differs in both."""
    able = differs.sum(axis=2) > 1  # (rows, near)
    movable = able.any(axis=1)
    rows = np.repeat(np.flatnonzero(movable), lots.shape[1])
    by_donor, *by_column = lots[movable].reshape(-1, 3).T
    at = _pick(able[rows], by_donor)
    left = differs[rows, at]  # (moves, columns)
    changed = np.zeros_like(left)
    for lot in by_column:
        changed[np.arange(len(rows)), _pick(left, lot)] = True
        left &= ~changed
    return Moves(rows, near[rows, at], changed)


def _pick(allowed: np.ndarray, lots: np.ndarray) -> np.ndarray:
    """In every line one of the allowed places, by a lot in [0, 1)."""
    rank = (lots * allowed.sum(axis=1)).astype(np.int64)
    return (allowed.cumsum(axis=1) > rank[:, None]).argmax(axis=1)


def _blocks(n_rows: int, cells_a_row: int) -> Iterator[slice]:
    size = max(1, _BLOCK_CELLS // max(1, cells_a_row))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def moved_values(values: np.ndarray, training_values: np.ndarray, moves: Moves) -> np.ndarray:
    """The values after each move: (moves, columns)."""
    return np.where(moves.changed, training_values[moves.donors], values[moves.rows])


def moved_frame(table: Table, frame: pd.DataFrame, training: pd.DataFrame, moves: Moves) -> pd.DataFrame:
    """The same in the user's own columns and types, under the labels of the rows: what the black box is asked."""
    moved = {}
    for j, column in enumerate(table.columns):
        for source in column.sources:
            own = frame[source].take(moves.rows).reset_index(drop=True)
            donor = training[source].take(moves.donors).reset_index(drop=True)
            moved[source] = _mix(own, donor, moves.changed[:, j])
    return pd.DataFrame(moved)[table.source_names].set_axis(frame.index[moves.rows])


def _mix(own: pd.Series, donor: pd.Series, changed: np.ndarray) -> pd.Series:
    """``donor`` where changed, else ``own``: in a type that leaves both as they are, that of training if it can be."""
    if own.dtype == donor.dtype:
        return own.where(~changed, donor)
    mixed = own.astype(object).where(~changed, donor.astype(object))
    return first_that_fits(
        mixed, [with_levels(donor.dtype, own), own.dtype, mixed.infer_objects().dtype], otherwise=mixed
    )


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))
