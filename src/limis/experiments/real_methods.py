"""Every way to explain a black box on real data, in groups that run apart; peers are chosen on probe rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from limis.experiments.kept import digest, kept
from limis.experiments.methods import QUICK_PLAN
from limis.experiments.real_problem import PLAIN_PROBES, RealProblem
from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.metrics import nse
from limis.peers import GlobalModel, Lime, LocalMean, Maple, Silo
from limis.peers.global_models import GlobalTree
from limis.peers.silo import grow
from limis.perturb import MovedRows
from limis.table import Table
from limis.training import ProbeRows
from limis.training.plans import PLANS
from limis.training.trainer import train
from limis.trees.fits import TreeModel
from limis.trees.inputs import TreeInputs
from limis.walk import LocalFits, OneScale

OF_LABELS, CEILING = "global, of labels", "booster (unreadable)"
SAMPLED = "LIMIS (paper), sampled"
Surrogate = Literal["ridge", "tree"]
SURROGATES: tuple[Surrogate, ...] = ("ridge", "tree")
# The ridge's penalty as published with SILO and MAPLE, and the LIMIS paper's.
ALPHAS = (0.001, 1.0)
CHOOSING, CHOOSING_LIME = 300, 30  # probe rows that peers' options are chosen on
VALIDATING = 1000  # probe rows that MAPLE chooses its features on
LIME_TESTS = 500  # as many as two hours of a core allow
LIME_TESTS_OF_FORESTS = 200  # a thousand deep trees take a second to answer what LIME asks about one row
QUICK_SAMPLES, QUICK_BOOSTER = 200, 20


@dataclass
class Explained:
    """What a method says of the test rows, or of the first of them. Times are those of one CPU core."""

    method: str
    local: np.ndarray  # (rows,) g at the row
    foreseen: np.ndarray  # (moves of these rows,) g(moved) − g(row)
    near: np.ndarray  # (rows × neighbours,) g of the row at its neighbours
    fit_seconds: float
    explain_ms: float
    options: str = ""


def default(problem: RealProblem, surrogate: Surrogate, device: str) -> Iterator[Explained]:  # noqa: ARG001 - CPU
    """The explainer as a user gets it."""
    explainer = LimisExplainer(problem.model, surrogate=surrogate, n_jobs=1, random_state=problem.seed)
    started = time.process_time()
    explainer.fit(problem.train, probe_rows=problem.probe)
    yield _explained(problem, "LIMIS (default)", explainer.explain, time.process_time() - started)


# Ridges and trees of one problem rest on the same explainers, forest and ceiling; a process that makes both makes these
# once. Only the last problem's are kept: they are large.


@lru_cache(maxsize=1)
def _plain(problem: RealProblem) -> LimisExplainer:
    return problem.plain_explainer()


@lru_cache(maxsize=1)
def _asking(problem: RealProblem) -> LimisExplainer:
    """An explainer that holds the black box, for who asks it."""
    explainer = LimisExplainer(
        problem.model, surrogate="ridge", weighting="forest", n_jobs=1, random_state=problem.seed
    )
    return explainer.fit(problem.train, probe_rows=problem.probe.iloc[:PLAIN_PROBES])


@lru_cache(maxsize=1)
def _forest_of_peers(problem: RealProblem) -> tuple[Any, float]:
    """The forest that SILO and MAPLE share, and the seconds it took to grow."""
    training = _plain(problem).training_
    started = time.process_time()
    forest = grow("forest", 1, problem.seed).fit(training.table.features(training.values), training.standard_outputs)
    return forest, time.process_time() - started


@lru_cache(maxsize=1)
def _ceiling(problem: RealProblem) -> Explained:
    return _of_features(problem, _plain(problem), CEILING, _booster(problem), problem.answers.train)


def paper(
    problem: RealProblem, surrogate: Surrogate, device: str, method: str = "LIMIS (paper)", inference: str = "weights"
) -> Iterator[Explained]:
    """The released code's LIMIS, trained with the ridge; trees are fitted on the rows as it weighs them."""
    explainer = copy(_plain(problem))
    weighting, seconds = estimator(problem, explainer, device)
    weighting.estimator.to(device)
    base = OneScale(weighting, inference, problem.seed)
    trees = surrogate == "tree"
    explainer.local_model_ = TreeModel(base, TreeInputs.learn(explainer.training_)) if trees else base
    yield _explained(problem, method, explainer.explain, seconds)


def estimator(problem: RealProblem, explainer: LimisExplainer, device: str) -> tuple[Any, float]:
    """The paper's weight estimator, trained once for ridges and trees, and the seconds it took on a CPU core."""
    plan = replace(PLANS["pairwise-released"], penalty=1.0)
    plan = replace(plan, **QUICK_PLAN) if problem.quick else plan
    probes = ProbeRows(explainer.training_.table.values(problem.probe), problem.answers.probe)

    def make() -> tuple[Any, float]:
        started = time.process_time()
        weighting, _ = train(explainer.training_, probes, explainer.global_fit_, plan, problem.seed, device=device)
        return weighting, time.process_time() - started if device == "cpu" else np.nan

    return kept(
        f"{problem.data}-{problem.box}-estimator".lower(), digest(problem.digest, repr(plan), problem.seed), make
    )


