"""Forest weights: how often a training row shares a leaf with the row to explain, times a scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from limis.retrieval import Retriever
from limis.retrieval.index import strongest
from limis.rows import TrainingRows
from limis.weighting.base import Neighbourhood


@dataclass
class ForestWeighting:
    """The ``n_candidates`` strongest rows of the forest. Their weights sum to ``scale`` (before any cut)."""

    retriever: Retriever
    n_candidates: int
    scale: float

    def candidates(self, training: TrainingRows) -> int:
        """How many rows each query gets."""
        return min(self.n_candidates, len(training))

    def neighbourhood(self, training: TrainingRows, values: np.ndarray) -> Neighbourhood:
        """Candidates and weights of each row given by its values."""
        rows, weights = strongest(self.proximity(training, values), self.candidates(training))
        return Neighbourhood(rows, weights * self.scale)

    def proximity(self, training: TrainingRows, values: np.ndarray) -> sp.csr_array:
        """Forest weights with every training row that equals the explained one left out, of the forest too."""
        twins = training.twins(values)
        if twins.nnz == 0:
            return self.retriever.proximity(training.table, values)
        saw_a_twin = (twins @ self.retriever.in_bag.astype(np.float64)) > 0
        near = self.retriever.proximity(training.table, values, ~saw_a_twin)
        near = sp.csr_array(near - near.multiply(twins))
        near.eliminate_zeros()
        near.sort_indices()
        return near
