"""Stage 2 for curves: ask the black box, teach the stand-in, learn who speaks, and choose on probe rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from joblib import effective_n_jobs

from limis.curves.grids import Grids
from limis.curves.learning import CurveObjective, Lessons, train
from limis.curves.model import CurveFits, CurveGround, CurveModel, Intervals, RecordedRows
from limis.curves.pairs import importance, leading_pairs
from limis.curves.questions import (
    Answers,
    Responses,
    ask_mixtures,
    ask_responses,
    recorded_units,
    standing_responses,
    taught_responses,
)
from limis.curves.taught import Size, TaughtModel, order_levels
from limis.curves.weights import ResponseWeights, write_distances
from limis.errors import InputError
from limis.fidelity.units import Units
from limis.metrics import nse, skill_on_changes
from limis.progress import progress
from limis.retrieval import Retriever
from limis.rows import TrainingRows
from limis.table import Table
from limis.training.measuring import MeasuringRows


class Member(NamedTuple):
    """One of the boosters whose mean is the taught model."""

    size: Size
    with_rows: bool = False  # whether training rows teach it beside their mixtures


CHOSEN_WEIGHTINGS = ("auto", "learned", "forest")  # on probe rows
CURVE_WEIGHTINGS = (*CHOSEN_WEIGHTINGS, "uniform", "random", "none")
N_CANDIDATES = 64
SHOWN = 32  # values that a curve is shown at
TESTED_SHARE, MOST_TESTED = 0.05, 2000  # of the mixtures, which measure the taught model
MIN_LESSONS = 20  # probe rows, below which nothing is learned
# Each row of a small table is a probe row of a fit without it.
FOLDS, MORE_FOLDS, FEW_ROWS = 3, 5, 500
# What serves probe rows best is the taught model: one of these, or the mean of two, which errs less than either. A
# black box that jumps from row to row is foreseen best by smooth ones, one with a clear shape by fine ones.
OF_MANY = (
    Member(Size(300, 127, 0.08, 0.5)),
    Member(Size(300, 63, 0.05, 0.5), with_rows=True),
    Member(Size(300, 63, 0.2), with_rows=True),
)
# Few rows are mixed in few ways, which smaller trees tell as well, in half of the time. Fits without some of the rows,
# which choose and measure, get by with the first.
FEW_TO_MIX, OF_FEW = 1_500, (Member(Size(100, 31, 0.2)), Member(Size(60, 95, 0.12)))
# Of given outputs there may be noise to be learned by heart.
OF_GIVEN = (Member(Size(30, 15, 0.05)), Member(Size(100, 15, 0.05)), Member(Size(300, 63, 0.05)))
MOST_TOGETHER = 2  # of them: each costs time whenever a row is explained
MOST_ROWS = 100_000  # training rows that teach it
LESSON_CELLS = 5_000_000  # rows × candidates × columns, or questions, of lessons, at most
MOST_PROBES, MOST_RECORDED, LESSONS_A_ROW = 500, 2_000, 16  # probe rows that choose; recorded rows that teach
SILENCES = (0.1, 0.5, 2.0, 8.0)


@dataclass
class CurveOptions:
    """What an explainer was told about its curves."""

    weighting: str
    objective: str
    candidates: int | Literal["auto"]
    max_questions: int
    n_jobs: int | None
    verbose: bool


@dataclass(frozen=True)
class Teacher:
    """How the taught model is fitted: to mixtures of training rows, of which the black box remembers none.

    Training rows themselves teach where there are few of either, or where that serves probe rows better.
    """

    seed: int
    n_threads: int | None
    members: tuple[Member, ...]

    def teach(self, training: TrainingRows, mixtures: Answers | None) -> TaughtModel:
        """Fit it."""
        return TaughtModel.mean(self._teach_each(training, mixtures))

    def choose(
        self,
        training: TrainingRows,
        mixtures: Answers | None,
        choosing: MeasuringRows,
        unit_of: np.ndarray,
        show: bool = False,
    ) -> tuple[Teacher, TaughtModel]:
        """Those of the members whose mean serves probe rows best, the first where there are too few rows; the model."""
        if len(choosing) < MIN_LESSONS or len(self.members) == 1:
            first = replace(self, members=self.members[:1])
            return first, first.teach(training, mixtures)
        taught = self._teach_each(training, mixtures, show)
        services = [Service.of(one, choosing, unit_of) for one in taught]
        places = range(len(taught))
        subsets = [chosen for n in range(1, MOST_TOGETHER + 1) for chosen in combinations(places, n)]
        best = max(subsets, key=lambda chosen: Service.mean([services[place] for place in chosen]).score())
        chosen = replace(self, members=tuple(self.members[place] for place in best))
        return chosen, TaughtModel.mean([taught[place] for place in best])

    def _teach_each(self, training: TrainingRows, mixtures: Answers | None, show: bool = False) -> list[TaughtModel]:
        chosen = np.sort(np.random.default_rng(self.seed).permutation(len(training))[:MOST_ROWS])
        rows = training.values[chosen], training.outputs[chosen]
        mixed = (training.values[:0], training.outputs[:0]) if mixtures is None else (mixtures.values, mixtures.outputs)
        values, answers = (np.concatenate(parts) for parts in zip(rows, mixed, strict=True))
        # In deviations, as boosting works in single precision: outputs of any size are learned alike.
        standard = (answers - training.overall_mean) / training.unit
        order = order_levels(training.table, values, standard)
        few = mixtures is None or len(training) <= FEW_TO_MIX or len(mixtures) < len(training)
        found = []
        with progress(len(self.members), "teaching the stand-in", show) as bar:
            for member in self.members:
                first = 0 if few or member.with_rows else len(rows[0])
                one = TaughtModel.teach(
                    training.table,
                    values[first:],
                    standard[first:],
                    self.seed,
                    member.size,
                    level_order=order,
                    n_threads=self.n_threads,
                )
                found.append(one.scaled(training.unit, training.overall_mean))
                bar.update()
        return found


@dataclass
class Service:
    """What a taught model alone says of probe rows, beside what the black box says: of changes, or of the rows."""

    truth: list[np.ndarray]  # for each range
    said: list[np.ndarray]
    of_changes: bool

    @classmethod
    def of(cls, taught: TaughtModel, choosing: MeasuringRows, unit_of: np.ndarray) -> Service:
        """Ask it."""
        own = taught.cells(choosing.rows.values)
        truth, said = [], []
        for part in choosing.by_range.values():
            asked = part.asked
            if asked is not None and np.any(asked.changes):
                truth.append(asked.changes)
                said.append(taught.unit_changes(own, asked.rows, taught.cells(asked.values), unit_of).sum(axis=1))
        if truth:
            return cls(truth, said, of_changes=True)
        return cls([choosing.rows.outputs], [taught.predict_cells(own)], of_changes=False)

    @classmethod
    def mean(cls, several: list[Service]) -> Service:
        """What several models say on average."""
        said = [np.mean(parts, axis=0) for parts in zip(*(one.said for one in several), strict=True)]
        return replace(several[0], said=said)

    def score(self) -> float:
        """Mean skill over the ranges or, where no change was asked about, NSE."""
        if self.of_changes:
            return float(np.mean([skill_on_changes(*both) for both in zip(self.truth, self.said, strict=True)]))
        return nse(self.truth[0], self.said[0]) if np.ptp(self.truth[0]) > 0 else 0.0


@dataclass
class Told:
    """What the black box said of mixtures and responses of training rows."""

    mixtures: Answers | None
    responses: Responses

    def without(self, left_out: np.ndarray) -> Told:
        """What rests on none of some training rows, (training rows,) bool; the others are counted anew."""
        mixtures = None if self.mixtures is None else self.mixtures.without(left_out)
        return Told(mixtures, self.responses.without(left_out))


@dataclass
class FittedCurves:
    """The model, the training rows and answers that it rests on, and what it was chosen from."""

    training: TrainingRows
    told: Told
    teacher: Teacher
    model: CurveModel
    expected: np.ndarray  # (recorded rows, cells) what the taught model says of their responses
    choices: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    folds: list[FittedCurves] = field(default_factory=list)  # of a small table: each fitted without some of its rows
    fold_of: np.ndarray | None = None  # (training rows,) the fold that was fitted without each

    def choices_frame(self) -> pd.DataFrame:
        """What was tried on probe rows, a line each."""
        return pd.DataFrame(self.choices)

    def of_class(self, training: TrainingRows, place: int) -> CurveModel:
        """The same model on the answers for one of several classes, of which these are the training rows."""
        ground, told = self.model.ground, self.told
        taught = self.teacher.teach(training, None if told.mixtures is None else told.mixtures.of_class(place))
        if told.responses.every is not None:
            responses = told.responses.of_class(place)
        else:  # of a stand-in
            base = told.responses.base
            said = taught_responses(ground.grids, taught, base.values)
            responses = replace(told.responses, base=Answers(base.values, taught.predict(base.values)), outputs=said)
        expected = taught_responses(ground.grids, taught, responses.base.values)
        recorded = RecordedRows.of(training.table, ground.grids, taught, responses, ground.reliance, expected)
        return replace(self.model, ground=replace(ground, taught=taught, recorded=recorded), intervals=Intervals())

    def fits_of_others(
        self, places: np.ndarray, measuring: MeasuringRows, place_of_class: int | None = None
    ) -> list[tuple[CurveFits, MeasuringRows]]:
        """The surrogates of training rows, given by their places, each from the fold that was fitted without it."""
        assert self.fold_of is not None
        found = []
        for number, fold in enumerate(self.folds):
            mine = np.flatnonzero(self.fold_of[places] == number)
            if len(mine) == 0:
                continue
            own, model = fold.training, fold.model
            if place_of_class is not None:
                own = own.of_class(place_of_class)
                model = fold.of_class(own, place_of_class)
            part = measuring.part(mine)
            found.append((model.fit(own, None, part.rows.values), part))
        return found


def fit_curves(
    training: TrainingRows,
    choosing: MeasuringRows,
    units: Units,
    options: CurveOptions,
    rng: np.random.Generator,
    *,
    fresh: np.ndarray | None = None,
    places: np.ndarray | None = None,
) -> FittedCurves:
    """Ask, teach, learn and choose.

    Without a model to ask, the taught model of the training rows' outputs stands in for it. Where the choosing rows are
    training rows themselves, ``places`` says which: each is then foreseen by a fit without it.
    """
    table, show = training.table, options.verbose
    unit_of = units.of_column()
    seed = int(rng.integers(2**31))
    n_threads = None if options.n_jobs is None else effective_n_jobs(options.n_jobs)
    can_be_asked = training.black_box.can_be_asked
    mixtures = None
    if can_be_asked:
        mixtures = ask_mixtures(training, options.max_questions, rng, show, n_threads)
    facts: dict[str, Any] = {}
    tested, n_asked = None, 0
    if mixtures is not None:
        n_asked = len(mixtures)
        mixtures, tested = mixtures.divided(min(MOST_TESTED, int(TESTED_SHARE * len(mixtures))))
    members: tuple[Member, ...] = OF_GIVEN
    if can_be_asked:
        members = OF_FEW if places is not None or len(training) <= FEW_TO_MIX else OF_MANY
    teacher, fold_of = Teacher(seed, n_threads, members), None
    if places is None:
        teacher, taught = teacher.choose(training, mixtures, choosing, unit_of, show)
    else:
        fold_of = rng.permutation(np.arange(len(training)) % _n_folds(len(training)))
        if not can_be_asked:
            left_out = fold_of == 0
            own = choosing.part(np.flatnonzero(left_out[places]))
            teacher, _ = teacher.choose(training.part(np.flatnonzero(~left_out)), None, own, unit_of, show)
        taught = teacher.teach(training, mixtures)
    if tested is not None and len(tested) and np.ptp(tested.outputs) > 0:
        facts["taught_nse"] = nse(tested.outputs, taught.predict(tested.values))
    matters = importance(taught, training.values, unit_of, rng)
    left = options.max_questions - n_asked
    grids = Grids.of(table, units, training.values)
    grids = grids.only(recorded_units(grids, matters, len(training), left))
    responses = ask_responses(training, grids, left, rng, fresh=fresh, show=show) if can_be_asked else None
    if responses is None or len(responses) == 0:
        responses = standing_responses(training, grids, taught, rng)
    facts["questions"] = n_asked + (responses.outputs.size + len(responses) if can_be_asked else 0)
    facts["recorded_rows"], facts["recorded_columns"] = len(responses), int((grids.sizes > 0).sum())
    relied, expected = np.ones(len(units)), taught_responses(grids, taught, responses.base.values)
    ground = CurveGround(
        table,
        units,
        grids,
        taught,
        relied,
        RecordedRows.of(table, grids, taught, responses, relied, expected),
        leading_pairs(taught, training.values, units, unit_of, matters, rng),
        shown=Grids.of(table, units, training.values, SHOWN),
        stand_in=not can_be_asked,
    )
    found = _with_forest(training, Told(mixtures, responses), teacher, ground, expected, options, rng)
    if fold_of is not None:
        found.fold_of = fold_of
        with progress(int(fold_of.max()) + 1, "fitting without some rows", show) as bar:
            for number in range(int(fold_of.max()) + 1):
                found.folds.append(_fold(found, fold_of == number, options, rng))
                bar.update()
    _choose(found, choosing, places, options, seed)
    found.facts = facts
    return found


def _n_folds(n_rows: int) -> int:
    return MORE_FOLDS if n_rows < FEW_ROWS else FOLDS


def _with_forest(
    training: TrainingRows,
    told: Told,
    teacher: Teacher,
    ground: CurveGround,
    expected: np.ndarray,
    options: CurveOptions,
    rng: np.random.Generator,
) -> FittedCurves:
    """The model whose rows speak as the forest has it."""
    marked = np.zeros(len(training), dtype=bool)
    marked[told.responses.origin] = True
    with progress(1, "growing the forest", options.verbose) as bar:
        threads = -1 if options.n_jobs is None else options.n_jobs
        threads = 1 if len(training) <= FEW_TO_MIX else threads  # of few rows, threads cost more than they do
        retriever = Retriever.fit(training, rng=rng, n_jobs=threads, marked=marked)
        bar.update()
    n_candidates = N_CANDIDATES if options.candidates == "auto" else int(options.candidates)
    weights = ResponseWeights.forest(len(training.table.columns), n_candidates)
    return FittedCurves(training, told, teacher, CurveModel(retriever, ground, weights), expected)


def _fold(whole: FittedCurves, left_out: np.ndarray, options: CurveOptions, rng: np.random.Generator) -> FittedCurves:
    """The same fitted without some of the rows, on the same answers."""
    training, told = whole.training.part(np.flatnonzero(~left_out)), whole.told.without(left_out)
    ground, teacher = whole.model.ground, whole.teacher
    if training.black_box.can_be_asked:
        teacher = replace(teacher, members=teacher.members[:1])
    taught = teacher.teach(training, told.mixtures)
    if not training.black_box.can_be_asked or len(told.responses) == 0:
        told = replace(told, responses=standing_responses(training, ground.grids, taught, rng))
    expected = taught_responses(ground.grids, taught, told.responses.base.values)
    recorded = RecordedRows.of(training.table, ground.grids, taught, told.responses, ground.reliance, expected)
    ground = replace(ground, taught=taught, recorded=recorded)
    return _with_forest(training, told, teacher, ground, expected, options, rng)


def check_curve_options(weighting: str, objective: str) -> None:
    """Refuse, before anything is asked, what curves cannot be fitted with."""
    if weighting not in CURVE_WEIGHTINGS:
        raise InputError(
            f'weighting={weighting!r} is for ridges and trees; with surrogate="curves" it is one of '
            f"{', '.join(CURVE_WEIGHTINGS)}"
        )
    if objective not in ("auto", "weighted", "rloo"):
        raise InputError(f'objective={objective!r} is not one for curves; use "weighted" or "rloo"')
    if objective != "auto" and weighting not in ("auto", "learned"):
        raise InputError(f"objective={objective!r} needs weights that are learned, not {weighting!r}")


def _choose(
    found: FittedCurves, choosing: MeasuringRows, places: np.ndarray | None, options: CurveOptions, seed: int
) -> None:
    """Whose responses count, and how far the taught model does: recorded rows teach, probe rows choose."""
    n_columns = len(found.training.table.columns)
    if options.weighting not in CHOSEN_WEIGHTINGS:
        silent = options.weighting == "none"
        weights = ResponseWeights.silent(n_columns)
        weights = weights if silent else ResponseWeights.by_chance(n_columns, options.weighting, seed)
        _weigh_by(found, weights, best_reliance_for(found, weights, seed))
        return
    if len(choosing) < MIN_LESSONS or not choosing.by_range or not found.model.ground.grids.sizes.any():
        return
    tried = try_weights(found, choosing, places, options, seed)
    if not tried:
        return
    best = max((one for one in tried if options.weighting in ("auto", one.name)), key=lambda one: one.skill)
    found.choices = [{"weights": one.name, "skill": one.skill, "chosen": one is best} for one in tried]
    _weigh_by(found, best.weights, best.reliance)


@dataclass
class Tried:
    """A way to weigh rows: with how far the taught model counts beside them, and mean skill on probe rows."""

    name: str
    weights: ResponseWeights
    reliance: np.ndarray  # (units,)
    skill: float


def try_weights(
    found: FittedCurves,
    choosing: MeasuringRows,
    places: np.ndarray | None,
    options: CurveOptions,
    seed: int,
    *,
    relies: bool = True,
) -> list[Tried]:
    """The forest's weights, learned ones and none; without ``relies`` the taught model counts for nothing."""
    checking = _all_lessons(found, choosing, places)
    if len(checking) == 0:  # nothing ever changes
        return []
    n_units, start = len(found.model.ground.units), found.model.weights
    teaching = _recorded_lessons(found, start, seed)

    def tried(name: str, weights: ResponseWeights) -> Tried:
        reliance = teaching.reliance(weights, n_units) if relies else np.zeros(n_units)
        return Tried(name, weights, reliance, checking.skill(weights, reliance))

    forests = [tried("forest", replace(start, silence=silence)) for silence in SILENCES]
    best = [max(forests, key=lambda one: one.skill)]
    if options.weighting in ("auto", "learned"):
        objective: CurveObjective = "rloo" if options.objective == "rloo" else "weighted"
        weights = train(teaching, checking, best[0].weights, n_units, seed, relies=relies, objective=objective)
        best.append(tried("learned", weights))
    return [*best, tried("none", ResponseWeights.silent(len(start.price)))] if relies else best


