"""Values as strict JSON and back, and a check that what came back has the types it should."""

from __future__ import annotations

import datetime as dt
import json
import math
import types
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

# What JSON has no word for is an object with this key, which names the kind.
_KIND, _VALUE = "$", "value"

# Timestamps are datetimes, and datetimes are dates: the narrower kind comes first.
_KINDS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "timestamp": (pd.Timestamp, pd.Timestamp.isoformat, pd.Timestamp),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "timedelta": (pd.Timedelta, pd.Timedelta.isoformat, pd.Timedelta),
    "decimal": (Decimal, str, Decimal),
    "interval": (pd.Interval, lambda x: [_tagged(x.left), _tagged(x.right), x.closed], lambda x: pd.Interval(*x)),
}
_MISSING = {"NA": pd.NA, "NaT": pd.NaT}


def to_json(value: Any, indent: int | None = None) -> str:
    """Strict JSON. A TypeError names the type that cannot be written.

    Examples
    --------
    >>> to_json(["a", 1.5, None, float("inf")])
    '["a", 1.5, null, {"$": "float", "value": "inf"}]'
    >>> from_json(to_json([pd.Interval(0, 1), Decimal("0.10")]))
    [Interval(0, 1, closed='right'), Decimal('0.10')]
    """
    return json.dumps(_tagged(value), allow_nan=False, indent=indent)


def from_json(text: str | bytes) -> Any:
    """The inverse of `to_json`."""
    return json.loads(text, object_hook=_untagged)


def _tagged(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_KIND: "float", _VALUE: str(value)}
    if isinstance(value, Mapping):
        return {str(key): _tagged(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray, pd.Index, pd.Series)):
        return [_tagged(item) for item in value]
    for word, missing in _MISSING.items():
        if value is missing:
            return {_KIND: "missing", _VALUE: word}
    for kind, (known, write, _) in _KINDS.items():
        if isinstance(value, known):
            return {_KIND: kind, _VALUE: write(value)}
    raise TypeError(f"a value of type {type(value).__name__}")


def _untagged(item: dict[str, Any]) -> Any:
    if _KIND not in item:
        return item
    kind, value = item[_KIND], item[_VALUE]
    if kind == "float":
        return float(value)
    return _MISSING[value] if kind == "missing" else _KINDS[kind][2](value)


def checked(cls: type, data: Any) -> dict[str, Any]:
    """``data`` as it is, if its items have the types of the fields of ``cls``; a TypeError says which has not."""
    if not isinstance(data, dict):
        raise TypeError(f"{cls.__name__} is {data!r}")
    hints = get_type_hints(cls)
    for name, value in data.items():
        if name not in hints or not _is_a(value, hints[name]):
            raise TypeError(f"{cls.__name__} has {name} = {value!r}")
    return data


def _is_a(value: Any, hint: Any) -> bool:
    """isinstance for the hints that the saved dataclasses use."""
    kind, args = get_origin(hint), get_args(hint)
    if kind is Literal:
        return value in args
    if kind in (Union, types.UnionType):
        return any(_is_a(value, arg) for arg in args)
    if kind is list:
        return isinstance(value, list) and all(_is_a(item, args[0]) for item in value)
    if kind is dict:
        return isinstance(value, dict) and all(_is_a(item, args[1]) for item in value.values())
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return hint is Any or isinstance(value, hint)


def one_line(error: Exception) -> str:
    """What an error says, for a message of one sentence."""
    return " ".join(str(error).split())
