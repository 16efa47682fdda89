"""Columns that belong together: where one determines another, as education does the years of education."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np

from limis.errors import InputError
from limis.suggest.constraints import column_called
from limis.table import Table

Together = Literal["auto"] | Sequence[Sequence[Any]]

# On average a value of the determining column is seen at least so often, or it is no more than a name of its row.
ROWS_A_VALUE = 5
# How probable it may be that two unrelated columns look so.
COINCIDENCE = 1e-6
_HEAD = 1000


def read_together(together: Together, table: Table, values: np.ndarray) -> list[list[int]]:
    """Groups of columns that change only together; ``values`` are those of the training rows."""
    if isinstance(together, str):
        if together != "auto":
            raise InputError(f'together is "auto" or a list of tuples of columns, not {together!r}')
        return find_together(values)
    if not isinstance(together, Iterable):
        raise InputError(f'together is "auto" or a list of tuples of columns, not {together!r}')
    groups = []
    for names in together:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"together is a list of tuples of columns, such as [({names!r}, ...)], not of names")
        group = sorted({column_called(table, name, "together") for name in names})
        if len(group) < 2:
            raise InputError(f"together has {tuple(names)!r}; a tuple names at least two columns")
        groups.append(group)
    for one, other in combinations(groups, 2):
        both = set(one) & set(other)
        if both:
            raise InputError(f"together has {table.names[both.pop()]!r} in two tuples; join them into one")
    return groups


def find_together(values: np.ndarray) -> list[list[int]]:
    """Groups of columns linked by one determining another in all rows, more often than chance would have it."""
    codes = [np.unique(column, return_inverse=True)[1].ravel() for column in values.T]  # missing is one value
    sizes = [int(code.max()) + 1 for code in codes]
    chances = [_chance_of_equal(code) for code in codes]
    group_of = list(range(len(codes)))
    for j, code in enumerate(codes):
        repeats = len(code) - sizes[j]
        if sizes[j] < 2 or sizes[j] * ROWS_A_VALUE > len(code):
            continue
        for k, other in enumerate(codes):
            if k == j or not 2 <= sizes[k] <= sizes[j]:
                continue
            by_chance = repeats * math.log(chances[k])
            if by_chance < math.log(COINCIDENCE) and _determines(code, other):
                group_of = [group_of[j] if group == group_of[k] else group for group in group_of]
    groups = [[k for k, group in enumerate(group_of) if group == number] for number in dict.fromkeys(group_of)]
    return [group for group in groups if len(group) > 1]


def _chance_of_equal(code: np.ndarray) -> float:
    """How probable it is that two rows hold the same value."""
    return float(((np.bincount(code) / len(code)) ** 2).sum())


def _determines(code: np.ndarray, other: np.ndarray) -> bool:
    """Whether rows that are equal in one column are equal in the other; most that are not show it early."""
    for rows in (slice(_HEAD), slice(None)):
        image = np.zeros(int(code.max()) + 1, dtype=np.int64)
        image[code[rows]] = other[rows]
        if not np.array_equal(image[code[rows]], other[rows]):
            return False
    return True