def _weigh_by(found: FittedCurves, weights: ResponseWeights, reliance: np.ndarray) -> None:
    """Let rows speak by these weights, and the taught model so far, in the model and in those of its folds."""
    for one in (found, *found.folds):
        one.model = weighed_by(one, weights, reliance)


def weighed_by(found: FittedCurves, weights: ResponseWeights, reliance: np.ndarray) -> CurveModel:
    """The model in which rows speak by these weights; reliance : (units,) how far the taught model counts."""
    ground = found.model.ground
    responses = found.told.responses
    recorded = RecordedRows.of(ground.table, ground.grids, ground.taught, responses, reliance, found.expected)
    return replace(found.model, ground=replace(ground, reliance=reliance, recorded=recorded), weights=weights)


def best_reliance_for(found: FittedCurves, weights: ResponseWeights, seed: int) -> np.ndarray:
    """How far the taught model should count beside rows that speak by these weights: (units,)."""
    n_units = len(found.model.ground.units)
    if not found.model.ground.grids.sizes.any():
        return np.ones(n_units)
    return _recorded_lessons(found, weights, seed).reliance(weights, n_units)


def _all_lessons(found: FittedCurves, choosing: MeasuringRows, places: np.ndarray | None) -> Lessons:
    """Those of all probe rows, each from a fit without it."""
    fits: list[tuple[FittedCurves, MeasuringRows]] = [(found, choosing)]
    if places is not None and found.fold_of is not None:
        fits = [
            (fold, choosing.part(np.flatnonzero(found.fold_of[places] == number)))
            for number, fold in enumerate(found.folds)
        ]
    return Lessons.join([_probe_lessons(fold, own) for fold, own in fits])


