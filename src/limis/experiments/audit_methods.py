"""Whom the audit holds against each other, in groups that run apart; peers are chosen by law A on probe rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from limis.curves.questions import MAX_QUESTIONS
from limis.curves.weights import ResponseWeights
from limis.errors import require
from limis.experiments.audit_problem import AuditProblem
from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.fidelity.audit.auditing import jittered, reference_rows
from limis.fidelity.audit.methods import Method
from limis.fidelity.units import find_units
from limis.metrics import skill_on_changes
from limis.peers import GlobalModel, Lime, Maple, Silo
from limis.peers.global_models import GlobalTree
from limis.peers.shap import ORDERS, permutation_shap
from limis.peers.shapley_games import Estimator, Index, games, pair_values, shapley_values
from limis.peers.silo import grow
from limis.perturb import Moves, moved_frame
from limis.training.curves import MOST_PROBES, CurveOptions, best_reliance_for, fit_curves, try_weights, weighed_by
from limis.training.measuring import MeasuringRows

CURVES_200, CURVES_20D = "limis, curves, queries=200", "limis, curves, queries=20 a column"
CURVES_OF_F = "curves of the model itself"
FEW_QUESTIONS = 2_000
BY_QUESTIONS = "limis, curves by questions at fit"
AT_FIT = (10_000, 100_000, 1_000_000)
EVERY_VALUE = 10**6  # questions about a row: more than curves show values
CURVES, RIDGE, TREE, QUERIES = "limis, curves", "limis, ridge", "limis, tree", "limis, ridge, queries=200"
SPEAKERS = {
    "learned": "learned weights",
    "forest": "the forest's weights",
    "uniform": "all rows alike",
    "random": "random rows",
    "none": "no rows",
}
BARS, UNTIL = "limis, curves, bars alone", "limis, curves, until trusted"
UNTIL_QUESTIONS = 2_000
BUDGETS, GAME_ROWS = (20, 200), 40  # questions for each column, and rows, where reasons are asked about
ESTIMATORS: dict[Estimator, str] = {
    "permutation": "permutation SHAP",
    "kernel": "KernelSHAP",
    "regression-msr": "RegressionMSR",
    "proxy": "ProxySHAP",
}
PAIR_GROUPS, PAIR_ROWS = 2_000, 20
PAIR_INDICES: dict[str, Index] = {"FSII, 2,000 groups": "FSII", "k-SII, 2,000 groups": "k-SII"}
CEILING, SHAP = "booster (unreadable)", "SHAP"
SHAP_AGAIN, READ_BY_SHAP = "SHAP of jittered rows", ("XGBoost", "LightGBM")
GLOBAL, GAMES, PAIR_GAMES = "global models, ceiling", "Shapley values by questions", "values of pairs by groups"
ALPHAS = (0.001, 1.0)
CHOOSING = 50  # probe rows that peers are chosen on
LIME_ROWS = 50
VALIDATING = 1000
MIXTURES, QUICK_MIXTURES = 60_000, 500
WIDE, SHAP_ROWS_WIDE = 100, 40  # of wide tables, permutation SHAP explains fewer rows

Explained = tuple[str, Any, dict[str, Any]]  # a name, explanations, and the same asked again


def limis_ridge(problem: AuditProblem) -> Iterator[Explained]:
    """Ridges on two scales, the default when results were named, and with questions to the black box about each row."""
    explainer = _fitted(problem, surrogate="ridge")
    rows = problem.exam.frame
    moved = jittered(rows, problem.exam.ground.table, problem.problem.train)
    yield RIDGE, explainer.explain(rows), {"jitter": explainer.explain(moved)}
    yield QUERIES, explainer.explain(rows, queries=200), {}


def limis_tree(problem: AuditProblem) -> Iterator[Explained]:
    """Trees instead of slopes."""
    yield TREE, _fitted(problem, surrogate="tree").explain(problem.exam.frame), {}


def limis_curves(problem: AuditProblem) -> Iterator[Explained]:
    """Response curves, the default, and their reasons without pairs."""
    explainer, rows = _fitted(problem, surrogate="curves"), problem.exam.frame
    moved = jittered(rows, problem.exam.ground.table, problem.problem.train)
    found = explainer.explain(rows)
    yield CURVES, found, {"jitter": explainer.explain(moved)}
    if not explainer.by_class_:
        bars = found.all_reasons.without_pairs()
        yield BARS, Method(BARS, len(found), attributions=bars.units, take=bars.removed), {}


def reasons_asked(problem: AuditProblem) -> Iterator[Explained]:
    """Reasons by the black box's answers, and explanations that were asked about until they are trusted."""
    found = _fitted(problem, surrogate="curves").explain(_asked_for_reasons(problem))
    few, n_columns = found[:GAME_ROWS], len(found.training.table.columns)
    for times in _budgets(problem):
        yield reasons_by(times), few.against("all", queries=times * n_columns), {}
    if n_columns <= WIDE:  # of more, so few questions mend nothing, and are refused
        yield UNTIL, found.until_trusted(UNTIL_QUESTIONS), {}


