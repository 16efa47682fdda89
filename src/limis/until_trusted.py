"""Questions about rows that are not trusted: answers mend curves and reasons, and more show what these are worth.

What shows the worth of a row's explanation mended nothing, so it is a measurement; the promise has to be kept by the
margin that so few questions leave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from limis.changes import ask_moved
from limis.check import Expected, Measured
from limis.curves.asked_reasons import AskedReasons, ask_reasons, fewest_questions
from limis.curves.asking import ask_curves
from limis.curves.model import CurveFits
from limis.curves.reasons import Reasons, reasons_of
from limis.errors import InputError
from limis.fidelity.drawing import GROUP_SIZES, draw_one_unit, moves_of
from limis.fidelity.ground import ANY, Ground
from limis.fidelity.law_a import draw_group
from limis.fidelity.units import Units
from limis.perturb import MovedRows, Moves, moved_values
from limis.progress import progress
from limis.reference import Reference, References
from limis.rows import TrainingRows
from limis.training.measuring import FLAT, PROMISED, GroupAnswers
from limis.trust import FORESIGHT, WHY_ERROR, taken_away

MENDING = 0.4  # of the questions about a row mend its curves, and as many its reasons; the others measure both
CHANGES, GROUPS, FEWEST_DONORS = 48, 6, 4  # that measure: changes, groups of each size, and rows that replace each
FAR_DONORS = 1000
RESAMPLED, SURE = 400, 0.9
SEED = 11  # the same draws for every row, so that one alone is asked as it is among others


@dataclass
class Mended:
    """Rows with what was asked about them."""

    fits: CurveFits
    asked: AskedReasons
    measured: Measured


@dataclass
class _Row:
    """A row that answers have mended, and all that is needed to see what they brought."""

    training: TrainingRows
    frame: pd.DataFrame
    fits: CurveFits
    output: float
    reference: Reference
    reasons: Reasons
    ground: Ground


def fewest_until_trusted(n_units: int) -> int:
    """Fewer questions a row than these tell too little."""
    measuring = CHANGES + GROUPS * len(GROUP_SIZES) * FEWEST_DONORS
    most = max(fewest_questions(n_units) / MENDING, measuring / (1 - 2 * MENDING))
    return int(np.ceil(round(most, 6)))


def ask_until_trusted(
    training: TrainingRows,
    frame: pd.DataFrame,
    fits: CurveFits,
    units: Units,
    outputs: np.ndarray,
    references: References,
    rows: np.ndarray,
    most: int,
    *,
    before: tuple[AskedReasons | None, Measured | None] = (None, None),
    show: bool = False,
) -> Mended:
    """Ask about some of the rows, at most so often about each; the others stay as they are.

    before : what was asked about reasons, and measured, already.
    """
    fewest = fewest_until_trusted(len(units))
    if most < fewest:
        raise InputError(
            f"until_trusted={most:,} questions a row are too few to mend an explanation and see what it is worth; of "
            f"{len(units)} columns, or groups of them, {fewest:,} are the fewest"
        )
    n = len(fits.values)
    every, answers = np.arange(n), fits.answers.copy()
    asked = AskedReasons.empty(n, len(units)) if before[0] is None else before[0].part(every)
    measured = Measured.none(n) if before[1] is None else before[1].part(every)
    ground = Ground.of(training.table, units, fits.values, training.values, np.random.default_rng(SEED))
    with progress(len(rows), "asking", enabled=show) as bar:
        for row in rows.tolist():
            own = np.array([row])
            part, known = frame.iloc[own], outputs[own]
            informed = ask_curves(training, part, known, fits.part(own), int(MENDING * most))
            theirs = References.one(references.of(row), 1)
            more = ask_reasons(training, part, [informed], units, known[:, None], [theirs], int(MENDING * most))[0]
            answers[row] = informed.answers[0]
            asked.put(own, more)
            reasons = reasons_of(informed, theirs, known, units, more)
            around = replace(ground, values=fits.values[own])
            one = _Row(training, part, informed, float(known[0]), theirs.kinds[0], reasons, around)
            found, questions = _measure(one, most - 2 * int(MENDING * most))
            questions += informed.answers[0].n_questions + int(more.questions[0])
            measured.put(row, found, int(measured.questions[row]) + questions)
            bar.update(1)
    return Mended(replace(fits, answers=answers), asked, measured)


def _measure(row: _Row, most: int) -> tuple[Expected, int]:
    """What one row's explanation is worth, by questions that mended nothing, and how many these were."""
    rng = np.random.default_rng(SEED)
    foresight, n_changes = _foreseen(row, rng)
    why_error, n_groups = _reasons_missed(row, most - n_changes, rng)
    enough = (1 - foresight[1] >= FORESIGHT) & (why_error[1] <= WHY_ERROR)
    return Expected(1 - foresight[:1], why_error[:1], np.array([enough])), n_changes + n_groups


