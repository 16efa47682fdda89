"""What the trainer minimises: from selection logits and the loss of weights to one number with the right gradient.

An objective is a function ``(logits, loss, generator)``: the logits (probes, rows) of selecting each training row for
each probe row, what weights cost (`Loss`), and the source of everything random. It returns the number whose gradient
with respect to the logits trains the estimator.

reinforce          the paper's text: sample a selection, credit it with its loss
released           the same as in the paper's released code
rloo               several samples a probe, each judged by the mean of the others
gumbel             a continuous relaxation of the sample, and the gradient through the ridge
weighted           no sample: the probabilities are the weights, and the gradient through the ridge ("STE" in the paper)
straight-through   a sample forward, its probabilities backward
l2r                one weighting for all probe rows, from a rectified meta-gradient
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch.nn.functional import logsigmoid

Objective = Literal["reinforce", "released", "rloo", "gumbel", "weighted", "straight-through", "l2r"]

MIN_SELECTED = 0.01
FLOOR_PRICE = 1e3
SAMPLES = 8
TEMPERATURE = 0.5


@dataclass
class Loss:
    """What weights cost each probe row: the errors of the surrogates fitted with them, and the price of selecting."""

    errors: Callable[[torch.Tensor], torch.Tensor]  # weights (probes, rows) → (probes,)
    baseline: torch.Tensor  # (probes,) errors of the global model
    penalty: float = 0.0  # the paper's λ

    def __call__(self, weights: torch.Tensor) -> torch.Tensor:
        """Loss of each probe row: (probes,)."""
        return self.errors(weights) + self.penalty * weights.mean(dim=1)


def reinforce(logits: torch.Tensor, loss: Loss, generator: torch.Generator) -> torch.Tensor:
    """REINFORCE on Bernoulli selections, as in the paper's text.

    Subtracting the global model's error, which does not depend on the selection, leaves the expected gradient as it is
    and its variance smaller.
    """
    with torch.no_grad():
        selected = _sample(logits, generator)
        cost = loss(selected) - loss.baseline
    return (cost * _log_probability(logits, selected)).mean()


def released(logits: torch.Tensor, loss: Loss, generator: torch.Generator) -> torch.Tensor:
    """The loss of the released code, its two oddities kept because they belong together.

    Its log-probability pairs every row's probability with every row's selection, so rows share one credit: the
    selected share. And its sign is turned: selections with an error below the global model's are made less likely,
    which drives probabilities away from that share, to 0 and to 1.
    """
    probability = torch.sigmoid(logits)
    with torch.no_grad():
        selected = _sample(logits, generator)
        reward = loss.errors(selected) - loss.baseline
        share = selected.mean(dim=1, keepdim=True)
    shared_credit = (share * logsigmoid(logits) + (1 - share) * logsigmoid(-logits)).mean(dim=1)
    mean_probability = probability.mean(dim=1)
    cost = -(reward + loss.penalty * mean_probability) * shared_credit
    if loss.penalty > 0:
        cost = cost + FLOOR_PRICE * torch.relu(MIN_SELECTED - mean_probability)
    return cost.mean()


def rloo(logits: torch.Tensor, loss: Loss, generator: torch.Generator) -> torch.Tensor:
    """REINFORCE with `SAMPLES` selections a probe row, the baseline of each being the mean loss of the others.

    The others are drawn independently of it, so the expected gradient stays the true one.
    """
    with torch.no_grad():
        samples = [_sample(logits, generator) for _ in range(SAMPLES)]
        costs = torch.stack([loss(selected) for selected in samples])  # (samples, probes)
        # Less the mean of the others: n/(n − 1) times less the mean of all.
        advantage = (costs - costs.mean(dim=0)) * (SAMPLES / (SAMPLES - 1))
        credit = sum(gain[:, None] * selected for gain, selected in zip(advantage, samples, strict=True))
    # The advantages of a probe sum to zero, and log p(selected) = selected · logits − a part without the selection.
    return (credit * logits).sum(dim=1).mean() / SAMPLES


def gumbel(logits: torch.Tensor, loss: Loss, generator: torch.Generator) -> torch.Tensor:
    """Binary concrete relaxation: weights between 0 and 1 that are nearly a sample, at a fixed temperature."""
    tiny = torch.finfo(logits.dtype).eps
    uniform = _uniform(logits, generator).clamp(tiny, 1 - tiny)
    return loss(torch.sigmoid((logits + torch.logit(uniform)) / TEMPERATURE)).mean()


def weighted(logits: torch.Tensor, loss: Loss, generator: torch.Generator) -> torch.Tensor:  # noqa: ARG001
    """The probabilities themselves as weights, as they are used at inference; nothing is sampled."""
    return loss(torch.sigmoid(logits)).mean()


def straight_through(logits: torch.Tensor, loss: Loss, generator: torch.Generator) -> torch.Tensor:
    """A Bernoulli selection is what is fitted; its gradient passes to the probabilities as if they were the same."""
    probability = torch.sigmoid(logits)
    selected = _sample(logits.detach(), generator)
    return loss(selected + (probability - probability.detach())).mean()


def l2r(logits: torch.Tensor, loss: Loss, generator: torch.Generator) -> torch.Tensor:  # noqa: ARG001
    """Learning to reweight examples (Ren et al. 2018), for a surrogate that is solved instead of descended.

    There, a row's weight in a step is how much a little more of it would lower the loss on held-out rows, negative
    values set to zero and the rest normalised; the model takes a step with these weights. Here the held-out rows are
    the probe rows of the step, the model is one ridge on the present weights, and "a little more of it" is the gradient
    through its solution. Weights are normalised to a largest of 1, since the ridge penalty gives their size a meaning.
    The logits are the same for every probe (`SharedEstimator`), and are drawn towards the step's weights by their
    squared distance: what they settle at is the mean of the weights of many steps.
    """
    probability = torch.sigmoid(logits)
    with torch.enable_grad():
        present = probability.detach().mean(dim=0).requires_grad_()
        (slope,) = torch.autograd.grad(loss(present.expand_as(logits)).mean(), present)
    gain = (-slope).clamp(min=0)
    # Where no row would help, the step leaves the weights as they are.
    target = gain / gain.max() if bool(gain.max() > 0) else present.detach()
    return (probability - target).square().sum(dim=1).mean() / 2


def _sample(logits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return (_uniform(logits, generator) < torch.sigmoid(logits)).to(logits.dtype)


def _uniform(logits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Numbers in [0, 1) beside the logits; drawn on the CPU, so that a seed means the same on every device."""
    return torch.rand(logits.shape, dtype=logits.dtype, generator=generator).to(logits.device)


def _log_probability(logits: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
    """Log-probability of each probe's selection: (probes,)."""
    return (selected * logsigmoid(logits) + (1 - selected) * logsigmoid(-logits)).sum(dim=1)


OBJECTIVES: dict[Objective, Callable[[torch.Tensor, Loss, torch.Generator], torch.Tensor]] = {
    "reinforce": reinforce,
    "released": released,
    "rloo": rloo,
    "gumbel": gumbel,
    "weighted": weighted,
    "straight-through": straight_through,
    "l2r": l2r,
}