def shapley_games(problem: AuditProblem) -> Iterator[Explained]:
    """Shapley values as others estimate them by as many questions."""
    rows, training = _asked_for_reasons(problem).iloc[:GAME_ROWS], _plain(problem).training_
    outputs, names = problem.exam.outputs[: len(rows)], training.table.names
    for times in _budgets(problem):
        for estimator in ESTIMATORS:
            played = games(training, rows, outputs, problem.reference)
            values = [shapley_values(one, times * len(names), estimator) for one in played]
            yield by_estimator(estimator, times), pd.DataFrame(np.array(values), rows.index, names), {}


def values_of_pairs(problem: AuditProblem) -> Iterator[Explained]:
    """Values of columns and pairs by shapiq, each group of columns averaged over all reference rows."""
    rows, training = _asked_for_reasons(problem).iloc[:PAIR_ROWS], _plain(problem).training_
    outputs = problem.exam.outputs[: len(rows)]
    if problem.exam.ground.values.shape[1] > WIDE or problem.problem.box.startswith("RF"):
        return  # more pairs than groups, and answers that take too long
    groups = 60 if problem.problem.quick else PAIR_GROUPS
    for name, index in PAIR_INDICES.items():
        played = games(training, rows, outputs, problem.reference, averaged=True)
        yield name, [pair_values(one, groups, index) for one in played], {}


def _budgets(problem: AuditProblem) -> tuple[int, ...]:
    """Questions for each column; of wide tables the fewer alone."""
    return BUDGETS[:1] if problem.exam.ground.values.shape[1] > WIDE else BUDGETS


def curves_asked(problem: AuditProblem) -> Iterator[Explained]:
    """Curves with 200 questions about each row, 20 for each of its columns, or one a value."""
    explainer, rows = _fitted(problem, surrogate="curves"), problem.exam.frame
    if explainer.by_class_:  # questions are for one output
        return
    a_column = 20 * len(explainer.training_.table.columns)
    for name, queries in ((CURVES_200, 200), (CURVES_20D, a_column), (CURVES_OF_F, EVERY_VALUE)):
        yield name, explainer.explain(rows, queries=queries), {}


def speaker(kind: str, with_taught: bool) -> str:
    """What the audit calls curves on which one of `SPEAKERS` speaks."""
    return f"{SPEAKERS[kind]}, {'with' if with_taught else 'without'} the taught model"


def speakers(problem: AuditProblem) -> Iterator[Explained]:
    """The same curves with rows that speak by learned weights, the forest's, all alike, or at random.

    With the taught model, as far as it helps each of them, and without it, all on the same answers. The explainer only
    lends its training rows: its own curves, of few questions, give way.
    """
    explainer, inner = _fitted(problem, surrogate="curves", max_questions=FEW_QUESTIONS), problem.problem
    training = explainer.training_
    rng = np.random.default_rng([inner.seed, 5])
    units = find_units(training.table, training.values)
    frame = training.table.read(inner.probe.iloc[:MOST_PROBES])
    asked = MeasuringRows.ask(training, frame, training.black_box.outputs(frame), None, rng, units)
    options = CurveOptions("forest", "auto", "auto", MAX_QUESTIONS, 1, verbose=False)
    found, learning = fit_curves(training, asked, units, options, rng), replace(options, weighting="learned")
    for with_taught in (True, False):
        weighed = {
            one.name: (one.weights, one.reliance)
            for one in try_weights(found, asked, None, learning, inner.seed, relies=with_taught)
        }
        for kind in ("uniform", "random"):
            weights = ResponseWeights.by_chance(len(training.table.columns), kind, inner.seed)
            reliance = best_reliance_for(found, weights, inner.seed) if with_taught else np.zeros(len(units))
            weighed[kind] = weights, reliance
        for kind, (weights, reliance) in weighed.items():
            explainer.local_model_ = weighed_by(found, weights, reliance)
            yield speaker(kind, with_taught), explainer.explain(problem.exam.frame), {}


