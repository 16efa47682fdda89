"""Rows that come as JSON become a frame like the training table, or an error that names the field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pandas.api import types
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model

from limis.columns import Column
from limis.errors import InputError
from limis.rows import TrainingRows

LONGEST_TEXT = 10_000
LEVELS_SHOWN = 20
# Beyond it, in units of the column's own spread, sums of squares overflow; no measurement is so far away.
FARTHEST = 1e15
UNSEEN = -2  # code of a level that training did not have

_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Text = Annotated[str, Field(strict=True, max_length=LONGEST_TEXT)]
_DATES = {"type": "string", "maxLength": LONGEST_TEXT, "anyOf": [{"format": "date"}, {"format": "date-time"}]}
_Date = Annotated[_Text, WithJsonSchema(_DATES)]
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
    if column.is_group:
        return _Number
    if column.kind == "number":
        # Told here, and checked where uploads are checked too.
        reach = FARTHEST * column.scale
        ends = {"minimum": column.offset - reach, "maximum": column.offset + reach}
        told = {name: float(end) for name, end in ends.items() if np.isfinite(end)}
        return Annotated[_Number, WithJsonSchema({"type": "number", **told})]
    if not column.is_category:
        return _Date if column.kind == "date" else _Text
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


class RowReader:
    """Turns rows from JSON into frames in the training table's types; columns are looked into once."""

    def __init__(self, training: TrainingRows) -> None:
        self.training = training
        self._cells = {
            source: _Cells(column, source, training.frame[source].dtype)
            for column in training.table.columns
            for source in column.sources
        }

    def frame(self, rows: Sequence[Mapping[str, Any]], where: Sequence[str]) -> pd.DataFrame:
        """Rows with all columns; ``where`` names each row, for errors."""
        cells = {name: self._cells[name].read([row[name] for row in rows], where) for name in self._names}
        return self._checked(pd.DataFrame(cells), where)

    def changed(self, row: pd.DataFrame, changes: Mapping[str, Any], where: str = "changes") -> pd.DataFrame:
        """A table's only row with other values in some columns."""
        changed = row.copy()
        for name, value in changes.items():
            changed[name] = pd.Series(self._cells[name].read([value], [where]), index=row.index)
        return self._checked(changed, [where])

    def _checked(self, frame: pd.DataFrame, where: Sequence[str]) -> pd.DataFrame:
        check_reach(frame, self.training, where)
        return frame

    @property
    def _names(self) -> list[str]:
        return self.training.table.source_names


def check_reach(frame: pd.DataFrame, training: TrainingRows, where: Sequence[str]) -> None:
    """Refuse numbers that no sum of squares bears; ``where`` names the rows."""
    for column in training.table.columns:
        if column.is_category:
            continue
        values = column.values(frame)
        with np.errstate(over="ignore"):
            far = np.abs(values / column.scale - column.offset / column.scale) > FARTHEST
        if far.any():
            row = int(np.flatnonzero(far)[0])
            raise FieldError(f"{where[row]}.{column.name}", f"{values[row]:g} is too far from all training rows")


class _Cells:
    """Reads the cells of one column of the user's table."""

    def __init__(self, column: Column, source: str, dtype: Any) -> None:
        self.column = column
        self.source = source
        self.dtype = dtype
        self.codes: dict[Any, int] | None = None
        self.read: Callable[[list[Any], Sequence[str]], Any]
        if column.is_group or column.kind == "number":
            self.read = self._numbers
        elif not column.is_category:
            self.read = self._times
        elif isinstance(dtype, pd.CategoricalDtype):
            self.codes = {level: code for code, level in enumerate(dtype.categories)}
            self.read = self._categories
        elif types.is_bool_dtype(dtype):
            self.read = self._truths
        elif types.is_numeric_dtype(dtype):
            self.read = self._numbers
        else:
            self.read = self._texts

    def _numbers(self, values: list[Any], _: Sequence[str]) -> Any:
        cells = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        whole = self.dtype.kind in "iu" and bool((np.abs(cells) < 2**53).all() and (cells % 1 == 0).all())
        return cells.astype(np.int64) if whole else cells

    def _truths(self, values: list[Any], _: Sequence[str]) -> Any:
        # Missing never happened before; numbers have a word for it, and 1 and 0 are still true and false.
        return np.array(
            [np.nan if value is None else value for value in values], dtype=float if None in values else bool
        )

    def _texts(self, values: list[Any], _: Sequence[str]) -> Any:
        plain = types.is_string_dtype(self.dtype) and all(value is None or isinstance(value, str) for value in values)
        return pd.array(values, dtype=self.dtype) if plain else np.array(values, dtype=object)

    def _categories(self, values: list[Any], _: Sequence[str]) -> Any:
        assert self.codes is not None
        codes = [-1 if value is None else self.codes.get(value, UNSEEN) for value in values]
        if UNSEEN in codes:
            return np.array(values, dtype=object)  # the explainer adds the level to those of training
        return pd.Categorical.from_codes(codes, dtype=self.dtype)

    def _times(self, values: list[Any], where: Sequence[str]) -> Any:
        read: Any = partial(pd.to_datetime, format="ISO8601") if self.column.kind == "date" else pd.to_timedelta
        cells = []
        for value, place in zip(values, where, strict=True):
            try:
                cell = pd.NaT if value is None else read(value)
            except (ValueError, OverflowError):
                cell = pd.NaT
            if value is not None and pd.isna(cell):
                raise FieldError(f"{place}.{self.source}", f"{value[:40]!r} is not {_WAYS[self.column.kind]}")
            cells.append(cell)
        kind = self._time_type(cells)
        try:
            return pd.Series(cells, dtype=kind).array
        except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
            at = next(place for place, cell in enumerate(cells) if not _fits(cell, kind))
            raise FieldError(
                f"{where[at]}.{self.source}", f"{values[at][:40]!r} is too far from all training rows"
            ) from None

    def _time_type(self, cells: list[Any]) -> Any:
        """The training column's type for times that have a zone where those have one, or object for all others."""
        zoned = isinstance(self.dtype, pd.DatetimeTZDtype)
        fits = self.dtype.kind in "mM" and all(
            pd.isna(cell) or (getattr(cell, "tzinfo", None) is not None) == zoned for cell in cells
        )
        return self.dtype if fits else object


def _fits(cell: Any, kind: Any) -> bool:
    """Whether a type reaches the year of a time."""
    try:
        pd.Series([cell], dtype=kind)
    except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
        return False
    return True
