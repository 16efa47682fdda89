"""The coefficients of a local model as a reader can use them: what other values of a column would add."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from limis.columns import UNKNOWN, Column, show_duration, show_number
from limis.explanation import Explanation
from limis.report.words import Numbers, count, is_zero

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
        own, value = np.flatnonzero(owner == j), float(one.all.values[one.row, j])
        if column.is_category:
            size, adds = _of_levels(column, slopes[own], int(value), numbers)
        else:
            with np.errstate(over="ignore"):
                deviation = float(training.table.quantiles[j].std())
            size, adds = _of_number(column, slopes[own], value, deviation, numbers)
        if adds:
            found.append(Effect(column.name, one.values[column.name], adds, size))
    return sorted(found, key=lambda effect: -effect.size)[:MOST_COLUMNS]


def _of_number(
    column: Column, slopes: np.ndarray, value: float, deviation: float, numbers: Numbers
) -> tuple[float, list[str]]:
    """Its slope over a round step, and what passing its jumps adds, the nearest first on either side of the value."""
    if not 0 < deviation < np.inf or np.isnan(value):
        return 0.0, []
    step = 10.0 ** math.floor(math.log10(deviation))
    slope, *steps = np.nan_to_num(slopes[: 1 + len(column.jumps)]).tolist()  # what is unknown here is not told
    jumps = sorted(zip(column.jumps, steps, strict=True))
    above = [(size, f"above {column.show_border(jump)}") for jump, size in jumps if value <= jump]
    below = [(-size, f"at {column.show_border(jump)} or below") for jump, size in reversed(jumps) if value > jump]
    sloping = [(slope * step, f"for each {_step_words(column, step)}")]
    told = [words for steps_one_way in (sloping, above, below) for words in _in_turn(steps_one_way, numbers)]
    return abs(slope) * deviation + sum(map(abs, steps)), told


def _in_turn(steps: list[tuple[float, str]], numbers: Numbers) -> list[str]:
    """Steps of which each comes on top of those before it; those too small to see are left out."""
    seen = [(numbers.signed(size), where) for size, where in steps]
    seen = [(size, where) for size, where in seen if not is_zero(size)]
    return [f"{'another ' if place else ''}{size} {where}" for place, (size, where) in enumerate(seen)]


def _step_words(column: Column, step: float) -> str:
    if column.kind == "number":
        return f"{show_number(step)} more"
    time = count(round(step), "day", "days") if step >= 1 else show_duration(step, rough=True)
    return f"{time} {'later' if column.kind == 'date' else 'more'}"


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