def asked_at_fit(n_questions: int) -> str:
    """What the audit calls curves that may ask so many questions at fit."""
    return f"limis, curves, {n_questions:,} questions at fit"


def by_questions(problem: AuditProblem) -> Iterator[Explained]:
    """Curves that may ask the black box less, or more, when they are fitted."""
    for n_questions in AT_FIT:
        explainer = _fitted(problem, surrogate="curves", max_questions=n_questions)
        yield asked_at_fit(n_questions), explainer.explain(problem.exam.frame), {}


def another_seed(problem: AuditProblem) -> Iterator[Explained]:
    """The curves fitted anew, to see whether their reasons are the same."""
    rows = _asked_for_reasons(problem)
    yield f"{CURVES}, another seed", _fitted(problem, seed=1, surrogate="curves").explain(rows), {}


def _fitted(problem: AuditProblem, seed: int = 0, **options: Any) -> LimisExplainer:
    inner = problem.problem
    explainer = LimisExplainer(
        inner.model, output=problem.output, n_jobs=1, random_state=inner.seed + 1000 * seed, **options
    )
    return explainer.fit(inner.train, probe_rows=None if inner.is_small else inner.probe)


def reasons_by(times: int) -> str:
    """What the audit calls reasons by so many questions for each column."""
    return f"limis, reasons by {times} questions a column"


def by_estimator(estimator: Estimator, times: int) -> str:
    """The same of the peers' Shapley values."""
    return f"{ESTIMATORS[estimator]}, {times} questions a column"


def forests(problem: AuditProblem) -> Iterator[Explained]:
    """SILO and MAPLE on one forest, at the better of two penalties."""
    plain, inner, rows = _plain(problem), problem.problem, problem.exam.frame
    training = plain.training_
    forest = grow("forest", 1, inner.seed).fit(training.table.features(training.values), training.standard_outputs)
    probe = inner.probe.iloc[:VALIDATING]
    held_out: dict[str, Any] = {
        "validation": probe,
        "validation_outputs": training.black_box.outputs(training.table.read(probe)),
    }
    kinds: dict[str, Callable[..., Any]] = {"SILO": Silo, "MAPLE": partial(Maple, **held_out)}
    chosen_on = _choosing(problem, plain)
    for name, kind in kinds.items():
        peers = [kind(plain, local_model="ridge", ensemble=forest, alpha=alpha) for alpha in ALPHAS]
        yield name, max(peers, key=chosen_on).explain(rows), {}


def global_models(problem: AuditProblem) -> Iterator[Explained]:
    """One ridge and one tree for all rows, and the ceiling."""
    plain, rows = _plain(problem), problem.exam.frame
    yield "global ridge", GlobalModel(plain).explain(rows), {}
    yield "global tree", GlobalTree(plain).explain(rows), {}
    yield CEILING, _booster(problem, plain), {}


def lime(problem: AuditProblem) -> Iterator[Explained]:
    """LIME with and without quartiles, for the first of the rows."""
    plain, rows = _plain(problem), problem.exam.frame.iloc[:LIME_ROWS]
    samples: dict[str, Any] = {"num_samples": 200} if problem.problem.quick else {}
    for name, discretise in (("LIME", False), ("LIME, quartiles", True)):
        peer = Lime(plain, discretise=discretise, random_state=problem.problem.seed, **samples)
        yield name, peer.explain(rows), {}


