"""Stage 2 for curves: ask the black box, teach the stand-in, learn who speaks, and choose on probe rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import effective_n_jobs

from limis.curves.grids import Grids
from limis.curves.learning import CurveObjective, LearningCurve, Lessons, train
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
from limis.curves.taught import Size, TaughtModel
from limis.curves.weights import ResponseWeights, write_distances
from limis.errors import InputError
from limis.fidelity.units import Units
from limis.metrics import nse, skill_on_changes
from limis.perturb import MovedRows
from limis.progress import progress
from limis.retrieval import Retriever
from limis.rows import TrainingRows
from limis.training.measuring import MeasuringRows

CURVE_WEIGHTINGS = ("auto", "learned", "forest", "uniform", "random", "none")
N_CANDIDATES = 64
SHOWN, REFERENCE = 32, 100  # values that a curve is shown at; training rows that contributions are counted by
TESTED_SHARE, MOST_TESTED = 0.05, 2000  # of the mixtures, which measure the taught model
MIN_LESSONS = 20  # probe rows, below which nothing is learned
# Each row of a small table is a probe row of a fit without it.
FOLDS, MORE_FOLDS, FEW_ROWS = 3, 5, 500
# A black box that jumps from row to row is foreseen best by a smooth stand-in, one with a clear shape by a fine one.
SIZES = (Size(300, 63, 0.2), Size(300, 63, 0.05))
# Few rows are mixed in few ways, which smaller trees tell as well, in half of the time.
FEW_TO_MIX, SIZES_OF_FEW = 1_500, (Size(200, 31, 0.2), Size(150, 63, 0.05))
# Of given outputs there may be noise to be learned by heart.
OF_GIVEN = (Size(30, 15, 0.05), Size(100, 15, 0.05), Size(300, 63, 0.05))
LESSON_CELLS, MOST_PROBES = 10_000_000, 500  # probe rows × candidates × columns, and probe rows, that teach
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

    Training rows themselves teach only where there are few of either.
    """

    seed: int
    n_threads: int | None
    size: Size = SIZES[0]

    def teach(self, training: TrainingRows, mixtures: Answers | None) -> TaughtModel:
        """Fit it."""
        values, answers = [training.values], [training.outputs]
        if mixtures is not None:
            few = len(training) <= FEW_TO_MIX or len(mixtures) < len(training)
            values = [*(values if few else []), mixtures.values]
            answers = [*(answers if few else []), mixtures.outputs]
        # In deviations, as boosting works in single precision: outputs of any size are learned alike.
        standard = (np.concatenate(answers) - training.overall_mean) / training.unit
        taught = TaughtModel.teach(
            training.table, np.concatenate(values), standard, self.seed, self.size, n_threads=self.n_threads
        )
        return taught.scaled(training.unit, training.overall_mean)

    def choose(
        self,
        training: TrainingRows,
        mixtures: Answers | None,
        choosing: MeasuringRows,
        unit_of: np.ndarray,
        sizes: tuple[Size, ...],
        show: bool = False,
    ) -> tuple[Teacher, TaughtModel]:
        """The size that serves probe rows best, the first where there are too few of them; and the model."""
        if len(choosing) < MIN_LESSONS:
            sizes = sizes[:1]
        tried = []
        with progress(len(sizes), "teaching the stand-in", show) as bar:
            for size in sizes:
                teacher = replace(self, size=size)
                tried.append((teacher, teacher.teach(training, mixtures)))
                bar.update()
        if len(tried) == 1:
            return tried[0]
        return max(tried, key=lambda one: _served(one[1], choosing, unit_of))


