"""Learning which near rows say how high a row stands.

Every training row can teach: its candidates come from trees that have not seen it. What is looked at is how well the
candidates' outputs, carried to the row by its slopes, say what the black box says of it.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from limis.progress import progress
from limis.rows import TrainingRows
from limis.threads import one_thread
from limis.two_scales import TwoScales
from limis.walk import GlobalFit, LocalFits, fit_locally
from limis.weighting.learned import estimator_inputs
from limis.weighting.level import LevelMetric

STEPS = 300
BATCH = 128
LEARNING_RATE, SCALAR_RATE = 3e-3, 1e-2
WEIGHT_DECAY = 0.01
DIRECTIONS = 8
MAX_OWN = 20_000  # training rows that teach


def train_level(
    training: TrainingRows,
    fallback: GlobalFit,
    model: TwoScales,
    seed: int,
    memory_limit: float,
    *,
    time_budget: float | None = None,
    verbose: bool = False,
) -> LevelMetric:
    """The metric under which the levels of training rows, each kept from its own fit, are told best."""
    started = time.monotonic()
    rng = np.random.default_rng(seed)
    places = np.sort(rng.permutation(len(training))[:MAX_OWN])
    rows, weights, carried = _candidates(training, fallback, model, training.values[places], memory_limit)
    inputs = estimator_inputs(training.table, np.concatenate([training.values, model.copies.values]))
    queries = inputs[torch.as_tensor(places)]
    told = torch.as_tensor(training.standard_outputs[places], dtype=torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        directions = torch.nn.Parameter(0.2 * torch.randn(inputs.shape[1], DIRECTIONS) / inputs.shape[1] ** 0.5)
    power, reach = (torch.nn.Parameter(torch.tensor(start)) for start in (1.0, 0.75))
    optimiser = torch.optim.AdamW(
        [
            {"params": [directions], "lr": LEARNING_RATE, "weight_decay": WEIGHT_DECAY},
            {"params": [power, reach], "lr": SCALAR_RATE, "weight_decay": 0.0},
        ]
    )
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, STEPS)
    generator = torch.Generator().manual_seed(seed)
    heights = torch.as_tensor(model.all_outputs(training), dtype=torch.float32)
    with progress(STEPS, "learning which rows say how high", verbose) as bar, one_thread():
        for _ in range(STEPS):
            if time_budget is not None and time.monotonic() - started > time_budget:
                break
            batch = torch.randint(0, len(places), (BATCH,), generator=generator)
            near, weight = rows[batch], weights[batch]
            apart = ((inputs[near] @ directions - (queries[batch] @ directions)[:, None]) ** 2).sum(dim=2)
            logits = power * torch.log(weight.clamp(min=1e-9)) - apart
            share = torch.softmax(logits.masked_fill(weight <= 0, -1e9), dim=1)
            missed = (share * (heights[near] + reach * carried[batch])).sum(dim=1) - told[batch]
            loss = (missed**2 + missed.abs()).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            bar.update()
    return LevelMetric(directions.detach().double().numpy(), float(power.detach()))


def _candidates(
    training: TrainingRows, fallback: GlobalFit, model: TwoScales, values: np.ndarray, memory_limit: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The near rows of each row, their forest weights, and what the row's slopes add on the way from each."""
    slopes = LocalFits.join(list(fit_locally(training, model, fallback, values, memory_limit))).coefficients
    rows, weights = model.near_rows(training, values)
    features, own = model.all_features(training), training.table.features(values)
    carried = np.stack(
        [(x - features[near]) @ slope for x, near, slope in zip(own, rows, slopes / training.unit, strict=True)]
    )
    return (
        torch.as_tensor(rows),
        torch.as_tensor(weights, dtype=torch.float32),
        torch.as_tensor(carried, dtype=torch.float32),
    )
