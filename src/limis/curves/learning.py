"""Learning who speaks: the weight estimator is trained on how well the selected rows foresee changes of probe rows.

The reward is the paper's on another target: the fidelity of what the selected rows say, here to the black box's answers
to changes at several ranges. "weighted" takes the gradient through the weighted mean; "rloo" draws selections and
follows the policy gradient, each draw's reward against the mean of the others'.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from limis.curves.weights import ResponseWeights
from limis.threads import one_thread

CurveObjective = Literal["weighted", "rloo"]
STEPS, RATE, DRAWS = 200, 0.05, 8
PATIENCE = 40
VALIDATION = 0.25  # of the probe rows say when to stop
TINY_PRICE = -3.0  # softplus of it is where prices start


@dataclass
class Lessons:
    """Changes of probe rows, what is left of the black box's answer to each, and what every candidate row says."""

    rows: np.ndarray  # (questions,) the probe row
    left: np.ndarray  # (questions,) what the taught model did not foresee
    said: np.ndarray  # (questions, candidates) what it did not foresee of the same change of each candidate
    worth: np.ndarray  # (questions,) how much its square counts: all ranges alike, and 1 is what nothing foresees
    proximity: np.ndarray  # (probe rows, candidates)
    apart: np.ndarray  # (probe rows, candidates, columns)

    @classmethod
    def join(cls, parts: list[Lessons]) -> Lessons:
        """Those of other probe rows one after another; each range counts as much in all of them together."""
        if len(parts) == 1:
            return parts[0]
        most = max(part.proximity.shape[1] for part in parts)
        firsts = np.cumsum([0, *(len(part.proximity) for part in parts)])

        def wide(array: np.ndarray) -> np.ndarray:
            return np.pad(array, [(0, 0), (0, most - array.shape[1]), (0, 0)][: array.ndim])

        return cls(
            np.concatenate([part.rows + first for part, first in zip(parts, firsts, strict=False)]),
            np.concatenate([part.left for part in parts]),
            np.concatenate([wide(part.said) for part in parts]),
            np.concatenate([part.worth for part in parts]) / len(parts),
            np.concatenate([wide(part.proximity) for part in parts]),
            np.concatenate([wide(part.apart) for part in parts]),
        )

    def skill(self, weights: ResponseWeights) -> float:
        """Mean skill over the ranges, where the candidates are weighed so."""
        selected = weights.selected(self.proximity, self.apart @ weights.price)
        shares = selected / (weights.silence + selected.sum(axis=1, keepdims=True))
        missed = self.left - (self.said * shares[self.rows]).sum(axis=1)
        return 1 - float((self.worth * missed**2).sum())

    @property
    def skill_alone(self) -> float:
        """The same where no row speaks."""
        return 1 - float((self.worth * self.left**2).sum())

    def standard(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is left, what is said and their worth, in units of what is left: single precision will do then."""
        unit = float(np.sqrt(np.mean(self.left**2))) or 1.0
        return self.left / unit, self.said / unit, self.worth * unit**2

    def part(self, chosen: np.ndarray) -> Lessons:
        """Those of some probe rows, (probe rows,) bool."""
        kept = chosen[self.rows]
        return replace(self, rows=self.rows[kept], left=self.left[kept], said=self.said[kept], worth=self.worth[kept])


@dataclass
class LearningCurve:
    """The loss on probe rows that only stop the training: 1 is that of saying nothing."""

    steps: list[int]
    loss: list[float]


def train(
    lessons: Lessons,
    start: ResponseWeights,
    seed: int,
    *,
    objective: CurveObjective = "weighted",
    steps: int = STEPS,
    rate: float = RATE,
    draws: int = DRAWS,
) -> tuple[ResponseWeights, LearningCurve]:
    """The estimator with the least loss on the validating probe rows; where it starts is among those."""
    with one_thread():
        return _train(lessons, start, seed, objective, steps, rate, draws)


def _train(
    lessons: Lessons,
    start: ResponseWeights,
    seed: int,
    objective: CurveObjective,
    steps: int,
    rate: float,
    draws: int,
) -> tuple[ResponseWeights, LearningCurve]:
    generator = torch.Generator().manual_seed(seed)
    rng = np.random.default_rng(seed)
    validating = rng.random(len(lessons.proximity)) < VALIDATION
    teaching = _Tensors.of(lessons.part(~validating))
    checking = _Tensors.of(lessons.part(validating))
    n_columns = lessons.apart.shape[2]
    scales = torch.tensor([start.bias, start.power, float(np.log(start.silence))], requires_grad=True)
    prices = torch.full((n_columns,), TINY_PRICE, requires_grad=True)
    optimiser = torch.optim.Adam([scales, prices], lr=rate)

    def as_weights() -> ResponseWeights:
        bias, power, silence = scales.detach().tolist()
        price = torch.nn.functional.softplus(prices.detach()).numpy().astype(np.float64)
        return ResponseWeights(bias, power, price, float(np.exp(silence)), start.n_candidates)

    def check() -> float:
        with torch.no_grad():
            return float(checking.loss(checking.selected(scales, prices), scales))

    best, least, since = start, checking.loss_of(start), 0
    curve = LearningCurve([0], [least])
    for step in range(1, steps + 1):
        optimiser.zero_grad()
        logits = teaching.logits(scales, prices)
        if objective == "weighted":
            loss = teaching.loss(torch.sigmoid(logits) * teaching.known, scales)
        else:
            loss = teaching.policy_loss(logits, scales, draws, generator)
        loss.backward()
        optimiser.step()
        if step % 5 == 0:
            found = check()
            curve.steps.append(step)
            curve.loss.append(found)
            since += 5
            if found < least:
                best, least, since = as_weights(), found, 0
            if since >= PATIENCE:
                break
    return best, curve


@dataclass
class _Tensors:
    rows: torch.Tensor
    left: torch.Tensor
    said: torch.Tensor
    worth: torch.Tensor
    near: torch.Tensor  # log of the proximity, relative to the nearest row's
    known: torch.Tensor  # 1 where there is a candidate
    apart: torch.Tensor

    @classmethod
    def of(cls, lessons: Lessons) -> _Tensors:
        proximity = lessons.proximity
        nearest = np.maximum(proximity.max(axis=1, keepdims=True), 1e-300)
        known = proximity > 0
        near = np.log(np.where(known, proximity / nearest, 1.0))
        left, said, worth, log_near, is_known, apart = (
            torch.as_tensor(part, dtype=torch.float32) for part in (*lessons.standard(), near, known, lessons.apart)
        )
        return cls(torch.as_tensor(lessons.rows), left, said, worth, log_near, is_known, apart)

    def logits(self, scales: torch.Tensor, prices: torch.Tensor) -> torch.Tensor:
        """(probe rows, candidates)."""
        cost = self.apart @ torch.nn.functional.softplus(prices)
        return scales[0] + scales[1] * self.near - cost

    def selected(self, scales: torch.Tensor, prices: torch.Tensor) -> torch.Tensor:
        """The probability of each candidate's selection."""
        return torch.sigmoid(self.logits(scales, prices)) * self.known

    def errors(self, selected: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """The square of what is left over after each question, times its worth: (questions,)."""
        shares = selected / (torch.exp(scales[2]) + selected.sum(dim=1, keepdim=True))
        foreseen = (self.said * shares[self.rows]).sum(dim=1)
        return self.worth * (self.left - foreseen) ** 2

    def loss(self, selected: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """Summed, as a share of that of saying nothing."""
        return self.errors(selected, scales).sum() / (self.worth * self.left**2).sum().clamp_min(1e-30)

    def loss_of(self, weights: ResponseWeights) -> float:
        scales = torch.tensor([weights.bias, weights.power, float(np.log(weights.silence))])
        cost = self.apart @ torch.as_tensor(weights.price, dtype=torch.float32)
        selected = torch.sigmoid(scales[0] + scales[1] * self.near - cost) * self.known
        return float(self.loss(selected, scales))

    def policy_loss(
        self, logits: torch.Tensor, scales: torch.Tensor, draws: int, generator: torch.Generator
    ) -> torch.Tensor:
        """Whose gradient is the policy gradient with the leave-one-out baseline, and that of the silence itself."""
        total = (self.worth * self.left**2).sum().clamp_min(1e-30)
        chances = torch.sigmoid(logits)
        losses, chances_of, direct = [], [], torch.zeros(())
        for _ in range(draws):
            drawn = torch.bernoulli(chances.detach(), generator=generator) * self.known
            errors = self.errors(drawn, scales) / total
            of_row = torch.zeros(len(logits)).index_add(0, self.rows, errors)
            direct = direct + of_row.sum() / draws
            losses.append(of_row.detach())
            sign = 2 * drawn - 1
            chances_of.append((torch.nn.functional.logsigmoid(sign * logits) * self.known).sum(dim=1))
        stacked = torch.stack(losses)
        others = (stacked.sum(dim=0, keepdim=True) - stacked) / max(draws - 1, 1)
        credit = ((stacked - others) * torch.stack(chances_of)).sum() / draws
        return credit + direct
