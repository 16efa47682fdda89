"""Shapley values of the model itself, exact, where it is an ensemble of trees that the shap package can read.

A column may be several of the trees' features, as an encoded category is. It is taken away with all of them at once;
values of features by themselves, added up, are another game, in which a row may hold two levels or none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from limis.curves.games import BETA, Drawn, draw_reasons, leaf_patterns
from limis.curves.kernels import MOST_DEEP, MOST_WAYS, Trees, deepest, predict_cells
from limis.curves.reasons import MOST_PAIRS, Reasons, reasons_by
from limis.errors import InputError, require
from limis.fidelity.units import Units
from limis.perturb import Moves, moved_frame
from limis.reference import Reference, References
from limis.rows import TrainingRows

CURE = 'use reasons="curves", or reason_queries for values of the model itself that any model can give'
EXACT = 1e-4  # of the outputs' deviation may be missed: trees are read in single precision
MOST_PATTERNS = 100_000_000  # leaves × reference rows that are counted at once: 16 bytes each, at most


@dataclass
class ReadTrees:
    """A model's own trees, with each value given by how many thresholds of its feature are below it."""

    trees: Trees
    breaks: list[np.ndarray]  # for each feature
    base: float
    encode: Callable[[pd.DataFrame], np.ndarray]
    kind: type  # of the numbers that the model compares with thresholds

    @classmethod
    def of(cls, model: Any) -> ReadTrees:
        """Read them, of the last output."""
        package = require("shap", "peers")
        encode, inner = _parts(model)
        try:
            read = package.TreeExplainer(inner).model
            n_trees = int(getattr(read, "tree_limit", None) or len(read.num_nodes))
        except Exception as error:  # it says in many ways that it cannot read a model
            raise InputError(f"the model cannot be read as trees ({type(error).__name__}: {error}); {CURE}") from error
        levels = getattr(read, "cat_feature_indices", None)
        on_levels = (levels is not None and len(levels) > 0) or (read.threshold_types > 0).any()
        if on_levels or read.features.max() < 0:
            raise InputError(f"the trees split on categories, or on nothing; {CURE}")
        counts = read.num_nodes[:n_trees]
        real = np.arange(read.children_left.shape[1]) < counts[:, None]
        offset = np.repeat(np.cumsum(counts) - counts, counts)
        left, right, default, feature, threshold = (
            getattr(read, name)[:n_trees][real]
            for name in ("children_left", "children_right", "children_default", "features", "thresholds")
        )
        is_leaf = left < 0
        feature = np.where(is_leaf, -1, feature).astype(np.int32)
        n_features, cell = int(feature.max()) + 1, np.zeros(len(left), dtype=np.int32)
        breaks = [np.unique(threshold[feature == j]).astype(np.float64) for j in range(n_features)]
        for j, own in enumerate(breaks):
            cell[feature == j] = np.searchsorted(own, threshold[feature == j])
        value = np.where(is_leaf, read.values[:n_trees, :, -1][real], 0.0).astype(np.float64)
        trees = Trees(
            roots=(np.cumsum(counts) - counts).astype(np.int64),
            column=feature,
            cell=cell,
            missing_left=default == left,
            left=left.astype(np.int64) + offset,
            right=right.astype(np.int64) + offset,
            value=value,
        )
        if deepest(trees.left, trees.right, is_leaf) >= min(MOST_DEEP, MOST_WAYS):
            raise InputError(f"the trees are deeper than {MOST_DEEP} splits; {CURE}")
        return cls(trees, breaks, float(np.ravel(read.base_offset)[-1]), encode, read.input_dtype)

    def cells(self, frame: pd.DataFrame) -> np.ndarray:
        """What the trees see of rows: (rows, features)."""
        try:
            inputs = np.asarray(self.encode(frame)).astype(self.kind).astype(np.float64)[:, : len(self.breaks)]
        except (TypeError, ValueError) as error:
            raise InputError(f"rows cannot be read as the trees do ({error}); {CURE}") from error
        found = np.empty(inputs.shape, dtype=np.int32)
        for j, own in enumerate(self.breaks):
            found[:, j] = np.where(np.isnan(inputs[:, j]), -1, np.searchsorted(own, inputs[:, j]))
        return found

    def check(self, training: TrainingRows, cells: np.ndarray, outputs: np.ndarray) -> None:
        """Whether the trees, as they were read, say of rows what the model says."""
        said = np.full(len(cells), self.base)
        predict_cells(self.trees, cells, said)
        if np.abs(said - outputs).max(initial=0.0) > EXACT * training.output_deviation:
            raise InputError(f"the trees do not add up to what the model says ({training.black_box.scale}); {CURE}")


def exact_reasons(
    training: TrainingRows, frame: pd.DataFrame, references: References, outputs: np.ndarray, units: Units
) -> Reasons:
    """The Shapley values and leading pairs of the model's own trees; the rest is what standing rows miss of a mean."""
    if training.black_box.has_several_classes:
        raise InputError(f"exact Shapley values are of one output; {CURE}")
    read = ReadTrees.of(training.black_box.model)
    own = read.cells(frame)
    read.check(training, own, outputs)

    def draw(mine: np.ndarray, reference: Reference) -> tuple[Drawn, np.ndarray]:
        assert reference.frame is not None
        others = read.cells(reference.frame)
        read.check(training, others, reference.outputs)
        if len(others) * len(read.trees.column) // 2 > MOST_PATTERNS:
            raise InputError(f"the trees have {len(read.trees.column):,} nodes, too many to read; {CURE}")
        unit_of = units.of_column()[_column_of_feature(training, read, frame.iloc[mine], reference.frame)]
        found = Drawn.empty(len(mine), len(units), MOST_PAIRS)
        draw_reasons(read.trees, leaf_patterns(read.trees, others, unit_of), own[mine], unit_of, BETA, found)
        return found, np.zeros(found.shapley.shape)

    return reasons_by(draw, references, outputs, units, np.full(len(units), 1 / len(units)))


def _parts(model: Any) -> tuple[Callable[[pd.DataFrame], Any], Any]:
    """What turns rows into the trees' features, and the trees."""
    if isinstance(model, Pipeline) and len(model) > 1:
        return model[:-1].transform, model[-1]
    return (lambda frame: frame.to_numpy(dtype=np.float64)), (model[-1] if isinstance(model, Pipeline) else model)


def _column_of_feature(
    training: TrainingRows, read: ReadTrees, frame: pd.DataFrame, others: pd.DataFrame
) -> np.ndarray:
    """The column that each of the trees' features comes from: the one that changes it. (features,).

    Where it is the same in all reference rows, it may still be another in the rows that are compared with them.
    """
    table, n = training.table, len(others)
    owner = np.full(len(read.breaks), -1)
    for column in range(len(table.columns)):
        differs = np.zeros(len(owner), dtype=bool)
        for rows, place in ((others, np.roll(np.arange(n), 1)), (frame, np.arange(len(frame)) % n)):
            changed = np.zeros((len(rows), len(table.columns)), dtype=bool)
            changed[:, column] = True
            moved = moved_frame(table, rows, others, Moves(np.arange(len(rows)), place, changed))
            differs |= (read.cells(moved) != read.cells(rows)).any(axis=0)
        if (owner[differs] >= 0).any():
            raise InputError(f"the trees' features mix {table.names[column]!r} with other columns; {CURE}")
        owner[differs] = column
    return np.maximum(owner, 0)  # a feature that no column changes has no value
