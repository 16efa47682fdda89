"""Columns that count as one: dummies, columns that determine one another, and groups that the user names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from limis.errors import InputError
from limis.table import Table

DETERMINED = 0.99  # share of rows in which one column gives the other
# A column that hardly ever changes would be "determined" by any other: what is left unexplained must be small against
# what guessing its commonest value leaves.
BETTER_THAN_GUESSING = 0.1
ROWS_A_VALUE = 5  # a column with fewer rows a value is no more than a name of its row
MOST_ROWS = 20_000
MIN_ROWS = 20  # fewer would show columns to go together that do not
MIN_DUMMIES = 3  # fewer 0/1 columns that never stand together must always fill the row, to be taken for dummies


@dataclass(frozen=True)
class Units:
    """What counts as one column: ``members[i]`` are the columns of the table behind unit i."""

    names: list[str]
    members: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.members)

    def matrix(self, n_columns: int) -> np.ndarray:
        """Which column belongs to which unit: (units, columns) bool."""
        found = np.zeros((len(self), n_columns), dtype=bool)
        for unit, columns in enumerate(self.members):
            found[unit, columns] = True
        return found

    def of_column(self) -> np.ndarray:
        """The unit of each column: (columns,)."""
        found = np.empty(sum(map(len, self.members)), dtype=np.int64)
        for unit, columns in enumerate(self.members):
            found[columns] = unit
        return found


def find_units(table: Table, values: np.ndarray, groups: Mapping[str, Sequence[str]] | None = None) -> Units:
    """The units of a table: named groups first, then dummies, then columns that determine one another.

    Parameters
    ----------
    table : Table
        What the columns are.
    values : array of shape (rows, columns)
        The training rows.
    groups : dict, default=None
        Columns that the user wants counted as one, under a name.
    """
    if len(values) > MOST_ROWS:
        values = values[np.random.default_rng(0).choice(len(values), MOST_ROWS, replace=False)]
    names = table.names
    unit_of = _named(groups, names)
    found = _dummies(names, values, set(range(len(names))) - set(unit_of)) if len(values) >= MIN_ROWS else {}
    for name, members in found.items():
        unit_of |= dict.fromkeys(members, f"{name} (dummies)" if name in names else name)
    free = [j for j in range(len(names)) if j not in unit_of]
    for group in _determining(values, free, table.is_category) if len(values) >= MIN_ROWS else []:
        unit_of |= dict.fromkeys(group, " / ".join(names[j] for j in group))
    # A column may have the very name that a unit of others got.
    keys = [(j not in unit_of, unit_of.get(j, names[j])) for j in range(len(names))]
    order = list(dict.fromkeys(keys))
    columns_of = [np.array([j for j, own in enumerate(keys) if own == key]) for key in order]
    taken = {name for alone, name in order if alone}
    return Units([name if alone or name not in taken else f"{name} (together)" for alone, name in order], columns_of)


def _named(groups: Any, names: list[str]) -> dict[int, str]:
    """The group of each column that the user put into one."""
    if groups is not None and not isinstance(groups, Mapping):
        raise InputError(f'groups is columns under a name, as in {{"money": ["income", "savings"]}}, not {groups!r}')
    found: dict[int, str] = {}
    for name, columns in (groups or {}).items():
        if isinstance(columns, str) or not isinstance(columns, Iterable) or len(list(columns)) == 0:
            raise InputError(f"groups[{name!r}] is a list of columns, not {columns!r}")
        if str(name) in names and str(name) not in map(str, columns):
            raise InputError(f"groups[{name!r}] has the name of another column; choose a name of its own")
        for column in map(str, columns):
            if column not in names:
                raise InputError(f"groups[{name!r}] names {column!r}, which is not a column of the table")
            if names.index(column) in found:
                raise InputError(f"column {column!r} is named twice in groups; keep one")
            found[names.index(column)] = str(name)
    return found


def _dummies(names: list[str], values: np.ndarray, free: set[int]) -> dict[str, list[int]]:
    """0/1 columns under a common beginning of their names, the longest first, of which no two are 1 in a row."""
    by_prefix: dict[str, list[int]] = {}
    for j in sorted(free):
        if np.isin(values[:, j], (0.0, 1.0)).all():
            for prefix in {names[j][:place] for place, sign in enumerate(names[j]) if sign in "=_ " and place}:
                by_prefix.setdefault(prefix, []).append(j)
    found: dict[str, list[int]] = {}
    taken: set[int] = set()
    for prefix in sorted(by_prefix, key=len, reverse=True):
        members = [j for j in by_prefix[prefix] if j not in taken]
        together = values[:, members].sum(axis=1)
        exclusive, filled = bool((together <= 1).all()), float(together.mean())
        if exclusive and len(members) > 1 and (filled >= DETERMINED or (len(members) >= MIN_DUMMIES and filled >= 0.5)):
            found[prefix] = members
            taken |= set(members)
    return found


def _determining(values: np.ndarray, free: list[int], is_category: np.ndarray) -> list[list[int]]:
    """Groups of columns each of which gives the others in nearly all rows."""
    codes = {j: np.unique(values[:, j], return_inverse=True)[1] for j in free}
    group_of = {j: j for j in free}
    for j, k in combinations(free, 2):
        if group_of[j] != group_of[k] and (
            _one_another(codes[j], codes[k]) or (not is_category[[j, k]].any() and _rise_together(codes[j], codes[k]))
        ):
            old, new = group_of[k], group_of[j]
            group_of = {column: new if group == old else group for column, group in group_of.items()}
    groups = [[j for j in free if group_of[j] == number] for number in dict.fromkeys(group_of.values())]
    return [group for group in groups if len(group) > 1]


def _one_another(code: np.ndarray, other: np.ndarray) -> bool:
    return _determines(code, other) and _determines(other, code)


def _determines(code: np.ndarray, other: np.ndarray) -> bool:
    """Whether the commonest partner of each value is right in nearly all rows, and that says something."""
    n, n_values = len(code), int(code.max()) + 1
    if n_values < 2 or n_values * ROWS_A_VALUE > n:
        return False
    cells, counts = np.unique(code.astype(np.int64) * (int(other.max()) + 1) + other, return_counts=True)
    best = np.zeros(n_values, dtype=np.int64)
    np.maximum.at(best, cells // (int(other.max()) + 1), counts)
    missed = 1 - best.sum() / n
    guessed = 1 - np.bincount(other).max() / n
    return bool(missed <= min(1 - DETERMINED, BETTER_THAN_GUESSING * guessed) and guessed > 0)


def _rise_together(code: np.ndarray, other: np.ndarray) -> bool:
    """Whether two columns of many values are one in other units: their order is the same, or turned round."""
    if min(code.max(), other.max()) + 1 < len(code) / ROWS_A_VALUE:
        return False
    return bool(abs(np.corrcoef(code, other)[0, 1]) > 1 - (1 - DETERMINED) ** 2)