def shap(problem: AuditProblem) -> Iterator[Explained]:
    """TreeSHAP of tree ensembles, interventional; permutation SHAP of others: on the same reference rows."""
    box = problem.problem.box
    reasons = _permutation_shap if box == "MLP" else _tree_shap_apart if box.startswith("RF") else _tree_shap
    found = reasons(problem, problem.reference)
    # It may end its process, or read a threshold and a value that differ in their last digits otherwise than the model.
    if found is None or not _adds_up(problem, found):
        reasons = _permutation_shap
        found = reasons(problem, problem.reference)
    yield SHAP, found, {"other reference rows": reasons(problem, _other(problem))}


def shap_of_moved(problem: AuditProblem) -> Iterator[Explained]:
    """TreeSHAP of rows and of the same rows jittered: how much the reasons of the model itself change."""
    if not problem.problem.box.startswith(READ_BY_SHAP):
        return
    rows = problem.exam.frame
    moved = jittered(rows, problem.exam.ground.table, problem.problem.train)
    both = (_tree_shap(problem, problem.reference, own) for own in (rows, moved))
    # As frames: what is wanted of jittered rows need not add up to what the model says of the others.
    found, again = (pd.DataFrame(one.values, rows.index[: len(one.values)], one.feature_names) for one in both)
    yield SHAP_AGAIN, found, {"jitter": again}


def _adds_up(problem: AuditProblem, found: Any) -> bool:
    """Whether values and base are the model's outputs in every row."""
    missed = np.abs(found.base_values + found.values.sum(axis=1) - problem.exam.outputs[: len(found.values)])
    return bool((missed <= 0.01 * problem.exam.output_deviation[: len(missed)]).all())


GROUPS: dict[str, Callable[[AuditProblem], Iterator[Explained]]] = {
    "limis, curves": limis_curves,
    "limis, curves by questions": curves_asked,
    "limis, reasons by questions": reasons_asked,
    GAMES: shapley_games,
    PAIR_GAMES: values_of_pairs,
    "limis, who speaks": speakers,
    "limis, ridge": limis_ridge,
    "limis, tree": limis_tree,
    "limis, another seed": another_seed,
    "SILO, MAPLE": forests,
    GLOBAL: global_models,
    "LIME": lime,
    "SHAP": shap,
    SHAP_AGAIN: shap_of_moved,
}
FEW_CELLS: dict[str, Callable[[AuditProblem], Iterator[Explained]]] = {BY_QUESTIONS: by_questions}


# --- how peers are made and chosen ------------------------------------------------------------------------------------


def _plain(problem: AuditProblem) -> LimisExplainer:
    """An explainer that costs little, for peers to take training rows and black box from."""
    inner = problem.problem
    explainer = LimisExplainer(
        inner.model,
        surrogate="ridge",
        weighting="forest",
        candidates=64,
        output=problem.output,
        n_jobs=1,
        random_state=inner.seed,
    )
    return explainer.fit(inner.train, probe_rows=inner.probe.iloc[: 2 * CHOOSING])


def _choosing(problem: AuditProblem, plain: LimisExplainer) -> Callable[[Any], float]:
    """Skill of a peer on probe rows, by law A."""
    training = plain.training_.without_jumps()
    frame, outputs = problem.choosing_rows(CHOOSING)
    rng = np.random.default_rng([problem.problem.seed, 2])
    asked = MeasuringRows.ask(training, training.table.read(frame), outputs, None, rng).promised

    def skill(peer: Any) -> float:
        found: Explanations = peer.explain(frame, outputs=outputs)
        assert asked.asked is not None
        if not np.any(asked.asked.changes):  # nothing to choose by: the first is taken
            return 0.0
        foreseen = found.fits.changes(asked.asked.rows, asked.asked.moved(training.table))
        return skill_on_changes(asked.asked.changes, foreseen)

    return skill


