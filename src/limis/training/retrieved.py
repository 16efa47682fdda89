"""Training the weights of retrieved rows, by the gradient through their ridges.

Every training row can be a probe: its candidates come from trees that have not seen it.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from limis.errors import InputError
from limis.progress import progress
from limis.retrieval import Retriever
from limis.rows import TrainingRows
from limis.surrogate import solve_ridge
from limis.training.probe_set import ProbeSet, needed
from limis.training.probes import ProbeRows
from limis.training.terms import LinearModels, Term, added_up
from limis.training.trainer import TrainingLog
from limis.walk import ALPHA
from limis.weighting.learned import estimator_inputs
from limis.weighting.retrieved import RetrievedEstimator, RetrievedWeighting, retrieve

STEPS = 200
BATCH = 64
LEARNING_RATE = 1e-2
WEIGHT_DECAY = 0.1
MAX_OWN = 4_000  # training rows that serve as probes: more would be asked about than are ever looked at
CHECK_EVERY = 20


def train_retrieved(
    training: TrainingRows,
    retriever: Retriever,
    probes: ProbeRows,
    terms: Sequence[Term],
    n_candidates: int,
    seed: int,
    *,
    time_budget: float | None = None,
    verbose: bool = False,
) -> tuple[RetrievedWeighting, TrainingLog]:
    """Minimise the terms on training rows; kept is what does best on the held-out ``probes``, the start included."""
    if "nudged" in needed(terms):
        raise InputError('Stability needs an estimator over all rows; use weighting="kernel", "towers" or "pairwise"')
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        estimator = RetrievedEstimator(training.features.shape[1])
    weighting = RetrievedWeighting(retriever, estimator, n_candidates)
    places = np.sort(rng.permutation(len(training))[:MAX_OWN])
    own = ProbeRows(training.values[places], training.outputs[places])
    if "changes" in needed(terms):
        own = ProbeRows.ask(training, training.frame.iloc[places], own.outputs, rng)
    rewarding, held_out = (_Candidates(weighting, training, part, terms, probes, rng) for part in (own, probes))
    log = TrainingLog(penalty=0.0)
    best = copy.deepcopy(estimator.state_dict())
    optimiser = torch.optim.AdamW(estimator.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    generator = torch.Generator().manual_seed(seed)
    started = time.monotonic()
    with progress(STEPS, "learning which retrieved rows matter", verbose) as bar:
        for step in range(STEPS + 1):
            out_of_time = time_budget is not None and time.monotonic() - started > time_budget
            if step % CHECK_EVERY == 0 or out_of_time:
                held_out.check(step, log)
                if log.best == len(log.steps) - 1:
                    best = copy.deepcopy(estimator.state_dict())
            if step == STEPS or out_of_time:
                break
            batch = torch.randint(0, len(own), (min(BATCH, len(own)),), generator=generator)
            optimiser.zero_grad()
            loss = rewarding.errors(batch).mean()
            if not loss.requires_grad:
                raise InputError("no term of the reward depends on the surrogate by torch operations")
            loss.backward()
            optimiser.step()
            schedule.step()
            bar.update()
    estimator.load_state_dict(best)
    log.kept = log.best
    return weighting, log


class _Candidates:
    """Probe rows with their candidates, and what the terms say of the ridges on them."""

    def __init__(
        self,
        weighting: RetrievedWeighting,
        training: TrainingRows,
        probes: ProbeRows,
        terms: Sequence[Term],
        near: ProbeRows,
        rng: np.random.Generator,
    ) -> None:
        self.training, self.estimator, self.terms = training, weighting.estimator, terms
        see = partial(estimator_inputs, training.table)
        self.probes = ProbeSet.prepare(training, probes, see, needed(terms), near, rng)
        self.queries, self.row_inputs = self.probes.inputs[0], see(training.values)
        rows, closeness = retrieve(weighting.retriever, training, probes.values, weighting.candidates(training))
        self.rows, self.closeness = torch.as_tensor(rows), torch.as_tensor(closeness, dtype=torch.float32)

    def errors(self, places: torch.Tensor) -> torch.Tensor:
        """The sum of the terms for some of the probes."""
        rows, closeness = self.rows[places], self.closeness[places]
        # The logarithm of padding is never looked at, nor may its gradient be.
        known = closeness > 0
        logits = self.estimator(self.queries[places], self.row_inputs[rows], torch.where(known, closeness, 1.0))
        weights = torch.sigmoid(logits) * known
        features, targets = self.training.features[rows], self.training.targets[rows]
        solved = solve_ridge(features, targets, weights * self.estimator.log_scale.exp(), ALPHA)
        width = features.shape[2]
        intercepts = solved.target_means - (solved.feature_means * solved.coefficients).sum(dim=1)
        models = LinearModels(solved.coefficients[:, :width], intercepts)
        fits = self.probes.fits(places, weights, models, None)
        return added_up(self.terms, fits)

    def check(self, step: int, log: TrainingLog) -> None:
        """Write the error on all probes into the log."""
        with torch.no_grad():
            parts = [self.errors(places) for places in torch.arange(len(self.queries)).split(BATCH)]
        log.steps.append(step)
        log.validation_error.append(float(torch.cat(parts).mean()))
        log.selected_share.append(float("nan"))
