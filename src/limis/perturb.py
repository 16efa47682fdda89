"""Changes of original columns to values that exist nearby.

A move takes one or two columns of a row to the values that a near training row holds there and leaves the rest.
Near is Gower distance on rank-transformed columns: the share of columns in which two categories differ, plus the
distance of the numbers' positions. It knows nothing of the black box, so it cannot flatter any explanation of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from limis.table import Table

NEAR_ROWS = 30
DONOR_POOL = 50_000
_BLOCK_CELLS = 4_000_000


@dataclass
class Moves:
    """``rows[i]`` takes the columns ``changed[i]`` from training row ``donors[i]``."""

    rows: np.ndarray  # (moves,)
    donors: np.ndarray  # (moves,)
    changed: np.ndarray  # (moves, columns) bool

    def __len__(self) -> int:
        return len(self.rows)


def gower_distance(queries: np.ndarray, others: np.ndarray, is_category: np.ndarray) -> np.ndarray:
    """Distances (queries, others) between rows given as ranks; missing against present counts as 1."""
    total = np.zeros((len(queries), len(others)), dtype=np.float32)
    for j, category in enumerate(is_category):
        a, b = queries[:, j, None].astype(np.float32), others[None, :, j].astype(np.float32)
        if category:
            total += a != b
            continue
        a_missing, b_missing = np.isnan(a), np.isnan(b)
        apart = np.abs(a - b)
        if a_missing.any() or b_missing.any():
            apart = np.where(a_missing & b_missing, 0.0, np.where(a_missing | b_missing, 1.0, apart))
        total += apart
    return total / len(is_category)


def near_rows(queries: np.ndarray, pool: np.ndarray, is_category: np.ndarray, k: int = NEAR_ROWS) -> np.ndarray:
    """For each query its ``k`` nearest rows of the pool, nearest first: (queries, k)."""
    k = min(k, len(pool))
    nearest = np.empty((len(queries), k), dtype=np.int64)
    block = max(1, _BLOCK_CELLS // max(1, len(pool)))
    for start in range(0, len(queries), block):
        distance = gower_distance(queries[start : start + block], pool, is_category)
        chosen = np.argpartition(distance, k - 1, axis=1)[:, :k]
        # Ties are broken by row number, so that the answer does not depend on the partition's order.
        chosen.sort(axis=1)
        order = np.argsort(np.take_along_axis(distance, chosen, axis=1), axis=1, kind="stable")
        nearest[start : start + block] = np.take_along_axis(chosen, order, axis=1)
    return nearest


def draw_moves(
    table: Table, values: np.ndarray, training_values: np.ndarray, rng: np.random.Generator, *, pairs: bool = True
) -> Moves:
    """For every row one move of each column that its near rows hold otherwise, and half as many of two columns."""
    pool = np.arange(len(training_values))
    if len(pool) > DONOR_POOL:
        pool = np.sort(rng.choice(pool, DONOR_POOL, replace=False))
    ranks = table.ranks(training_values[pool])
    near = pool[near_rows(table.ranks(values), ranks, table.is_category)]  # (rows, near)
    differs = ~_same(values[:, None, :], training_values[near])  # (rows, near, columns)

    # One donor a row and column, drawn among the near rows that differ there.
    lots = np.where(differs, rng.random(differs.shape), -1.0)
    donor = lots.argmax(axis=1)  # (rows, columns)
    rows, columns = np.nonzero(differs.any(axis=1))
    changed = np.zeros((len(rows), values.shape[1]), dtype=bool)
    changed[np.arange(len(rows)), columns] = True
    single = Moves(rows, near[rows, donor[rows, columns]], changed)
    return _with_pairs(single, differs, near, rng) if pairs else single


def _with_pairs(single: Moves, differs: np.ndarray, near: np.ndarray, rng: np.random.Generator) -> Moves:
    """Add moves that take two columns at once from one near row that differs in both."""
    n, k, p = differs.shape
    draws = p // 2
    if draws == 0:
        return single
    rows = np.repeat(np.arange(n), draws)
    at = rng.integers(0, k, size=len(rows))
    lots = np.where(differs[rows, at], rng.random((len(rows), p)), -1.0)
    two = np.argsort(-lots, axis=1, kind="stable")[:, :2]
    able = np.take_along_axis(lots, two, axis=1).min(axis=1) > 0
    rows, at, two = rows[able], at[able], two[able]
    changed = np.zeros((len(rows), p), dtype=bool)
    np.put_along_axis(changed, two, True, axis=1)
    return Moves(
        np.concatenate([single.rows, rows]),
        np.concatenate([single.donors, near[rows, at]]),
        np.concatenate([single.changed, changed]),
    )


def moved_values(values: np.ndarray, training_values: np.ndarray, moves: Moves) -> np.ndarray:
    """The values after each move: (moves, columns)."""
    return np.where(moves.changed, training_values[moves.donors], values[moves.rows])


def moved_frame(table: Table, frame: pd.DataFrame, training: pd.DataFrame, moves: Moves) -> pd.DataFrame:
    """The same in the user's own columns and types: what the black box is asked."""
    moved = {}
    for j, column in enumerate(table.columns):
        for source in column.sources:
            own = frame[source].take(moves.rows).reset_index(drop=True)
            donor = training[source].take(moves.donors).reset_index(drop=True)
            moved[source] = _mix(own, donor, moves.changed[:, j])
    return pd.DataFrame(moved)[table.source_names]


def _mix(own: pd.Series, donor: pd.Series, changed: np.ndarray) -> pd.Series:
    """``donor`` where changed, else ``own``, in the type of the training column where it can hold both."""
    if own.dtype == donor.dtype:
        return own.where(~changed, donor)
    mixed = own.astype(object).where(~changed, donor.astype(object))
    try:
        return mixed.astype(donor.dtype)
    except (TypeError, ValueError):
        return mixed.infer_objects()


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))
