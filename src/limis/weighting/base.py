"""What every weighting gives: for each row to explain, candidate training rows and their weights."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from limis.rows import TrainingRows


@dataclass
class Neighbourhood:
    """Candidates in row order, padded with row 0 at weight 0 to a fixed number."""

    rows: np.ndarray  # (queries, candidates) int64
    weights: np.ndarray  # (queries, candidates) float64, in [0, 1]
    scale: float = 1.0  # what a weight of 1 is worth against the ridge's penalty


class Weighting(Protocol):
    """A fitted weight estimator."""

    def neighbourhood(self, training: TrainingRows, values: np.ndarray) -> Neighbourhood:
        """The candidates of each row, given by its values; equal training rows get no weight."""
        ...

    def candidates(self, training: TrainingRows) -> int:
        """How many candidates each row gets: what one block of the surrogate's work is sized by."""
        ...


def sample_neighbourhood(found: Neighbourhood, values: np.ndarray, seed: int) -> Neighbourhood:
    """Bernoulli selection instead of weights (the paper's ablation), the strongest row always selected.

    The draw is made from the row itself, so the same row always draws the same.
    """
    drawn = np.zeros_like(found.weights)
    for query, row in enumerate(values):
        rng = row_generator(row, seed)
        drawn[query] = rng.random(found.weights.shape[1]) * found.weights[query].max() < found.weights[query]
    return Neighbourhood(found.rows, drawn, found.scale)


def row_generator(row: np.ndarray, seed: int) -> np.random.Generator:
    """A generator that depends on a row's values and the seed alone."""
    # One zero and one NaN: rows that are equal draw alike.
    plain = np.where(np.isnan(row), np.nan, row) + 0.0
    digest = hashlib.blake2b(plain.tobytes(), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "little")])
