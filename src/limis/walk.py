"""A row's walk through the stages: weigh the training rows, fit the surrogate on them.

Everything that explains goes this way: the explainer, the choosing of options on probe rows, and the checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.linear_model import Ridge

from limis.perturb import MovedRows
from limis.rows import TrainingRows
from limis.spans import Spans
from limis.surrogate import fit_local_ridge
from limis.table import Table
from limis.weighting import Neighbourhood, Weighting, sample_neighbourhood

ALPHA = 1.0
SMALL_BLOCK = 256  # rows
# Tensors of (queries × candidates × features), and of (queries × features × features), alive at once in a fit.
_TENSORS_ALIVE = 6


class Shared:
    """What the surrogates of all rows have in common: not divided when some of them are taken."""


@dataclass(eq=False)
class LocalFits:
    """The surrogates of some rows, in feature units.

    At its own row x, g says level + reach · coefficients · (x − feature_means); elsewhere that and coefficients · step,
    where a step ends with the span of values that the slopes rest on.
    """

    features: np.ndarray  # (rows, features) of the explained rows
    coefficients: np.ndarray  # (rows, features)
    feature_means: np.ndarray  # (rows, features), over the weighted rows
    feature_spread: np.ndarray  # (rows, features), their standard deviation there
    levels: np.ndarray  # (rows,) weighted mean output
    reach: np.ndarray  # (rows,) how much of the way from the weighted mean to the row the slopes hold, in [0, 1]
    residual_mean_square: np.ndarray  # (rows,) leave-one-out, over the weighted rows
    spread_mean_square: np.ndarray  # (rows,) the same for the weighted mean alone
    unknown: np.ndarray  # (rows, features) bool: levels that nothing the slopes rest on has
    empty: np.ndarray  # (rows,) bool: fewer than two training rows had weight, so this is the global model
    weights: sp.csr_array  # (rows, training rows), in [0, 1]
    slope_weights: sp.csr_array  # (rows, training rows) that the slopes rest on; the same unless there are two scales
    scale: np.ndarray  # (rows,) what a weight of 1 is worth against the ridge's penalty
    spans: Spans | None = None  # None: slopes lead on without end, or there are none

    @property
    def has_coefficients(self) -> bool:
        """Whether the coefficients are what the surrogates are."""
        return True

    @property
    def has_contributions(self) -> bool:
        """Whether it has a meaning to say what each column adds."""
        return True

    @property
    def has_rules(self) -> bool:
        """Whether the surrogates can be read as if-then rules."""
        return False

    @property
    def has_curves(self) -> bool:
        """Whether the surrogates can be read as curves, and stand at what the black box says of the row."""
        return False

    @property
    def has_stand_in(self) -> bool:
        """Whether they tell of a stand-in, taught on given outputs, where there was no model to ask."""
        return False

    def predictions(self) -> np.ndarray:
        """g at the explained rows."""
        return self.levels + self.weighted_differences().sum(axis=1)

    def weighted_differences(self) -> np.ndarray:
        """Each feature's part in the step from the neighbourhood's mean to the row: (rows, features)."""
        return self.reach[:, None] * self.coefficients * (self.features - self.feature_means)

    def contributions(self, table: Table) -> np.ndarray:
        """Each original column's part in the step from the base to the local prediction: (rows, columns)."""
        starts = np.flatnonzero(np.diff(table.feature_column, prepend=-1))
        return np.add.reduceat(self.weighted_differences(), starts, axis=1)

    def size(self) -> np.ndarray:
        """How steep or large the surrogates are, one of the signs by which their errors are bounded: (rows,)."""
        return np.sqrt((self.coefficients**2).sum(axis=1))

    def changes(self, rows: np.ndarray, moved: MovedRows) -> np.ndarray:
        """What g says of moves: g(moved) − g(row), for each move."""
        steps = moved.features - self.features[rows]
        if self.spans is not None:
            self.spans.shorten(steps, self.features, rows, moved)
        return (steps * self.coefficients[rows]).sum(axis=1)

    def part(self, chosen: np.ndarray) -> Self:
        """The fits of some of the rows."""
        return _part(self, chosen)

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """The fits of several blocks, all of one kind, as one."""
        return parts[0] if len(parts) == 1 else _join(parts)


def _part(held: Any, chosen: np.ndarray) -> Any:
    if held is None or isinstance(held, Shared):
        return held
    if is_dataclass(held) and not isinstance(held, type):
        return replace(held, **{field.name: _part(getattr(held, field.name), chosen) for field in fields(held)})
    return held[chosen]


def _join(pieces: list[Any]) -> Any:
    first = pieces[0]
    if first is None or isinstance(first, Shared):
        return first
    if is_dataclass(first) and not isinstance(first, type):
        names = [field.name for field in fields(first)]
        return replace(first, **{name: _join([getattr(piece, name) for piece in pieces]) for name in names})
    return sp.csr_array(sp.vstack(pieces)) if sp.issparse(first) else np.concatenate(pieces)


