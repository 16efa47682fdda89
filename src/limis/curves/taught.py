"""The taught model: gradient boosting on the black box's own answers, a stand-in where the black box may not be asked.

It is never the explanation. It says how the row differs from the training rows that speak for it, and it can be walked
through for all single changes of a row at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_info, threadpool_limits

from limis.curves.kernels import (
    AT_ONCE,
    MOST_DEEP,
    Trees,
    draw_curves,
    mean_with_others,
    predict_cells,
    replace_one_unit,
    replace_pairs,
    replace_units,
)
from limis.table import Table

CELLS_A_THREAD = 500_000  # of fewer, threads wait for each other longer than they work
PRIOR = 5.0  # rows' worth of trust that the overall mean gets in the mean answer of a level


class Size(NamedTuple):
    """How fine a taught model is."""

    n_trees: int
    leaves: int
    learning_rate: float
    columns_a_split: float = 1.0  # the share of columns that each split chooses from


@dataclass
class TaughtModel:
    """Trees on numbers as they are and on categories in the order of their mean answer."""

    trees: Trees
    baseline: float
    breaks: list[np.ndarray]  # for each column the thresholds of all trees, in order
    level_order: list[np.ndarray]  # for each category the place of each level in its order; empty for numbers

    @classmethod
    def teach(
        cls,
        table: Table,
        values: np.ndarray,
        answers: np.ndarray,
        seed: int,
        size: Size,
        *,
        level_order: list[np.ndarray] | None = None,
        n_threads: int | None = None,
    ) -> TaughtModel:
        """Fit it to what the black box says of rows, given by their values: (rows, columns)."""
        level_order = order_levels(table, values, answers) if level_order is None else level_order
        booster = HistGradientBoostingRegressor(
            max_iter=size.n_trees,
            max_leaf_nodes=size.leaves,
            max_depth=MOST_DEEP,
            learning_rate=size.learning_rate,
            max_features=size.columns_a_split,
            early_stopping=False,
            random_state=seed,
        )
        inputs = _inputs(values, level_order)
        most = _allowed_threads() if n_threads is None else n_threads
        with threadpool_limits(max(1, min(most, inputs.size // CELLS_A_THREAD)), user_api="openmp"):
            booster.fit(np.where(np.isnan(inputs).all(axis=0), 0.0, inputs), answers)  # a column without any value
        # scikit-learn has no public way to its trees; a test compares what they say here and there.
        nodes = [predictors[0].nodes for predictors in booster._predictors]  # noqa: SLF001
        baseline = float(np.ravel(booster._baseline_prediction)[0])  # noqa: SLF001
        starts = np.cumsum([0, *map(len, nodes)])
        every = np.concatenate(nodes)
        offset = np.repeat(starts[:-1], np.diff(starts))
        is_leaf = every["is_leaf"].astype(bool)
        column = np.where(is_leaf, -1, every["feature_idx"]).astype(np.int32)
        threshold = every["num_threshold"]
        breaks = [np.unique(threshold[column == j]) for j in range(values.shape[1])]
        cell = np.zeros(len(every), dtype=np.int32)
        for j, own in enumerate(breaks):
            cell[column == j] = np.searchsorted(own, threshold[column == j])
        trees = Trees(
            roots=starts[:-1].astype(np.int64),
            column=column,
            cell=cell,
            missing_left=every["missing_go_to_left"].astype(bool),
            left=every["left"].astype(np.int64) + offset,
            right=every["right"].astype(np.int64) + offset,
            value=np.where(is_leaf, every["value"], 0.0),
        )
        return cls(trees, baseline, breaks, level_order)

    @classmethod
    def mean(cls, models: list[TaughtModel]) -> TaughtModel:
        """What several say on average; their levels are in one order."""
        if len(models) == 1:
            return models[0]
        breaks = [np.unique(np.concatenate(own)) for own in zip(*(model.breaks for model in models), strict=True)]
        starts = np.cumsum([0, *(len(model.trees.column) for model in models)])
        parts = []
        for model, start in zip(models, starts, strict=False):
            trees, cell = model.trees, model.trees.cell.copy()
            for j, own in enumerate(model.breaks):
                here = trees.column == j
                cell[here] = np.searchsorted(breaks[j], own)[trees.cell[here]]
            moved = {name: getattr(trees, name) + start for name in ("roots", "left", "right")}
            parts.append(trees._replace(cell=cell, value=trees.value / len(models), **moved))
        joined = Trees(*(np.concatenate(held) for held in zip(*parts, strict=True)))
        return cls(joined, float(np.mean([model.baseline for model in models])), breaks, models[0].level_order)

    def scaled(self, unit: float, offset: float) -> TaughtModel:
        """The same in other units: what it says, times one number and plus another."""
        trees = self.trees._replace(value=self.trees.value * unit)
        return replace(self, trees=trees, baseline=self.baseline * unit + offset)

    def cells(self, values: np.ndarray) -> np.ndarray:
        """For each value how many thresholds of its column are below it, -1 for missing ones: (rows, columns)."""
        inputs = _inputs(values, self.level_order)
        cells = np.empty(inputs.shape, dtype=np.int32)
        for j, own in enumerate(self.breaks):
            cells[:, j] = np.where(np.isnan(inputs[:, j]), -1, np.searchsorted(own, inputs[:, j]))
        return cells

    def predict(self, values: np.ndarray) -> np.ndarray:
        """What it says of rows: (rows,)."""
        return self.predict_cells(self.cells(values))

    def predict_cells(self, cells: np.ndarray) -> np.ndarray:
        """The same of rows given by their cells."""
        found = np.full(len(cells), self.baseline)
        predict_cells(self.trees, cells, found)
        return found

    def unit_changes(self, own: np.ndarray, rows: np.ndarray, cells: np.ndarray, unit_of: np.ndarray) -> np.ndarray:
        """What its answer changes by when each unit alone takes the new cells: (questions, units)."""
        found = np.zeros((len(rows), int(unit_of.max()) + 1))
        replace_units(self.trees, own, rows, cells, unit_of, found)
        return found

    def one_unit_changes(self, own: np.ndarray, members: np.ndarray, others: np.ndarray) -> np.ndarray:
        """What its answer for rows changes by when one unit takes each of other rows' cells: (rows, others)."""
        found = np.zeros((len(own), len(others)))
        of_unit = np.isin(np.arange(own.shape[1]), members)
        for start in range(0, len(others), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            part = np.zeros((len(own), len(others[some])))
            replace_one_unit(self.trees, own, of_unit, others[some], part)
            found[:, some] = part
        return found

    def mean_with(self, own: np.ndarray, rows: np.ndarray, changed: np.ndarray, others: np.ndarray) -> np.ndarray:
        """What it says on average as groups of a row's columns take each of other rows' cells: (groups,).

        own : (rows, columns) cells; rows : (groups,); changed : (groups, columns) bool; others : (others, columns).
        """
        found, trees = np.zeros(len(rows)), self.trees
        for start in range(0, len(others), AT_ONCE):
            some = others[start : start + AT_ONCE]
            here = some[:, np.maximum(trees.column, 0)]
            goes_left = np.where(here < 0, trees.missing_left, here <= trees.cell)
            bits = (goes_left.astype(np.uint64) << np.arange(len(some), dtype=np.uint64)[:, None]).sum(
                axis=0, dtype=np.uint64
            )
            part = np.zeros(len(rows))
            mean_with_others(trees, own, rows, changed, bits, len(some), part)
            found += part * (len(some) / len(others))
        return self.baseline + found

    def pair_changes(
        self, own: np.ndarray, rows: np.ndarray, cells: np.ndarray, unit_of: np.ndarray, pairs: np.ndarray
    ) -> np.ndarray:
        """What its answer changes by when both units of a pair take the new cells: (questions, pairs)."""
        found = np.zeros((len(rows), len(pairs)))
        if len(pairs):
            replace_pairs(self.trees, own, rows, cells, unit_of, pairs, found)
        return found

    def curves(self, cells: np.ndarray) -> np.ndarray:
        """Each row's response curves, one column's cells after another's, missing last in each: (rows, all cells)."""
        found = np.zeros((len(cells), int(self.starts[-1])))
        draw_curves(self.trees, cells, self.starts[:-1], np.diff(self.starts), found)
        return found

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each column's cells begin in a line of `curves`: (columns + 1,)."""
        return np.cumsum([0, *(len(own) + 2 for own in self.breaks)])


def _allowed_threads() -> int:
    """As many as OpenMP may start now: less than the cores where the environment or a caller says so."""
    return min((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"), default=1)


def order_levels(table: Table, values: np.ndarray, answers: np.ndarray) -> list[np.ndarray]:
    """The place of each level of each category in the order of their mean answers; empty for numbers."""
    return [
        _order(values[:, j], answers, len(column.levels)) if column.is_category else np.empty(0)
        for j, column in enumerate(table.columns)
    ]


def _order(codes: np.ndarray, answers: np.ndarray, n_levels: int) -> np.ndarray:
    """The place of each level in the order of their mean answers: (levels,)."""
    known = codes >= 0
    codes, answers = codes[known].astype(np.int64), answers[known]
    sums, counts = np.bincount(codes, weights=answers, minlength=n_levels), np.bincount(codes, minlength=n_levels)
    means = (sums + PRIOR * answers.mean()) / (counts + PRIOR) if len(answers) else np.zeros(n_levels)
    return np.argsort(np.argsort(means, kind="stable"), kind="stable").astype(np.float64)


def _inputs(values: np.ndarray, level_order: list[np.ndarray]) -> np.ndarray:
    """Values with categories as places in their order; a level never seen is missing."""
    inputs = np.array(values, dtype=np.float64)
    for j, order in enumerate(level_order):
        if len(order):
            codes = inputs[:, j].astype(np.int64)
            inputs[:, j] = np.where(codes >= 0, order[np.maximum(codes, 0)], np.nan)
    return inputs