def forests(problem: RealProblem, surrogate: Surrogate, device: str) -> Iterator[Explained]:  # noqa: ARG001 - CPU
    """SILO and MAPLE on one forest, at the better of two penalties, and the simple ones that all must beat."""
    plain = _plain(problem)
    forest, growing = _forest_of_peers(problem)
    held_out: dict[str, Any] = {
        "validation": problem.probe.iloc[:VALIDATING],
        "validation_outputs": problem.answers.probe[:VALIDATING],
    }
    kinds: dict[str, Callable[..., Any]] = {"SILO": Silo, "MAPLE": partial(Maple, **held_out)}
    options: list[dict[str, Any]] = [{"alpha": alpha} for alpha in ALPHAS] if surrogate == "ridge" else [{}]
    for name, kind in kinds.items():
        started = time.process_time()
        peers = {str(option): kind(plain, local_model=surrogate, ensemble=forest, **option) for option in options}
        seconds = growing + (time.process_time() - started) / len(peers)
        best = _better(problem, peers, CHOOSING)
        yield _explained(problem, name, peers[best].explain, seconds, options=best)
    yield _explained(problem, "local mean", LocalMean(plain).explain)
    everywhere = GlobalModel(plain) if surrogate == "ridge" else GlobalTree(plain)
    yield _explained(problem, f"global {surrogate}", everywhere.explain)
    yield _of_features(problem, plain, OF_LABELS, _model_of_labels(problem, surrogate), problem.train_labels)
    yield _ceiling(problem)


def lime_tests(box: str) -> int:
    """How many test rows LIME explains, of a kind of black box."""
    return LIME_TESTS_OF_FORESTS if box == "RF" else LIME_TESTS


def lime(problem: RealProblem, surrogate: Surrogate, device: str) -> Iterator[Explained]:  # noqa: ARG001 - CPU
    """LIME with or without quartiles, whichever is better on probe rows, for the first of the test rows."""
    asking = _asking(problem)
    samples: dict[str, Any] = {"num_samples": QUICK_SAMPLES} if problem.quick else {}
    peers = {
        str({"discretise": whether}): Lime(
            asking, local_model=surrogate, discretise=whether, random_state=problem.seed, **samples
        )
        for whether in (True, False)
    }
    best = _better(problem, peers, CHOOSING_LIME)
    yield _explained(problem, "LIME", peers[best].explain, options=best, tests=lime_tests(problem.box))


GROUPS: dict[str, Callable[[RealProblem, Surrogate, str], Iterator[Explained]]] = {
    "LIMIS (default)": default,
    "LIMIS (paper)": paper,
    "SILO, MAPLE and simple ones": forests,
    "LIME": lime,
    SAMPLED: partial(paper, method=SAMPLED, inference="sample"),
}
# Whom the tables compare; sampling at inference is an ablation, with a table of its own.
COMPARED = tuple(group for group in GROUPS if group != SAMPLED)


def _better(problem: RealProblem, peers: dict[str, Any], rows: int) -> str:
    """The one that follows the black box best at probe rows."""
    if len(peers) == 1:
        return next(iter(peers))
    frame, outputs = problem.probe.iloc[:rows], problem.answers.probe[:rows]
    found = {
        name: nse(outputs, peer.explain(frame, outputs=outputs).fits.predictions()) for name, peer in peers.items()
    }
    return max(found, key=lambda name: found[name])


def _explained(
    problem: RealProblem,
    method: str,
    explain: Callable[..., Explanations],
    fit_seconds: float = np.nan,
    options: str = "",
    tests: int | None = None,
) -> Explained:
    answers = problem.answers
    n = min(len(answers.test), tests or len(answers.test))
    started = time.process_time()
    found = explain(problem.test.iloc[:n], outputs=answers.test.outputs[:n])
    spent = 1000 * (time.process_time() - started) / n
    table, fits = found.training.table, found.fits
    return Explained(method, *_says(problem, table, fits, n), fit_seconds, spent, options)


def _says(problem: RealProblem, table: Table, fits: LocalFits, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """g at the first test rows, its changes on their moves, and g at their neighbours."""
    answers = problem.answers
    asked, local = answers.test.asked, fits.predictions()
    assert asked is not None
    own = asked.rows < n
    foreseen = fits.changes(asked.rows[own], MovedRows(table, asked.values[own]))
    neighbours = len(answers.near) // len(answers.test)
    rows = np.repeat(np.arange(n), neighbours)
    near = local[rows] + fits.changes(rows, MovedRows(table, answers.near_values[: len(rows)]))
    return local, foreseen, near


def _of_features(problem: RealProblem, plain: LimisExplainer, name: str, model: Any, target: np.ndarray) -> Explained:
    """One model for all rows, which is asked like a black box."""
    training, answers = plain.training_, problem.answers
    table, test, asked = training.table, answers.test, answers.test.asked
    assert asked is not None
    started = time.process_time()
    model.fit(table.features(training.values), target)
    seconds = time.process_time() - started

    def says(values: np.ndarray) -> np.ndarray:
        features = table.features(values)
        return model.predict_proba(features)[:, 1] if is_classifier(model) else model.predict(features)

    local = says(test.values)
    return Explained(name, local, says(asked.values) - local[asked.rows], says(answers.near_values), seconds, np.nan)


def _model_of_labels(problem: RealProblem, surrogate: Surrogate) -> Any:
    """The readable model that the paper fits to the labels, to see what the black box is worth."""
    if problem.classifies:
        logistic = LogisticRegression(C=np.inf, solver="lbfgs", max_iter=5000)
        return logistic if surrogate == "ridge" else DecisionTreeClassifier(max_depth=3, random_state=0)
    return Ridge(alpha=1) if surrogate == "ridge" else DecisionTreeRegressor(max_depth=3, random_state=0)


def _booster(problem: RealProblem) -> Any:
    """Fitted to the black box's outputs, it shows what can be foreseen by a model that cannot be read."""
    return HistGradientBoostingRegressor(
        max_iter=QUICK_BOOSTER if problem.quick else 2000,
        learning_rate=0.05,
        max_leaf_nodes=63,
        early_stopping=True,
        n_iter_no_change=50,
        random_state=problem.seed,
    )
