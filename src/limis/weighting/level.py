"""Which of the rows that a forest finds near say how high a row stands: a metric, learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.threads import compiled

# Far out the kernel falls like this power of the distance, not exponentially: a row unlike all others still rests on
# several.
TAIL = 4.0


@dataclass
class LevelMetric:
    """The forest's weights to a power, less for rows that are far along learned directions."""

    directions: np.ndarray  # (inputs, directions)
    power: float

    def places(self, inputs: np.ndarray) -> np.ndarray:
        """Where rows given by the estimators' inputs stand along the directions: (rows, directions)."""
        return _along(inputs, self.directions)

    def shares(self, own: np.ndarray, others: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Each candidate's share, from the places of rows and of their candidates, and the forest's weights.

        own : (rows, directions); others : (rows, candidates, directions); weights : (rows, candidates).
        """
        known = weights > 0
        apart = ((others - own[:, None, :]) ** 2).sum(axis=2)
        logits = self.power * np.log(np.where(known, weights, 1.0)) - TAIL * np.log1p(apart / TAIL)
        logits = np.where(known, logits, -np.inf)
        highest = logits.max(axis=1, keepdims=True)
        shares = np.exp(logits - np.where(np.isfinite(highest), highest, 0.0))
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)


@compiled
def _along(inputs: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """A matrix product, added up one input after another: a row's place does not depend on its batch."""
    found = np.zeros((len(inputs), directions.shape[1]))
    for row in range(len(inputs)):
        for place in range(inputs.shape[1]):
            value = inputs[row, place]
            for direction in range(directions.shape[1]):
                found[row, direction] += value * directions[place, direction]
    return found
