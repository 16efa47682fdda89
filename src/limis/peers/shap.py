"""SHAP values of any model, by the shap package: permutations of the table's own columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from limis.errors import InputError, require
from limis.peers.lime_view import LimeView
from limis.rows import TrainingRows

ORDERS = 4  # of columns, there and back


def permutation_shap(training: TrainingRows, X: pd.DataFrame, reference: pd.DataFrame, orders: int = ORDERS) -> Any:
    """A ``shap.Explanation`` of rows, by a black box that can be asked.

    Parameters
    ----------
    training : TrainingRows
        Those of a fitted explainer: ``explainer.training_``.
    X : DataFrame
        The rows, with the columns of the training table.
    reference : DataFrame
        Rows that stand for the population: the background.
    orders : int, default=4
        Random orders of the columns, each gone through there and back, with all reference rows.
    """
    if training.every is not None:
        raise InputError("permutation SHAP here explains one output; give a function for the class of interest")
    package = require("shap", "peers")
    training = training.without_jumps()
    view, table = LimeView.of(training), training.table
    masker = package.maskers.Independent(table.values(reference), max_samples=len(reference))
    explainer = package.PermutationExplainer(
        lambda rows: training.black_box.outputs(view.frame(np.asarray(rows, dtype=np.float64))), masker, seed=0
    )
    width = len(table.columns)
    found = explainer(table.values(X), max_evals=orders * (2 * width + 1), silent=True, batch_size=50)
    return package.Explanation(found.values, found.base_values, feature_names=table.names)
