"""What a column holds, judged by its type and values, and how its values become numbers or plain objects."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
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
UTC = "UTC"
_DAY = np.timedelta64(1, "D")
EPOCH = np.datetime64(0, "s")
_TICKS: dict[Literal["s", "ms", "us", "ns"], int] = {  # of a day
    "s": 86400,
    "ms": 86400 * 10**3,
    "us": 86400 * 10**6,
    "ns": 86400 * 10**9,
}
_ROUGH = 1000  # ticks that a rough duration has at least


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


def zone_of(series: pd.Series) -> str | None:
    """The time zone of dates, by a name that pandas reads: UTC where they have several, or one without such a name."""
    series = from_arrow(series)
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        zones = {str(series.dtype.tz)}
    elif types.is_object_dtype(series.dtype):
        zones = {str(value.tzinfo) for value in series if getattr(value, "tzinfo", None) is not None}
    else:
        return None
    if not zones:
        return None
    zone = zones.pop() if len(zones) == 1 else UTC
    try:
        pd.Timestamp(0, tz=zone)
    except (LookupError, ValueError, OSError):
        return UTC
    return zone


def to_numbers(series: pd.Series, name: str, kind: Kind, zone: str | None = None) -> np.ndarray:
    """(rows,) float64, NaN where missing; dates and durations in days. Dates without a zone are read in ``zone``."""
    if kind == "number" and isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiub":
        values = series.to_numpy().astype(np.float64)
        _refuse_infinity(values, name)
        return values
    series = from_arrow(series)
    if kind in ("date", "duration"):
        return _days(series, name, kind, zone)
    if not (types.is_numeric_dtype(series.dtype) or types.is_bool_dtype(series.dtype)):
        _refuse_text(series, name)
    try:
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    except OverflowError:
        raise InputError(f"column {name!r} holds integers too large for any float; scale them down") from None
    _refuse_infinity(values, name)
    return values


def _refuse_infinity(values: np.ndarray, name: str) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.flatnonzero(infinite)[0])
        raise InputError(
            f"column {name!r} has an infinite value in row {row} ({int(infinite.sum())} in all); limis takes numbers "
            "and missing values (NaN), not infinity: replace it"
        )


def _days(series: pd.Series, name: str, kind: Kind, zone: str | None) -> np.ndarray:
    if series.isna().all():
        return np.full(len(series), np.nan)
    if types.is_object_dtype(series.dtype) and _kind_of_objects(series) == kind:
        return np.array([_days_of(value, kind, zone) for value in series])
    if series.dtype.kind != ("M" if kind == "date" else "m"):
        cure = "pd.to_datetime" if kind == "date" else "pd.to_timedelta"
        raise InputError(f"column {name!r} held {kind}s at fit, now its type is {series.dtype}; use {cure}")
    has_zone = isinstance(series.dtype, pd.DatetimeTZDtype)
    if zone is not None and not has_zone:
        first = np.ones(len(series), dtype=bool)  # of the two hours of the same name when summer time ends
        series = series.dt.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
    if zone is not None or has_zone:
        series = series.dt.tz_convert(None)
    return _ticks_to_days(series.to_numpy(), kind)


def _days_of(value: Any, kind: Kind, zone: str | None) -> float:
    if is_missing(value):
        return np.nan
    if kind == "duration":
        return float(_ticks_to_days(np.timedelta64(value, "us"), kind))
    if zone is not None and getattr(value, "tzinfo", None) is None:
        value = pd.Timestamp(value).tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return float(_ticks_to_days(np.datetime64(value, "us"), kind))


def _ticks_to_days(ticks: Any, kind: Kind) -> Any:
    """numpy's dates or durations, one or many, in days."""
    # Not pandas' difference: it goes through nanoseconds, which end in the year 2262. And not one division: counts of
    # nanoseconds are beyond 2^53, and would be rounded before they are divided.
    whole = ticks.astype("M8[D]" if kind == "date" else "m8[D]")
    return (whole - EPOCH if kind == "date" else whole) / _DAY + (ticks - whole) / _DAY


def from_days(days: float, rough: bool = False) -> np.timedelta64:
    """The duration, in the largest unit, that `to_numbers` reads as these days; a rough one has few digits.

    Where no duration is read so, the last one before them: it is on the same side of everything else that is read.
    """
    for unit, per_day in _TICKS.items():
        ticks = round(Fraction(days) * per_day)
        whole, rest = divmod(ticks, per_day)
        if whole + rest / per_day == days or (rough and abs(ticks) >= _ROUGH):
            return np.timedelta64(ticks, unit)
    return np.timedelta64(math.floor(Fraction(days) * _TICKS["ns"]), "ns")


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
