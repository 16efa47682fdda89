"""Which of the rows that a forest finds near say how high a row stands: a metric, learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel

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

    def shares(self, own: np.ndarray, others: np.ndarray, near: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Each candidate's share, from the places of rows and of all candidates, and the forest's weights.

        own : (rows, directions); others : (all candidates, directions); near, weights : (rows, candidates).
        """
        shares = np.zeros(weights.shape)
        _write_shares(own, others, near, weights, self.power, shares)
        return shares


@in_parallel
def _write_shares(
    own: np.ndarray, others: np.ndarray, near: np.ndarray, weights: np.ndarray, power: float, shares: np.ndarray
) -> None:
    """Write the shares into zeroed ``shares``; what has no weight has none."""
    for row in prange(len(near)):
        highest = -np.inf
        for candidate in range(near.shape[1]):
            weight = weights[row, candidate]
            if weight > 0:
                apart = 0.0
                for direction in range(own.shape[1]):
                    apart += (others[near[row, candidate], direction] - own[row, direction]) ** 2
                shares[row, candidate] = power * np.log(weight) - TAIL * np.log1p(apart / TAIL)
                highest = max(highest, shares[row, candidate])
        total = 0.0
        for candidate in range(near.shape[1]):
            if weights[row, candidate] > 0:
                shares[row, candidate] = np.exp(shares[row, candidate] - highest)
                total += shares[row, candidate]
        if total > 0:
            shares[row] /= total


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
