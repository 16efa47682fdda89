"""One original column: its kind, its levels, and how its values become numbers and words."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from limis.errors import InputError

MISSING = "missing"
OTHER = "other levels"
NONE_OF_THESE = "none of these"
UNKNOWN = -1  # code of a category never seen at fit

# More one-hot levels than this cost more than they tell: the rarest share one feature.
MAX_LEVELS = 64

Kind = Literal["number", "date", "duration", "category"]


@dataclass
class Column:
    """A column as its reader knows it; a group of dummies is one column."""

    name: str
    sources: list[str]
    kind: Kind
    levels: list[Any]  # categories: the values themselves; missing, where it was seen, is None and comes first
    shown_levels: int  # how many of them have a feature of their own (the most frequent come first)
    has_missing: bool
    integer: bool
    offset: float  # numbers: the value at feature zero
    scale: float  # numbers: original units per unit of the feature

    @property
    def is_category(self) -> bool:
        """Whether values are codes of levels."""
        return self.kind == "category"

    @property
    def is_group(self) -> bool:
        """Whether this one column is several dummies in the user's table."""
        return len(self.sources) > 1

    @property
    def feature_levels(self) -> list[str]:
        """The level of each of this column's features; a number's own is the empty string."""
        if not self.is_category:
            return ["", MISSING] if self.has_missing else [""]
        shown = [self.level_word(code) for code in range(self.shown_levels)]
        return [*shown, OTHER] if self.shown_levels < len(self.levels) else shown

    def level_word(self, code: int) -> str:
        """The word for a level."""
        level = self.levels[code]
        if level is None:
            return MISSING
        if self.is_group and level != NONE_OF_THESE:
            return _without_common_prefix(level, self.sources)
        return str(level)

    def values(self, frame: pd.DataFrame) -> np.ndarray:
        """(rows,) numbers, NaN where missing; or level codes, UNKNOWN where never seen."""
        if self.is_group:
            return self._group_codes(frame[self.sources])
        series = frame[self.sources[0]]
        return self._codes(series) if self.is_category else to_numbers(series, self.name, self.kind)

    def _codes(self, series: pd.Series) -> np.ndarray:
        known = pd.Index([level for level in self.levels if level is not None], dtype=object)
        found = known.get_indexer(pd.Index(plain_values(series), dtype=object)).astype(np.float64)
        codes = np.where(found >= 0, found + self.has_missing, UNKNOWN)
        codes[series.isna().to_numpy()] = 0 if self.has_missing else UNKNOWN
        return codes

    def _group_codes(self, dummies: pd.DataFrame) -> np.ndarray:
        flags = np.column_stack([to_numbers(dummies[source], source, "number") for source in self.sources])
        on = flags > 0
        if (on.sum(axis=1) > 1).any():
            row = int(np.flatnonzero(on.sum(axis=1) > 1)[0])
            both = [s for s, flag in zip(self.sources, on[row], strict=True) if flag]
            raise InputError(f"row {row} has more than one of the dummies of group {self.name!r} set: {both}")
        order = {level: code for code, level in enumerate(self.levels)}
        by_source = np.array([order.get(source, UNKNOWN) for source in self.sources], dtype=np.float64)
        codes = by_source[on.argmax(axis=1)]
        codes[~on.any(axis=1)] = order.get(NONE_OF_THESE, UNKNOWN)
        return codes

    def features(self, values: np.ndarray) -> np.ndarray:
        """(rows, features of this column) from this column's values."""
        if not self.is_category:
            missing = ~np.isfinite(values)
            scaled = np.where(missing, 0.0, (values - self.offset) / self.scale)
            return np.column_stack([scaled, missing]) if self.has_missing else scaled[:, None]
        width = len(self.feature_levels)
        one_hot = np.zeros((len(values), width))
        codes = values.astype(np.int64)
        known = codes != UNKNOWN
        one_hot[np.flatnonzero(known), np.minimum(codes[known], width - 1)] = 1.0
        return one_hot

    def show(self, frame: pd.DataFrame, row: int) -> str:
        """This column's value in one row, in words."""
        if self.is_group:
            code = int(self._group_codes(frame[self.sources].iloc[[row]])[0])
            return "never seen" if code == UNKNOWN else self.level_word(code)
        value = frame[self.sources[0]].iloc[row]
        return MISSING if pd.isna(value) else show_value(value)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Column:
        """The inverse of `dataclasses.asdict`."""
        return cls(**data)


def learn_column(series: pd.Series, name: str, categorical: bool, scaling: str) -> Column:
    """What one column of the training table is."""
    kind = "category" if categorical else kind_of(series, name)
    if kind == "category":
        return _learn_category(series, name)
    values = to_numbers(series, name, kind)
    known = values[np.isfinite(values)]
    offset, scale = _scaling(known, scaling)
    return Column(
        name=name,
        sources=[name],
        kind=kind,
        levels=[],
        shown_levels=0,
        has_missing=len(known) < len(values),
        integer=kind == "number" and len(known) > 0 and bool((known == np.round(known)).all()),
        offset=offset,
        scale=scale,
    )


