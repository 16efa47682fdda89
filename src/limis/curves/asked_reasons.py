"""Reasons by the black box's own answers, unbiased whatever the taught model is worth.

A walk leads from a row to a reference row, one unit after another in a random order, and back in the other order. What
is averaged over walks is only what the taught model misses: its own Shapley values are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from limis.changes import ask_moved
from limis.curves.model import CurveFits
from limis.errors import InputError
from limis.fidelity.units import Units
from limis.perturb import Moves, moved_values
from limis.reference import Reference, References
from limis.rows import TrainingRows

FEWEST_WALKS = 2  # there and back: of one alone no error is known
MOST_WALKS = 2_000
QUESTIONS_AT_ONCE = 200_000
SEED = 7


@dataclass
class Walks:
    """Ways from rows to reference rows and back, with all places on the way where the black box is asked."""

    rows: np.ndarray  # (walks,)
    donors: np.ndarray  # (walks,) places among the rows that stand for the reference
    orders: list[np.ndarray]  # the units in which the two differ, as they are replaced one by one
    starts: np.ndarray  # (walks + 1,) where the questions of each begin: on the way there, then on the way back

    @property
    def n_questions(self) -> int:
        """On all walks."""
        return int(self.starts[-1])


@dataclass
class AskedReasons:
    """What the black box's answers add to the Shapley values of the taught model."""

    more: np.ndarray  # (rows, units)
    errors: np.ndarray  # (rows, units) standard errors
    questions: np.ndarray  # (rows,)
    known: np.ndarray  # (rows,) bool: of the others nothing was asked

    @classmethod
    def empty(cls, n_rows: int, n_units: int) -> AskedReasons:
        """Of rows that were not asked about."""
        nothing = np.zeros((n_rows, n_units))
        return cls(nothing, nothing + np.nan, np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows, dtype=bool))

    def put(self, rows: np.ndarray, found: AskedReasons) -> None:
        """Fill in some of the rows."""
        self.more[rows], self.errors[rows] = found.more, found.errors
        self.questions[rows], self.known[rows] = found.questions, found.known

    def part(self, chosen: np.ndarray) -> AskedReasons:
        """Of some of the rows."""
        return AskedReasons(self.more[chosen], self.errors[chosen], self.questions[chosen], self.known[chosen])


def fewest_questions(n_units: int) -> int:
    """Questions a row that are enough for the fewest walks."""
    return max(1, 2 * FEWEST_WALKS * (n_units - 1))


def draw_walks(values: np.ndarray, units: Units, reference: Reference, most: int) -> Walks:
    """As many walks as ``most`` questions a row allow: the reference rows one after another, in random orders.

    All rows have the same draws, so that one alone is asked as it is among others.
    """
    n_units = len(units)
    if most < fewest_questions(n_units):
        raise InputError(
            f"{most:,} questions a row about its reasons are too few to know their errors; of {n_units} columns, or "
            f"groups of them, {fewest_questions(n_units):,} are the fewest"
        )
    rows, donors, orders, lengths = [], [], [], []
    standing = reference.values
    for row, own in enumerate(values):
        rng, left = np.random.default_rng(SEED), most
        differs = ~((standing == own) | (np.isnan(standing) & np.isnan(own)))
        differing = np.stack([differs[:, columns].any(axis=1) for columns in units.members], axis=1)
        for walk in range(MOST_WALKS):
            if walk % len(standing) == 0:
                places = rng.permutation(len(standing))
            place, order = places[walk % len(standing)], rng.permutation(n_units)
            order = order[differing[place, order]]
            length = 2 * max(0, len(order) - 1)
            if length > left:
                break
            left -= length
            rows.append(row)
            donors.append(place)
            orders.append(order)
            lengths.append(length)
    return Walks(np.array(rows), np.array(donors), orders, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def questions_of(walks: Walks, units: Units) -> Moves:
    """All places on the ways, as moves of the rows to reference rows."""
    n_units = len(units)
    changed = np.zeros((walks.n_questions, n_units), dtype=bool)
    for walk, order in enumerate(walks.orders):
        n, start = max(0, len(order) - 1), walks.starts[walk]
        done = np.tril(np.ones((n, len(order)), dtype=bool))
        changed[start : start + n, order] = done
        changed[start + n : start + 2 * n, order[::-1]] = done
    counts = np.diff(walks.starts)
    members = units.matrix(sum(map(len, units.members)))
    return Moves(np.repeat(walks.rows, counts), np.repeat(walks.donors, counts), changed @ members)


def asked_reasons(
    walks: Walks, fits: CurveFits, n_units: int, outputs: np.ndarray, reference: Reference, missed: np.ndarray
) -> AskedReasons:
    """Mean over walks of what each unit adds to what the taught model misses.

    outputs : (rows,) of the black box; missed : (questions,) its answers without those of the taught model.
    """
    n, taught = len(fits.values), fits.ground.taught
    at_row = outputs - taught.predict(fits.values)
    at_reference = reference.outputs - taught.predict(reference.values)
    sums, squares, counts = np.zeros((n, n_units)), np.zeros((n, n_units)), np.zeros(n)
    for walk, order in enumerate(walks.orders):
        row, ends = walks.rows[walk], (at_row[walks.rows[walk]], at_reference[walks.donors[walk]])
        there, back = np.split(missed[walks.starts[walk] : walks.starts[walk + 1]], 2)
        added = np.zeros(n_units)
        if len(order):
            added[order] -= np.diff(there, prepend=ends[0], append=ends[1]) / 2
            added[order[::-1]] -= np.diff(back, prepend=ends[0], append=ends[1]) / 2
        sums[row] += added
        squares[row] += added**2
        counts[row] += 1
    mean = sums / counts[:, None]
    spread = np.maximum(squares / counts[:, None] - mean**2, 0.0)
    errors = np.sqrt(spread / np.maximum(counts - 1, 1)[:, None])
    questions = np.bincount(walks.rows, np.diff(walks.starts), n).astype(np.int64)
    return AskedReasons(mean, errors, questions, np.ones(n, dtype=bool))


def ask_reasons(
    training: TrainingRows,
    frame: pd.DataFrame,
    parts: list[CurveFits],
    units: Units,
    outputs: np.ndarray,
    references: list[References],
    most: int,
) -> list[AskedReasons]:
    """Ask the black box about each row's reasons, at most so often; one of several classes each.

    parts, references : one a class, of the same rows; outputs : (rows, classes).
    """
    first, n_units = references[0], len(units)
    found = [AskedReasons.empty(len(frame), n_units) for _ in parts]
    at_once = max(1, QUESTIONS_AT_ONCE // max(1, most))
    for place, kind in enumerate(first.kinds):
        mine = np.flatnonzero(first.of_row == place)
        for start in range(0, len(mine), at_once):
            block = mine[start : start + at_once]
            own = [fits.part(block) for fits in parts]
            walks = draw_walks(own[0].values, units, kind, most)
            moves = questions_of(walks, units)
            every, one = ask_moved(training, frame.iloc[block], moves, kind.frame)
            moved = moved_values(own[0].values, kind.values, moves)
            for part, fits in enumerate(own):
                said = one if every is None or len(parts) == 1 else every[:, part]
                missed = said - fits.ground.taught.predict(moved)
                own_kind = references[part].kinds[place]
                found[part].put(block, asked_reasons(walks, fits, n_units, outputs[block, part], own_kind, missed))
    return found
