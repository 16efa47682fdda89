"""Retrieve, then weigh: of the rows a forest finds near, a learned kernel says how much each should count."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from scipy.special import expit
from torch import nn

from limis.retrieval import Retriever
from limis.retrieval.index import strongest
from limis.rows import TrainingRows
from limis.weighting.base import Neighbourhood
from limis.weighting.factored import embedding
from limis.weighting.learned import estimator_inputs

START_SCALE, START_EMBEDDING = 10.0, 0.3


class RetrievedEstimator(nn.Module):
    """Logits b + a·log(closeness) − ‖e(row to explain) − e(training row)‖², and what a weight is worth to the ridge.

    Closeness is a row's forest weight as a share of the strongest one. With a = 1 and an embedding that tells little
    apart, where training starts, the weights are about the forest's own.
    """

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.kernel = embedding(n_inputs)
        with torch.no_grad():
            for parameter in self.kernel[-1].parameters():
                parameter.mul_(START_EMBEDDING)
        self.bias = nn.Parameter(torch.zeros(()))
        self.mixing = nn.Parameter(torch.ones(()))
        self.log_scale = nn.Parameter(torch.tensor(float(np.log(START_SCALE))))

    def forward(self, queries: torch.Tensor, rows: torch.Tensor, closeness: torch.Tensor) -> torch.Tensor:
        """Logits (queries, candidates) from inputs (queries, inputs) and (queries, candidates, inputs).

        Padding, whose closeness is 0, gets a logit of minus infinity.
        """
        apart = self.kernel(queries)[:, None, :] - self.kernel(rows)
        return self.bias + self.mixing * closeness.log() - apart.square().sum(dim=2)


@dataclass
class RetrievedWeighting:
    """A trained estimator on the ``n_candidates`` strongest rows of a forest."""

    retriever: Retriever
    estimator: RetrievedEstimator
    n_candidates: int
    _embedded: np.ndarray | None = field(default=None, init=False, repr=False)  # (training rows, embedding)

    def candidates(self, training: TrainingRows) -> int:
        """How many rows each query gets."""
        return min(self.n_candidates, len(training))

    def neighbourhood(self, training: TrainingRows, values: np.ndarray) -> Neighbourhood:
        """Candidates and weights of each row given by its values."""
        rows, closeness = retrieve(self.retriever, training, values, self.candidates(training))
        if self._embedded is None:
            self._embedded = self._embed(estimator_inputs(training.table, training.values))
        apart = self._embed(estimator_inputs(training.table, values))[:, None, :] - self._embedded[rows]
        bias, mixing, log_scale = (
            float(part.detach()) for part in (self.estimator.bias, self.estimator.mixing, self.estimator.log_scale)
        )
        known = closeness > 0
        logits = bias + mixing * np.log(np.where(known, closeness, 1.0)) - (apart**2).sum(axis=2)
        return Neighbourhood(rows, expit(logits) * known, float(np.exp(log_scale)))

    def _embed(self, inputs: torch.Tensor) -> np.ndarray:
        self.estimator.eval()
        with torch.no_grad():
            # One row at a time, each copied: a row's embedding does not depend on the rows beside it.
            embedded = [self.estimator.kernel(row[None].clone()) for row in inputs]
        return torch.cat(embedded).double().numpy()


def retrieve(
    retriever: Retriever, training: TrainingRows, values: np.ndarray, n_candidates: int
) -> tuple[np.ndarray, np.ndarray]:
    """The strongest rows and their closeness, 0 for padding: (queries, candidates) each."""
    rows, weights = strongest(retriever.proximity(training, values), n_candidates)
    return rows, weights / np.maximum(weights.max(axis=1, keepdims=True), 1e-300)
