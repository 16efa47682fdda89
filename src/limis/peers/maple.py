"""MAPLE: SILO's weights, and local models on the features that matter most to the forest.

Plumb, Molitor and Talwalkar (2018), "Model agnostic supervised local explanations". A feature's score is the sum of
the impurities of the roots that split on it. The best-scored features are kept, as many as give the local ridges the
lowest error on validation rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from limis.errors import InputError
from limis.peers.base import read_rows
from limis.peers.silo import Silo

VALIDATION_SHARE = 0.2


@dataclass
class Maple(Silo):
    """SILO with feature selection.

    The number of features is chosen with ridges, also where trees are then fitted on them.

    Parameters
    ----------
    explainer, local_model, alpha, ensemble, n_jobs, random_state
        As for `Silo`.
    validation : DataFrame or array, default=None
        Rows that choose the number of features. Without them a fifth of the training rows, drawn at random, choose;
        these cannot be selected then.
    validation_outputs : array, default=None
        The black box's outputs on them; it is asked where they are not given.

    Attributes
    ----------
    order_ : ndarray
        The features, best score first.
    errors_ : ndarray
        Root mean square error on the validation rows with the best 1, 2, … features.
    kept_ : ndarray
        The features kept, in increasing order.
    """

    validation: Any = None
    validation_outputs: Any = None

    def _fit(self, selectable: np.ndarray) -> None:
        training = self.training
        if self.validation is None:
            drawn = np.random.default_rng(self.random_state).permutation(len(training))
            held_out = drawn[: max(1, int(VALIDATION_SHARE * len(training)))]
            selectable = selectable.copy()
            selectable[held_out] = False
            features, outputs = self.features_[held_out], training.outputs[held_out]
        else:
            rows = read_rows(training, self.validation, self.validation_outputs)
            if rows.outputs is None:
                raise InputError("there is no model to ask about the validation rows; pass validation_outputs")
            features, outputs = rows.features, rows.outputs
        super()._fit(selectable)
        self.order_ = np.argsort(-self._scores(), kind="stable")
        missed = self._predictions(features) - outputs[:, None]
        self.errors_ = np.sqrt((missed**2).mean(axis=0))
        self._kept = np.sort(self.order_[: 1 + int(np.argmin(self.errors_))])

    @property
    def kept_(self) -> np.ndarray:
        """The features that local models may use."""
        return self._kept

    def _scores(self) -> np.ndarray:
        """The summed impurity of the roots that split on each feature."""
        scores = np.zeros(self.features_.shape[1])
        for tree in self.trees_:
            if tree.feature[0] >= 0:
                scores[tree.feature[0]] += tree.impurity[0]
        return scores

    def _predictions(self, features: np.ndarray) -> np.ndarray:
        """What local ridges on the best 1, 2, … features say of rows: (rows, features).

        The systems of fewer features are the corners of the largest one, in the order of the scores, and so are
        their Cholesky factors: with L its factor and m its right side, the answer of the best k is the sum of the
        first k products of L⁻¹x and L⁻¹m.
        """
        weights = self.weigh(features)
        predictions = np.empty(features.shape)
        for query, own in enumerate(features[:, self.order_]):
            line = weights[[query]]
            rows, outputs = self.features_[line.indices][:, self.order_], self.training.outputs[line.indices]
            share = line.data / line.data.sum()
            means, level = share @ rows, share @ outputs
            centred = rows - means
            pull = self.scale_ * line.data[:, None] * centred
            factor = np.linalg.cholesky(pull.T @ centred + np.eye(len(own)))
            both = np.column_stack([own - means, pull.T @ (outputs - level)])
            solved = solve_triangular(factor, both, lower=True)
            predictions[query] = level + np.cumsum(solved[:, 0] * solved[:, 1])
        return predictions
