"""Weights over all training rows: what trained estimators have in common, and the factored one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from scipy.special import expit
from torch import nn

from limis.rows import TrainingRows
from limis.weighting.base import Neighbourhood, Weighting
from limis.weighting.factored import FactoredEstimator
from limis.weighting.learned import estimator_inputs

# Queries are weighed so many at a time, the last block filled up: a row's weights do not depend on its batch.
BLOCK = 64


class DenseWeighting(Weighting, Protocol):
    """A weighting that can be trained: it has a logit for every pair of a row to explain and a training row."""

    @property
    def estimator(self) -> nn.Module:
        """What is trained."""
        ...

    def inputs(self, training: TrainingRows, values: np.ndarray) -> torch.Tensor:
        """What the estimator sees of rows given by their values: (queries, inputs)."""
        ...

    def logits(self, training: TrainingRows, queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Logits (queries, rows) of selecting the training rows at these places, from the queries' inputs."""
        ...


@dataclass
class FactoredWeighting:
    """A trained factored estimator over all training rows."""

    estimator: FactoredEstimator
    _row_inputs: torch.Tensor | None = field(default=None, init=False, repr=False)

    def candidates(self, training: TrainingRows) -> int:
        """How many rows each query gets."""
        return len(training)

    def inputs(self, training: TrainingRows, values: np.ndarray) -> torch.Tensor:
        """Ranks of the numbers and one-hot levels: (queries, inputs)."""
        return estimator_inputs(training.table, values)

    def logits(self, training: TrainingRows, queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Logits (queries, rows) from the queries' inputs."""
        if self._row_inputs is None or self._row_inputs.device != queries.device:
            self._row_inputs = self.inputs(training, training.values).to(queries.device)
        return self.estimator(queries, self._row_inputs[rows])

    def neighbourhood(self, training: TrainingRows, values: np.ndarray) -> Neighbourhood:
        """Candidates and weights of each row given by its values."""
        queries = self.inputs(training, values)
        filled = nn.functional.pad(queries, (0, 0, 0, -len(queries) % BLOCK))
        every = torch.arange(len(training))
        self.estimator.eval()
        with torch.no_grad():
            logits = torch.cat([self.logits(training, block.clone(), every) for block in filled.split(BLOCK)])
        # Not torch's sigmoid, whose last digit depends on where in the array a number stands.
        return over_all_rows(training, values, expit(logits[: len(queries)].double().numpy()))


def over_all_rows(training: TrainingRows, values: np.ndarray, weights: np.ndarray) -> Neighbourhood:
    """Every training row as a candidate: a row's equals get no weight, and rows count by their sample weight."""
    weights[training.twins(values).nonzero()] = 0.0
    if training.sample_weight is not None:
        weights *= training.sample_weight / training.sample_weight.max()
    rows = np.tile(np.arange(len(training)), (len(weights), 1))
    return Neighbourhood(rows, weights)
