"""The paper's weight estimator: one network that looks at a pair of rows and says how much the second should count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from limis.rows import TrainingRows
from limis.weighting.base import Neighbourhood
from limis.weighting.dense import over_all_rows

Inputs = Literal["text", "released"]

LAYERS = 5
UNITS = 100


class PairwiseEstimator(nn.Module):
    """h(row to explain, training row, its output) → logit of the selection probability.

    Inputs of the paper's text: both rows and the training row's output. Inputs of its released code: their product,
    their difference and both rows, without the output. The first layer is a sum of products over one row each, so no
    tensor of (queries × rows × inputs) is ever built.
    """

    def __init__(self, n_features: int, inputs: Inputs = "text") -> None:
        super().__init__()
        self.inputs = inputs
        self.from_query = nn.Linear(n_features, UNITS)
        self.from_row = nn.Linear(n_features, UNITS, bias=False)
        if inputs == "text":
            self.from_output = nn.Linear(1, UNITS, bias=False)
        else:
            self.from_product = nn.Linear(n_features, UNITS, bias=False)
            self.from_difference = nn.Linear(n_features, UNITS, bias=False)
        hidden: list[nn.Module] = [nn.Tanh()]
        for _ in range(LAYERS - 2):
            hidden += [nn.Linear(UNITS, UNITS), nn.Tanh()]
        self.rest = nn.Sequential(*hidden, nn.Linear(UNITS, 1))
        fan_in = n_features * (4 if inputs == "released" else 2) + (1 if inputs == "text" else 0)
        self._initialise(fan_in)

    def _initialise(self, fan_in: int) -> None:
        """Glorot's uniform start, the first layer taken as the one wide layer that it is."""
        first = (6 / (fan_in + UNITS)) ** 0.5
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                if name.startswith("rest"):
                    nn.init.xavier_uniform_(module.weight)
                else:
                    nn.init.uniform_(module.weight, -first, first)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, queries: torch.Tensor, rows: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        """Logits (queries, rows) from (queries, features), (rows, features) and the rows' outputs (rows,)."""
        first = self.from_query(queries)[:, None, :] + self.from_row(rows)[None, :, :]
        if self.inputs == "text":
            first = first + self.from_output(outputs[:, None])[None, :, :]
        else:
            by_query = queries[:, None, :] * self.from_product.weight[None, :, :]  # (queries, units, features)
            first = first + rows @ by_query.transpose(1, 2)
            first = first + self.from_difference(rows)[None, :, :] - self.from_difference(queries)[:, None, :]
        return self.rest(first)[:, :, 0]


@dataclass
class PairwiseWeighting:
    """A trained pairwise estimator over all training rows."""

    estimator: PairwiseEstimator

    def candidates(self, training: TrainingRows) -> int:
        """How many rows each query gets."""
        return len(training)

    def inputs(self, training: TrainingRows, values: np.ndarray) -> torch.Tensor:
        """The surrogate's own features, as in the paper: (queries, features)."""
        return torch.as_tensor(training.table.features(values), dtype=torch.float32)

    def logits(self, training: TrainingRows, queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Logits (queries, rows) from the queries' inputs."""
        return self.estimator(queries, training.features[rows], training.seen_targets[rows])

    def neighbourhood(self, training: TrainingRows, values: np.ndarray) -> Neighbourhood:
        """Candidates and weights of each row given by its values."""
        device = next(self.estimator.parameters()).device
        on_device, every = training.on(str(device)), torch.arange(len(training), device=device)
        self.estimator.eval()
        with torch.no_grad():
            # One query at a time, each copied: shapes and memory alignment, which rounding depends on, are then the
            # same for all, and a row's weights do not depend on its batch.
            queries = self.inputs(training, values).to(device)
            one_by_one = [self.logits(on_device, query[None].clone(), every) for query in queries]
            weights = torch.cat([torch.sigmoid(logits) for logits in one_by_one]).double().cpu().numpy()
        return over_all_rows(training, values, weights)
