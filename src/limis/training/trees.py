"""Trees of many probe rows over the same training rows: what rewards an estimator that trees will be fitted with.

No gradient passes through them: objectives that sample need none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from limis.surrogate.tree import LocalTrees, fit_local_trees
from limis.training.terms import LinearModels
from limis.trees.inputs import TreeInputs


@dataclass
class TreeModels:
    """One tree a probe row; the global model where too few rows were selected."""

    trees: LocalTrees
    inputs: TreeInputs
    otherwise: LinearModels

    def predict(self, features: torch.Tensor) -> torch.Tensor:
        """Each tree at a row of its own: (probes,) from (probes, features)."""
        return self._at(features, np.arange(len(features)))

    def foresee(self, features: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """What each tree says of steps (probes, changes, features) away from its row: (probes, changes)."""
        n, width, _ = steps.shape
        after = self._at((features[:, None, :] + steps).flatten(0, 1), np.repeat(np.arange(n), width))
        return after.view(n, width) - self.predict(features)[:, None]

    def _at(self, features: torch.Tensor, queries: np.ndarray) -> torch.Tensor:
        said = self.trees.predict(self.inputs.bins_of(features.double().numpy()), queries)[:, 0]
        everywhere = self.otherwise.intercepts + features @ self.otherwise.coefficients[0]
        found = torch.as_tensor(said, dtype=torch.float32)
        return torch.where(torch.as_tensor(self.trees.empty[queries]), everywhere, found)


@dataclass
class SharedTrees:
    """Trees over one set of rows, ready to be grown with any weights."""

    inputs: TreeInputs
    rows: np.ndarray  # places among the training rows
    targets: np.ndarray  # (training rows,)
    depth: int
    otherwise: LinearModels

    def solve(self, weights: torch.Tensor) -> TreeModels:
        """The trees for weights (probes, rows)."""
        rows = np.broadcast_to(self.rows, weights.shape)
        trees = fit_local_trees(self.inputs.row_bins, self.targets, rows, weights.double().numpy(), depth=self.depth)
        return TreeModels(trees, self.inputs, self.otherwise)
