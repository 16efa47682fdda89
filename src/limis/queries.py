"""Questions about the row itself: what the black box does when its columns take values of training rows, near and far.

Off by default, since they cost the black box's time at every explanation. The answers give the row slopes of its own.
These count as far as each answer is foreseen better from the others than by the slopes that were there before.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

import numpy as np
import pandas as pd

from limis.changes import ask_moved
from limis.perturb import DONOR_POOL, MovedRows, Moves, gower_distance, moved_values
from limis.rows import TrainingRows
from limis.spans import Spans
from limis.walk import LocalFits, blocks

BLOCK = 64  # rows asked about at once
MOST_PLACES = 64  # looked at for values of a column
FEWEST = 3  # answers about a number, of which two foresee the third
PENALTY = 0.001  # that pulls to the slopes that were there before, in shares of the mean square of the steps


def ask_about(
    training: TrainingRows, frame: pd.DataFrame, values: np.ndarray, outputs: np.ndarray, fits: LocalFits, queries: int
) -> LocalFits:
    """The same ridges, informed by the answers to at most ``queries`` questions about each row.

    What they say of the rows themselves stays: slopes of the row tell nothing of the way to it from other rows.
    """
    assert fits.spans is not None
    informed = replace(
        fits,
        coefficients=fits.coefficients.copy(),
        unknown=fits.unknown.copy(),
        spans=Spans(fits.spans.lowest.copy(), fits.spans.highest.copy()),
    )
    for block in blocks(len(values), BLOCK):
        moves = own_moves(training, values[block], queries)
        if len(moves):
            answers = ask_moved(training, frame.iloc[block], moves)[1] - outputs[block][moves.rows]
            moved = MovedRows(training.table, moved_values(values[block], training.values, moves))
            _inform(informed, fits, block.start + moves.rows, moves.changed.argmax(axis=1), moved, answers)
    return replace(informed, levels=fits.levels + fits.predictions() - informed.predictions())


def _inform(
    informed: LocalFits,
    fits: LocalFits,
    rows: np.ndarray,
    columns: np.ndarray,
    moved: MovedRows,
    answers: np.ndarray,
) -> None:
    """Write what the answers to moves, each of one column of a row, tell of the slopes and spans of that column."""
    table = moved.table
    foreseen, steps = fits.changes(rows, moved), moved.features - fits.features[rows]
    order = np.lexsort((columns, rows))
    borders = np.flatnonzero(np.diff(rows[order]) | np.diff(columns[order])) + 1
    for asked in np.split(order, borders):
        row, j = int(rows[asked[0]]), int(columns[asked[0]])
        features = np.flatnonzero(table.feature_column == j)
        own, before = steps[np.ix_(asked, features)], fits.coefficients[row, features]
        slopes, share = _slopes(own, answers[asked], before, foreseen[asked])
        if table.is_category[j]:
            share = 1.0  # an answer about a level is what is said of it
        informed.coefficients[row, features] += share * (slopes - before)
        informed.unknown[row, features] &= ~own.any(axis=0)
        known = np.isfinite(moved.values[asked, j])
        if not table.is_category[j] and known.any():
            number, held = table.number_columns.index(j), moved.features[asked[known], features[0]]
            here = fits.features[row, features[0]]
            assert informed.spans is not None
            for ends, end in ((informed.spans.lowest, np.fmin), (informed.spans.highest, np.fmax)):
                ends[row, number] += share * (end.reduce(held, initial=here) - ends[row, number])


def _slopes(
    steps: np.ndarray, answers: np.ndarray, before: np.ndarray, foreseen: np.ndarray
) -> tuple[np.ndarray, float]:
    """Slopes by the answers to steps, (answers, features), and how much they should count beside those from before.

    That is what would have foreseen each answer best, had it not been among those that the slopes are from.
    """
    gram = steps.T @ steps
    size = np.trace(gram) / len(gram) or 1.0
    inverse = np.linalg.inv(gram + PENALTY * size * np.eye(len(gram)))
    slopes = before + inverse @ (steps.T @ (answers - steps @ before))
    leverage = ((steps @ inverse) * steps).sum(axis=1)
    if len(answers) < FEWEST:
        return slopes, 0.0
    left_out = answers - (answers - steps @ slopes) / (1 - leverage)
    apart = left_out - foreseen
    share = (apart * (answers - foreseen)).sum() / max((apart**2).sum(), 1e-300)
    return slopes, float(np.clip(share, 0.0, 1.0))


def own_moves(training: TrainingRows, values: np.ndarray, queries: int) -> Moves:
    """Moves of one column of each row to values of training rows, every column in turn.

    A column's values are those of the nearest row that holds another, of the furthest, of one half way and so on, on
    the scale of logarithms: there are as many questions about small steps as about large ones. Nothing is drawn: the
    rows beside a row do not matter to its moves.
    """
    table = training.table
    distinct = training.distinct()[0]
    pool = distinct[np.linspace(0, len(distinct) - 1, min(len(distinct), DONOR_POOL)).astype(np.int64)]
    own_ranks, ranks, held = table.ranks(values), table.ranks(training.values[pool]), training.values[pool]
    rows, donors, columns = [], [], []
    for row in range(len(values)):
        distance = gower_distance(own_ranks[[row]], ranks, table.is_category)[0]
        order = np.argsort(distance, kind="stable")
        by_column = [_donors(held[order, j], values[row, j]) for j in range(values.shape[1])]
        in_turn = [(j, order[at]) for turn in zip_longest(*by_column) for j, at in enumerate(turn) if at is not None][
            :queries
        ]
        rows += [row] * len(in_turn)
        columns += [j for j, _ in in_turn]
        donors += [pool[at] for _, at in in_turn]
    changed = np.zeros((len(rows), values.shape[1]), dtype=bool)
    changed[np.arange(len(rows)), np.array(columns, dtype=np.int64)] = True
    return Moves(np.array(rows, dtype=np.int64), np.array(donors, dtype=np.int64), changed)


def _donors(held: np.ndarray, own: float) -> list[int]:
    """Places of rows, nearest first, that hold another value, near and far ones in turn and one a value."""
    other = np.flatnonzero((held != own) & ~(np.isnan(held) & np.isnan(own)))
    if len(other) == 0:
        return []
    places = other[(len(other) ** _FRACTIONS).astype(np.int64).clip(1, len(other)) - 1]
    return places[np.sort(np.unique(held[places], return_index=True)[1])].tolist()


def _in_halves(n: int) -> np.ndarray:
    """0, 1, and then what halves the largest gaps: 1/2, 1/4, 3/4, 1/8, ..."""
    found, gap = [0.0, 1.0], 1.0
    while len(found) < n:
        found += [at * gap - gap / 2 for at in range(1, round(1 / gap) + 1)]
        gap /= 2
    return np.array(found[:n])


_FRACTIONS = _in_halves(MOST_PLACES)