def _served(taught: TaughtModel, choosing: MeasuringRows, unit_of: np.ndarray) -> float:
    """How well a taught model alone serves probe rows: mean skill over the ranges or, where none was asked, NSE."""
    values, skills = choosing.rows.values, []
    own = taught.cells(values)
    for part in choosing.by_range.values():
        asked = part.asked
        if asked is not None and np.any(asked.changes):
            said = taught.unit_changes(own, asked.rows, taught.cells(asked.values), unit_of).sum(axis=1)
            skills.append(skill_on_changes(asked.changes, said))
    if skills or np.ptp(choosing.rows.outputs) == 0:
        return float(np.mean(skills)) if skills else 0.0
    return nse(choosing.rows.outputs, taught.predict_cells(own))


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
    """The model, the training rows and answers that it rests on, what it was chosen from, and how learning went."""

    training: TrainingRows
    told: Told
    teacher: Teacher
    model: CurveModel
    choices: list[dict[str, Any]] = field(default_factory=list)
    curve: LearningCurve | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    tried: list[tuple[ResponseWeights, bool]] = field(default_factory=list)  # with or without the taught model
    folds: list[FittedCurves] = field(default_factory=list)  # of a small table: each fitted without some of its rows
    fold_of: np.ndarray | None = None  # (training rows,) the fold that was fitted without each

    def choices_frame(self) -> pd.DataFrame:
        """What was tried on probe rows, a line each."""
        return pd.DataFrame(self.choices)

    def of_class(self, training: TrainingRows, place: int) -> CurveModel:
        """The same model on the answers for one of several classes, of which these are the training rows."""
        ground, taught, told = self.model.ground, None, self.told
        if ground.taught is not None:
            taught = self.teacher.teach(training, None if told.mixtures is None else told.mixtures.of_class(place))
        if told.responses.every is not None:
            responses = told.responses.of_class(place)
        else:  # of a stand-in
            assert taught is not None
            base = told.responses.base
            said = taught_responses(ground.grids, taught, base.values)
            responses = replace(told.responses, base=Answers(base.values, taught.predict(base.values)), outputs=said)
        recorded = RecordedRows.of(training.table, ground.grids, taught, responses)
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
    mixtures = ask_mixtures(training, options.max_questions, rng, show) if can_be_asked else None
    facts: dict[str, Any] = {}
    tested, n_asked = None, 0
    if mixtures is not None:
        n_asked = len(mixtures)
        mixtures, tested = mixtures.divided(min(MOST_TESTED, int(TESTED_SHARE * len(mixtures))))
    fold_of = None if places is None else rng.permutation(np.arange(len(training)) % _n_folds(len(training)))
    first_fold = training, mixtures, choosing
    if fold_of is not None and places is not None:
        left_out = fold_of == 0
        first_fold = (
            training.part(np.flatnonzero(~left_out)),
            None if mixtures is None else mixtures.without(left_out),
            choosing.part(np.flatnonzero(left_out[places])),
        )
    sizes: tuple[Size, ...] = OF_GIVEN
    if can_be_asked:
        sizes = SIZES_OF_FEW if len(training) <= FEW_TO_MIX else SIZES
    teacher, taught = Teacher(seed, n_threads).choose(*first_fold, unit_of, sizes, show)
    if fold_of is not None:
        taught = teacher.teach(training, mixtures)
    if tested is not None and len(tested) and np.ptp(tested.outputs) > 0:
        facts["taught_nse"] = nse(tested.outputs, taught.predict(tested.values))
    matters = importance(taught, training.values, unit_of, rng)
    left = options.max_questions - n_asked
    grids = Grids.of(table, units, training.values)
    grids = grids.only(recorded_units(grids, matters, len(training), left))
    if can_be_asked:
        responses = ask_responses(training, grids, left, rng, fresh=fresh, show=show)
    else:
        responses = standing_responses(training, grids, taught, rng)
    facts["questions"] = n_asked + (responses.outputs.size + len(responses) if can_be_asked else 0)
    facts["recorded_rows"], facts["recorded_columns"] = len(responses), int((grids.sizes > 0).sum())
    ground = CurveGround(
        table,
        units,
        grids,
        taught,
        RecordedRows.of(table, grids, taught, responses),
        leading_pairs(taught, training.values, units, unit_of, matters, rng),
        shown=Grids.of(table, units, training.values, SHOWN),
        reference=training.values[rng.permutation(len(training))[:REFERENCE]],
        stand_in=not can_be_asked,
    )
    found = _with_forest(training, Told(mixtures, responses), teacher, ground, options, rng)
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
    options: CurveOptions,
    rng: np.random.Generator,
) -> FittedCurves:
    """The model whose rows speak as the forest has it."""
    marked = np.zeros(len(training), dtype=bool)
    marked[told.responses.origin] = True
    with progress(1, "growing the forest", options.verbose) as bar:
        threads = -1 if options.n_jobs is None else options.n_jobs
        retriever = Retriever.fit(training, rng=rng, n_jobs=threads, marked=marked)
        bar.update()
    n_candidates = N_CANDIDATES if options.candidates == "auto" else int(options.candidates)
    weights = ResponseWeights.forest(len(training.table.columns), n_candidates)
    return FittedCurves(training, told, teacher, CurveModel(retriever, ground, weights))