def _probe_lessons(found: FittedCurves, choosing: MeasuringRows) -> Lessons:
    """Changes of probe rows, as many of each range as there are."""
    model, table = found.model, found.training.table
    values = choosing.rows.values[: _most_rows(model, table, MOST_PROBES)]
    at, units, changes, worth, moved = [], [], [], [], []
    asked_of = [one.asked for one in choosing.by_range.values() if one.asked is not None and np.any(one.asked.changes)]
    for asked in asked_of:
        kept = asked.rows < len(values)
        at.append(asked.rows[kept])
        changes.append(asked.changes[kept])
        moved.append(asked.values[kept])
        units.append(model.ground.units.of_column()[asked.moves.changed[kept].argmax(axis=1)])
        worth.append(np.full(len(at[-1]), 1 / max(float((changes[-1] ** 2).sum()), 1e-300) / len(asked_of)))
    if not asked_of:
        at, units, moved = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], [values[:0]]
        changes = worth = [np.empty(0)]
    rows, unit, after, answers, worths = map(np.concatenate, (at, units, moved, changes, worth))
    taught = model.ground.taught
    expected = taught.unit_changes(taught.cells(values), rows, taught.cells(after), model.ground.unit_of)
    questions = _Questions(rows, unit, after, answers, expected[np.arange(len(rows)), unit], worths)
    return _lessons(found, model.weights, values, questions)


