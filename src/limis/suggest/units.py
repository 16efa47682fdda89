"""What can change and to what: columns that move as one, and the values that training rows hold there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from limis.columns import Column
from limis.errors import InputError
from limis.perturb import gower_distance
from limis.rows import TrainingRows
from limis.suggest.constraints import Constraints
from limis.table import Table

# More values of one number than these would not bring a change noticeably nearer.
MAX_VALUES = 1000
# Of the levels of a category, or of the tuples of columns that belong together, the most frequent are tried.
MAX_TRIED = 40


@dataclass(eq=False)
class Unit:
    """One column, or several that belong together, and its options: values that training rows hold."""

    columns: list[int]
    values: np.ndarray  # (options, columns of the unit); those of a number ascend
    ranks: np.ndarray  # the same as positions among the training rows
    permitted: np.ndarray  # (options, columns of the unit) bool: what a cell may be changed to
    option_of_row: np.ndarray  # (training rows,) the option that each holds, or the nearest to it; -1 for none
    tried: np.ndarray  # options to try for any row: frequent tuples, or a number's values beside the black box's jumps
    is_number: bool


@dataclass(eq=False)
class Options:
    """The options of one unit, seen from one row."""

    unit: Unit
    own: np.ndarray  # (columns of the unit,) the row's values
    allowed: np.ndarray  # (options,) bool; the row's own value is no option
    changed: np.ndarray  # (options, columns of the unit) bool: what is altered
    distance: np.ndarray  # (options,) how far it leads, summed over the unit's columns


def make_units(training: TrainingRows, constraints: Constraints, together: list[list[int]]) -> list[Unit]:
    """All units that may change, with values that exist in training."""
    table, values = training.table, training.values
    for j in (*constraints.ranges, *constraints.levels):
        if not constraints.allows(j, values[:, j]).any():
            raise InputError(
                f"ranges[{table.names[j]!r}] leaves nothing to choose from: no training row has a value there"
                f"{_span(table.columns[j], values[:, j])}"
            )
    grouped = {j for group in together for j in group}
    single = [[j] for j in range(len(table.columns)) if j not in grouped]
    units = []
    for columns in sorted([*single, *together]):
        if constraints.immutable[columns].any():
            continue
        if len(columns) == 1 and not table.columns[columns[0]].is_category:
            units.append(_number(table, values, columns[0], constraints))
        else:
            units.append(_tuples(table, values, columns, constraints))
    return [unit for unit in units if unit.permitted.any()]


def _number(table: Table, values: np.ndarray, column: int, constraints: Constraints) -> Unit:
    """A number has the values that training rows hold; of very many, some that are spread over them."""
    held = values[:, column]
    every = np.unique(held[constraints.allows(column, held)])
    last = len(every) - 1
    spread = np.linspace(0, last, min(len(every), MAX_VALUES)).round().astype(np.int64)
    first_above = np.searchsorted(every, table.columns[column].jumps, side="right")
    beside = np.clip(np.concatenate([first_above - 1, first_above]), 0, max(0, last)).astype(np.int64)
    kept = np.unique(np.concatenate([spread, beside])) if len(every) else spread
    options = every[kept]
    return Unit(
        columns=[column],
        values=options[:, None],
        ranks=_ranks(table, options[:, None], [column]),
        permitted=np.ones((len(options), 1), dtype=bool),
        option_of_row=_nearest(options, held),
        tried=np.unique(np.searchsorted(kept, beside)) if len(every) else kept,
        is_number=True,
    )


def _nearest(options: np.ndarray, held: np.ndarray) -> np.ndarray:
    """For each value the place of the nearest of some ascending ones; -1 for a missing value."""
    if len(options) == 0:
        return np.full(len(held), -1)
    above = np.clip(np.searchsorted(options, held), 0, len(options) - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(held - options[below] <= options[above] - held, below, above)
    return np.where(np.isnan(held), -1, nearest)


def _tuples(table: Table, values: np.ndarray, columns: list[int], constraints: Constraints) -> Unit:
    """A category, or columns that belong together, have the tuples that training rows hold."""
    held = values[:, columns]
    option_of_row = pd.DataFrame(held).groupby(list(range(len(columns))), dropna=False).ngroup().to_numpy()
    _, first, counts = np.unique(option_of_row, return_index=True, return_counts=True)
    options = held[first]
    permitted = ~_missing(table, options, columns)
    for place, j in enumerate(columns):
        permitted[:, place] &= constraints.allows(j, options[:, place])
    return Unit(
        columns=columns,
        values=options,
        ranks=_ranks(table, options, columns),
        permitted=permitted,
        option_of_row=option_of_row,
        tried=np.sort(np.argsort(np.where(permitted.all(axis=1), -counts, 1), kind="stable")[:MAX_TRIED]),
        is_number=False,
    )


def seen_from(values: np.ndarray, unit: Unit, table: Table, constraints: Constraints) -> list[Options]:
    """A unit's options for each of some rows, given by their values in all columns."""
    own = values[:, unit.columns]  # (rows, columns of the unit)
    changed = ~_same(own[:, None, :], unit.values[None])
    direction = constraints.direction[unit.columns]
    against = (unit.values[None] - own[:, None, :]) * direction < 0
    # From a missing value there is neither up nor down.
    against |= (direction != 0) & np.isnan(own)[:, None, :]
    forbidden = changed & (~unit.permitted[None] | against)
    allowed = changed.any(axis=2) & ~forbidden.any(axis=2)
    categories = table.is_category[unit.columns]
    distance = gower_distance(_ranks(table, own, unit.columns), unit.ranks, categories) * len(unit.columns)
    return [Options(unit, *seen) for seen in zip(own, allowed, changed, distance, strict=True)]


def _ranks(table: Table, values: np.ndarray, columns: list[int]) -> np.ndarray:
    """Positions among the training rows of values in some columns."""
    wide = np.full((len(values), len(table.columns)), np.nan)
    wide[:, columns] = values
    return table.ranks(wide)[:, columns]


def _missing(table: Table, values: np.ndarray, columns: list[int]) -> np.ndarray:
    """Which values stand for missing: NaN, or the code of that level, which comes first."""
    has_level = [table.columns[j].is_category and table.columns[j].has_missing for j in columns]
    return np.isnan(values) | (np.array(has_level) & (values == 0))


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _span(column: Column, values: np.ndarray) -> str:
    """From where to where the training values of a number go."""
    if column.is_category:
        return ""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return "; they are all missing"
    return f"; they go from {column.show_amount(float(known.min()))} to {column.show_amount(float(known.max()))}"
