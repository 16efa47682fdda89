"""Questions about the row itself: what the black box does when its columns move to values of near rows.

Off by default, since they cost the black box's time at every explanation. The answers are the row's own recorded
changes, and count beside those of other rows.
"""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import pandas as pd
import scipy.sparse as sp

from limis.changes import ColumnSystems, RecordedChanges, ask_moved
from limis.perturb import DONOR_POOL, NEAR_ROWS, NEAR_VALUES, Moves, gower_distance, moved_values
from limis.rows import TrainingRows

BLOCK = 64  # rows asked about at once


def ask_about(
    training: TrainingRows, frame: pd.DataFrame, values: np.ndarray, outputs: np.ndarray, queries: int
) -> ColumnSystems:
    """Ask the black box at most ``queries`` questions about each row: the systems of the rows' own changes."""
    parts = []
    for start in range(0, len(values), BLOCK):
        block = slice(start, start + BLOCK)
        parts.append(_ask_block(training, frame.iloc[block], values[block], outputs[block], queries))
    grams, moments = (sp.csr_array(sp.vstack([getattr(part, name) for part in parts])) for name in ("grams", "moments"))
    return ColumnSystems(grams, moments, parts[0].width, parts[0].share)


def _ask_block(
    training: TrainingRows, frame: pd.DataFrame, values: np.ndarray, outputs: np.ndarray, queries: int
) -> ColumnSystems:
    moves = own_moves(training, values, queries)
    _, after = ask_moved(training, frame, moves)
    changes = RecordedChanges(
        rows=moves.rows,
        columns=moves.changed.argmax(axis=1),
        values=moved_values(values, training.values, moves),
        outputs=(after - training.overall_mean) / training.unit,
        answers=(after - outputs[moves.rows]) / training.unit,
    )
    return changes.systems(training.table, values)


def own_moves(training: TrainingRows, values: np.ndarray, queries: int) -> Moves:
    """Moves of one column of each row to values of near training rows, every column in turn, the nearest values first.

    A column has no more than `NEAR_VALUES` of them, so there may be fewer than ``queries``: values further away say
    more of the black box elsewhere than of the row. Nothing is drawn: the rows beside a row do not matter to its moves.
    """
    table = training.table
    distinct = training.distinct()[0]
    pool = distinct[np.linspace(0, len(distinct) - 1, min(len(distinct), DONOR_POOL)).astype(np.int64)]
    own_ranks, ranks, held = table.ranks(values), table.ranks(training.values[pool]), training.values[pool]
    rows, donors, columns = [], [], []
    for row in range(len(values)):
        distance = gower_distance(own_ranks[[row]], ranks, table.is_category)[0]
        order = np.argsort(distance, kind="stable")
        by_column = [
            _donors(held[order, j], values[row, j], None if category else np.abs(ranks[order, j] - own_ranks[row, j]))
            for j, category in enumerate(table.is_category)
        ]
        in_turn = [(j, order[at]) for turn in zip_longest(*by_column) for j, at in enumerate(turn) if at is not None][
            :queries
        ]
        rows += [row] * len(in_turn)
        columns += [j for j, _ in in_turn]
        donors += [pool[at] for _, at in in_turn]
    changed = np.zeros((len(rows), values.shape[1]), dtype=bool)
    changed[np.arange(len(rows)), np.array(columns, dtype=np.int64)] = True
    return Moves(np.array(rows, dtype=np.int64), np.array(donors, dtype=np.int64), changed)


def _donors(held: np.ndarray, own: float, apart: np.ndarray | None) -> list[int]:
    """Places of the nearest rows that hold another value, one a value; for numbers those nearest in value first."""
    other = np.flatnonzero((held != own) & ~(np.isnan(held) & np.isnan(own)))[:NEAR_ROWS]
    places = other[np.sort(np.unique(held[other], return_index=True)[1])]
    if apart is not None:
        places = places[np.argsort(np.nan_to_num(apart[places], nan=1.0), kind="stable")]
    return places[:NEAR_VALUES].tolist()
