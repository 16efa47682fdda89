"""A row's walk through the stages: weigh the training rows, fit the surrogate on them.

Everything that explains goes this way: the explainer, the choosing of options on probe rows, and the checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import Ridge

from limis.rows import TrainingRows
from limis.surrogate import fit_local_ridge
from limis.weighting import Neighbourhood, Weighting, sample_neighbourhood

ALPHA = 1.0
# Tensors of (queries × candidates × features) alive at once in the ridge's fit.
_TENSORS_ALIVE = 6


@dataclass
class LocalFits:
    """The surrogates of some rows, in feature units: g(x) = level + coefficients · (x − feature_means)."""

    features: np.ndarray  # (rows, features) of the explained rows
    coefficients: np.ndarray  # (rows, features)
    feature_means: np.ndarray  # (rows, features), over the weighted rows
    feature_spread: np.ndarray  # (rows, features), their standard deviation there
    levels: np.ndarray  # (rows,) weighted mean output
    residual_mean_square: np.ndarray  # (rows,) leave-one-out, over the weighted rows
    spread_mean_square: np.ndarray  # (rows,) the same for the weighted mean alone
    empty: np.ndarray  # (rows,) bool: no training row had weight
    weights: sp.csr_array  # (rows, training rows)

    def predictions(self) -> np.ndarray:
        """g at the explained rows."""
        return self.levels + self.weighted_differences().sum(axis=1)

    def weighted_differences(self) -> np.ndarray:
        """Each feature's part in the step from the neighbourhood's mean to the row: (rows, features)."""
        return self.coefficients * (self.features - self.feature_means)

    def changes(self, rows: np.ndarray, moved_features: np.ndarray) -> np.ndarray:
        """What g says of moves: g(moved) − g(row), for each move."""
        return ((moved_features - self.features[rows]) * self.coefficients[rows]).sum(axis=1)

    def part(self, chosen: np.ndarray) -> LocalFits:
        """The fits of some of the rows."""
        return LocalFits(**{field.name: getattr(self, field.name)[chosen] for field in fields(LocalFits)})

    @staticmethod
    def join(parts: list[LocalFits]) -> LocalFits:
        """The fits of several blocks as one."""
        joined = {}
        for field in fields(LocalFits):
            pieces = [getattr(part, field.name) for part in parts]
            joined[field.name] = sp.csr_array(sp.vstack(pieces)) if field.name == "weights" else np.concatenate(pieces)
        return LocalFits(**joined)


@dataclass
class GlobalFit:
    """One ridge over all training rows: what is left when no row has weight, and the model to beat."""

    coefficients: np.ndarray
    feature_means: np.ndarray
    level: float

    @classmethod
    def of(cls, training: TrainingRows) -> GlobalFit:
        """Fit it."""
        features = training.features.double().numpy()
        ridge = Ridge(alpha=ALPHA).fit(features, training.outputs, sample_weight=training.sample_weight)
        means = np.average(features, axis=0, weights=training.sample_weight)
        return cls(ridge.coef_, means, training.overall_mean)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """What it says of rows given by their features."""
        return self.level + (features - self.feature_means) @ self.coefficients


def blocks(n_rows: int, n_candidates: int, n_features: int, memory_limit: float) -> Iterator[slice]:
    """Slices of rows whose surrogates fit together into ``memory_limit`` GiB."""
    a_row = max(1, _TENSORS_ALIVE * n_candidates * (n_features + 16) * 4)
    size = int(max(1, min(256, memory_limit * 2**30 // a_row)))
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


def fit_locally(
    training: TrainingRows,
    weighting: Weighting,
    fallback: GlobalFit,
    values: np.ndarray,
    *,
    inference: str = "weights",
    memory_limit: float = 1.0,
    seed: int = 0,
) -> Iterator[LocalFits]:
    """Weigh and fit for every row, a block at a time."""
    width = weighting.candidates(training)
    for block in blocks(len(values), width, training.features.shape[1], memory_limit):
        found = weighting.neighbourhood(training, values[block])
        if inference == "sample":
            found = sample_neighbourhood(found, values[block], seed)
        yield fit_block(training, found, fallback, values[block])


def fit_block(training: TrainingRows, found: Neighbourhood, fallback: GlobalFit, values: np.ndarray) -> LocalFits:
    """Fit the surrogates of one block of rows on their neighbourhoods."""
    weights = found.weights
    if training.sample_weight is not None:
        weights = weights * training.sample_weight[found.rows]
    rows = torch.as_tensor(found.rows)
    fit = fit_local_ridge(
        training.features[rows], training.targets[rows], torch.as_tensor(weights, dtype=torch.float32), ALPHA
    )
    levels = fit.target_means.double().numpy() + training.overall_mean
    coefficients = fit.coefficients.double().numpy()
    means = fit.feature_means.double().numpy()
    empty = fit.empty.numpy()
    coefficients[empty], means[empty], levels[empty] = fallback.coefficients, fallback.feature_means, fallback.level
    return LocalFits(
        features=training.table.features(values),
        coefficients=coefficients,
        feature_means=means,
        feature_spread=fit.feature_spread.double().numpy(),
        levels=levels,
        residual_mean_square=fit.residual_mean_square.double().numpy(),
        spread_mean_square=fit.spread_mean_square.double().numpy(),
        empty=empty,
        weights=_as_sparse(found.rows, weights, len(training)),
    )


def _as_sparse(rows: np.ndarray, weights: np.ndarray, n_training: int) -> sp.csr_array:
    """(queries, candidates) → (queries, training rows), without the padding."""
    kept = weights > 0
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return sp.csr_array((weights[kept], rows[kept], starts), shape=(len(rows), n_training))
