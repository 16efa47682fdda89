"""Stage 2 for curves: ask the black box, teach the stand-in, learn who speaks, and choose on probe rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import effective_n_jobs

from limis.curves.grids import Grids
from limis.curves.learning import CurveObjective, LearningCurve, Lessons, train
from limis.curves.model import CurveGround, CurveModel, Intervals, RecordedRows
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
from limis.curves.taught import TaughtModel
from limis.curves.weights import ResponseWeights, write_distances
from limis.errors import InputError
from limis.fidelity.units import find_units
from limis.metrics import nse
from limis.perturb import MovedRows
from limis.progress import progress
from limis.retrieval import Retriever
from limis.rows import TrainingRows
from limis.training.measuring import MeasuringRows

CurveWeighting = Literal["auto", "learned", "forest", "uniform", "random", "none"]
CURVE_WEIGHTINGS = ("auto", "learned", "forest", "uniform", "random", "none")
N_CANDIDATES = 64
SHOWN, REFERENCE = 32, 100  # values that a curve is shown at; training rows that contributions are counted by
TESTED_SHARE, MOST_TESTED = 0.05, 2000  # of the mixtures, which measure the taught model
MIN_LESSONS = 20  # probe rows, below which nothing is learned
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


@dataclass
class FittedCurves:
    """The model, what it was chosen from, how learning went, and all answers that it rests on."""

    model: CurveModel
    choices: list[dict[str, Any]]
    curve: LearningCurve | None
    mixtures: Answers | None
    responses: Responses
    seed: int
    n_threads: int | None
    facts: dict[str, Any] = field(default_factory=dict)

    def choices_frame(self) -> pd.DataFrame:
        """What was tried on probe rows, a line each."""
        return pd.DataFrame(self.choices)

    def of_class(self, training: TrainingRows, place: int) -> CurveModel:
        """The same model on the answers for one of several classes, of which these are the training rows."""
        ground, taught = self.model.ground, None
        if ground.taught is not None:
            mixtures = None if self.mixtures is None else self.mixtures.of_class(place)
            taught = _teach(training, mixtures, self.seed, self.n_threads)
        if self.responses.every is not None:
            responses = self.responses.of_class(place)
        else:  # of a stand-in
            assert taught is not None
            base, grids = self.responses.base, ground.grids
            said = taught_responses(grids, taught, base.values)
            responses = Responses(self.responses.origin, Answers(base.values, taught.predict(base.values)), said)
        recorded = RecordedRows.of(training.table, ground.grids, taught, responses)
        return replace(self.model, ground=replace(ground, taught=taught, recorded=recorded), intervals=Intervals())


def fit_curves(
    training: TrainingRows,
    choosing: MeasuringRows,
    options: CurveOptions,
    rng: np.random.Generator,
    fresh: np.ndarray | None = None,
) -> FittedCurves:
    """Ask, teach, learn and choose.

    Without a model to ask, the taught model of the training rows' outputs stands in for it.
    """
    table, show = training.table, options.verbose
    units = find_units(table, training.values)
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
    with progress(1, "teaching the stand-in", show) as bar:
        taught = _teach(training, mixtures, seed, n_threads)
        bar.update()
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
    marked = np.zeros(len(training), dtype=bool)
    marked[responses.origin] = True
    with progress(1, "growing the forest", show) as bar:
        threads = -1 if options.n_jobs is None else options.n_jobs
        retriever = Retriever.fit(training, rng=rng, n_jobs=threads, marked=marked)
        bar.update()
    pairs = leading_pairs(taught, training.values, units, unit_of, matters, rng)
    ground = CurveGround(
        table,
        units,
        grids,
        taught,
        RecordedRows.of(table, grids, taught, responses),
        pairs,
        shown=Grids.of(table, units, training.values, SHOWN),
        reference=training.values[rng.permutation(len(training))[:REFERENCE]],
        stand_in=not can_be_asked,
    )
    n_candidates = N_CANDIDATES if options.candidates == "auto" else int(options.candidates)
    model = CurveModel(retriever, ground, ResponseWeights.forest(len(table.columns), n_candidates))
    model, choices, curve = _choose(training, model, responses, choosing, options, seed)
    return FittedCurves(model, choices, curve, mixtures, responses, seed, n_threads, facts)


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


def _teach(training: TrainingRows, mixtures: Answers | None, seed: int, n_threads: int | None) -> TaughtModel:
    values, answers = [training.values], [training.outputs]
    if mixtures is not None:
        values.append(mixtures.values)
        answers.append(mixtures.outputs)
    # In deviations, as boosting works in single precision: outputs of any size are learned alike.
    standard = (np.concatenate(answers) - training.overall_mean) / training.unit
    taught = TaughtModel.teach(training.table, np.concatenate(values), standard, seed, n_threads=n_threads)
    return taught.scaled(training.unit, training.overall_mean)


def _choose(
    training: TrainingRows,
    model: CurveModel,
    responses: Responses,
    choosing: MeasuringRows,
    options: CurveOptions,
    seed: int,
) -> tuple[CurveModel, list[dict[str, Any]], LearningCurve | None]:
    """Whose responses count, and whether the taught model and the rows each help, on probe rows."""
    n_columns = len(training.table.columns)
    n_candidates = model.weights.n_candidates
    if options.weighting == "none":
        return replace(model, weights=ResponseWeights.silent(n_columns)), [], None
    if options.weighting in ("uniform", "random"):
        return replace(model, weights=ResponseWeights.by_chance(n_columns, options.weighting, seed)), [], None
    if len(choosing) < MIN_LESSONS or not choosing.by_range or len(model.ground.recorded) == 0:
        return model, [], None
    alone = replace(
        model.ground, taught=None, recorded=RecordedRows.of(training.table, model.ground.grids, None, responses)
    )
    tried: list[tuple[dict[str, Any], CurveModel, float]] = []
    curve = None
    for with_taught, ground in ((True, model.ground), (False, alone)):
        base = replace(model, ground=ground)
        lessons = _lessons(training, base, choosing)
        if len(lessons.rows) == 0:  # nothing ever changes
            return model, [], None
        forests = [ResponseWeights.forest(n_columns, n_candidates, silence) for silence in SILENCES]
        start = max(forests, key=lessons.skill)
        found = {"forest": start}
        if options.weighting in ("auto", "learned"):
            objective: CurveObjective = "rloo" if options.objective == "rloo" else "weighted"
            found["learned"], own_curve = train(lessons, start, seed, objective=objective)
            curve = own_curve if with_taught else curve
        for name, weights in found.items():
            entry = {"weights": name, "taught": with_taught}
            tried.append((entry, replace(base, weights=weights), lessons.skill(weights)))
        if with_taught:
            silent = replace(base, weights=ResponseWeights.silent(n_columns))
            tried.append(({"weights": "none", "taught": True}, silent, lessons.skill_alone))
    allowed = [place for place, (entry, _, _) in enumerate(tried) if options.weighting in ("auto", entry["weights"])]
    best = max(allowed, key=lambda place: tried[place][2])
    choices = [{**entry, "skill": skill, "chosen": place == best} for place, (entry, _, skill) in enumerate(tried)]
    return tried[best][1], choices, curve


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
