"""The methods that experiments compare: each fits on a problem's training and probe rows, and then explains."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from limis.experiments.protocol import Problem
from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.peers import GlobalModel, Lime, Maple, Silo
from limis.peers.base import Peer
from limis.training import ProbeRows, TrainingLog, TrainingPlan
from limis.training.plans import PLANS, TOWERS_PLAN, paper_baseline
from limis.training.terms import RowError
from limis.training.trainer import train
from limis.walk import OneScale
from limis.weighting.random import RandomWeighting

REVISION = 11  # of the default: raised when it explains otherwise, so that earlier runs of it are made anew
QUICK_PLAN: dict[str, Any] = {"steps": 40, "check_every": 10, "penalty_from_step": 10, "restarts": 1}


@dataclass
class Fitted:
    """A fitted method: what explains, how long fitting took, and the learning curve where there is one."""

    explain: Callable[[pd.DataFrame], Explanations]
    seconds: float
    log: TrainingLog | None = None


@dataclass(frozen=True)
class Method(ABC):
    """A way to explain, by the name it has in tables.

    Everything that `repr` shows besides decides the result: what a run is kept under is made of it.
    """

    name: str
    cost: float = field(repr=False)  # seconds for 1,000 training rows on one core, roughly: who waits for whom

    @abstractmethod
    def fit(self, problem: Problem, quick: bool, device: str) -> Fitted:
        """Fit on the problem; ``quick`` allows for a worse result sooner, ``device`` is where networks are trained."""


@dataclass(frozen=True)
class Default(Method):
    """Ridges on two scales, as an explainer fits them that is told no more."""

    revision: int = REVISION

    def fit(self, problem: Problem, quick: bool, device: str) -> Fitted:  # noqa: ARG002 - quick enough, on the CPU
        """Fit a `LimisExplainer`."""
        started = time.perf_counter()
        explainer = LimisExplainer(problem.training.black_box, surrogate="ridge", n_jobs=1, random_state=problem.seed)
        explainer.fit(problem.training.features, probe_rows=problem.probes.features)
        return Fitted(explainer.explain, time.perf_counter() - started)


@dataclass(frozen=True)
class Curves(Method):
    """Response curves, as an explainer fits them that is told nothing."""

    revision: int = REVISION

    def fit(self, problem: Problem, quick: bool, device: str) -> Fitted:  # noqa: ARG002 - quick enough, on the CPU
        """Fit a `LimisExplainer`."""
        started = time.perf_counter()
        explainer = LimisExplainer(problem.training.black_box, n_jobs=1, random_state=problem.seed)
        explainer.fit(problem.training.features, probe_rows=problem.probes.features)
        return Fitted(explainer.explain, time.perf_counter() - started)


@dataclass(frozen=True)
class Trained(Method):
    """A weight estimator over all training rows, trained by a plan, and a ridge on what it weighs."""

    plan: TrainingPlan = field(default_factory=TrainingPlan)

    def fit(self, problem: Problem, quick: bool, device: str) -> Fitted:
        """Train it on all probe rows."""
        explainer = problem.plain_explainer()
        return self.fit_on(explainer, problem.probe_rows(explainer), problem.seed, quick, device)

    def fit_on(self, explainer: LimisExplainer, probes: ProbeRows, seed: int, quick: bool, device: str) -> Fitted:
        """Train it, and let the explainer weigh with it; only training counts as time."""
        plan = replace(self.plan, **QUICK_PLAN) if quick else self.plan
        started = time.perf_counter()
        weighting, logs = train(explainer.training_, probes, explainer.global_fit_, plan, seed, device=device)
        seconds = time.perf_counter() - started
        explainer.local_model_ = OneScale(weighting)
        return Fitted(explainer.explain, seconds, self._curve(logs, explainer.training_.unit))

    def _curve(self, logs: list[TrainingLog], unit: float) -> TrainingLog | None:
        """The log of the estimator that was kept, in the outputs' units; none where errors are no LMAE."""
        if self.plan.terms != (RowError(),):
            return None
        log = min(logs, key=lambda log: log.error)
        errors = [error * unit for error in log.validation_error]
        return replace(log, validation_error=errors, global_error=log.global_error * unit)


