"""Rows that come as JSON become a frame like the training table, or an error that names the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pandas.api import types
from pydantic import BaseModel, ConfigDict, Field, create_model

from limis.columns import Column
from limis.errors import InputError
from limis.rows import TrainingRows

LONGEST_TEXT = 10_000
LEVELS_SHOWN = 20
# Beyond it, in units of the column's own spread, sums of squares overflow; no measurement is so far away.
FARTHEST = 1e15

_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Text = Annotated[str, Field(strict=True, max_length=LONGEST_TEXT)]
_Truth = Annotated[bool, Field(strict=True)]
_WAYS = {
    "date": "a date as text, such as 2024-12-31 or 2024-12-31T08:30:00",
    "duration": "a duration as text, such as 1 days 12:00:00",
}


class FieldError(InputError):
    """A value cannot be used; ``field`` says which, as in ``rows.0.age``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def row_model(training: TrainingRows) -> type[BaseModel]:
    """A row with all columns of the training table; null is a missing value."""
    return _model("Row", training, required=True)


def changes_model(training: TrainingRows) -> type[BaseModel]:
    """Some columns of a row with other values."""
    return _model("Changes", training, required=False)


def _model(name: str, training: TrainingRows, required: bool) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for column in training.table.columns:
        for source in column.sources:
            told = Field(
                ... if required else None,
                alias=source,
                description=_description(column),
                json_schema_extra={"examples": [_example(training, source)]},
            )
            fields[f"c{len(fields)}"] = (_type(column) | None, told)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _type(column: Column) -> Any:
    """What JSON may hold for a column, null aside."""
    if column.is_group or column.kind == "number":
        return _Number
    if not column.is_category:
        return _Text
    kinds = {type(level) for level in column.levels if level is not None}
    if kinds <= {str}:
        return _Text
    if kinds == {bool}:
        return _Truth
    return _Number if kinds <= {int, float} else _Number | _Truth | _Text


def _description(column: Column) -> str:
    if column.is_group:
        return f"0 or 1, one of the columns that together are {column.name}"
    if not column.is_category:
        return _WAYS.get(column.kind, "a number")
    shown = ", ".join(column.words[:LEVELS_SHOWN])
    return f"one of {shown}" + (", and others" if len(column.levels) > LEVELS_SHOWN else "")


def _example(training: TrainingRows, source: str) -> Any:
    return json_value(training.frame[source].iloc[0])


def json_value(value: Any) -> Any:
    """A cell of a table as JSON holds it."""
    if types.is_scalar(value) and pd.isna(value):
        return None
    if isinstance(value, (np.timedelta64, np.datetime64)):
        return str(pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value))
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def plain_row(row: BaseModel) -> dict[str, Any]:
    """The values that were given, under the columns' own names."""
    return row.model_dump(by_alias=True, exclude_unset=True)


def frame_of(rows: Sequence[Mapping[str, Any]], training: TrainingRows, where: str = "rows") -> pd.DataFrame:
    """Rows with all columns as a frame in the training table's types."""
    return pd.DataFrame(
        {
            source: _series(column, source, [row[source] for row in rows], training.frame[source], where)
            for column in training.table.columns
            for source in column.sources
        }
    )[training.table.source_names]


def with_changes(
    frame: pd.DataFrame, changes: Mapping[str, Any], training: TrainingRows, where: str = "changes"
) -> pd.DataFrame:
    """One row with other values in some columns."""
    changed = frame.copy()
    for column in training.table.columns:
        for source in column.sources:
            if source in changes:
                cells = _series(column, source, [changes[source]], training.frame[source], where)
                changed[source] = cells.set_axis(frame.index)
    return changed


def check_reach(frame: pd.DataFrame, training: TrainingRows, where: Iterable[str]) -> None:
    """Refuse numbers that no sum of squares bears; ``where`` names the rows."""
    values = training.table.values(frame)
    names = list(where)
    for j, column in enumerate(training.table.columns):
        if column.is_category:
            continue
        with np.errstate(over="ignore"):
            far = np.abs(values[:, j] / column.scale - column.offset / column.scale) > FARTHEST
        if far.any():
            row = int(np.flatnonzero(far)[0])
            raise FieldError(f"{names[row]}.{column.name}", f"{values[row, j]:g} is too far from all training rows")


def _series(column: Column, source: str, values: list[Any], seen: pd.Series, where: str) -> pd.Series:
    many = where == "rows"
    if column.is_group or column.kind == "number":
        return _numbers(values, seen)
    if column.is_category:
        return _categories(values, seen)
    read: Any = partial(pd.to_datetime, format="ISO8601") if column.kind == "date" else pd.to_timedelta
    cells = []
    for row, value in enumerate(values):
        try:
            cell = pd.NaT if value is None else read(value)
        except (ValueError, OverflowError):
            cell = pd.NaT
        if value is not None and pd.isna(cell):
            field = f"{where}.{row}.{source}" if many else f"{where}.{source}"
            raise FieldError(field, f"{value!r} is not {_WAYS[column.kind]}")
        cells.append(cell)
    return pd.Series(cells, dtype=_common_type(cells, seen))


def _common_type(cells: list[Any], seen: pd.Series) -> Any:
    """The training column's type for dates that have a zone where those have one, or object for all others."""
    zoned = isinstance(seen.dtype, pd.DatetimeTZDtype)
    fits = seen.dtype.kind in "mM" and all(
        pd.isna(cell) or (getattr(cell, "tzinfo", None) is not None) == zoned for cell in cells
    )
    return seen.dtype if fits else object


def _numbers(values: list[Any], seen: pd.Series) -> pd.Series:
    cells = pd.Series([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    whole = types.is_integer_dtype(seen.dtype) and bool((np.abs(cells) < 2**53).all() and (cells % 1 == 0).all())
    return cells.astype(np.int64) if whole else cells


def _categories(values: list[Any], seen: pd.Series) -> pd.Series:
    dtype = seen.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        known = set(dtype.categories)
        return pd.Series(values, dtype=dtype if all(v is None or v in known for v in values) else object)
    if types.is_bool_dtype(dtype):
        # Missing never happened before; numbers have a word for it, and 1 and 0 are still true and false.
        return pd.Series([np.nan if value is None else value for value in values]).astype(
            float if None in values else bool
        )
    if types.is_string_dtype(dtype) and all(value is None or isinstance(value, str) for value in values):
        return pd.Series(values, dtype=dtype)
    if types.is_numeric_dtype(dtype):
        return _numbers(values, seen)
    return pd.Series(values, dtype=object)
