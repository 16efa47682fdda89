"""One readable model for all rows: a shallow tree, a logistic regression, a shallow classification tree.

Settings are those of the LIMIS paper's appendix. The models are fitted to what the black box says (classifiers to its
probabilities, every row being of both classes in these shares) or, as the paper's own are, to labels given here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from limis.blackbox import clipped_logit, sigmoid
from limis.errors import InputError
from limis.given import checked_outputs
from limis.labels import read_labels
from limis.peers.base import Peer, Rows
from limis.peers.everywhere import fits_everywhere
from limis.surrogate.fitted_tree import MAX_DEPTH, FittedTree
from limis.walk import LocalFits


@dataclass
class GlobalTree(Peer):
    """A regression tree of depth 3 over all training rows.

    Parameters
    ----------
    explainer : LimisExplainer
        Fitted.
    labels : array, default=None
        Numbers to fit the tree to instead of the black box's outputs, one a training row (``explainer.training_``).
    """

    labels: Any = None

    def __post_init__(self) -> None:
        training = self.training
        target = training.outputs if self.labels is None else checked_outputs(self.labels, len(training), "labels")
        weight = np.ones(len(training)) if training.sample_weight is None else training.sample_weight
        self.tree_ = FittedTree.fit(training.features.double().numpy(), target, weight)

    def fits(self, rows: Rows) -> LocalFits:
        """The tree, told as if it were local."""
        return _fits_of_tree(self, self.tree_, rows)


@dataclass
class GlobalClassificationTree(Peer):
    """A classification tree of depth 3, split by Gini impurity, over all training rows.

    Its answers are its leaves' shares of the second class, as logits where the black box is explained on those.

    Parameters
    ----------
    explainer : LimisExplainer
        Fitted, of a classifier.
    labels : array, default=None
        Classes to fit the tree to instead of the black box's probabilities, one a training row.
    """

    labels: Any = None

    def __post_init__(self) -> None:
        classifier = DecisionTreeClassifier(max_depth=MAX_DEPTH, criterion="gini", random_state=0)
        classifier.fit(*_rows_of_classes(self))
        on_logits = self.training.black_box.scale == "logit"
        self.tree_ = FittedTree.of_classifier(classifier, clipped_logit if on_logits else np.asarray)

    def fits(self, rows: Rows) -> LocalFits:
        """The tree, told as if it were local."""
        return _fits_of_tree(self, self.tree_, rows)


@dataclass
class Sigmoid:
    """The probability that a linear model of the logit gives."""

    coefficients: np.ndarray
    intercept: float

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """What it says of rows: (n,)."""
        return sigmoid(self.intercept + features @ self.coefficients)


@dataclass
class GlobalLogistic(Peer):
    """A logistic regression without penalty, fitted by lbfgs, over all training rows.

    Parameters
    ----------
    explainer : LimisExplainer
        Fitted, of a classifier.
    labels : array, default=None
        Classes to fit it to instead of the black box's probabilities, one a training row.
    """

    labels: Any = None

    def __post_init__(self) -> None:
        model = LogisticRegression(C=np.inf, solver="lbfgs", max_iter=5000)
        model.fit(*_rows_of_classes(self))
        self.coefficients_, self.intercept_ = model.coef_[0], float(model.intercept_[0])

    def fits(self, rows: Rows) -> LocalFits:
        """The regression, told as if it were local; on probabilities it is a curve, not a line."""
        training = self.training
        features = training.features.double().numpy()
        means = np.average(features, axis=0, weights=training.sample_weight)
        logits = self.intercept_ + features @ self.coefficients_
        middle = self.intercept_ + float(means @ self.coefficients_)
        if training.black_box.scale == "logit":
            return fits_everywhere(
                training, rows, level=middle, residual=_missed(self, logits), coefficients=self.coefficients_
            )
        curve = Sigmoid(self.coefficients_, self.intercept_)
        level = float(sigmoid(np.array(middle)))
        steps = self.coefficients_ * (rows.features - means)  # (rows, features), of the logit
        whole = steps.sum(axis=1)
        # Every feature's part of the probability is its part of the logit.
        rate = np.divide(curve(rows.features) - level, whole, out=np.zeros(len(rows)), where=whole != 0)
        return fits_everywhere(
            training,
            rows,
            level=level,
            residual=_missed(self, sigmoid(logits)),
            function=curve,
            parts=steps * rate[:, None],
        )


def _fits_of_tree(peer: Peer, tree: FittedTree, rows: Rows) -> LocalFits:
    predictions = tree(peer.training.features.numpy())
    return fits_everywhere(
        peer.training,
        rows,
        level=tree.level,
        residual=_missed(peer, predictions),
        function=tree,
        parts=tree.parts(rows.features),
    )


def _missed(peer: Peer, predictions: np.ndarray) -> float:
    """Mean square error on the training rows."""
    training = peer.training
    return float(np.average((training.outputs - predictions) ** 2, weights=training.sample_weight))


def _rows_of_classes(peer: GlobalClassificationTree | GlobalLogistic) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, class and weight of every training row, once as of either class; those of no weight are left out."""
    training = peer.training
    black_box = training.black_box
    if not black_box.is_classifier:
        raise InputError(f"{type(peer).__name__} needs a black box that gives probabilities of two classes")
    if peer.labels is None:
        second = black_box.to_probability(training.outputs)
    else:
        second = read_labels(peer.labels, len(training), black_box.classes)[0]
    features = training.features.double().numpy()
    weight = np.concatenate([1 - second, second])
    if training.sample_weight is not None:
        weight *= np.tile(training.sample_weight, 2)
    counted = weight > 0
    classes = np.repeat([0, 1], len(training))[counted]
    if len(np.unique(classes)) < 2:
        raise InputError("all training rows are of one class, so there is nothing to tell apart")
    return np.concatenate([features, features])[counted], classes, weight[counted]