def _foreseen(row: _Row, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """The share of changes that is not foreseen, its upper limit, and how many were asked about."""
    training, moves = row.training, _near_changes(row.ground, rng)
    _, said = ask_moved(training, row.frame, moves)
    moved = MovedRows(training.table, moved_values(row.fits.values, training.values, moves))
    changes = said - row.output
    left = changes - row.fits.changes(moves.rows, moved)
    return _shares(left**2, changes**2, len(moves) * (FLAT * training.unit) ** 2, rng), len(moves)


def _reasons_missed(row: _Row, most: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """The share of what groups do that reasons miss, its upper limit, and how many questions that took."""
    units, reference = row.reasons.members, row.reference
    sizes = [size for size in GROUP_SIZES for _ in range(GROUPS)]
    groups, rows = np.array([draw_group(size, len(units), rng) for size in sizes]), np.zeros(len(sizes), dtype=np.int64)
    n_donors = max(FEWEST_DONORS, most // len(groups))
    donors = rng.integers(len(reference.values), size=(len(groups), n_donors))
    changed = np.repeat(groups @ units.matrix(row.fits.values.shape[1]), n_donors, axis=0)
    moves = Moves(np.zeros(donors.size, dtype=np.int64), donors.ravel(), changed)
    _, said = ask_moved(row.training, row.frame, moves, reference.frame)
    given = GroupAnswers(rows, groups, reference.values[donors], said.reshape(donors.shape))
    truth, noise = taken_away(row.fits, given, np.array([row.output]), reference, units)
    missed = (truth - row.reasons.removed(rows, groups)) ** 2 - noise
    least = len(groups) * (FLAT * row.training.unit) ** 2
    return np.sqrt(np.maximum(_shares(missed, truth**2 - noise, least, rng), 0.0)), len(moves)


def _near_changes(ground: Ground, rng: np.random.Generator) -> Moves:
    """Changes of the row to values of near training rows, as they are promised to be foreseen."""
    near = [int(k) for k in ground.ranges if k != ANY and int(k) <= PROMISED]
    pool = ground.nearest(max(near))[0] if near else ground.any_others(0, FAR_DONORS, rng)
    differs = ground.units_that_differ(0, ground.training_values[pool])
    return moves_of(ground, draw_one_unit(0, pool, differs, CHANGES, rng), ground.training_places)


def _shares(missed: np.ndarray, moved: np.ndarray, least: float, rng: np.random.Generator) -> np.ndarray:
    """Σ missed / Σ moved, which is ``least`` at least, and its upper limit over questions drawn again: (2,)."""
    if len(missed) == 0:
        return np.zeros(2)
    again = rng.integers(len(missed), size=(RESAMPLED, len(missed)))
    found = missed[again].sum(axis=1) / np.maximum(moved[again].sum(axis=1), least)
    return np.array([missed.sum() / max(moved.sum(), least), np.quantile(found, SURE)])
