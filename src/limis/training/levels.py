"""Learning which near rows say how high a row stands.

Every training row can teach: its candidates come from trees that have not seen it. What is looked at is how well the
candidates' outputs, carried to the row by its slopes, say what the black box says of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from limis.progress import progress
from limis.rows import TrainingRows
from limis.threads import one_thread
from limis.two_scales import TwoScales
from limis.walk import blocks
from limis.weighting.learned import estimator_inputs
from limis.weighting.level import TAIL, LevelMetric

STEPS = 300
BATCH = 128
LEARNING_RATE, SCALAR_RATE = 3e-3, 1e-2
WEIGHT_DECAY = 0.01
DIRECTIONS = 8
MAX_OWN = 20_000  # training rows that teach


def train_level(
    training: TrainingRows,
    model: TwoScales,
    seed: int,
    memory_limit: float,
    *,
    time_budget: float | None = None,
    verbose: bool = False,
) -> LevelMetric | None:
    """The metric under which the levels of training rows, each kept from its own fit, are told best.

    None where the time is over before anything is learned.
    """
    ends = None if time_budget is None else time.monotonic() + time_budget
    own = np.sort(np.random.default_rng(seed).permutation(len(training))[:MAX_OWN])
    with progress(len(own) + STEPS, "learning which rows say how high", verbose) as bar, one_thread():
        lessons = _Lessons.of(training, model, own, memory_limit, ends, bar.update)
        if lessons is None:
            return None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            width = lessons.inputs.shape[1]
            directions = torch.nn.Parameter((0.2 * torch.randn(width, DIRECTIONS) / width**0.5).to(model.device))
        power, reach = (torch.nn.Parameter(torch.tensor(start, device=model.device)) for start in (1.0, 0.75))
        optimiser = torch.optim.AdamW(
            [
                {"params": [directions], "lr": LEARNING_RATE, "weight_decay": WEIGHT_DECAY},
                {"params": [power, reach], "lr": SCALAR_RATE, "weight_decay": 0.0},
            ]
        )
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, STEPS)
        generator = torch.Generator().manual_seed(seed)
        # All at once: nothing is then sent to the device during the steps.
        batches = torch.randint(0, len(own), (STEPS, BATCH), generator=generator).to(model.device)
        for step in range(STEPS):
            if _over(ends):
                if step == 0:
                    return None
                break
            missed = lessons.missed(batches[step], directions, power, reach)
            loss = (missed**2 + missed.abs()).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            bar.update()
    return LevelMetric(directions.detach().cpu().double().numpy(), float(power.detach()))


def _over(ends: float | None) -> bool:
    return ends is not None and time.monotonic() > ends


@dataclass
class _Lessons:
    """Training rows as their own pupils, each with the rows that the forest finds near it."""

    inputs: torch.Tensor  # (training rows + copies, inputs of estimators)
    heights: torch.Tensor  # (training rows + copies,) outputs
    own: torch.Tensor  # (pupils,) training rows
    near: torch.Tensor  # (pupils, candidates) rows or copies
    weights: torch.Tensor  # (pupils, candidates) the forest's
    carried: torch.Tensor  # (pupils, candidates) what the pupil's slopes add on the way from each

    @classmethod
    def of(
        cls,
        training: TrainingRows,
        model: TwoScales,
        own: np.ndarray,
        memory_limit: float,
        ends: float | None,
        done: Callable[[int], object],
    ) -> _Lessons | None:
        """Fit the pupils' slopes and look up their near rows; None if the time is over first."""
        parts: list[tuple[torch.Tensor, ...]] = []
        for block in blocks(len(own), model.rows_at_once(training, memory_limit)):
            if _over(ends):
                return None
            near, weights, carried = model.lessons(training, training.values[own[block]])
            parts.append((near, weights.float(), carried.float()))
            done(len(near))
        near, weights, carried = (torch.cat(column) for column in zip(*parts, strict=True))
        inputs = estimator_inputs(training.table, np.concatenate([training.values, model.copies.values]))
        heights = torch.as_tensor(model.all_outputs(training), dtype=torch.float32)
        device = model.device
        return cls(inputs.to(device), heights.to(device), torch.as_tensor(own).to(device), near, weights, carried)

    def missed(
        self, batch: torch.Tensor, directions: torch.Tensor, power: torch.Tensor, reach: torch.Tensor
    ) -> torch.Tensor:
        """By how much the near rows, so weighed and carried so far, miss what the black box says of the pupils."""
        near, weights, own = self.near[batch], self.weights[batch], self.own[batch]
        apart = ((self.inputs[near] @ directions - (self.inputs[own] @ directions)[:, None]) ** 2).sum(dim=2)
        logits = power * torch.log(weights.clamp(min=1e-9)) - TAIL * torch.log1p(apart / TAIL)
        share = torch.softmax(logits.masked_fill(weights <= 0, -1e9), dim=1)
        return (share * (self.heights[near] + reach * self.carried[batch])).sum(dim=1) - self.heights[own]