@dataclass(frozen=True)
class RandomSelection(Method):
    """A ridge on half of the training rows, drawn at random for each row: what a selection must beat."""

    def fit(self, problem: Problem, quick: bool, device: str) -> Fitted:  # noqa: ARG002 - nothing is learned
        """Nothing is learned."""
        explainer = problem.plain_explainer()
        explainer.local_model_ = OneScale(RandomWeighting(seed=problem.seed))
        return Fitted(explainer.explain, 0.0)


@dataclass(frozen=True)
class PeerMethod(Method):
    """A peer with some of its options."""

    kind: type[Peer] = GlobalModel
    options: tuple[tuple[str, Any], ...] = ()

    def fit(self, problem: Problem, quick: bool, device: str) -> Fitted:  # noqa: ARG002 - there are no networks
        """Build the peer; only its own work counts as time."""
        explainer = problem.plain_explainer()
        options = dict(self.options)
        if issubclass(self.kind, Maple):
            options["validation"] = problem.probes.features
        started = time.perf_counter()
        peer = self.kind(explainer, **options)
        return Fitted(peer.explain, time.perf_counter() - started)


def paper_once(penalty: float = 1.0) -> Trained:
    """The released code's LIMIS trained once, at a selection penalty λ; 1 is its own."""
    return Trained("LIMIS (paper), one run", 120, replace(PLANS["pairwise-released"], penalty=penalty, restarts=1))


def baseline(name: str, objective: Any, cost: float, **changes: Any) -> Trained:
    """The paper's estimator and reward under another objective, with other settings where given."""
    return Trained(name, cost, replace(paper_baseline(objective), **changes))


DEFAULT = Default("LIMIS (default)", 9)
CURVES = Curves("LIMIS (curves)", 15)
PAPER = Trained("LIMIS (paper)", 720, replace(PLANS["pairwise-released"], penalty=1.0))
PAPER_ONCE = paper_once()
PAPER_TEXT = Trained("LIMIS (paper, text)", 280, PLANS["pairwise"])
SILO = PeerMethod("SILO", 2, Silo)
MAPLE = PeerMethod("MAPLE", 2, Maple)
# As the package does by default, and as the paper's numbers suggest it did: its coefficients are of quartiles.
LIME = PeerMethod("LIME", 20, Lime)
LIME_SLOPES = PeerMethod("LIME (slopes)", 9, Lime, (("discretise", False),))
GLOBAL_RIDGE = PeerMethod("global ridge", 1, GlobalModel)
RANDOM = RandomSelection("random selection", 2)

GUMBEL = baseline("Gumbel-softmax", "gumbel", 75)
# "Direct weighted optimization", as the paper says of it: nothing is sampled.
STE = baseline("STE", "weighted", 75)
STRAIGHT_THROUGH = baseline("straight-through", "straight-through", 75)
L2R = baseline("L2R", "l2r", 2)
RLOO = baseline("RLOO", "rloo", 60)

REINFORCE = baseline("REINFORCE", "reinforce", 120)
RLOO_ALL_ROWS = baseline("RLOO, all rows reward", "rloo", 65, probes="all")
_FACTORED = replace(TOWERS_PLAN, terms=(RowError(),))
TOWERS_HELD_OUT = Trained("towers, held-out rows reward", 11, replace(_FACTORED, probes="held-out"))
TOWERS_ALL_ROWS = Trained("towers, all rows reward", 12, _FACTORED)
TOWERS_RLOO = Trained("towers, RLOO, all rows reward", 28, replace(_FACTORED, objective="rloo"))
KERNEL_ALL_ROWS = Trained("kernel, all rows reward", 12, replace(_FACTORED, estimator="kernel"))
TOWERS_CHANGES = Trained("towers, all rows and changes reward", 12, TOWERS_PLAN)
