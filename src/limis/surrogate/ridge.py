"""Weighted ridge regressions, many at once: one for every row to explain.

Each minimises  Σ wᵢ (yᵢ − b − xᵢ·β)² + alpha‖β‖²  with a free intercept b, like scikit-learn's ``Ridge``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

# Widths that are multiples of 16 put every matrix of a batch on the same memory alignment; the matrix products
# then add in the same order whatever the batch, and one row explained alone gives the same bits as in a thousand.
WIDTH_MULTIPLE = 16


@dataclass
class RidgeSolution:
    """Ridges of many queries, with what their checks are made from; differentiable in the weights."""

    coefficients: torch.Tensor  # (queries, features)
    feature_means: torch.Tensor  # (queries, features), weighted
    target_means: torch.Tensor  # (queries,), weighted
    centred: torch.Tensor  # (queries, rows, features)
    centred_targets: torch.Tensor  # (queries, rows)
    share: torch.Tensor  # (queries, rows): the weights, summing to 1
    feature_spread: torch.Tensor  # (queries, features), weighted standard deviation
    inverse: torch.Tensor  # (queries, features, features) of the penalised Gram matrix, float64
    empty: torch.Tensor  # (queries,) bool: fewer than two rows had weight

    def predict(self, rows: torch.Tensor) -> torch.Tensor:
        """g at one row a query: (queries,) from (queries, features)."""
        return self.target_means + ((pad_width(rows) - self.feature_means) * self.coefficients).sum(dim=-1)


@dataclass
class LocalRidge:
    """Fitted ridges and how well they hold on their own rows; the queries are the first dimension."""

    coefficients: torch.Tensor  # (queries, features)
    feature_means: torch.Tensor  # (queries, features), weighted
    feature_spread: torch.Tensor  # (queries, features), weighted standard deviation
    target_means: torch.Tensor  # (queries,), weighted
    residual_mean_square: torch.Tensor  # (queries,), weighted, leave-one-out
    spread_mean_square: torch.Tensor  # (queries,), the same for the weighted mean alone
    empty: torch.Tensor  # (queries,) bool

    @property
    def intercepts(self) -> torch.Tensor:
        """g where every feature is zero: (queries,)."""
        return self.target_means - (self.feature_means * self.coefficients).sum(dim=1)


def pad_width(features: torch.Tensor) -> torch.Tensor:
    """Columns of zeros up to the next multiple of `WIDTH_MULTIPLE`; a ridge gives them coefficient 0."""
    missing = -features.shape[-1] % WIDTH_MULTIPLE
    return torch.nn.functional.pad(features, (0, missing)) if missing else features


def solve_ridge(
    features: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, alpha: float = 1.0
) -> RidgeSolution:
    """Solve one ridge a query.

    features : (queries, rows, features); targets, weights : (queries, rows). Weights are not negative.
    The Gram matrix is built in the features' type (never TF32, on centred features) and solved in float64.
    """
    features = pad_width(features)
    total = weights.sum(dim=1)
    # A single row carries no slope and has nothing to be checked against.
    empty = weights.amax(dim=1) >= (1 - 1e-6) * total
    safe_total = torch.where(total > 0, total, torch.ones_like(total))[:, None]
    share = weights / safe_total

    feature_means = (features * share[:, :, None]).sum(dim=1)
    target_means = (targets * share).sum(dim=1)
    centred = features - feature_means[:, None, :]
    centred_targets = targets - target_means[:, None]
    weighted = centred * weights[:, :, None]
    gram = weighted.transpose(1, 2) @ centred
    moment = (weighted * centred_targets[:, :, None]).sum(dim=1)
    inverse, coefficients = _solve(gram.double(), moment.double(), alpha)
    return RidgeSolution(
        coefficients=coefficients.to(features.dtype),
        feature_means=feature_means,
        target_means=target_means,
        centred=centred,
        centred_targets=centred_targets,
        share=share,
        feature_spread=(gram.diagonal(dim1=1, dim2=2) / safe_total).clamp(min=0).sqrt(),
        inverse=inverse,
        empty=empty,
    )


def fit_local_ridge(
    features: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, alpha: float = 1.0
) -> LocalRidge:
    """Solve one ridge a query and measure each on its own rows, every row left out in turn (in closed form)."""
    width = features.shape[-1]
    solved = solve_ridge(features, targets, weights, alpha)
    residuals = solved.centred_targets - (solved.centred * solved.coefficients[:, None, :]).sum(dim=2)
    leverage = ((solved.centred @ solved.inverse.to(features.dtype)) * solved.centred).sum(dim=2) * weights
    return LocalRidge(
        coefficients=solved.coefficients[:, :width],
        feature_means=solved.feature_means[:, :width],
        feature_spread=solved.feature_spread[:, :width],
        target_means=solved.target_means,
        residual_mean_square=_leave_one_out(residuals, solved.share, solved.share + leverage),
        spread_mean_square=_leave_one_out(solved.centred_targets, solved.share, solved.share),
        empty=solved.empty,
    )


def _solve(gram: torch.Tensor, moment: torch.Tensor, alpha: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Inverse and solution of the ridge systems, all in float64: (queries, d, d) and (queries, d)."""
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    system = gram + alpha * identity
    factor, info = torch.linalg.cholesky_ex(system)
    failed = (info != 0)[:, None, None]
    factor = torch.where(failed, identity, factor)
    # Not cholesky_inverse: its threads wait for each other where cores are shared, up to 200 times longer.
    half = torch.linalg.solve_triangular(factor, identity.expand_as(system), upper=False)
    inverse = half.mT @ half
    solution = inverse @ moment[:, :, None]
    if bool(failed.any()):
        # No penalty, or rounding, left some systems without a Cholesky factor: the pseudo-inverse always exists.
        pseudo = torch.linalg.pinv(system, hermitian=True)
        inverse = torch.where(failed, pseudo, inverse)
        solution = torch.where(failed, pseudo @ moment[:, :, None], solution)
    return inverse, solution[:, :, 0]


def _leave_one_out(residuals: torch.Tensor, share: torch.Tensor, leverage: torch.Tensor) -> torch.Tensor:
    """Weighted mean square of what each row would have missed by, had it been left out of the fit."""
    # A row that carries almost the whole fit has leverage near 1; the floor keeps its residual finite.
    left_out = residuals / torch.clamp(1 - leverage, min=1e-3)
    return (share * left_out.square()).sum(dim=1)
