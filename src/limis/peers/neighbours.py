"""Local models on weighted rows: a ridge or a shallow tree for every row to explain, in float64."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
import torch

from limis.function_fits import Function, make_fits
from limis.peers.base import ModelKind, Rows
from limis.surrogate import fit_local_ridge
from limis.surrogate.fitted_tree import FittedTree
from limis.walk import ALPHA, LocalFits


@dataclass
class Surroundings:
    """The weighted rows that one local model is fitted on."""

    features: np.ndarray  # (rows, features)
    outputs: np.ndarray  # (rows,)
    weights: np.ndarray  # (rows,)
    share: np.ndarray = field(init=False)  # the weights, summing to 1
    means: np.ndarray = field(init=False)  # (features,)
    level: float = field(init=False)  # mean output

    def __post_init__(self) -> None:
        self.share = self.weights / self.weights.sum()
        self.means = self.share @ self.features
        self.level = float(self.share @ self.outputs)

    def mean_square(self, residuals: np.ndarray, leverage: np.ndarray) -> float:
        """Of what each row would have been missed by, had it been left out of the fit."""
        return float(self.share @ (residuals / np.maximum(1 - leverage, 1e-3)) ** 2)


@dataclass
class Told:
    """One local model and its surroundings, in the numbers that `LocalFits` holds of them."""

    coefficients: np.ndarray  # (features,)
    parts: np.ndarray  # (features,): from the level to the prediction
    feature_means: np.ndarray  # (features,)
    feature_spread: np.ndarray  # (features,)
    level: float
    residual_mean_square: float
    spread_mean_square: float
    function: Function | None  # where the model is not linear


def tell(
    around: Surroundings,
    *,
    coefficients: np.ndarray,
    parts: np.ndarray,
    residual_mean_square: float,
    function: Function | None = None,
) -> Told:
    """A fitted model with what its surroundings are like."""
    return Told(
        coefficients=coefficients,
        parts=parts,
        feature_means=around.means,
        feature_spread=np.sqrt(around.share @ (around.features - around.means) ** 2),
        level=around.level,
        residual_mean_square=residual_mean_square,
        spread_mean_square=around.mean_square(around.outputs - around.level, around.share),
        function=function,
    )


def local_ridge(around: Surroundings, own: np.ndarray, kept: np.ndarray, scale: float) -> Told:
    """A ridge on the features ``kept``, for the row with the features ``own``."""
    solved = fit_local_ridge(
        torch.as_tensor(around.features[None][:, :, kept]),
        torch.as_tensor(around.outputs[None]),
        torch.as_tensor(scale * around.weights[None]),
        ALPHA,
    )
    coefficients = np.zeros(len(own))
    coefficients[kept] = solved.coefficients[0].numpy()
    return tell(
        around,
        coefficients=coefficients,
        parts=coefficients * (own - around.means),
        residual_mean_square=float(solved.residual_mean_square[0]),
    )


def local_tree(around: Surroundings, own: np.ndarray, kept: np.ndarray) -> Told:
    """A tree of depth 3 on the features ``kept``; it is flat around the row, so that its slopes are zero."""
    hidden = np.ones(len(own), dtype=bool)
    hidden[kept] = False
    # A feature that is the same everywhere is never split on.
    tree = FittedTree.fit(np.where(hidden, 0.0, around.features), around.outputs, around.weights)
    leaves = tree.leaves(around.features)
    in_leaf = np.bincount(leaves, weights=around.weights)[leaves]
    # Left out, a row no longer counts in its leaf's mean; the splits stay.
    residual = around.mean_square(around.outputs - tree(around.features), around.weights / in_leaf)
    return tell(
        around,
        coefficients=np.zeros(len(own)),
        parts=tree.parts(own[None])[0],
        residual_mean_square=residual,
        function=tree,
    )


def fit_neighbours(
    features: np.ndarray,
    outputs: np.ndarray,
    rows: Rows,
    weights: sp.csr_array,
    *,
    local_model: ModelKind,
    scale: float,
    kept: np.ndarray,
) -> LocalFits:
    """Fit a model for every row on the training rows that have weight for it.

    features, outputs : of the training rows. weights : (rows, training rows). scale : what a weight of 1 is worth
    against the ridge's penalty. kept : the features that models may use. Where fewer than two training rows have
    weight, all of them count alike.
    """
    told = []
    for query, own in enumerate(rows.features):
        line = weights[[query]]
        if line.nnz < 2:
            around = Surroundings(features, outputs, np.ones(len(features)))
        else:
            around = Surroundings(features[line.indices], outputs[line.indices], line.data)
        told.append(local_tree(around, own, kept) if local_model == "tree" else local_ridge(around, own, kept, scale))
    return collect(rows, told, weights, scale=scale, empty=np.diff(weights.indptr) < 2)


def collect(
    rows: Rows, told: list[Told], weights: sp.csr_array, *, scale: float = 1.0, empty: np.ndarray | None = None
) -> LocalFits:
    """The models of all rows as one object."""
    numbers = {
        "features": rows.features,
        "coefficients": np.array([one.coefficients for one in told]),
        "feature_means": np.array([one.feature_means for one in told]),
        "feature_spread": np.array([one.feature_spread for one in told]),
        "levels": np.array([one.level for one in told]),
        "residual_mean_square": np.array([one.residual_mean_square for one in told]),
        "spread_mean_square": np.array([one.spread_mean_square for one in told]),
        "empty": np.zeros(len(rows), dtype=bool) if empty is None else empty,
        "scale": np.full(len(rows), scale),
    }
    functions = [one.function for one in told if one.function is not None]
    return make_fits(numbers, weights, functions or None, np.array([one.parts for one in told]))
