"""Forest weights: how often a training row shares a leaf with the row to explain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.retrieval import Retriever
from limis.rows import TrainingRows
from limis.weighting.base import Neighbourhood


@dataclass
class ForestWeighting:
    """The ``n_candidates`` strongest rows of the forest; ``scale`` is what their weights are worth to the ridge."""

    retriever: Retriever
    n_candidates: int
    scale: float

    def candidates(self, training: TrainingRows) -> int:
        """How many rows each query gets."""
        return min(self.n_candidates, len(training))

    def neighbourhood(self, training: TrainingRows, values: np.ndarray) -> Neighbourhood:
        """Candidates and weights of each row given by its values."""
        rows, weights = self.retriever.nearest(training, values, self.candidates(training))
        return Neighbourhood(rows, weights, self.scale)
