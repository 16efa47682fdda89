"""What may change, and where to: the user's immutable columns, ranges and directions, checked."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from limis.columns import Column
from limis.errors import InputError
from limis.kinds import is_missing, plain, to_numbers
from limis.table import Table

DIRECTIONS = {"up": 1, "down": -1}


@dataclass
class Constraints:
    """What the user allows, column by column."""

    immutable: np.ndarray  # (columns,) bool
    direction: np.ndarray  # (columns,) 1 up only, -1 down only, 0 both
    ranges: dict[int, tuple[float, float]]  # numbers, dates and durations: both ends are allowed
    levels: dict[int, list[int]]  # categories: codes

    def allows(self, column: int, values: np.ndarray) -> np.ndarray:
        """Which values a column may move to, whatever row it is in; to missing it never may."""
        allowed = ~np.isnan(values)
        if column in self.ranges:
            low, high = self.ranges[column]
            allowed &= (values >= low) & (values <= high)
        if column in self.levels:
            allowed &= np.isin(values, self.levels[column])
        return allowed


def read_constraints(
    table: Table,
    immutable: Iterable[Any] | str = (),
    ranges: Mapping[Any, Any] | None = None,
    directions: Mapping[Any, str] | None = None,
) -> Constraints:
    """Check what the user allows against the columns there are."""
    if not isinstance(immutable, Iterable):
        raise InputError(f"immutable is a list of columns, not {immutable!r}")
    names = [immutable] if isinstance(immutable, str) else list(immutable)
    fixed = np.zeros(len(table.columns), dtype=bool)
    fixed[[column_called(table, name, "immutable") for name in names]] = True
    found = Constraints(fixed, np.zeros(len(table.columns), dtype=np.int64), {}, {})
    for name, range_ in _items(ranges, "ranges", '{"hours": (20, 60), "job": ["a", "b"]}'):
        j = column_called(table, name, "ranges")
        column = table.columns[j]
        if column.is_category:
            found.levels[j] = _read_levels(column, range_)
        else:
            found.ranges[j] = _read_range(column, range_)
    for name, direction in _items(directions, "directions", '{"age": "up"}'):
        j = column_called(table, name, "directions")
        if not isinstance(direction, str) or direction not in DIRECTIONS:
            raise InputError(f'directions[{str(name)!r}] is "up" or "down", not {direction!r}')
        if table.columns[j].is_category:
            raise InputError(f"column {str(name)!r} holds categories, which have no direction; list levels in ranges")
        found.direction[j] = DIRECTIONS[direction]
    return found


def column_called(table: Table, name: Any, option: str) -> int:
    """The position of a column that an option names."""
    if str(name) in table.names:
        return table.names.index(str(name))
    for column in table.columns:
        if str(name) in column.sources:
            raise InputError(
                f"{option} names {str(name)!r}, a dummy of the group {column.name!r}; name the group: it changes as one"
            )
    close = difflib.get_close_matches(str(name), table.names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InputError(f"{option} names {str(name)!r}, which is not a column; {hint}there are {_listed(table.names)}")


def _items(given: Any, option: str, example: str) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise InputError(f"{option} goes from columns to what they may do, such as {example}, not {given!r}")
    return list(given.items())


def _read_range(column: Column, given: Any) -> tuple[float, float]:
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)) or len(given) != 2:
        raise InputError(
            f"ranges[{column.name!r}] is a (low, high) pair, as the column holds {column.kind}s, not {given!r}; "
            "None leaves an end open"
        )
    low, high = (_read_end(column, end, open_end) for end, open_end in zip(given, (-np.inf, np.inf), strict=True))
    if low > high:
        raise InputError(f"ranges[{column.name!r}] is empty: it begins at {given[0]} and ends at {given[1]}")
    return low, high


def _read_end(column: Column, end: Any, open_end: float) -> float:
    """One end of a range, as a number on the column's own scale."""
    if is_missing(end):
        return open_end
    try:
        if column.kind == "number":
            number = float(end)
        else:
            read = pd.to_datetime if column.kind == "date" else pd.to_timedelta
            number = float(to_numbers(pd.Series([read(end)]), column.name, column.kind, column.zone)[0])
    except (OverflowError, pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
        # The end itself is left out: it may have hundreds of digits.
        raise InputError(
            f"ranges[{column.name!r}] has an end too large for a {column.kind}; None leaves it open"
        ) from None
    except (TypeError, ValueError):
        number = np.nan
    if np.isnan(number):  # also of words such as "nan" and "NaT"
        raise InputError(f"ranges[{column.name!r}] has an end {end!r}, which is not a {column.kind}")
    return number


def _read_levels(column: Column, given: Any) -> list[int]:
    if isinstance(given, (str, Mapping)) or not isinstance(given, Collection):
        raise InputError(f"ranges[{column.name!r}] is a list of levels, as the column holds categories, not {given!r}")
    if len(given) == 0:
        raise InputError(f"ranges[{column.name!r}] is empty: list at least one level, or make the column immutable")
    return [_code_of(column, level) for level in given]


def _code_of(column: Column, level: Any) -> int:
    """The code of a level, given as itself or in words; missing is none, in words or not."""
    words = {word: code for code, word in enumerate(column.words) if column.levels[code] is not None}
    if not is_missing(level):
        value = plain(level)
        for code, known in enumerate(column.levels):
            if type(known) is type(value) and known == value:
                return code
        if str(level) in words:
            return words[str(level)]
    if is_missing(level) or str(level) in column.words:
        raise InputError(
            f"ranges[{column.name!r}] lists {level!r}, and no column is ever moved to missing; leave it out"
        )
    close = difflib.get_close_matches(str(level), words, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InputError(
        f"ranges[{column.name!r}] names the level {level!r}, which no training row has; {hint}"
        f"there are {_listed(list(words))}"
    )


def _listed(names: list[str], most: int = 20) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
