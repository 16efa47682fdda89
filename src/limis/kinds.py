"""What a column holds, judged by its type and values, and how its values become numbers or plain objects."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from limis.errors import InputError

Kind = Literal["number", "date", "duration", "category"]

NUMBERS = (Real, Decimal)
# Durations come first: numpy counts its own among the numbers.
_OBJECTS: dict[Kind, tuple[type, ...]] = {
    "duration": (dt.timedelta, np.timedelta64),
    "date": (dt.date, np.datetime64),
    "number": NUMBERS,
}
_DAY = np.timedelta64(1, "D")
_EPOCH = np.datetime64(0, "s")


def kind_of(series: pd.Series, name: str) -> Kind:
    """number, date, duration or category, from the column's type, or from its values where they are objects."""
    series = from_arrow(series)
    dtype = series.dtype
    if types.is_object_dtype(dtype):
        return _kind_of_objects(series)
    if types.is_bool_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype) or types.is_string_dtype(dtype):
        return "category"
    if types.is_datetime64_any_dtype(dtype):
        return "date"
    if types.is_timedelta64_dtype(dtype):
        return "duration"
    if types.is_complex_dtype(dtype):
        raise InputError(f"column {name!r} holds complex numbers: Complex data not supported")
    if types.is_numeric_dtype(dtype):
        return "number"
    raise InputError(f"column {name!r} has type {dtype}, which limis cannot read; convert it to numbers or strings")


def from_arrow(series: pd.Series) -> pd.Series:
    """Arrow's dates, durations and dictionaries in pandas' own types; any other column as it is."""
    if not isinstance(series.dtype, pd.ArrowDtype):
        return series
    import pyarrow as pa

    kind = series.dtype.pyarrow_dtype
    known = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_duration, pa.types.is_dictionary)
    return pa.array(series).to_pandas() if any(is_kind(kind) for is_kind in known) else series


def _kind_of_objects(series: pd.Series) -> Kind:
    known = series[series.notna()]
    for kind, classes in _OBJECTS.items():
        if len(known) and all(isinstance(value, classes) and not isinstance(value, bool) for value in known):
            return kind
    return "category"


def to_numbers(series: pd.Series, name: str, kind: Kind) -> np.ndarray:
    """(rows,) float64, NaN where missing; dates and durations in days."""
    series = from_arrow(series)
    if kind in ("date", "duration"):
        return _days(series, name, kind)
    if not (types.is_numeric_dtype(series.dtype) or types.is_bool_dtype(series.dtype)):
        _refuse_text(series, name)
    try:
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    except OverflowError:
        raise InputError(f"column {name!r} holds integers too large for any float; scale them down") from None
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.flatnonzero(infinite)[0])
        raise InputError(
            f"column {name!r} has an infinite value in row {row} ({int(infinite.sum())} in all); limis takes numbers "
            "and missing values (NaN), not infinity: replace it"
        )
    return values


def _days(series: pd.Series, name: str, kind: Kind) -> np.ndarray:
    if series.isna().all():
        return np.full(len(series), np.nan)
    if types.is_object_dtype(series.dtype) and _kind_of_objects(series) == kind:
        return np.array([_days_of(value, kind) for value in series])
    if series.dtype.kind != ("M" if kind == "date" else "m"):
        cure = "pd.to_datetime" if kind == "date" else "pd.to_timedelta"
        raise InputError(f"column {name!r} held {kind}s at fit, now its type is {series.dtype}; use {cure}")
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        series = series.dt.tz_convert(None)
    ticks = series.to_numpy()
    # Not pandas' difference: it goes through nanoseconds, which end in the year 2262.
    return (ticks - _EPOCH if kind == "date" else ticks) / _DAY


def _days_of(value: Any, kind: Kind) -> float:
    if is_missing(value):
        return np.nan
    if kind == "duration":
        return float(np.timedelta64(value, "us") / _DAY)
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return float((np.datetime64(value, "us") - _EPOCH) / _DAY)


def _refuse_text(series: pd.Series, name: str) -> None:
    for row, value in enumerate(series):
        if not is_missing(value) and not isinstance(value, (*NUMBERS, np.bool_)):
            raise InputError(
                f"column {name!r} holds numbers at fit, but row {row} has {value!r}; "
                "pass numbers, or list the column in categorical_features when fitting"
            )


def is_missing(value: Any) -> bool:
    """Whether one value is missing; a list is a value, whatever is in it."""
    return types.is_scalar(value) and bool(pd.isna(value))


def plain_values(series: pd.Series) -> list[Any]:
    """The values as plain Python objects that compare, hash and save alike in every pandas type."""
    return [plain(value) for value in series.astype(object)]


def plain(value: Any) -> Any:
    """One of them. Intervals, dates and the like are known by their words: those can be saved and compared."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (str, bool, int, float)) else str(value)
