"""Means over rows with 95% intervals from resampled rows."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, t

FEWEST = 5  # rows that an interval takes
_NUMBERS_ALIVE = 4_000_000  # counts held at once


def means(values: np.ndarray) -> np.ndarray:
    """(rows, columns) → (columns,): over the rows in which each is known, NaN where it is in none."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    return np.divide(np.where(known, values, 0.0).sum(axis=0), count, out=np.full(len(count), np.nan), where=count > 0)


def resampled_means(values: np.ndarray, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Means over rows drawn with replacement: (resamples, columns)."""
    n = len(values)
    known = np.isfinite(values)
    filled, known = np.where(known, values, 0.0), known.astype(np.float64)
    batch = max(1, _NUMBERS_ALIVE // n)
    parts = []
    for start in range(0, n_resamples, batch):
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(batch, n_resamples - start)).astype(np.float64)
        seen = counts @ known
        parts.append(np.divide(counts @ filled, seen, out=np.full_like(seen, np.nan), where=seen > 0))
    return np.concatenate(parts)


def interval(resampled: np.ndarray, n_rows: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    """95% percentile intervals of each column of resampled means; NaN from fewer than `FEWEST` rows.

    Plain percentiles are too narrow for few rows. Percentiles further out are taken instead, by as much as Student's
    interval of so many rows is wider than the normal one (the expanded percentile interval of Hesterberg, 2015).
    """
    n = np.broadcast_to(n_rows, resampled.shape[1])
    ends = np.full((2, resampled.shape[1]), np.nan)
    for column in np.flatnonzero(n >= FEWEST):
        tail = norm.cdf(t.ppf(0.025, n[column] - 1) * np.sqrt(n[column] / (n[column] - 1)))
        ends[:, column] = np.nanquantile(resampled[:, column], [tail, 1 - tail])
    return ends[0], ends[1]
