"""Shapley values of the model itself, exact, where it is an ensemble of trees that the shap package can read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from limis.errors import InputError, require
from limis.perturb import Moves, moved_frame
from limis.reference import Reference
from limis.rows import TrainingRows

CURE = 'use reasons="curves", or reason_queries for values of the model itself that any model can give'
EXACT = 1e-4  # of the outputs' deviation may be missed: trees are read in single precision


def exact_values(training: TrainingRows, frame: pd.DataFrame, outputs: np.ndarray, reference: Reference) -> np.ndarray:
    """Interventional Shapley values against the rows that stand for a reference: (rows, columns)."""
    package = require("shap", "peers")
    if training.black_box.has_several_classes:
        raise InputError(f"exact Shapley values are of one output; {CURE}")
    encode, trees = _parts(training.black_box.model)
    assert reference.frame is not None
    try:
        rows, background = (np.asarray(encode(part), dtype=np.float64) for part in (frame, reference.frame))
        explainer = package.TreeExplainer(trees, background, feature_perturbation="interventional")
        values = explainer.shap_values(rows, check_additivity=False)
    except Exception as error:  # it says in many ways that it cannot read a model
        raise InputError(f"the model cannot be read as trees ({type(error).__name__}: {error}); {CURE}") from error
    values = np.asarray(values[-1] if isinstance(values, list) else values)
    values = values[:, :, -1] if values.ndim == 3 else values
    owner = _column_of_feature(training, encode, reference.frame)
    found = np.zeros((len(frame), len(training.table.columns)))
    for feature, column in enumerate(owner):
        found[:, column] += values[:, feature]
    missed = np.abs(found.sum(axis=1) - (outputs - reference.outputs.mean()))
    if missed.max(initial=0.0) > EXACT * training.output_deviation:
        raise InputError(f"the trees do not add up to what the model says ({training.black_box.scale}); {CURE}")
    return found


def _parts(model: Any) -> tuple[Any, Any]:
    """What turns rows into the trees' features, and the trees."""
    if isinstance(model, Pipeline) and len(model) > 1:
        return model[:-1].transform, model[-1]
    return (lambda frame: frame.to_numpy(dtype=np.float64)), (model[-1] if isinstance(model, Pipeline) else model)


def _column_of_feature(training: TrainingRows, encode: Any, frame: pd.DataFrame) -> np.ndarray:
    """The column that each of the trees' features comes from: the one that changes it. (features,)."""
    table, n = training.table, len(frame)
    before = np.asarray(encode(frame), dtype=np.float64)
    owner = np.full(before.shape[1], -1)
    for column in range(len(table.columns)):
        changed = np.zeros((n, len(table.columns)), dtype=bool)
        changed[:, column] = True
        moves = Moves(np.arange(n), np.roll(np.arange(n), 1), changed)
        after = np.asarray(encode(moved_frame(table, frame, frame, moves)), dtype=np.float64)
        differs = np.flatnonzero(~((before == after) | (np.isnan(before) & np.isnan(after))).all(axis=0))
        if (owner[differs] >= 0).any():
            raise InputError(f"the trees' features mix {table.names[column]!r} with other columns; {CURE}")
        owner[differs] = column
    return np.maximum(owner, 0)  # a feature that no column changes has no value