@dataclass
class GlobalFit:
    """One ridge over all training rows: what is left when no row has weight, and the model to beat."""

    coefficients: np.ndarray
    feature_means: np.ndarray
    level: float
    residual_mean_square: float
    spread_mean_square: float

    @classmethod
    def of(cls, training: TrainingRows) -> GlobalFit:
        """Fit it."""
        features = training.features.double().numpy()
        ridge = Ridge(alpha=ALPHA).fit(features, training.outputs, sample_weight=training.sample_weight)
        means = np.average(features, axis=0, weights=training.sample_weight)
        residual = np.average((training.outputs - ridge.predict(features)) ** 2, weights=training.sample_weight)
        spread = np.average((training.outputs - training.overall_mean) ** 2, weights=training.sample_weight)
        return cls(ridge.coef_, means, training.overall_mean, float(residual), float(spread))

    def predict(self, features: np.ndarray) -> np.ndarray:
        """What it says of rows given by their features."""
        return self.level + (features - self.feature_means) @ self.coefficients


def rows_that_fit(n_candidates: int, n_features: int, memory_limit: float) -> int:
    """How many rows' surrogates fit together into ``memory_limit`` GiB."""
    width = n_features + 16
    a_row = _TENSORS_ALIVE * width * (4 * n_candidates + 8 * width)  # float32 rows, float64 systems
    return int(max(1, min(SMALL_BLOCK, memory_limit * 2**30 // a_row)))


def blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Slices of so many rows."""
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


class LocalModel(Protocol):
    """A fitted way to get from rows to their surrogates."""

    def rows_at_once(self, training: TrainingRows, memory_limit: float) -> int:
        """How many rows make one block of work, for which ``memory_limit`` GiB are there."""
        ...

    def fit(self, training: TrainingRows, fallback: GlobalFit, values: np.ndarray) -> LocalFits:
        """The surrogates of one block of rows."""
        ...


@dataclass
class OneScale:
    """Level and slopes from the same weighted rows: a weighted ridge, as in the paper."""

    weighting: Weighting
    inference: str = "weights"
    seed: int = 0

    def rows_at_once(self, training: TrainingRows, memory_limit: float) -> int:
        """As many as fit with all of their candidates' features."""
        return rows_that_fit(self.weighting.candidates(training), training.features.shape[1], memory_limit)

    def fit(self, training: TrainingRows, fallback: GlobalFit, values: np.ndarray) -> LocalFits:
        """Weigh the training rows for each row and fit its ridge."""
        found = self.weighting.neighbourhood(training, values)
        if self.inference == "sample":
            found = sample_neighbourhood(found, values, self.seed)
        return fit_block(training, found, fallback, values)


def fit_locally(
    training: TrainingRows,
    model: LocalModel,
    fallback: GlobalFit,
    values: np.ndarray,
    memory_limit: float = 1.0,
) -> Iterator[LocalFits]:
    """The surrogates of every row, a block at a time."""
    for block in blocks(len(values), model.rows_at_once(training, memory_limit)):
        yield model.fit(training, fallback, values[block])


def fit_block(training: TrainingRows, found: Neighbourhood, fallback: GlobalFit, values: np.ndarray) -> LocalFits:
    """Fit the surrogates of one block of rows on their neighbourhoods."""
    rows = torch.as_tensor(found.rows)
    scaled = torch.as_tensor(found.weights * found.scale, dtype=torch.float32)
    fit = fit_local_ridge(training.features[rows], training.targets[rows], scaled, ALPHA)
    unit, empty = training.unit, fit.empty.numpy()
    levels = fit.target_means.double().numpy() * unit + training.overall_mean
    coefficients = fit.coefficients.double().numpy() * unit
    means = fit.feature_means.double().numpy()
    residual = fit.residual_mean_square.double().numpy() * unit**2
    spread = fit.spread_mean_square.double().numpy() * unit**2
    coefficients[empty], means[empty], levels[empty] = fallback.coefficients, fallback.feature_means, fallback.level
    residual[empty], spread[empty] = fallback.residual_mean_square, fallback.spread_mean_square
    weights = as_sparse(found.rows, found.weights, len(training))
    features = training.table.features(values)
    spans = Spans.of_values(training.table, features, training.numbers[found.rows], found.weights)
    spans.reach_all(training.table, empty)
    return LocalFits(
        features=features,
        coefficients=coefficients,
        feature_means=means,
        feature_spread=fit.feature_spread.double().numpy(),
        levels=levels,
        reach=np.ones(len(values)),
        residual_mean_square=residual,
        spread_mean_square=spread,
        unknown=training.table.is_level & (means <= 0),
        empty=empty,
        weights=weights,
        slope_weights=weights,
        scale=np.full(len(values), found.scale),
        spans=spans,
    )


def as_sparse(rows: np.ndarray, weights: np.ndarray, n_training: int) -> sp.csr_array:
    """(queries, candidates) → (queries, training rows), without the padding."""
    kept = weights > 0
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return sp.csr_array((weights[kept], rows[kept], starts), shape=(len(rows), n_training))