def _booster(problem: AuditProblem, plain: LimisExplainer) -> Callable[[pd.DataFrame], np.ndarray]:
    """A fixed booster taught what the black box says of training rows and of mixtures of two: unreadable."""
    training, rng = plain.training_, np.random.default_rng([problem.problem.seed, 3])
    n = QUICK_MIXTURES if problem.problem.quick else MIXTURES
    first, second = rng.integers(len(training), size=(2, n))
    width = len(training.table.columns)
    changed = rng.random((n, width)) < rng.random((n, 1))
    values, outputs = [training.values], [training.outputs]
    for start in range(0, n, 10_000):
        part = slice(start, start + 10_000)
        moves = Moves(first[part], second[part], changed[part])
        mixed = moved_frame(training.table, training.frame, training.frame, moves)
        values.append(training.table.values(mixed))
        outputs.append(training.black_box.outputs(mixed))
    booster = HistGradientBoostingRegressor(
        max_iter=20 if problem.problem.quick else 500, learning_rate=0.1, max_leaf_nodes=63, random_state=0
    )
    booster.fit(training.table.features(np.concatenate(values)), np.concatenate(outputs))

    def says(frame: pd.DataFrame) -> np.ndarray:
        return booster.predict(training.table.features(training.table.values(training.table.read(frame))))

    return says


def _other(problem: AuditProblem) -> pd.DataFrame:
    return reference_rows(problem.problem.train, random_state=problem.problem.seed + 1)


def _tree_shap_apart(problem: AuditProblem, reference: pd.DataFrame) -> Any:
    """In a process of its own: of very deep forests SHAP's compiled code ends the process. None where it did."""
    bare = AuditProblem(replace(problem.problem))  # without what was read and asked, which is kept on disk
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(_tree_shap, bare, reference).result()
        except BrokenProcessPool:
            return None


def _tree_shap(problem: AuditProblem, reference: pd.DataFrame, frame: pd.DataFrame | None = None) -> Any:
    """Interventional TreeSHAP of the model's own encoded columns, added up by column of the table.

    frame : the audited rows unless given; of either, those whose reasons are asked about.
    """
    frame = problem.exam.frame if frame is None else frame
    package = require("shap", "peers")
    pipeline = problem.problem.model
    encode, model = pipeline[:-1], pipeline[-1]
    rows = np.asarray(encode.transform(frame.iloc[: problem.exam.plan.reason_rows]), dtype=np.float64)
    background = np.asarray(encode.transform(reference), dtype=np.float64)
    explainer = package.TreeExplainer(model, background, feature_perturbation="interventional")
    values, base = explainer.shap_values(rows, check_additivity=False), np.ravel(explainer.expected_value)
    if isinstance(values, list):
        values = np.stack(values, axis=-1)
    if values.ndim == 3:
        values, base = values[:, :, -1], base[-1:]
    owner = _column_of_feature(encode)
    names = list(problem.exam.ground.table.names)
    summed = np.zeros((len(rows), len(names)))
    for feature, name in enumerate(owner):
        summed[:, names.index(name)] += values[:, feature]
    return package.Explanation(summed, np.full(len(rows), base[0]), feature_names=names)


def _asked_for_reasons(problem: AuditProblem) -> pd.DataFrame:
    """The rows whose reasons the audit asks about: the first ones."""
    return problem.exam.frame.iloc[: problem.exam.plan.reason_rows]


def _column_of_feature(encode: Any) -> list[str]:
    """The table's column behind each encoded one."""
    transformer = encode[0]
    owners: list[str] = []
    for name, step, columns in transformer.transformers_:
        if name == "remainder":
            continue
        if hasattr(step, "categories_"):
            for column, levels in zip(columns, step.categories_, strict=True):
                owners += [str(column)] * len(levels)
        else:
            owners += [str(column) for column in columns]
    return owners


def _permutation_shap(problem: AuditProblem, reference: pd.DataFrame) -> Any:
    """SHAP by permutations of the table's own columns; of wide tables by fewer, for fewer rows."""
    exam = problem.exam
    wide = exam.ground.values.shape[1] > WIDE
    rows = _asked_for_reasons(problem)
    rows = rows.iloc[:SHAP_ROWS_WIDE] if wide else rows
    training = _plain(problem).training_
    return permutation_shap(training, rows, reference, orders=1 if wide or problem.problem.quick else ORDERS)