def _fold(whole: FittedCurves, left_out: np.ndarray, options: CurveOptions, rng: np.random.Generator) -> FittedCurves:
    """The same fitted without some of the rows, on the same answers."""
    training, told = whole.training.part(np.flatnonzero(~left_out)), whole.told.without(left_out)
    taught, ground = whole.teacher.teach(training, told.mixtures), whole.model.ground
    if not training.black_box.can_be_asked:
        told = replace(told, responses=standing_responses(training, ground.grids, taught, rng))
    recorded = RecordedRows.of(training.table, ground.grids, taught, told.responses)
    return _with_forest(training, told, whole.teacher, replace(ground, taught=taught, recorded=recorded), options, rng)


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
    """Whose responses count, and whether the taught model and the rows each help, on probe rows."""
    model, n_columns = found.model, len(found.training.table.columns)
    if options.weighting == "none":
        _weigh_by(found, ResponseWeights.silent(n_columns), True)
        return
    if options.weighting in ("uniform", "random"):
        _weigh_by(found, ResponseWeights.by_chance(n_columns, options.weighting, seed), True)
        return
    if len(choosing) < MIN_LESSONS or not choosing.by_range or len(model.ground.recorded) == 0:
        return
    tried: list[tuple[dict[str, Any], ResponseWeights, float]] = []
    for with_taught in (True, False):
        lessons = _all_lessons(found, choosing, places, with_taught)
        if len(lessons.rows) == 0:  # nothing ever changes
            return
        forests = [ResponseWeights.forest(n_columns, model.weights.n_candidates, silence) for silence in SILENCES]
        start = max(forests, key=lessons.skill)
        weights = {"forest": start}
        if options.weighting in ("auto", "learned"):
            objective: CurveObjective = "rloo" if options.objective == "rloo" else "weighted"
            weights["learned"], own_curve = train(lessons, start, seed, objective=objective)
            found.curve = own_curve if with_taught else found.curve
        tried += [({"weights": name, "taught": with_taught}, own, lessons.skill(own)) for name, own in weights.items()]
        if with_taught:
            silent = ResponseWeights.silent(n_columns)
            tried.append(({"weights": "none", "taught": True}, silent, lessons.skill_alone))
    allowed = [place for place, (entry, _, _) in enumerate(tried) if options.weighting in ("auto", entry["weights"])]
    best = max(allowed, key=lambda place: tried[place][2])
    found.tried = [(weights, entry["taught"]) for entry, weights, _ in tried]
    found.choices = [
        {**entry, "skill": skill, "chosen": place == best} for place, (entry, _, skill) in enumerate(tried)
    ]
    _weigh_by(found, tried[best][1], tried[best][0]["taught"])


def _weigh_by(found: FittedCurves, weights: ResponseWeights, with_taught: bool) -> None:
    """Let rows speak by these weights, with or without the taught model, in the model and in those of its folds."""
    for one in (found, *found.folds):
        one.model = weighed_by(one, weights, with_taught)


def weighed_by(found: FittedCurves, weights: ResponseWeights, with_taught: bool) -> CurveModel:
    """The model in which rows speak by these weights, with or without the taught model."""
    ground = found.model.ground if with_taught else _without_taught(found)
    return replace(found.model, ground=ground, weights=weights)


def _without_taught(found: FittedCurves) -> CurveGround:
    ground = found.model.ground
    recorded = RecordedRows.of(ground.table, ground.grids, None, found.told.responses)
    return replace(ground, taught=None, recorded=recorded)


def _all_lessons(found: FittedCurves, choosing: MeasuringRows, places: np.ndarray | None, with_taught: bool) -> Lessons:
    """Those of all probe rows, each from a fit without it."""
    fits: list[tuple[FittedCurves, MeasuringRows]] = [(found, choosing)]
    if places is not None and found.fold_of is not None:
        fits = [
            (fold, choosing.part(np.flatnonzero(found.fold_of[places] == number)))
            for number, fold in enumerate(found.folds)
        ]
    parts = [
        _lessons(fold.training, fold.model if with_taught else replace(fold.model, ground=_without_taught(fold)), own)
        for fold, own in fits
    ]
    return Lessons.join(parts)


def _lessons(training: TrainingRows, model: CurveModel, choosing: MeasuringRows) -> Lessons:
    """What the black box did with changes of probe rows, and what each candidate row's responses say of them."""
    ground, table = model.ground, training.table
    most = min(MOST_PROBES, max(1, LESSON_CELLS // (model.most * len(table.columns))))
    values = choosing.rows.values[:most]
    slots, proximity = model.near(training, values)
    silent = replace(model, weights=ResponseWeights.silent(values.shape[1])).fit(training, None, values)
    own = ground.grids.cells(table, values)
    asked_of = [one.asked for one in choosing.by_range.values() if one.asked is not None and np.any(one.asked.changes)]
    rows, left, said, worth = [], [], [], []
    for asked in asked_of:
        kept = asked.rows < len(values)
        at, changes, moved = asked.rows[kept], asked.changes[kept], MovedRows(table, asked.values[kept])
        rows.append(at)
        left.append(changes - silent.changes(at, moved))
        said.append(_said(ground, slots[at], own[at], ground.grids.cells(table, moved.values)))
        worth.append(np.full(len(at), 1 / max(float((changes**2).sum()), 1e-300) / len(asked_of)))
    apart = np.zeros((*slots.shape, values.shape[1]))
    write_distances(table.ranks(values), slots, ground.recorded.ranks, table.is_category, apart)
    nothing = np.empty(0, dtype=np.int64)
    return Lessons(
        np.concatenate([nothing, *rows]),
        np.concatenate([np.empty(0), *left]),
        np.concatenate([np.empty((0, slots.shape[1])), *said]),
        np.concatenate([np.empty(0), *worth]),
        proximity,
        apart,
    )


def _said(ground: CurveGround, slots: np.ndarray, here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """What was not foreseen of the same changes of each candidate: (questions, candidates)."""
    found = np.zeros(slots.shape)
    residual = ground.recorded.residual
    for unit in range(here.shape[1]):
        asked = np.flatnonzero((here[:, unit] >= 0) & (there[:, unit] >= 0) & (here[:, unit] != there[:, unit]))
        at, to, since = slots[asked], there[asked, unit, None], here[asked, unit, None]
        found[asked] += residual[at, to] - residual[at, since]
    return found
