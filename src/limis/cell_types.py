"""Cells of one table in the types of another, with nothing lost on the way."""

from __future__ import annotations

from typing import Any

import pandas as pd


def in_type_of(own: pd.Series, seen: pd.Series) -> pd.Series:
    """A column in the type that the training column has, where all of its cells say the same in it; else as it is.

    Text stands for the category that reads so, as after a table went through a file. Levels that training did not have
    are added to its categories: the model is asked about what the user gave.
    """
    if own.dtype == seen.dtype:
        return own
    cells = own.astype(object)
    if isinstance(seen.dtype, pd.CategoricalDtype):
        known = set(seen.dtype.categories)
        by_word = {str(level): level for level in seen.dtype.categories}
        cells = cells.map(lambda cell: cell if cell in known else by_word.get(str(cell), cell), na_action="ignore")
    elif not own.isna().all():
        return own
    return first_that_fits(cells, [with_levels(seen.dtype, cells)], otherwise=own)


def first_that_fits(cells: pd.Series, types: list[Any], otherwise: pd.Series) -> pd.Series:
    """The cells in the first of the types in which they say the same."""
    for dtype in types:
        try:
            converted = cells.astype(dtype)
        except (TypeError, ValueError, ArithmeticError, NotImplementedError):
            continue
        if _says_the_same(converted, cells):
            return converted
    return otherwise


def with_levels(dtype: Any, own: pd.Series) -> Any:
    """The type of the training column; a category's with the levels that only these cells have."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return dtype
    known = {level: level for level in dtype.categories}
    given = list(dict.fromkeys(own.dropna().astype(object)))
    if any(isinstance(level, bool) != isinstance(known.get(level, level), bool) for level in given):
        return object  # True equals 1, yet is another answer
    unseen = [level for level in given if level not in known]
    return pd.CategoricalDtype([*dtype.categories, *unseen], dtype.ordered) if unseen else dtype


def _says_the_same(converted: pd.Series, cells: pd.Series) -> bool:
    missing = cells.isna()
    known = zip(converted[~missing].astype(object), cells[~missing], strict=True)
    return bool((converted.isna() == missing).all()) and all(bool(a == b) for a, b in known)
