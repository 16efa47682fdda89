"""What the trainer minimises: from selection logits and a way to score selections to a loss with the right gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch.nn.functional import logsigmoid

Objective = Literal["reinforce", "released"]

# selections (probes, rows) → fidelity error of each probe's surrogate (probes,)
Score = Callable[[torch.Tensor], torch.Tensor]

MIN_SELECTED = 0.01
FLOOR_PRICE = 1e3


def reinforce_loss(
    logits: torch.Tensor, score: Score, baseline: torch.Tensor, penalty: float, generator: torch.Generator
) -> torch.Tensor:
    """REINFORCE on Bernoulli selections, as in the paper's text.

    The loss of a selection is its error plus ``penalty`` times the selected share. Subtracting the global model's
    error, which does not depend on the selection, leaves the expected gradient as it is and its variance smaller.
    """
    with torch.no_grad():
        selected = torch.bernoulli(torch.sigmoid(logits), generator=generator)
        loss = score(selected) + penalty * selected.mean(dim=1) - baseline
    log_probability = (selected * logsigmoid(logits) + (1 - selected) * logsigmoid(-logits)).sum(dim=1)
    return (loss * log_probability).mean()


def released_loss(
    logits: torch.Tensor, score: Score, baseline: torch.Tensor, penalty: float, generator: torch.Generator
) -> torch.Tensor:
    """The loss of the released code, its two oddities kept because they belong together.

    Its log-probability pairs every row's probability with every row's selection, so rows share one credit: the
    selected share. And its sign is turned: selections with an error below the global model's are made less likely,
    which drives probabilities away from that share, to 0 and to 1.
    """
    probability = torch.sigmoid(logits)
    with torch.no_grad():
        selected = torch.bernoulli(probability, generator=generator)
        reward = score(selected) - baseline
        share = selected.mean(dim=1, keepdim=True)
    shared_credit = (share * logsigmoid(logits) + (1 - share) * logsigmoid(-logits)).mean(dim=1)
    mean_probability = probability.mean(dim=1)
    loss = -(reward + penalty * mean_probability) * shared_credit
    if penalty > 0:
        loss = loss + FLOOR_PRICE * torch.relu(MIN_SELECTED - mean_probability)
    return loss.mean()


LOSSES = {"reinforce": reinforce_loss, "released": released_loss}
