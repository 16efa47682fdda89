"""The training loop of the paper's weight estimator: sample, fit all ridges of a step at once, reward, repeat."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from limis.progress import progress
from limis.rows import TrainingRows
from limis.surrogate import solve_ridge
from limis.training.objectives import LOSSES, Objective
from limis.training.probes import ProbeRows
from limis.walk import ALPHA, GlobalFit
from limis.weighting.pairwise import Inputs, PairwiseEstimator, PairwiseWeighting

PENALTIES = (0.0, 0.1, 1.0)
VALIDATION_SHARE = 0.25
MAX_VALIDATION = 200


@dataclass(frozen=True)
class TrainingPlan:
    """How the estimator is trained; the defaults are those of the paper's released code."""

    objective: Objective = "reinforce"
    inputs: Inputs = "text"
    penalty: float | None = None  # None: chosen by validation fidelity
    penalty_from_step: int = 0
    steps: int = 2000
    batch_rows: int = 5000
    batch_probes: int = 10
    learning_rate: float = 1e-4
    check_every: int = 100
    patience: int = 5  # checks without improvement before stopping; 0 never stops early
    time_budget: float | None = None  # seconds


@dataclass
class TrainingLog:
    """What happened: validation error and mean selection probability at each check.

    Errors are in standard deviations of the outputs.
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


def train_pairwise(
    training: TrainingRows, probes: ProbeRows, fallback: GlobalFit, plan: TrainingPlan, seed: int, verbose: bool = False
) -> tuple[PairwiseWeighting, list[TrainingLog]]:
    """Train the pairwise estimator; with no penalty given, once for each of `PENALTIES`, keeping the best."""
    penalties = PENALTIES if plan.penalty is None else (plan.penalty,)
    budget = None if plan.time_budget is None else plan.time_budget / len(penalties)
    results = []
    for penalty in penalties:
        one = replace(plan, penalty=penalty, time_budget=budget)
        results.append(_Run(training, probes, fallback, one, seed).train(verbose))
    weighting, _ = min(results, key=lambda result: result[1].error)
    return weighting, [log for _, log in results]


class _Run:
    """One training run at one penalty."""

    def __init__(
        self, training: TrainingRows, probes: ProbeRows, fallback: GlobalFit, plan: TrainingPlan, seed: int
    ) -> None:
        self.training, self.plan = training, plan
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.estimator = PairwiseEstimator(training.features.shape[1], plan.inputs)
        self.features = torch.as_tensor(training.table.features(probes.values), dtype=torch.float32)
        self.targets = torch.as_tensor((probes.outputs - training.overall_mean) / training.unit, dtype=torch.float32)
        global_error = np.abs(fallback.predict(self.features.double().numpy()) - probes.outputs) / training.unit
        # Rows equal to a probe must not speak for it.
        self.allowed = torch.as_tensor(1 - training.twins(probes.values).toarray(), dtype=torch.float32)
        if training.sample_weight is not None:
            self.allowed = self.allowed * torch.as_tensor(training.sample_weight, dtype=torch.float32)
        self.baseline = torch.as_tensor(global_error, dtype=torch.float32)
        order = torch.randperm(len(probes), generator=self.generator)
        if plan.patience and len(probes) >= 8:
            # Rows that reward do not also stop.
            n_validation = min(MAX_VALIDATION, max(2, int(len(probes) * VALIDATION_SHARE)))
            self.validation, self.rewarding = order[:n_validation], order[n_validation:]
        else:
            self.validation, self.rewarding = order[:MAX_VALIDATION], order

    def train(self, verbose: bool) -> tuple[PairwiseWeighting, TrainingLog]:
        plan = self.plan
        assert plan.penalty is not None
        log = TrainingLog(plan.penalty, global_error=float(self.baseline[self.validation].mean()))
        optimiser = torch.optim.Adam(self.estimator.parameters(), lr=plan.learning_rate)
        best_state = copy.deepcopy(self.estimator.state_dict())
        self._check(0, log)
        started = time.monotonic()
        with progress(plan.steps, f"training the weight estimator (λ = {plan.penalty:g})", verbose) as bar:
            for step in range(plan.steps):
                optimiser.zero_grad()
                self._loss(step).backward()
                optimiser.step()
                bar.update()
                out_of_time = plan.time_budget is not None and time.monotonic() - started > plan.time_budget
                if (step + 1) % plan.check_every and step + 1 < plan.steps and not out_of_time:
                    continue
                self._check(step + 1, log)
                if log.best == len(log.steps) - 1:
                    best_state = copy.deepcopy(self.estimator.state_dict())
                stalled = plan.patience and len(log.steps) - 1 - log.best >= plan.patience
                if stalled or out_of_time:
                    break
        log.kept = len(log.steps) - 1
        if plan.patience:
            self.estimator.load_state_dict(best_state)
            log.kept = log.best
        return PairwiseWeighting(self.estimator), log

    def _loss(self, step: int) -> torch.Tensor:
        plan, training = self.plan, self.training
        rows = torch.randperm(len(training), generator=self.generator)[: plan.batch_rows]
        drawn = torch.randperm(len(self.rewarding), generator=self.generator)[: plan.batch_probes]
        probes = self.rewarding[drawn]
        features, targets = training.features[rows], training.targets[rows]
        logits = self.estimator(self.features[probes], features, targets)
        penalty = plan.penalty if step >= plan.penalty_from_step else 0.0

        def score(selected: torch.Tensor) -> torch.Tensor:
            return self._errors(probes, rows, selected)

        assert penalty is not None
        return LOSSES[plan.objective](logits, score, self.baseline[probes], penalty, self.generator)

    def _errors(self, probes: torch.Tensor, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """|g − f| at each probe, its surrogate fitted on the weighted rows: (probes,)."""
        training = self.training
        weights = weights * self.allowed[probes][:, rows]
        features = training.features[rows].expand(len(probes), -1, -1)
        targets = training.targets[rows].expand(len(probes), -1)
        solved = solve_ridge(features, targets, weights, ALPHA)
        return (solved.predict(self.features[probes]) - self.targets[probes]).abs()

    def _check(self, step: int, log: TrainingLog) -> None:
        """Fidelity on the validation rows, fitted with weights as at inference."""
        rows = torch.arange(len(self.training))
        errors, shares = [], []
        with torch.no_grad():
            for probe in self.validation.split(1):
                logits = self.estimator(self.features[probe], self.training.features, self.training.targets)
                weights = torch.sigmoid(logits)
                errors.append(self._errors(probe, rows, weights))
                shares.append(weights.mean())
        log.steps.append(step)
        log.validation_error.append(float(torch.cat(errors).mean()))
        log.selected_share.append(float(torch.stack(shares).mean()))
