"""Who speaks: how much each row with recorded responses counts for a row to explain.

A row is selected with the probability σ(bias + power · log proximity − Σ price · distance): the forest's proximity is
the prior, and what each column's distance costs is learned. What the selected rows say is averaged, with some rows'
worth of silence among them, so that few or far rows say little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel


@compiled
def column_distance(here: float, there: float, category: bool) -> float:
    """How far apart two values of a column are: in ranks, and 1 between levels or where one is missing."""
    if category:
        return 0.0 if here == there else 1.0
    if np.isnan(here) or np.isnan(there):
        return 0.0 if np.isnan(here) and np.isnan(there) else 1.0
    return abs(here - there)


KINDS = ("forest", "uniform", "random", "none")


@dataclass
class ResponseWeights:
    """The weight estimator over the forest's candidates."""

    bias: float
    power: float  # of the proximity, relative to the nearest row's
    price: np.ndarray  # (columns,) of the distance in each column, from 0 to 1 in ranks; 1 between levels
    silence: float  # rows' worth of saying nothing
    n_candidates: int = 64
    kind: str = "forest"  # whose candidates: the forest's, all ("uniform"), "random" ones or "none"
    seed: int = 0  # of random ones

    @classmethod
    def silent(cls, n_columns: int) -> ResponseWeights:
        """No row speaks: the taught model alone."""
        return cls(0.0, 0.0, np.zeros(n_columns), 1.0, kind="none")

    @classmethod
    def by_chance(cls, n_columns: int, kind: str, seed: int) -> ResponseWeights:
        """All rows alike, or some drawn at random: what learning is held against."""
        return cls(
            3.0, 0.0, np.zeros(n_columns), 0.5, n_candidates=10**9 if kind == "uniform" else 32, kind=kind, seed=seed
        )

    @classmethod
    def forest(cls, n_columns: int, n_candidates: int = 64, silence: float = 0.5) -> ResponseWeights:
        """The prior alone: the forest's proximity."""
        return cls(bias=3.0, power=1.0, price=np.zeros(n_columns), silence=silence, n_candidates=n_candidates)

    def selected(self, proximity: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """The probability that each candidate is selected; cost is what its distances cost: (rows, candidates)."""
        known = proximity > 0
        nearest = np.maximum(proximity.max(axis=1, keepdims=True), 1e-300)
        logits = self.bias + self.power * np.log(np.where(known, proximity / nearest, 1.0)) - cost
        return np.where(known, 1 / (1 + np.exp(-logits)), 0.0)

    def shares(
        self, proximity: np.ndarray, ranks: np.ndarray, slots: np.ndarray, base_ranks: np.ndarray, category: np.ndarray
    ) -> np.ndarray:
        """How much each candidate's recorded responses count, less than 1 together: (rows, candidates).

        proximity, slots : (rows, candidates) of the candidates and their places among the recorded rows; 0 proximity is
        no candidate. ranks : (rows, columns), base_ranks : (recorded rows, columns).
        """
        shares = np.zeros(proximity.shape)
        _write_shares(
            proximity, ranks, slots, base_ranks, category, self.price, (self.bias, self.power, self.silence), shares
        )
        return shares


@in_parallel
def _write_shares(
    proximity: np.ndarray,
    ranks: np.ndarray,
    slots: np.ndarray,
    base_ranks: np.ndarray,
    category: np.ndarray,
    price: np.ndarray,
    scales: tuple[float, float, float],
    shares: np.ndarray,
) -> None:
    bias, power, silence = scales
    for row in prange(len(proximity)):
        nearest = proximity[row].max()
        if nearest <= 0:
            continue
        total = silence
        for candidate in range(proximity.shape[1]):
            if proximity[row, candidate] <= 0:
                continue
            logit = bias + power * np.log(proximity[row, candidate] / nearest)
            for column in range(len(price)):
                if price[column] > 0:
                    apart = column_distance(
                        ranks[row, column], base_ranks[slots[row, candidate], column], category[column]
                    )
                    logit -= price[column] * apart
            shares[row, candidate] = 1 / (1 + np.exp(-logit))
            total += shares[row, candidate]
        for candidate in range(proximity.shape[1]):
            shares[row, candidate] /= total


@in_parallel
def write_distances(
    ranks: np.ndarray, slots: np.ndarray, base_ranks: np.ndarray, category: np.ndarray, apart: np.ndarray
) -> None:
    """Write how far each candidate is in every column: (rows, candidates, columns)."""
    for row in prange(len(slots)):
        for candidate in range(slots.shape[1]):
            for column in range(ranks.shape[1]):
                apart[row, candidate, column] = column_distance(
                    ranks[row, column], base_ranks[slots[row, candidate], column], category[column]
                )
