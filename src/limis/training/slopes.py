"""Training the towers that weigh recorded changes: every training row foresees its own from those of the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from limis.changes import ColumnSystems, RecordedChanges
from limis.progress import progress
from limis.rows import TrainingRows
from limis.two_scales import PENALTY
from limis.weighting.factored import FactoredEstimator
from limis.weighting.towers import TowerSlopes, estimator_inputs

STEPS = 1200
BATCH = 256
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.1
# What selecting every row would earn, in deviations of f: rows that do no harm should be selected, so that slopes rest
# on as many as agree.
BREADTH = 0.002


@dataclass
class _Targets:
    """Each training row's own recorded changes, at most one a column."""

    steps: torch.Tensor  # (rows, features) what changed
    answers: torch.Tensor  # (rows, columns) what the black box said, 0 where nothing was asked
    asked: torch.Tensor  # (rows, columns) 1 where something was


def train_tower_slopes(
    training: TrainingRows,
    recorded: RecordedChanges,
    systems: ColumnSystems,
    seed: int,
    *,
    time_budget: float | None = None,
    verbose: bool = False,
) -> TowerSlopes:
    """Minimise the absolute error on the rows' recorded changes, by the gradient through their weighted systems."""
    inputs = estimator_inputs(training.table, training.values)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        estimator = FactoredEstimator(inputs.shape[1])
    generator = torch.Generator().manual_seed(seed)
    targets = _targets(training, recorded)
    solve = _Systems(training, systems)
    twins = training.twins(training.values)
    optimiser = torch.optim.AdamW(estimator.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    probes = torch.as_tensor(np.unique(recorded.rows))
    owner = torch.as_tensor(training.table.feature_column)
    started = time.monotonic()
    with progress(STEPS, "learning which rows' changes matter", verbose) as bar, _one_thread():
        for _ in range(STEPS):
            if time_budget is not None and time.monotonic() - started > time_budget:
                break
            batch = probes[torch.randint(0, len(probes), (min(BATCH, len(probes)),), generator=generator)]
            allowed = torch.as_tensor(1 - twins[batch.numpy()].toarray(), dtype=torch.float32)
            weights = torch.sigmoid(estimator(inputs[batch], inputs)) * allowed
            slopes = solve.slopes(weights)
            foreseen = torch.zeros_like(targets.answers[batch])
            foreseen = foreseen.index_add(1, owner, slopes * targets.steps[batch])
            missed = (targets.answers[batch] - foreseen).abs() * targets.asked[batch]
            loss = missed.sum() / targets.asked[batch].sum().clamp(min=1) - BREADTH * weights.mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            bar.update()
    return TowerSlopes(estimator)


@contextmanager
def _one_thread() -> Iterator[None]:
    """The products of a step are small: on shared cores several threads wait for each other longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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


def _targets(training: TrainingRows, recorded: RecordedChanges) -> _Targets:
    table = training.table
    steps = np.zeros((len(training), len(table.feature_names)))
    step = table.features(recorded.values) - table.features(training.values[recorded.rows])
    np.add.at(steps, recorded.rows, step)
    answers, asked = (np.zeros((len(training), len(table.columns))) for _ in range(2))
    answers[recorded.rows, recorded.columns] = recorded.answers
    asked[recorded.rows, recorded.columns] = 1
    return _Targets(*(torch.as_tensor(part, dtype=torch.float32) for part in (steps, answers, asked)))
