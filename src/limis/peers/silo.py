"""SILO: training rows weighed by a forest fitted to the black box's outputs, and a local model on them.

Bloniarz, Talwalkar, Yu and Wu (2016), "Supervised neighborhoods for distributed nonparametric regression". A training
row's weight is, averaged over trees, one over the size of the leaf that it shares with the row to explain. The local
models are ridges, as in the code published with MAPLE (Plumb, Molitor and Talwalkar, 2018), on which comparisons rest:
there weights are summed over trees, not averaged, which decides what the ridge's penalty is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

from limis.errors import InputError
from limis.peers.base import ModelKind, Peer, Rows, check_local_model
from limis.peers.neighbours import fit_neighbours
from limis.retrieval import LeafIndex
from limis.walk import LocalFits

# As published.
N_TREES, MIN_LEAF, FEATURE_SHARE = 200, 10, 0.5


@dataclass
class Silo(Peer):
    """Weights from a forest, and a ridge or a tree of depth 3 on the weighted rows.

    As published, a training row that is explained has weight for itself.

    Parameters
    ----------
    explainer : LimisExplainer
        Fitted.
    local_model : {"ridge", "tree"}, default="ridge"
        What is fitted on the weighted rows.
    alpha : float, default=0.001
        The ridge's penalty. The published value; the LIMIS paper has 1 for its own ridges.
    ensemble : {"forest", "gbdt"} or a fitted estimator, default="forest"
        Trees that decide who is near: grown here, or scikit-learn's ``RandomForestRegressor`` or
        ``GradientBoostingRegressor`` fitted on the explainer's features.
    n_jobs : int, default=None
        Processes for growing a forest.
    random_state : int, default=0
        Decides how the trees grow.

    Examples
    --------
    >>> import numpy as np
    >>> from limis import LimisExplainer
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> explainer = LimisExplainer(lambda rows: np.abs(rows[:, 0]), surrogate="ridge").fit(X)
    >>> (Silo(explainer).explain([[1.0, 0.0], [-1.0, 0.0]]).coefficients["x0", ""] > 0).tolist()
    [True, False]
    """

    local_model: ModelKind = "ridge"
    alpha: float = 0.001
    ensemble: Any = "forest"
    n_jobs: int | None = None
    random_state: int = 0
    features_: np.ndarray = field(init=False, repr=False)  # (training rows, features) float64

    def __post_init__(self) -> None:
        check_local_model(self.local_model)
        if self.alpha <= 0:
            raise InputError(f"alpha must be above zero, not {self.alpha}")
        self.features_ = self.training.table.features(self.training.values)
        self._fit(np.ones(len(self.training), dtype=bool))

    def _fit(self, selectable: np.ndarray) -> None:
        """Grow the trees on the selectable rows, which alone can have weight."""
        if isinstance(self.ensemble, str):
            grown = grow(self.ensemble, self.n_jobs, self.random_state)
            grown.fit(self.features_[selectable], self.training.standard_outputs[selectable])
        else:
            grown = self.ensemble
        self.trees_ = [tree.tree_ for tree in np.ravel(grown.estimators_)]
        counted = selectable * (1.0 if self.training.sample_weight is None else self.training.sample_weight)
        n_leaves = sum(tree.node_count for tree in self.trees_)
        by_tree = ((leaves, counted) for leaves in self._leaves(self.features_).T)
        self.index_ = LeafIndex.build(by_tree, n_leaves, len(counted))

    def _leaves(self, features: np.ndarray) -> np.ndarray:
        """The leaf each row falls into in every tree, nodes counted through all trees: (rows, trees)."""
        seen = features.astype(np.float32)
        first = np.cumsum([0, *(tree.node_count for tree in self.trees_[:-1])])
        return np.stack([start + tree.apply(seen) for start, tree in zip(first, self.trees_, strict=True)], axis=1)

    def weigh(self, features: np.ndarray) -> sp.csr_array:
        """Weights of the training rows for rows given by their features, summing to 1: (rows, training rows)."""
        return self.index_.proximity(self._leaves(features))

    @property
    def scale_(self) -> float:
        """What a weight of 1 is worth against a penalty of 1: the published ridge sees the sum over trees."""
        return len(self.trees_) / self.alpha

    @property
    def kept_(self) -> np.ndarray:
        """The features that local models may use: all."""
        return np.arange(self.features_.shape[1])

    def fits(self, rows: Rows) -> LocalFits:
        """The local model of each row."""
        return fit_neighbours(
            self.features_,
            self.training.outputs,
            rows,
            self.weigh(rows.features),
            local_model=self.local_model,
            scale=self.scale_,
            kept=self.kept_,
        )


def grow(kind: str, n_jobs: int | None, random_state: int) -> Any:
    """An ensemble with the published settings, not fitted yet."""
    options = {
        "n_estimators": N_TREES,
        "min_samples_leaf": MIN_LEAF,
        "max_features": FEATURE_SHARE,
        "random_state": random_state,
    }
    if kind == "forest":
        return RandomForestRegressor(**options, n_jobs=n_jobs)
    if kind == "gbdt":
        return GradientBoostingRegressor(**options, max_depth=None)
    raise InputError(f'ensemble is "forest", "gbdt" or a fitted ensemble of scikit-learn, not {kind!r}')
