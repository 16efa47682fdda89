"""Training the weights of recorded changes: every training row foresees its own from those of the others."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from limis.changes import ColumnSystems, RecordedChanges
from limis.progress import progress
from limis.rows import TrainingRows
from limis.threads import one_thread
from limis.training.probes import ProbeRows
from limis.two_scales import PENALTY
from limis.weighting.factored import FactoredEstimator
from limis.weighting.learned import LearnedSlopes, estimator_inputs

STEPS = 800
BATCH = 256
CHECK_EVERY = 50
LEARNING_RATE = 1e-2
WEIGHT_DECAY = 0.3
# What selecting every row would earn, in mean absolute changes of f: rows that do no harm should be selected, so that
# slopes rest on as many as agree. Twice as much, and rows of another behaviour are selected too.
BREADTH = 0.3


def train_slopes(
    training: TrainingRows,
    recorded: RecordedChanges,
    systems: ColumnSystems,
    probes: ProbeRows,
    seed: int,
    *,
    time_budget: float | None = None,
    verbose: bool = False,
) -> LearnedSlopes:
    """Minimise the absolute error on the rows' recorded changes, by the gradient through their weighted systems.

    Kept is the estimator that foresees the changes of the held-out ``probes`` best, of those looked at along the way.
    A kernel needs a third of the steps that towers need, and finds boundaries that bend more reliably.
    """
    inputs = estimator_inputs(training.table, training.values)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        estimator = FactoredEstimator(inputs.shape[1], "kernel")
    generator = torch.Generator().manual_seed(seed)
    targets = _Targets.of(training, recorded)
    solve = _Systems(training, systems)
    twins = training.twins(training.values)
    optimiser = torch.optim.AdamW(estimator.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    own = torch.as_tensor(np.unique(recorded.rows))
    best = _Best(estimator, training, probes, solve)
    started = time.monotonic()
    with progress(STEPS, "learning which rows' changes matter", verbose) as bar, one_thread():
        for step in range(STEPS):
            if time_budget is not None and time.monotonic() - started > time_budget:
                break
            batch = own[torch.randint(0, len(own), (min(BATCH, len(own)),), generator=generator)]
            allowed = torch.as_tensor(1 - twins[batch.numpy()].toarray(), dtype=torch.float32)
            weights = torch.sigmoid(estimator(inputs[batch], inputs)) * allowed
            loss = targets.error(batch, solve.slopes(weights)) - BREADTH * weights.mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            bar.update()
            if (step + 1) % CHECK_EVERY == 0:
                best.look_at(estimator)
        best.look_at(estimator)
    return LearnedSlopes(best.restored(estimator))


class _Best:
    """The estimator that foresees held-out rows' changes best, of those looked at."""

    def __init__(
        self, estimator: FactoredEstimator, training: TrainingRows, probes: ProbeRows, solve: _Systems
    ) -> None:
        self.inputs, self.solve = estimator_inputs(training.table, training.values), solve
        self.error, self.state = float("inf"), copy.deepcopy(estimator.state_dict())
        self.moves: tuple[torch.Tensor, ...] | None = None
        if probes.asked is not None:
            table = training.table
            self.queries = estimator_inputs(table, probes.values)
            self.allowed = torch.as_tensor(1 - training.twins(probes.values).toarray(), dtype=torch.float32)
            steps = table.features(probes.asked.values) - table.features(probes.values)[probes.asked.rows]
            answers = probes.asked.changes / training.unit
            self.moves = tuple(
                torch.as_tensor(part) for part in (probes.asked.rows, np.float32(steps), np.float32(answers))
            )

    def look_at(self, estimator: FactoredEstimator) -> None:
        """Keep it if it is better than those before; the last one where nothing was asked."""
        error = self.error
        if self.moves is not None:
            rows, steps, answers = self.moves
            with torch.no_grad():
                slopes = self.solve.slopes(torch.sigmoid(estimator(self.queries, self.inputs)) * self.allowed)
                error = float(((slopes[rows] * steps).sum(dim=1) - answers).abs().mean())
        if error <= self.error:
            self.error, self.state = error, copy.deepcopy(estimator.state_dict())

    def restored(self, estimator: FactoredEstimator) -> FactoredEstimator:
        """The estimator as it was when it was best."""
        estimator.load_state_dict(self.state)
        return estimator


@dataclass
class _Targets:
    """Each training row's own recorded changes, in rounds of at most one a column."""

    steps: torch.Tensor  # (rows, rounds, features) what changed
    answers: torch.Tensor  # (rows, rounds, columns) what the black box did, 0 where not asked
    asked: torch.Tensor  # (rows, rounds, columns) 1 where it was
    owner: torch.Tensor  # (features,) the column of each

    @classmethod
    def of(cls, training: TrainingRows, recorded: RecordedChanges) -> _Targets:
        table = training.table
        turn = pd.DataFrame({"row": recorded.rows, "column": recorded.columns}).groupby(["row", "column"]).cumcount()
        at = (recorded.rows, turn.to_numpy())
        shape = (len(training), int(turn.max()) + 1)
        steps = np.zeros((*shape, len(table.feature_names)), dtype=np.float32)
        np.add.at(steps, at, table.features(recorded.values) - table.features(training.values[recorded.rows]))
        answers, asked = (np.zeros((*shape, len(table.columns)), dtype=np.float32) for _ in range(2))
        answers[(*at, recorded.columns)] = recorded.answers
        asked[(*at, recorded.columns)] = 1
        return cls(*map(torch.as_tensor, (steps, answers, asked, table.feature_column)))

    def __post_init__(self) -> None:
        self.unit = float(self.answers.abs().sum() / self.asked.sum()) or 1.0

    def error(self, batch: torch.Tensor, slopes: torch.Tensor) -> torch.Tensor:
        """Mean absolute error of slopes (batch, features) on the rows' own changes, in mean absolute changes."""
        asked = self.asked[batch]
        foreseen = torch.zeros_like(asked).index_add(2, self.owner, slopes[:, None, :] * self.steps[batch])
        missed = (self.answers[batch] - foreseen).abs() * asked
        return missed.sum() / asked.sum().clamp(min=1) / self.unit


class _Systems:
    """The column systems on tensors, so that the gradient passes through them."""

    def __init__(self, training: TrainingRows, systems: ColumnSystems) -> None:
        weight = np.ones(len(training)) if training.sample_weight is None else training.sample_weight
        self.grams = torch.as_tensor(systems.grams.toarray() * weight[:, None], dtype=torch.float32)
        self.moments = torch.as_tensor(systems.moments.toarray() * weight[:, None], dtype=torch.float32)
        self.width = systems.width.tolist()
        every = self.grams.mean(dim=0, keepdim=True).double().numpy()
        cells = np.concatenate([[0], np.cumsum(systems.width**2)])
        self.ridge = [
            PENALTY * systems.mean_square(every, int(cell), size)
            for cell, size in zip(cells[:-1], self.width, strict=True)
        ]

    def slopes(self, weights: torch.Tensor) -> torch.Tensor:
        """(queries, features) from weights (queries, rows)."""
        share = weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-12)
        grams, moments = share @ self.grams, share @ self.moments
        slopes, cell, feature = [], 0, 0
        for size, ridge in zip(self.width, self.ridge, strict=True):
            system = grams[:, cell : cell + size**2].reshape(-1, size, size) + ridge * torch.eye(size)
            target = moments[:, feature : feature + size]
            slopes.append(
                target / system[:, 0] if size == 1 else torch.linalg.solve(system, target[:, :, None])[:, :, 0]
            )
            cell, feature = cell + size**2, feature + size
        return torch.cat(slopes, dim=1)
