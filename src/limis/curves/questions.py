"""What the black box is asked at fit: about mixtures of training rows, and about rows as one unit takes other values.

The rows whose responses are recorded are training rows of which some columns came from a near row: a black box that
remembers its training rows answers for them as for no other, so none of their own points is read. Rows that are known
to be new to the black box are recorded as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from limis.answers import BATCH
from limis.changes import ask_moved
from limis.curves.grids import Grids
from limis.curves.taught import Size, TaughtModel
from limis.perturb import Moves, moved_frame, moved_values, near_rows
from limis.progress import progress
from limis.rows import TrainingRows

MAX_QUESTIONS = 500_000
MIXTURES, MIXTURES_A_ROW = 100_000, 30  # at most
# So many of them, at least, are aimed at rows that matter, once a share of them taught a quick model which these are.
FEWEST_AIMED, TRIAL_SHARE, TRIAL = 50_000, 0.5, Size(60, 31, 0.2)
RECORDED_ROWS, FEWEST_RECORDED = 2_000, 50
DONORS = 6_000  # rows in which near ones are looked for
NEAR = 10  # nearest rows, of which one gives a copy some of its columns
COPIED_SHARE = 0.2  # of the columns of a copy come from the near row, one at least
AT_ONCE = 50_000  # questions in a batch


@dataclass
class Answers:
    """Rows with what the black box says of them: one number each, and of several classes all."""

    values: np.ndarray  # (rows, columns)
    outputs: np.ndarray  # (rows,)
    every: np.ndarray | None = None  # (rows, classes)
    origin: np.ndarray | None = None  # (rows, 2) the training rows that each is mixed of

    def __len__(self) -> int:
        return len(self.outputs)

    def part(self, chosen: np.ndarray | slice) -> Answers:
        """Some of them."""
        every, origin = (None if held is None else held[chosen] for held in (self.every, self.origin))
        return Answers(self.values[chosen], self.outputs[chosen], every, origin)

    def divided(self, n: int) -> tuple[Answers, Answers]:
        """All but the first n, and those."""
        return self.part(slice(n, None)), self.part(slice(n))

    def joined(self, others: Answers) -> Answers:
        """These, and others after them."""
        values, outputs = (
            np.concatenate([getattr(one, name) for one in (self, others)]) for name in ("values", "outputs")
        )
        pairs = ((self.every, others.every), (self.origin, others.origin))
        every, origin = (None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs)
        return Answers(values, outputs, every, origin)

    def without(self, left_out: np.ndarray) -> Answers:
        """Those that are mixed of none of some training rows: (training rows,) bool."""
        assert self.origin is not None
        return self.part(~left_out[self.origin].any(axis=1))

    def of_class(self, place: int) -> Answers:
        """The same with the outputs of one of several classes."""
        assert self.every is not None
        return Answers(self.values, self.every[:, place])


@dataclass
class Responses:
    """What the black box said of some rows as each unit took the values of its grid, the others kept."""

    origin: np.ndarray  # (rows,) the training row that each stands for
    donors: np.ndarray  # (rows,) the training row that some of its columns come from
    base: Answers  # the rows themselves
    outputs: np.ndarray  # (rows, cells of all grids)
    every: np.ndarray | None = None  # (rows, cells, classes)

    def __len__(self) -> int:
        return len(self.origin)

    def of_class(self, place: int) -> Responses:
        """The same with the answers for one of several classes."""
        assert self.every is not None
        return Responses(self.origin, self.donors, self.base.of_class(place), self.every[:, :, place])

    def without(self, left_out: np.ndarray) -> Responses:
        """Those that rest on none of some training rows, (training rows,) bool; the others are counted anew."""
        kept = ~(left_out[self.origin] | left_out[self.donors])
        place = np.cumsum(~left_out) - 1
        return Responses(
            place[self.origin[kept]],
            place[self.donors[kept]],
            self.base.part(kept),
            self.outputs[kept],
            None if self.every is None else self.every[kept],
        )


def ask_mixtures(
    training: TrainingRows,
    max_questions: int,
    rng: np.random.Generator,
    show: bool = False,
    n_threads: int | None = None,
) -> Answers:
    """Ask about mixtures of two training rows; how much of each is in a mixture is itself drawn.

    Half of the questions, at most, and not more than some for each training row. Few rows can carry most of what a
    model does: after the first half of many mixtures, half of the others start at rows that are expected far from the
    average, by a quick model of those answers and not by the rows' own, which the black box may remember.
    """
    n = min(MIXTURES, MIXTURES_A_ROW * len(training), max_questions // 2)
    n_first = n if n < FEWEST_AIMED else int(TRIAL_SHARE * n)
    mixtures = _mix(training, rng.integers(len(training), size=n_first), rng, show)
    if n_first < n:
        far, even = _expected_far(training, mixtures, rng, n_threads), np.full(len(training), 1 / len(training))
        chances = (even + far / far.sum()) / 2 if far.sum() > 0 else even
        mixtures = mixtures.joined(_mix(training, rng.choice(len(training), n - n_first, p=chances), rng, show))
    return mixtures


def _expected_far(
    training: TrainingRows, mixtures: Answers, rng: np.random.Generator, n_threads: int | None
) -> np.ndarray:
    """How far from the average a quick model of mixtures expects training rows, in deviations: (training rows,)."""
    assert mixtures.origin is not None
    both = [_differs(mixtures.values, training.values[own]).any(axis=1) for own in mixtures.origin.T]
    new = mixtures.part(np.flatnonzero(both[0] & both[1]))  # and not one of their rows again
    if len(new) == 0:  # of one column
        return np.zeros(len(training))
    standard, seed = (new.outputs - training.overall_mean) / training.unit, int(rng.integers(2**31))
    quick = TaughtModel.teach(training.table, new.values, standard, seed, TRIAL, n_threads=n_threads)
    return np.abs(quick.predict(training.values) - standard.mean())


def _mix(training: TrainingRows, first: np.ndarray, rng: np.random.Generator, show: bool) -> Answers:
    """Mixtures of these rows, each with any other."""
    n, n_columns = len(first), training.values.shape[1]
    second = rng.integers(len(training), size=n)
    moves = Moves(first, second, rng.random((n, n_columns)) < rng.random((n, 1)))
    every, outputs = _ask(training, training.frame, moves, "asking about mixtures", show)
    values = moved_values(training.values, training.values, moves)
    return Answers(values, outputs, every, np.stack([first, second], axis=1))


def ask_responses(
    training: TrainingRows,
    grids: Grids,
    max_questions: int,
    rng: np.random.Generator,
    *,
    fresh: np.ndarray | None = None,
    show: bool = False,
) -> Responses:
    """Ask about the responses of some training rows, as many as there are questions for.

    fresh : (training rows,) bool, rows that are new to the black box; they are asked about first, and as they are.
    """
    n_cells = int(grids.starts[-1])
    n = min(RECORDED_ROWS, len(training), max_questions // (n_cells + 1))
    origin = rng.permutation(len(training))
    is_fresh = np.zeros(len(training), dtype=bool) if fresh is None else fresh
    origin = np.sort(origin[np.argsort(~is_fresh[origin], kind="stable")][:n])
    copied = _copies(training, origin, is_fresh[origin], rng)
    frame = moved_frame(training.table, training.frame, training.frame, copied)
    values = moved_values(training.values, training.values, copied)
    every, outputs = _ask(training, frame, _standing(len(origin), values.shape[1]), "asking about rows", show)
    base = Answers(values, outputs, every)
    members = grids.units.matrix(values.shape[1])
    unit = np.repeat(np.arange(len(grids.units)), grids.sizes)  # (cells,)
    of_cell = np.concatenate([np.empty(0, dtype=np.int64), *grids.donors])
    moves = Moves(np.repeat(np.arange(n), n_cells), np.tile(of_cell, n), np.tile(members[unit], (n, 1)))
    every, outputs = _ask(training, frame, moves, "recording responses", show)
    if every is not None:
        every = every.reshape(n, n_cells, every.shape[1])
    copied_something = (copied.changed & _differs(training.values[origin], training.values[copied.donors])).any(axis=1)
    donors = np.where(copied_something, copied.donors, origin)
    return Responses(origin, donors, base, outputs.reshape(n, n_cells), every)


def standing_responses(
    training: TrainingRows, grids: Grids, taught: TaughtModel, rng: np.random.Generator
) -> Responses:
    """Where there is no model to ask: what its stand-in says of some training rows, as they are."""
    n = min(RECORDED_ROWS, len(training))
    origin = np.sort(rng.permutation(len(training))[:n])
    values = training.values[origin]
    said = Answers(values, taught.predict(values))
    return Responses(origin, origin, said, taught_responses(grids, taught, values))


def recorded_units(grids: Grids, importance: np.ndarray, n_training: int, max_questions: int) -> np.ndarray:
    """Which units' responses are recorded: all, or those that matter most where questions are few: (units,) bool.

    What matters rarely may have been missed: units that were not seen to matter are kept where they cost no row.
    """
    fewest, most = (max(1, min(n, n_training)) for n in (FEWEST_RECORDED, RECORDED_ROWS))
    order = np.argsort(-importance, kind="stable")
    cells = np.cumsum(grids.sizes[order]) + 1
    kept = np.zeros(len(grids.units), dtype=bool)
    kept[order] = np.where(importance[order] > 0, cells <= max_questions // fewest, cells <= max_questions // most)
    return kept


def taught_responses(grids: Grids, taught: TaughtModel, values: np.ndarray) -> np.ndarray:
    """What the taught model says of rows as each unit takes the values of its grid: (rows, cells)."""
    found = np.empty((len(values), int(grids.starts[-1])))
    own = taught.cells(values)
    said = taught.predict_cells(own)
    curves = taught.curves(own)
    for unit, members in enumerate(grids.units.members):
        cells = np.arange(grids.starts[unit], grids.starts[unit + 1])
        if len(cells) == 0:
            continue
        whole = np.zeros((len(cells), values.shape[1]))
        whole[:, members] = grids.values[unit]
        new = taught.cells(whole)[:, members]  # (cells, columns of the unit)
        if len(members) == 1:
            place = np.where(new[:, 0] < 0, taught.starts[members[0] + 1] - 1, taught.starts[members[0]] + new[:, 0])
            found[:, cells] = said[:, None] + curves[:, place]
        else:
            for cell, line in zip(cells, new, strict=True):
                changed = own.copy()
                changed[:, members] = line
                found[:, cell] = taught.predict_cells(changed)
    return found


def _copies(training: TrainingRows, origin: np.ndarray, fresh: np.ndarray, rng: np.random.Generator) -> Moves:
    """Of each row a few columns from one of its nearest rows, of which one differs; fresh rows stay as they are."""
    table, values = training.table, training.values
    pool = rng.permutation(training.distinct()[0])[:DONORS]
    near = near_rows(table.ranks(values[origin]), table.ranks(values[pool]), table.is_category, NEAR + 1)
    # One of them may equal the row itself: the next takes its place.
    place = rng.integers(near.shape[1], size=len(origin))
    equal = ~_differs(values[origin], values[pool[near[np.arange(len(origin)), place]]]).any(axis=1)
    place[equal] = (place[equal] + 1) % near.shape[1]
    donors = pool[near[np.arange(len(origin)), place]]
    differs = _differs(values[origin], values[donors])
    changed = rng.random(differs.shape) < COPIED_SHARE
    one = np.argmax(rng.random(differs.shape) * differs, axis=1)
    changed[np.arange(len(origin)), one] = True
    changed[fresh] = False
    return Moves(origin, donors, changed)


def _differs(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Where rows hold other values than others: (rows, columns) bool."""
    return (here != there) & ~(np.isnan(here) & np.isnan(there))


def _standing(n: int, n_columns: int) -> Moves:
    """Rows as they are."""
    return Moves(np.arange(n), np.zeros(n, dtype=np.int64), np.zeros((n, n_columns), dtype=bool))


def _ask(
    training: TrainingRows, frame: pd.DataFrame, moves: Moves, words: str, show: bool
) -> tuple[np.ndarray | None, np.ndarray]:
    """What the black box says of moved rows, in batches, with progress; for all classes where there are several."""
    found: list[tuple[Any, np.ndarray]] = []
    at_once = AT_ONCE if training.black_box.answers is None else BATCH
    with progress(len(moves), words, show) as bar:
        for start in range(0, max(1, len(moves)), at_once):
            part = moves.taken(slice(start, start + at_once))
            found.append(ask_moved(training, frame, part))
            bar.update(len(part))
    every = None if found[0][0] is None else np.concatenate([part for part, _ in found])
    return every, np.concatenate([part for _, part in found])
