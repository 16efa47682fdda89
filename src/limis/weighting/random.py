"""Random selection: the control that a learned selection must beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.rows import TrainingRows
from limis.weighting.base import Neighbourhood, row_generator
from limis.weighting.dense import over_all_rows


@dataclass
class RandomWeighting:
    """Selects each training row with probability ``share``, whatever the row to explain.

    The draw is made from the row itself and the seed, so the same row always draws the same.
    """

    share: float = 0.5
    seed: int = 0

    def candidates(self, training: TrainingRows) -> int:
        """How many rows each query gets."""
        return len(training)

    def neighbourhood(self, training: TrainingRows, values: np.ndarray) -> Neighbourhood:
        """Weight 1 for the rows drawn, 0 for the others."""
        drawn = [row_generator(row, self.seed).random(len(training)) < self.share for row in values]
        return over_all_rows(training, values, np.array(drawn, dtype=np.float64).reshape(len(values), len(training)))
