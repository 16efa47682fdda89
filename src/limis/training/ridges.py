"""Ridges of many probe rows over the same training rows.

Their Gram matrices differ in the weights only, so all of them are one matrix product: weights times each row's products
of features. That is several times faster than `solve_ridge`, which allows every query rows of its own, and the gradient
passes through it just as well. Wide tables, whose products would not fit into memory, take the other road.
"""

from __future__ import annotations

import torch

from limis.surrogate import solve_ridge
from limis.training.terms import LinearModels

MAX_CELLS = 50_000_000


class SharedRidge:
    """Ridges over one set of rows, ready to be solved for any weights.

    features : (rows, features); targets : (rows,). ``otherwise`` is the model (one row of coefficients) that takes the
    place of a ridge whose weights leave fewer than two rows, as it does at inference.
    """

    def __init__(self, features: torch.Tensor, targets: torch.Tensor, alpha: float, otherwise: LinearModels) -> None:
        self.alpha, self.otherwise = alpha, otherwise
        # Sums of squares lose digits when the means are large beside the spread.
        self.centre = features.mean(dim=0)
        self.features, self.targets = features - self.centre, targets
        self.upper = torch.triu_indices(features.shape[1], features.shape[1], device=features.device)
        self.products: torch.Tensor | None = None
        if len(features) * self.upper.shape[1] <= MAX_CELLS:
            self.products = self._products()

    def _products(self) -> torch.Tensor:
        """For each row 1, its target, its features, the two multiplied, and the features' products with each other."""
        features, targets = self.features, self.targets[:, None]
        left, right = features[:, self.upper[0]], features[:, self.upper[1]]
        return torch.cat([torch.ones_like(targets), targets, features, features * targets, left * right], dim=1)

    def solve(self, weights: torch.Tensor) -> LinearModels:
        """The ridges for weights (probes, rows)."""
        if self.products is None:
            size = max(1, MAX_CELLS // self.features.numel())
            parts = [self._solve_wide(block) for block in weights.split(size)]
            coefficients, intercepts = (torch.cat(part) for part in zip(*parts, strict=True))
        else:
            coefficients, intercepts = self._solve_products(weights)
        intercepts = intercepts - coefficients @ self.centre
        empty = weights.amax(dim=1) >= (1 - 1e-6) * weights.sum(dim=1)
        return LinearModels(
            torch.where(empty[:, None], self.otherwise.coefficients, coefficients),
            torch.where(empty, self.otherwise.intercepts, intercepts),
        )

    def _solve_products(self, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.products is not None
        width = self.features.shape[1]
        sums = (weights @ self.products).double()
        total, target_sum, feature_sums, moments, squares = sums.split([1, 1, width, width, self.upper.shape[1]], dim=1)
        total = torch.where(total > 0, total, 1.0)
        feature_means, target_means = feature_sums / total, target_sum / total
        square = torch.zeros(len(weights), width, width, dtype=torch.float64, device=weights.device)
        square[:, self.upper[0], self.upper[1]] = squares
        square[:, self.upper[1], self.upper[0]] = squares
        gram = square - feature_sums[:, :, None] * feature_means[:, None, :]
        moment = moments - feature_sums * target_means
        system = gram + self.alpha * torch.eye(width, dtype=torch.float64, device=weights.device)
        coefficients = torch.linalg.solve(system, moment)
        intercepts = target_means[:, 0] - (coefficients * feature_means).sum(dim=1)
        return coefficients.to(weights.dtype), intercepts.to(weights.dtype)

    def _solve_wide(self, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features, targets = self.features.expand(len(weights), -1, -1), self.targets.expand(len(weights), -1)
        solved = solve_ridge(features, targets, weights, self.alpha)
        width = self.features.shape[1]
        return solved.coefficients[:, :width], solved.predict(torch.zeros_like(features[:, 0]))
