"""Training rows that already have the wished outcome, nearest first."""

from __future__ import annotations

import numpy as np

from limis.perturb import DONOR_POOL, gower_distance
from limis.rows import TrainingRows
from limis.suggest.target import Target

NEAR = 10
_CELLS = 4_000_000  # rows × training rows whose distances are held at once


def near_with_outcome(training: TrainingRows, values: np.ndarray, rows: np.ndarray, target: Target) -> list[np.ndarray]:
    """For each row the `NEAR` nearest training rows (Gower distance on ranks) that have what is wished for it.

    ``values`` are those of ``rows``. Of very many training rows some are looked at, evenly spread.
    """
    looked_at = np.linspace(0, len(training) - 1, min(len(training), DONOR_POOL)).astype(np.int64)
    table = training.table
    ranks = table.ranks(training.values[looked_at])
    size = max(1, _CELLS // len(looked_at))
    found: list[np.ndarray] = []
    for start in range(0, len(rows), size):
        block = slice(start, start + size)
        wished = np.array([target.reached(training.outputs[looked_at], row) for row in rows[block].tolist()])
        useful = wished.any(axis=0)
        distance = gower_distance(table.ranks(values[block]), ranks[useful], table.is_category)
        distance[~wished[:, useful]] = np.inf
        found += [_nearest(looked_at[useful], line) for line in distance]
    return found


def _nearest(pool: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """The nearest rows of the pool, ties by their order; none that is infinitely far."""
    k = min(NEAR, len(pool))
    if k == 0:
        return pool
    near = np.flatnonzero(distance <= np.partition(distance, k - 1)[k - 1])
    near = near[np.argsort(distance[near], kind="stable")][:k]
    return pool[near[np.isfinite(distance[near])]]
