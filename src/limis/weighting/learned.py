"""Which rows' recorded changes speak for a row: learned, over all training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from limis.rows import TrainingRows
from limis.table import Table
from limis.weighting.factored import FactoredEstimator


@dataclass
class LearnedSlopes:
    """A trained factored estimator; its weights are selection probabilities."""

    estimator: FactoredEstimator

    def weights(self, training: TrainingRows, values: np.ndarray) -> sp.csr_array:
        """(rows, training rows), a row's equals without weight."""
        rows = estimator_inputs(training.table, training.values)
        self.estimator.eval()
        with torch.no_grad():
            # One row at a time, each copied: shapes and memory alignment, which rounding depends on, are then the
            # same for all, and a row's weights do not depend on its batch.
            queries, embedded = estimator_inputs(training.table, values), self.estimator.embed(rows)
            found = [torch.sigmoid(self.estimator.logits(query[None].clone(), *embedded)) for query in queries]
        weights = torch.cat(found).double().numpy()
        weights[training.twins(values).nonzero()] = 0.0
        if training.sample_weight is not None:
            weights *= training.sample_weight / training.sample_weight.max()
        return sp.csr_array(weights)


def estimator_inputs(table: Table, values: np.ndarray) -> torch.Tensor:
    """What estimators see of a row: numbers by rank with about unit variance, levels as they are: (rows, inputs)."""
    return torch.as_tensor(seen_by_estimators(table, values), dtype=torch.float32)


def seen_by_estimators(table: Table, values: np.ndarray, features: np.ndarray | None = None) -> np.ndarray:
    """The same as an array of float64 that holds float32's; ``features`` are the rows' own, where they are known."""
    features = table.features(values) if features is None else features.copy()
    ranks = (table.ranks(values) - 0.5) * np.sqrt(12)
    numbers = ~table.is_level
    features[:, numbers] = np.nan_to_num(ranks[:, table.feature_column[numbers]])
    return features.astype(np.float32).astype(np.float64)