def _recorded_lessons(found: FittedCurves, weights: ResponseWeights, seed: int) -> Lessons:
    """Changes of recorded rows, each kept out of its own lesson: half to near values of the grids, half to any."""
    model, table, responses = found.model, found.training.table, found.told.responses
    grids, rng = model.ground.grids, np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(responses))[: _most_rows(replace(model, weights=weights), table, MOST_RECORDED)])
    values = responses.base.values[rows]
    at = np.repeat(np.arange(len(rows)), LESSONS_A_ROW)
    units, near = rng.choice(np.flatnonzero(grids.sizes), len(at)), rng.random(len(at)) < 0.5
    cells = grids.draw(table, values[at], units, near, rng)
    changes = responses.outputs[rows[at], cells] - responses.base.outputs[rows[at]]
    expected = found.expected[rows[at], cells] - model.ground.taught.predict(values)[at]
    squares = np.bincount(near, changes**2, 2)
    worth = 0.5 / np.maximum(squares, 1e-300)[near.astype(np.int64)]
    questions = _Questions(at, units, grids.moved(values[at], units, cells), changes, expected, worth)
    return _lessons(found, weights, values, questions, rows)


def _most_rows(model: CurveModel, table: Table, most: int) -> int:
    return min(most, max(1, LESSON_CELLS // (model.most * max(LESSONS_A_ROW, len(table.columns)))))


class _Questions(NamedTuple):
    """Changes of one unit each."""

    rows: np.ndarray  # (questions,)
    units: np.ndarray  # (questions,)
    moved: np.ndarray  # (questions, columns) the row after the change
    changes: np.ndarray  # (questions,) what the black box's output changed by
    expected: np.ndarray  # (questions,) what the taught model's does
    worth: np.ndarray  # (questions,)


def _lessons(
    found: FittedCurves,
    weights: ResponseWeights,
    values: np.ndarray,
    asked: _Questions,
    own_slots: np.ndarray | None = None,
) -> Lessons:
    """What the black box did with changes of rows, and what the taught model and each candidate row say of them.

    own_slots : (rows,) of rows that are recorded ones themselves: they do not speak for themselves.
    """
    ground, training, responses = found.model.ground, found.training, found.told.responses
    slots, proximity = replace(found.model, weights=weights).near(training, values)
    if own_slots is not None:
        proximity = np.where(slots == own_slots[:, None], 0.0, proximity)
    here = ground.grids.between(training.table, values).part(asked.rows).at(asked.units)
    there = ground.grids.between(training.table, asked.moved).at(asked.units)
    known, lines = here.known & there.known, slots[asked.rows]
    said, said_taught = (
        np.where(known, there.read(by_cell, lines) - here.read(by_cell, lines), 0.0)
        for by_cell in (responses.outputs, found.expected)
    )
    apart = np.zeros((*slots.shape, values.shape[1]))
    recorded_ranks, is_category = ground.recorded.ranks, training.table.is_category
    write_distances(training.table.ranks(values), slots, recorded_ranks, is_category, apart)
    return Lessons(
        asked.rows, asked.units, asked.changes, asked.expected, said, said_taught, asked.worth, proximity, apart
    )
