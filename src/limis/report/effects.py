"""The coefficients of a local model as a reader can use them: what other values of a column would add."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from limis.columns import UNKNOWN, Column, show_duration, show_number
from limis.explanation import Explanation
from limis.report.words import Numbers, is_zero

MOST_COLUMNS = 6
MOST_LEVELS = 3  # of a category: those that would change most


@dataclass
class Effect:
    """What other values of one column would add to the local prediction."""

    column: str
    own: str  # this row's value
    adds: list[str]
    size: float  # how far the column could move the local prediction, about


def effects(one: Explanation, numbers: Numbers) -> list[Effect]:
    """The columns that could move the local prediction most, first.

    Those that would not visibly move it are left out. Local models without coefficients have none.
    """
    if not one.all.fits.has_coefficients:
        return []
    training = one.all.training
    owner, slopes = training.table.feature_column, one.coefficients.to_numpy()
    found = []
    for j, column in enumerate(training.table.columns):
        own = np.flatnonzero(owner == j)
        if column.is_category:
            size, adds = _of_levels(column, slopes[own], int(one.all.values[one.row, j]), numbers)
        else:
            size, adds = _of_number(column, slopes[own], float(training.table.quantiles[j].std()), numbers)
        if adds:
            found.append(Effect(column.name, one.values[column.name], adds, size))
    return sorted(found, key=lambda effect: -effect.size)[:MOST_COLUMNS]


def _of_number(column: Column, slopes: np.ndarray, deviation: float, numbers: Numbers) -> tuple[float, list[str]]:
    """Its slope over a round step, and what passing each of its jumps adds."""
    if deviation == 0:
        return 0.0, []
    step = 10.0 ** math.floor(math.log10(deviation))
    told = [(numbers.signed(slopes[0] * step), f"for each {_step_words(column, step)}")]
    told += [
        (numbers.signed(slope), f"above {column.show_border(jump)}")
        for slope, jump in zip(slopes[1:], column.jumps, strict=False)
    ]
    size = abs(slopes[0]) * deviation + np.abs(slopes[1 : 1 + len(column.jumps)]).sum()
    return float(size), [f"{amount} {words}" for amount, words in told if not is_zero(amount)]


def _step_words(column: Column, step: float) -> str:
    if column.kind == "number":
        return f"{show_number(step)} more"
    return f"{show_duration(step, rough=True)} {'later' if column.kind == 'date' else 'more'}"


def _of_levels(column: Column, slopes: np.ndarray, code: int, numbers: Numbers) -> tuple[float, list[str]]:
    """The known levels that would move the prediction most, against the level that the row has."""
    if code == UNKNOWN:
        return 0.0, []
    changes = slopes - slopes[min(code, len(slopes) - 1)]
    order = np.argsort(-np.nan_to_num(np.abs(changes)), kind="stable")[:MOST_LEVELS]
    told = [
        (numbers.signed(changes[place]), column.feature_levels[place])
        for place in order.tolist()
        if np.isfinite(changes[place])
    ]
    size = float(np.nan_to_num(np.abs(changes)).max())
    return size, [f"{amount} with {level}" for amount, level in told if not is_zero(amount)]
