"""The training loop of weight estimators: weigh, fit all ridges of a step at once, judge, repeat."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
import torch

from limis.progress import progress
from limis.rows import TrainingRows
from limis.training.objectives import OBJECTIVES, Loss, Objective
from limis.training.probe_set import ProbeSet, needed
from limis.training.probes import ProbeRows
from limis.training.ridges import SharedRidge
from limis.training.terms import LinearModels, Models, RowError, Term, added_up
from limis.training.trees import SharedTrees
from limis.trees.inputs import TreeInputs
from limis.walk import ALPHA, GlobalFit
from limis.weighting.dense import DenseWeighting, FactoredWeighting
from limis.weighting.factored import FactoredEstimator, Form
from limis.weighting.pairwise import Inputs, PairwiseEstimator, PairwiseWeighting
from limis.weighting.shared import SharedEstimator, SharedWeighting

PENALTIES = (0.0, 0.1, 1.0)  # in deviations of the outputs
VALIDATION_SHARE = 0.25
MAX_VALIDATION = 200
MAX_ASKED = 5000  # training rows whose moves the black box is asked about
SEEDS_APART = 1000  # between the seeds of one run and the next from another beginning
CHECK_PAIRS = 100_000  # pairs of a probe and a training row weighed at once when nothing is learned


@dataclass(frozen=True)
class TrainingPlan:
    """How an estimator is trained; the defaults are those of the paper's released code."""

    objective: Objective = "reinforce"
    inputs: Inputs = "text"  # of the pairwise estimator
    penalty: float | None = None  # λ, in units of the outputs as in the paper; None: chosen by validation fidelity
    penalty_from_step: int = 0
    steps: int = 2000
    batch_rows: int = 5000
    batch_share: float = 1.0  # of the training rows, where that is fewer
    batch_probes: int = 10
    learning_rate: float = 1e-4
    check_every: int = 100
    patience: int = 5  # checks without improvement before stopping; 0 never stops early
    time_budget: float | None = None  # seconds
    estimator: Literal["pairwise"] | Form = "pairwise"
    probes: Literal["held-out", "all"] = "held-out"  # "all": training rows reward, held-out rows choose and stop
    terms: tuple[Term, ...] = (RowError(),)  # of the reward, beside the penalty
    weight_decay: float = 0.0
    cooling: bool = False  # lower the learning rate to zero along half a cosine
    restarts: int = 1  # runs from different beginnings, of which the best by validation error is kept


@dataclass(frozen=True)
class TreeSurrogate:
    """Trees that reward in place of ridges."""

    inputs: TreeInputs
    depth: int


@dataclass
class TrainingLog:
    """What happened: validation error and mean selection probability at each check.

    Errors are the sum of the plan's terms, in standard deviations of the outputs.
    """

    penalty: float
    steps: list[int] = field(default_factory=list)
    validation_error: list[float] = field(default_factory=list)
    selected_share: list[float] = field(default_factory=list)
    global_error: float = float("nan")

    kept: int = 0  # the check whose estimator was kept

    @property
    def best(self) -> int:
        """The check with the lowest validation error."""
        return int(np.argmin(self.validation_error))

    @property
    def error(self) -> float:
        """Validation error of the estimator that was kept."""
        return self.validation_error[self.kept]


def train(
    training: TrainingRows,
    probes: ProbeRows,
    fallback: GlobalFit,
    plan: TrainingPlan,
    seed: int,
    verbose: bool = False,
    *,
    own: ProbeRows | None = None,
    device: str = "cpu",
    trees: TreeSurrogate | None = None,
) -> tuple[DenseWeighting, list[TrainingLog]]:
    """Train a weight estimator over all training rows.

    Parameters
    ----------
    training, probes : TrainingRows, ProbeRows
        Rows that may be selected, and held-out rows.
    fallback : GlobalFit
        The model to beat, and the one that stands in where no rows are selected.
    plan : TrainingPlan
        What is trained and how. With no penalty in it runs are made for each of `PENALTIES`; the best run is kept.
    seed : int
        Of everything random.
    verbose : bool, default=False
        Whether progress is shown.
    own : ProbeRows, default=None
        Training rows once more, as the probes that reward where the plan says "all"; with the answers to their moves
        where a term needs them. When not given these are all rows, or as many as the black box can be asked about.
    device : str, default="cpu"
        Where the tensors are, as torch names it. The same seed draws the same selections everywhere.
    trees : TreeSurrogate, default=None
        The trees that reward; ridges where None. Only for objectives that need no gradient through the surrogate.

    Returns
    -------
    weighting : DenseWeighting
        The trained one: `PairwiseWeighting`, `FactoredWeighting` or, for the objective "l2r", `SharedWeighting`.
    logs : list of TrainingLog
        One a penalty and restart.
    """
    penalties = [share * training.unit for share in PENALTIES] if plan.penalty is None else [plan.penalty]
    budget = None if plan.time_budget is None else plan.time_budget / (len(penalties) * plan.restarts)
    if plan.probes == "all" and own is None:
        own = _training_rows_as_probes(training, plan, seed)
    results = []
    for penalty in penalties:
        one = replace(plan, penalty=penalty, time_budget=budget)
        for restart in range(plan.restarts):
            start = seed + SEEDS_APART * restart
            results.append(_Run(training, probes, own, fallback, one, start, device, trees).train(verbose))
    weighting, _ = min(results, key=lambda result: result[1].error)
    return weighting, [log for _, log in results]


