"""One weighting for all rows to explain: a weight for each training row, whatever is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from limis.rows import TrainingRows
from limis.weighting.base import Neighbourhood
from limis.weighting.dense import over_all_rows


class SharedEstimator(nn.Module):
    """A free logit for each training row; it never looks at the row to explain."""

    def __init__(self, n_rows: int) -> None:
        super().__init__()
        self.row_logits = nn.Parameter(torch.zeros(n_rows))

    def forward(self, n_queries: int, rows: torch.Tensor) -> torch.Tensor:
        """The same logits for every query: (queries, rows)."""
        return self.row_logits[rows].expand(n_queries, -1)


@dataclass
class SharedWeighting:
    """Trained weights that are the same for every row to explain, its equals aside (learning to reweight)."""

    estimator: SharedEstimator

    def candidates(self, training: TrainingRows) -> int:
        """How many rows each query gets."""
        return len(training)

    def inputs(self, training: TrainingRows, values: np.ndarray) -> torch.Tensor:  # noqa: ARG002 - as all have it
        """Nothing is seen of a query: (queries, 0)."""
        return torch.empty(len(values), 0)

    def logits(self, training: TrainingRows, queries: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Logits (queries, rows), the same for every query."""
        return self.estimator(len(queries), rows)

    def neighbourhood(self, training: TrainingRows, values: np.ndarray) -> Neighbourhood:
        """Candidates and weights of each row given by its values."""
        with torch.no_grad():
            shared = torch.sigmoid(self.estimator.row_logits).double().numpy()
        return over_all_rows(training, values, np.tile(shared, (len(values), 1)))