def learn_group(dummies: pd.DataFrame, name: str) -> Column:
    """A group of dummies that the user made of one category."""
    column = _category(name, list(dummies.columns), [*dummies.columns, NONE_OF_THESE])
    codes = column.values(dummies)
    counts = np.bincount(codes.astype(int), minlength=len(column.levels))
    levels = [level for level, count in zip(column.levels, counts, strict=True) if level != NONE_OF_THESE or count]
    return _category(name, list(dummies.columns), levels)


def _learn_category(series: pd.Series, name: str) -> Column:
    nested = series.map(lambda value: isinstance(value, (list, dict, set, np.ndarray))) if series.dtype == "O" else None
    if nested is not None and nested.any():
        raise InputError(
            f"column {name!r} holds values that cannot be categories, such as "
            f"{series[nested].iloc[0]!r}; spread them over columns of their own"
        )
    counts = pd.Series(plain_values(series[series.notna()]), dtype=object).value_counts()
    by_frequency = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
    levels: list[Any] = [level for level, _ in by_frequency]
    if len(levels) <= MAX_LEVELS:
        levels = sorted(levels, key=str)
    missing = bool(series.isna().any())
    return _category(name, [name], [None, *levels] if missing else levels, missing)


def _category(name: str, sources: list[str], levels: list[Any], has_missing: bool = False) -> Column:
    shown = len(levels) if len(levels) <= MAX_LEVELS else MAX_LEVELS - 1
    return Column(name, sources, "category", levels, shown, has_missing, False, 0.0, 1.0)


def kind_of(series: pd.Series, name: str) -> Kind:
    """number, date, duration or category, from the column's type."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        inferred = types.infer_dtype(series, skipna=True)
        return "number" if inferred in ("integer", "floating", "mixed-integer-float", "decimal") else "category"
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


def to_numbers(series: pd.Series, name: str, kind: str) -> np.ndarray:
    """(rows,) float64, NaN where missing; dates and durations in days."""
    if kind == "date":
        if not types.is_datetime64_any_dtype(series.dtype):
            raise InputError(f"column {name!r} held dates at fit, now its type is {series.dtype}; use pd.to_datetime")
        if getattr(series.dt, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return ((series - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(dtype=np.float64, na_value=np.nan)
    if kind == "duration":
        if not types.is_timedelta64_dtype(series.dtype):
            raise InputError(f"column {name!r} held durations at fit, now its type is {series.dtype}")
        return series.dt.total_seconds().div(86400).to_numpy(dtype=np.float64, na_value=np.nan)
    if not (types.is_numeric_dtype(series.dtype) or types.is_bool_dtype(series.dtype)):
        _refuse_text(series, name)
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.flatnonzero(infinite)[0])
        raise InputError(
            f"column {name!r} has an infinite value in row {row} ({int(infinite.sum())} in all); limis takes numbers "
            "and missing values (NaN), not infinity: replace it"
        )
    return values


def _refuse_text(series: pd.Series, name: str) -> None:
    for row, value in enumerate(series):
        if not pd.isna(value) and not isinstance(value, (int, float, np.number)):
            raise InputError(
                f"column {name!r} holds numbers at fit, but row {row} has {value!r}; "
                "pass numbers, or list the column in categorical_features when fitting"
            )


def plain_values(series: pd.Series) -> np.ndarray:
    """The values as plain Python objects that compare, hash and save alike in every pandas type."""
    values = series.astype(object).to_numpy()
    return np.array([_plain(value) for value in values], dtype=object)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    # Intervals, dates and the like are known by their words: those can be saved and compared.
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def _scaling(known: np.ndarray, scaling: str) -> tuple[float, float]:
    if len(known) == 0 or scaling == "none":
        return 0.0, 1.0
    if scaling == "minmax":
        low, span = float(known.min()), float(known.max() - known.min())
        return low, span if span > 0 else 1.0
    deviation, largest = float(known.std()), float(np.abs(known).max())
    # A constant column's deviation is rounding error, not a unit.
    return float(known.mean()), deviation if deviation > 1e-12 * (1 + largest) else 1.0


def show_value(value: Any) -> str:
    """A value as a reader would write it."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, float, np.integer, np.floating)):
        return show_number(float(value))
    if isinstance(value, pd.Timestamp):
        return str(value.date()) if value == value.normalize() else str(value)
    return str(value)


def show_number(value: float) -> str:
    """Four digits that count, and every digit before the point.

    Examples
    --------
    >>> [show_number(value) for value in (28911.7, 0.0125, 40.0, 1234567.0, 2.5e-7)]
    ['28,912', '0.0125', '40', '1,234,567', '2.5e-07']
    """
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.4g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _without_common_prefix(name: str, names: list[str]) -> str:
    shared = os.path.commonprefix(names)  # noqa: RUF071 - letters, not folders, are compared
    # Cut only at a separator: "colour_red" and "colour_rose" share "colour_r", but the name ends at "colour_".
    cut = max(shared.rfind(mark) for mark in "_=-. :") + 1
    return name[cut:] or name