def _training_rows_as_probes(training: TrainingRows, plan: TrainingPlan, seed: int) -> ProbeRows:
    if "changes" not in needed(plan.terms) or not training.black_box.can_be_asked:
        return ProbeRows(training.values, training.outputs)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(training))[:MAX_ASKED])
    return ProbeRows.ask(training, training.frame.iloc[rows], training.outputs[rows], rng)


def _untrained(training: TrainingRows, plan: TrainingPlan, seed: int) -> DenseWeighting:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if plan.objective == "l2r":
            return SharedWeighting(SharedEstimator(len(training)))
        n_features = training.features.shape[1]
        if plan.estimator == "pairwise":
            return PairwiseWeighting(PairwiseEstimator(n_features, plan.inputs))
        return FactoredWeighting(FactoredEstimator(n_features, plan.estimator))


class _Run:
    """One training run at one penalty."""

    def __init__(
        self,
        training: TrainingRows,
        probes: ProbeRows,
        own: ProbeRows | None,
        fallback: GlobalFit,
        plan: TrainingPlan,
        seed: int,
        device: str,
        trees: TreeSurrogate | None,
    ) -> None:
        self.training, self.plan, self.trees = training.on(device), plan, trees
        self.generator = torch.Generator().manual_seed(seed)
        self.weighting = _untrained(training, plan, seed)
        self.weighting.estimator.to(device)
        self.otherwise = _global_model(training, fallback, device)
        rewarding, validation, near = self._divide(probes, own)
        rng, needs = np.random.default_rng(seed), needed(plan.terms)
        self.rewarding, self.validation = (
            ProbeSet.prepare(training, part, partial(self.weighting.inputs, training), needs, near, rng).on(device)
            for part in (rewarding, validation)
        )
        self.every_row = torch.arange(len(training))
        self.every_surrogate = self._surrogate(self.every_row)

    def _divide(self, probes: ProbeRows, own: ProbeRows | None) -> tuple[ProbeRows, ProbeRows, ProbeRows]:
        """Rows that reward, rows that stop, and rows that stand for changes where the black box was not asked.

        The last are held out from every fit, as what they say of a surrogate must be; only where they are needed, or
        reward themselves, does validation give up rows for them.
        """
        order = torch.randperm(len(probes), generator=self.generator).numpy()
        in_part = own is None or (own.asked is None and "changes" in needed(self.plan.terms))
        if in_part and self.plan.patience and len(probes) >= 8:
            # Rows that reward do not also stop.
            n_validation = min(MAX_VALIDATION, max(2, int(len(probes) * VALIDATION_SHARE)))
            validation, rest = probes.part(order[:n_validation]), probes.part(order[n_validation:])
        else:
            validation, rest = probes.part(order[:MAX_VALIDATION]), probes.part(order)
        return rest if own is None else own, validation, rest

    def train(self, verbose: bool) -> tuple[DenseWeighting, TrainingLog]:
        plan, estimator = self.plan, self.weighting.estimator
        assert plan.penalty is not None
        log = TrainingLog(plan.penalty, global_error=float(self._baseline(self.validation).mean()))
        baseline = self._baseline(self.rewarding)
        optimiser, schedule = self._optimiser()
        best_state = copy.deepcopy(estimator.state_dict())
        self._check(0, log)
        started = time.monotonic()
        with progress(plan.steps, f"training the weight estimator (λ = {plan.penalty:g})", verbose) as bar:
            for step in range(plan.steps):
                if step and step == plan.penalty_from_step:
                    # With the penalty the released code begins anew: what the optimiser remembers is another loss's.
                    optimiser, schedule = self._optimiser()
                optimiser.zero_grad()
                self._objective(step, baseline).backward()
                optimiser.step()
                schedule.step()
                bar.update()
                out_of_time = plan.time_budget is not None and time.monotonic() - started > plan.time_budget
                if (step + 1) % plan.check_every and step + 1 < plan.steps and not out_of_time:
                    continue
                self._check(step + 1, log)
                if log.best == len(log.steps) - 1:
                    best_state = copy.deepcopy(estimator.state_dict())
                stalled = plan.patience and len(log.steps) - 1 - log.best >= plan.patience
                if stalled or out_of_time:
                    break
        log.kept = len(log.steps) - 1
        if plan.patience:
            estimator.load_state_dict(best_state)
            log.kept = log.best
        estimator.cpu()
        return self.weighting, log

    def _optimiser(self) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
        plan, parameters = self.plan, self.weighting.estimator.parameters()
        optimiser = torch.optim.AdamW(parameters, lr=plan.learning_rate, weight_decay=plan.weight_decay)
        return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, self._rate)

    def _rate(self, step: int) -> float:
        """The learning rate of a step, as a share of the plan's."""
        return (1 + np.cos(np.pi * step / self.plan.steps)) / 2 if self.plan.cooling else 1.0

    def _objective(self, step: int, baseline: torch.Tensor) -> torch.Tensor:
        """The number to descend, on some probes and some rows."""
        plan, n = self.plan, len(self.training)
        rows, surrogate = self.every_row, self.every_surrogate
        size = min(plan.batch_rows, round(plan.batch_share * n))
        if size < n:
            rows = torch.randperm(n, generator=self.generator)[:size]
            surrogate = self._surrogate(rows)
        places = torch.randperm(len(self.rewarding), generator=self.generator)[: plan.batch_probes]
        assert plan.penalty is not None
        penalty = plan.penalty if step >= plan.penalty_from_step else 0.0
        errors = self._errors(self.rewarding, places, rows, surrogate)
        loss = Loss(errors, baseline[places], penalty / self.training.unit)
        return OBJECTIVES[plan.objective](self._logits(self.rewarding, places, rows), loss, self.generator)

    def _surrogate(self, rows: torch.Tensor) -> SharedRidge | SharedTrees:
        if self.trees is not None:
            targets = self.training.standard_outputs
            return SharedTrees(self.trees.inputs, rows.numpy(), targets, self.trees.depth, self.otherwise)
        return SharedRidge(self.training.features[rows], self.training.targets[rows], ALPHA, self.otherwise)

    def _logits(self, probes: ProbeSet, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Logits (probes, rows); where terms need nudged rows, those rows' logits stand beside: (probes, 2 rows).

        One selection of a probe is then made of two, and every objective treats it as it does any other.
        """
        seen = [self.weighting.logits(self.training, inputs[places], rows) for inputs in probes.inputs]
        return torch.cat(seen, dim=1)

    def _errors(
        self, probes: ProbeSet, places: torch.Tensor, rows: torch.Tensor, surrogate: SharedRidge | SharedTrees
    ) -> Callable[[torch.Tensor], torch.Tensor]:
        """How the surrogates of some probes are judged: from weights as in `_logits` to (probes,)."""
        allowed = probes.allowed(places, rows)

        def errors(weights: torch.Tensor) -> torch.Tensor:
            own, *nudged = weights.split(len(rows), dim=1)
            models = surrogate.solve(own * allowed)
            other = surrogate.solve(nudged[0] * allowed) if nudged else None
            return self._judge(probes, places, own, models, other)

        return errors

    def _judge(
        self,
        probes: ProbeSet,
        places: torch.Tensor,
        weights: torch.Tensor,
        models: Models,
        nudged: Models | None,
    ) -> torch.Tensor:
        fits = probes.fits(places, weights, models, nudged)
        return added_up(self.plan.terms, fits)

    def _baseline(self, probes: ProbeSet) -> torch.Tensor:
        """What the terms say of the global model, which selects nothing and is the same for nudged rows."""
        parts = []
        for places in torch.arange(len(probes)).split(256):
            coefficients = self.otherwise.coefficients.expand(len(places), -1)
            models = LinearModels(coefficients, self.otherwise.intercepts.expand(len(places)))
            nothing = torch.zeros(len(places), 1, device=models.coefficients.device)
            parts.append(self._judge(probes, places, nothing, models, models))
        return torch.cat(parts)

    def _check(self, step: int, log: TrainingLog) -> None:
        """The terms on the validation rows, fitted with weights as at inference."""
        errors, shares = [], []
        rows, surrogate = self.every_row, self.every_surrogate
        with torch.no_grad():
            for places in torch.arange(len(self.validation)).split(max(1, CHECK_PAIRS // len(rows))):
                weights = torch.sigmoid(self._logits(self.validation, places, rows))
                errors.append(self._errors(self.validation, places, rows, surrogate)(weights))
                shares.append(weights[:, : len(rows)].mean(dim=1))
        log.steps.append(step)
        log.validation_error.append(float(torch.cat(errors).mean()))
        log.selected_share.append(float(torch.cat(shares).mean()))


def _global_model(training: TrainingRows, fallback: GlobalFit, device: str) -> LinearModels:
    """The global surrogate as one linear model, in deviations of the outputs."""
    intercept = (
        fallback.level - fallback.feature_means @ fallback.coefficients - training.overall_mean
    ) / training.unit
    coefficients = torch.as_tensor(fallback.coefficients / training.unit, dtype=torch.float32, device=device)
    return LinearModels(coefficients[None], torch.as_tensor([intercept], dtype=torch.float32, device=device))
