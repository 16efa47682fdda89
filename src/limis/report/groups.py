"""Groups of rows on a page: which are chosen, how faithful explanations are in each, what weighs, what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limis.class_explanations import ClassExplanations
from limis.columns import show_number
from limis.errors import InputError
from limis.explanation import Explanations
from limis.report.words import Numbers, percent
from limis.subgroups import Measure, Subgroups, subgroups
from limis.subgroups.groups import read_groups
from limis.subgroups.measure import usual_measure
from limis.subgroups.resampling import FEWEST
from limis.subgroups.result import EVERYBODY

MOST_CHOSEN = 3  # columns to group by that are chosen here
FEWEST_ROWS = 20  # explained rows that are worth groups that nobody asked for
MOST_WEIGHTS = 8  # columns whose weight is told for each group


@dataclass
class Weight:
    """How much a column weighs in a group."""

    words: str
    ends: str  # of its interval
    share: float  # of the largest in the table, in percent


@dataclass
class Line:
    """One group."""

    name: str
    rows: str
    trusted: str
    near: str  # effective rows
    error: str  # of local models; empty where the black box was not asked
    own_error: str  # of the black box itself; empty without labels
    weights: list[Weight]


@dataclass
class Grouping:
    """The groups that one column makes."""

    by: str
    lines: list[Line]
    columns: list[str]
    has_errors: bool
    has_own_errors: bool


@dataclass
class Groups:
    """All that a page tells of groups of rows."""

    tables: list[Grouping]
    flags: list[str]
    quiet: list[str]  # sensitive columns that carry no clear weight in any group
    measure: Measure


def groups(
    found: Explanations | ClassExplanations,
    by: Sequence[str] | None,
    sensitive: Sequence[str] = (),
    labels: Any = None,
    data: Any = None,
) -> Groups:
    """Groups by each of some columns; by those chosen here where ``by`` is None, which may be none."""
    first = found.parts[0] if isinstance(found, ClassExplanations) else found
    _refuse_strange(sensitive, first.training.table.names)
    if by is None:
        by = chosen_columns(found, sensitive) if isinstance(found, Explanations) else []
    measure = usual_measure(first.fits)
    made = {name: subgroups(found, name, measure=measure, y=labels, data=data) for name in by}
    numbers = Numbers.of(first.training)
    flags = [flag for group in made.values() for flag in group.flags(sensitive)]
    quiet = [name for name in sensitive if not any(_carries(group, name) for group in made.values())]
    tables = [_table(name, group, sensitive, numbers) for name, group in made.items()]
    return Groups(tables, list(dict.fromkeys(flags)), quiet, measure)


def chosen_columns(found: Explanations, sensitive: Sequence[str] = ()) -> list[str]:
    """Columns worth grouping by: the sensitive ones, then those that weigh most and make groups large enough."""
    if len(found) < FEWEST_ROWS or not found.fits.has_contributions:
        return []
    weight = found.column_contributions.abs().mean()
    ranked = [*sensitive, *weight.sort_values(ascending=False, kind="stable").index]
    known = set(found.frame.columns)
    worth = [name for name in dict.fromkeys(ranked) if name in sensitive or (name in known and _divides(found, name))]
    return worth[: max(MOST_CHOSEN, len(sensitive))]


def _refuse_strange(sensitive: Sequence[str], names: list[str]) -> None:
    strange = [name for name in sensitive if name not in names]
    if strange:
        raise InputError(
            f"there is no column {strange[0]!r} to call sensitive; there are {', '.join(map(repr, names))}"
        )


def _carries(made: Subgroups, column: str) -> bool:
    return any(made.heavy(group, column) for group in made.values.index)


def _divides(found: Explanations, name: str) -> bool:
    """Whether a column makes at least two groups of which something can be told."""
    return sum(mask.sum() >= FEWEST for mask in read_groups(found, name).values()) >= 2


def _table(by: str, made: Subgroups, sensitive: Sequence[str], numbers: Numbers) -> Grouping:
    """A line a group and one for all rows; the columns that weigh most, and the sensitive ones."""
    heavy = made.overall_values.sort_values(ascending=False, kind="stable").index[:MOST_WEIGHTS]
    columns = list(dict.fromkeys([*heavy, *sensitive]))
    largest = float(np.nanmax(made.values[columns].to_numpy(), initial=0.0)) or 1.0
    lines = []
    for name in made.values.index:
        weights = [
            _weight(*(float(frame.loc[name, column]) for frame in (made.values, made.low, made.high)), largest=largest)
            for column in columns
        ]
        lines.append(_line(name, made.fidelity.loc[name], numbers, weights))
    everywhere = [_weight(float(made.overall_values[column]), np.nan, np.nan, largest=largest) for column in columns]
    lines.append(_line(EVERYBODY, made.overall.loc[EVERYBODY], numbers, everywhere))
    has = made.fidelity.columns
    return Grouping(by, lines, columns, "lmae" in has, "error" in has)


def _line(name: str, told: Any, numbers: Numbers, weights: list[Weight]) -> Line:
    return Line(
        name=name,
        rows=f"{int(told['rows']):,}",
        trusted=percent(float(told["trusted"])),
        near=show_number(float(told["effective_rows"]), 3),
        error=_with_ends(told, "lmae", numbers),
        own_error=_with_ends(told, "error", numbers),
        weights=weights,
    )


def _with_ends(told: Any, name: str, numbers: Numbers) -> str:
    if name not in told:
        return ""
    middle, low, high = (numbers.show(float(told[name + end])) for end in ("", " low", " high"))
    return f"{middle} ({low} to {high})" if np.isfinite(told[f"{name} low"]) else middle


def _weight(middle: float, low: float, high: float, *, largest: float) -> Weight:
    if not np.isfinite(middle):
        return Weight("", "not known", 0.0)
    ends = f"{show_number(low, 3)} to {show_number(high, 3)}" if np.isfinite(low) else ""
    return Weight(show_number(middle, 2), ends, round(100 * middle / largest, 1))
