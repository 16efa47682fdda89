"""Shapley values of the model itself, exact, where it is an ensemble of trees that the shap package can read.

A column may be several of the trees' features, as an encoded category is. It is taken away with all of them at once;
values of features by themselves, added up, are another game, in which a row may hold two levels or none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from limis.askers import own_copy
from limis.blackbox import sigmoid
from limis.changes import ask_moved
from limis.curves.games import Drawn, LeafPatterns, draw_reasons, leaf_patterns
from limis.curves.kernels import MOST_DEEP, MOST_WAYS, Trees, deepest, predict_cells
from limis.curves.reasons import MOST_PAIRS, Reasons, reasons_by
from limis.errors import InputError, require
from limis.fidelity.units import Units
from limis.perturb import Moves, moved_frame
from limis.reference import Reference, References
from limis.rows import TrainingRows
from limis.table import Table

CURE = 'use reasons="curves", or reason_queries for values of the model itself that any model can give'
EXACT = 1e-4  # of the outputs' deviation may be missed: trees are read in single precision
MOST_PATTERNS = 100_000_000  # leaves × reference rows that are counted at once: 16 bytes each, at most
MIXED = 200  # rows of a row's values and a reference row's, of which the model is asked whether it was read right
LEARNING = 500  # training rows by which a feature is known to come from a column
_READ: WeakKeyDictionary[TrainingRows, ReadTrees] = WeakKeyDictionary()


@dataclass(eq=False)
class ReadTrees:
    """A model's own trees, with each value given by how many thresholds of its feature are below it."""

    trees: Trees
    breaks: list[np.ndarray]  # for each feature
    base: float
    encode: Callable[[pd.DataFrame], Any]
    kind: type  # of the numbers that the model compares with thresholds
    nothing: float  # what a number is that a sparse matrix leaves out
    owner: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # (features,) columns; -1 unknown
    patterns: WeakKeyDictionary[Reference, dict[bytes, LeafPatterns]] = field(default_factory=WeakKeyDictionary)

    @classmethod
    def of(cls, training: TrainingRows) -> ReadTrees:
        """Read them, of the last output; once."""
        if training not in _READ:
            found = cls._read(training.black_box.model, training.table)
            rows = np.random.default_rng(0).permutation(len(training))[:LEARNING]
            frame = training.frame.iloc[np.sort(rows)]
            found.owner = np.full(len(found.breaks), -1)
            found.learn_owners(training.table, frame, frame, np.roll(np.arange(len(frame)), 1))
            _READ[training] = found
        return _READ[training]

    @classmethod
    def _read(cls, model: Any, table: Table) -> ReadTrees:
        package = require("shap", "peers")
        encode, inner = _parts(model, table)
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
        trees = Trees(
            roots=(np.cumsum(counts) - counts).astype(np.int64),
            column=feature,
            cell=cell,
            missing_left=default == left,
            left=left.astype(np.int64) + offset,
            right=right.astype(np.int64) + offset,
            value=np.where(is_leaf, read.values[:n_trees, :, -1][real], 0.0).astype(np.float64),
        )
        if deepest(trees.left, trees.right, is_leaf) >= min(MOST_DEEP, MOST_WAYS):
            raise InputError(f"the trees are deeper than {MOST_DEEP} splits; {CURE}")
        nothing = np.nan if read.model_type == "xgboost" else 0.0
        return cls(trees, breaks, float(np.ravel(read.base_offset)[-1]), encode, read.input_dtype, nothing)

    def cells(self, frame: pd.DataFrame) -> np.ndarray:
        """What the trees see of rows: (rows, features)."""
        try:
            inputs = _numbers(self.encode(frame), self.nothing).astype(self.kind).astype(np.float64)
        except Exception as error:  # of the user's own code
            words = f"{type(error).__name__}: {error}"
            raise InputError(f"rows cannot be read as the trees do ({words}); {CURE}") from error
        inputs = inputs[:, : len(self.breaks)]
        found = np.empty(inputs.shape, dtype=np.int32)
        for j, own in enumerate(self.breaks):
            found[:, j] = np.where(np.isnan(inputs[:, j]), -1, np.searchsorted(own, inputs[:, j]))
        return found

    def predict(self, cells: np.ndarray) -> np.ndarray:
        """What the trees say of rows, given by their cells."""
        said = np.full(len(cells), self.base)
        predict_cells(self.trees, cells, said)
        return said

    def learn_owners(self, table: Table, frame: pd.DataFrame, others: pd.DataFrame, place: np.ndarray) -> None:
        """The column that each of the trees' features comes from: the one that changes it, from rows to others."""
        before = self.cells(frame)
        for column in range(len(table.columns)):
            changed = np.zeros((len(frame), len(table.columns)), dtype=bool)
            changed[:, column] = True
            moved = moved_frame(table, frame, others, Moves(np.arange(len(frame)), place, changed))
            differs = (self.cells(moved) != before).any(axis=0)
            if ((self.owner >= 0) & (self.owner != column))[differs].any():
                raise InputError(f"the trees' features mix {table.names[column]!r} with other columns; {CURE}")
            self.owner[differs] = column

    def check(self, training: TrainingRows, frame: pd.DataFrame, own: np.ndarray, reference: Reference) -> None:
        """Hold what the trees say of mixtures of rows and reference rows against the model's own answers."""
        assert reference.frame is not None
        rng, n_columns = np.random.default_rng(0), len(training.table.columns)
        rows, donors = rng.integers(len(frame), size=MIXED), rng.integers(len(reference.frame), size=MIXED)
        changed = rng.random((MIXED, n_columns)) < rng.random((MIXED, 1))
        changed[: MIXED // 4] = False  # some as they are
        _, truth = ask_moved(training, frame, Moves(rows, donors, changed), reference.frame)
        mixed = np.where(changed[:, self.owner], self.cells(reference.frame)[donors], own[rows])
        said = self.predict(mixed)
        tolerance = EXACT * training.output_deviation + 8 * np.finfo(np.float32).eps * np.abs(truth).max(initial=0.0)
        if np.abs(said - truth).max(initial=0.0) > tolerance:
            scale = training.black_box.scale
            links = {
                'output="logit"': (sigmoid(said), truth),
                'output="probability"': (said, sigmoid(truth)),
                "the logarithm of the model's output": (np.exp(np.minimum(said, 700.0)), truth),
            }
            fitting = [words for words, (one, two) in links.items() if np.abs(one - two).max() <= 1e-3]
            cure = f"explain {fitting[0]}, or {CURE}" if fitting else CURE
            raise InputError(
                f"the trees, as they can be read, do not say what the model says ({scale}), of rows or of mixtures "
                f"of them; {cure}"
            )


def exact_reasons(
    training: TrainingRows, frame: pd.DataFrame, references: References, outputs: np.ndarray, units: Units
) -> Reasons:
    """The Shapley values and leading pairs of the model's own trees; the rest is what standing rows miss of a mean."""
    if training.black_box.has_several_classes:
        raise InputError(f"exact Shapley values are of one output; {CURE}")
    read = ReadTrees.of(training)
    own = read.cells(frame) if len(frame) else np.empty((0, len(read.breaks)), dtype=np.int32)

    def draw(mine: np.ndarray, reference: Reference) -> tuple[Drawn, np.ndarray]:
        assert reference.frame is not None
        others = reference.frame
        if len(others) * len(read.trees.column) // 2 > MOST_PATTERNS:
            raise InputError(f"the trees have {len(read.trees.column):,} nodes, too many to read; {CURE}")
        if (read.owner < 0).any():  # levels that few rows have
            read.learn_owners(training.table, frame.iloc[mine], others, np.arange(len(mine)) % len(others))
            read.learn_owners(training.table, others, others, np.roll(np.arange(len(others)), 1))
        read.check(training, frame.iloc[mine], own[mine], reference)
        unit_of = units.of_column()[read.owner]  # a feature that no column changed is the same in all these rows
        kept = read.patterns.setdefault(reference, {})
        if unit_of.tobytes() not in kept:
            kept[unit_of.tobytes()] = leaf_patterns(read.trees, read.cells(others), unit_of)
        found = draw_reasons(read.trees, kept[unit_of.tobytes()], own[mine], unit_of, len(units), MOST_PAIRS)
        return found, np.zeros(found.shapley.shape)

    return reasons_by(draw, references, outputs, units, np.full(len(units), 1 / len(units)))


def _parts(model: Any, table: Table) -> tuple[Callable[[pd.DataFrame], Any], Any]:
    """What turns rows into the trees' features, and the trees."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    steps: list[Any] = []
    while isinstance(model, Pipeline):
        steps += [model[:-1]] if len(model) > 1 else []
        model = model[-1]
    first = steps[0] if steps else model
    nameless = hasattr(first, "n_features_in_") and not hasattr(first, "feature_names_in_")

    def encode(frame: pd.DataFrame) -> Any:
        rows: Any = own_copy(frame, table.source_labels)
        named = any(isinstance(label, str) for label in rows.columns)
        if table.from_array or (nameless and named):
            rows = rows.to_numpy(copy=True)
        for step in steps:
            rows = step.transform(rows)
        return rows

    return encode, model


def _numbers(rows: Any, nothing: float) -> np.ndarray:
    if sp.issparse(rows):
        entries, found = sp.coo_array(rows), np.full(rows.shape, nothing)
        found[entries.coords] = entries.data
        return found
    if isinstance(rows, pd.DataFrame):
        return rows.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(rows, dtype=np.float64)
