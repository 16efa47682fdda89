"""One original column: its kind, its levels, and how its values become numbers and words."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from pandas.api import types

from limis.errors import InputError
from limis.kinds import (
    EPOCH,
    NUMBERS,
    Kind,
    from_arrow,
    from_days,
    is_missing,
    kind_of,
    plain,
    plain_values,
    to_numbers,
    zone_of,
)

MISSING = "missing"
OTHER = "other levels"
NONE_OF_THESE = "none of these"
UNKNOWN = -1  # code of a category never seen at fit

# More one-hot levels than this cost more than they tell: the rarest share one feature.
MAX_LEVELS = 64
# Past it not every integer is a float of its own.
LAST_EXACT_INTEGER = 2**53
LARGEST_ROUNDED = 1e300

DIGITS = 4  # that count: enough of most numbers
ALL_DIGITS = 17  # no two floats agree in so many
_USUAL_NUMBERS = {float, int, np.float64, np.float32, np.int64, np.int32}
_USUAL = {*_USUAL_NUMBERS, str, bool, np.bool_}
_MIDNIGHT = re.compile(r" 00:00:00([+-]\d\d:\d\d)?$")


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
    jumps: list[float] = field(default_factory=list)  # numbers: where the black box jumps (`limis.jumps`)
    zone: str | None = None  # dates: the time zone they are told and read in, by its name

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
        """The level of each of this column's features; a number's own is the empty string, a jump reads "> 7,000"."""
        if not self.is_category:
            return ["", *map(self._above, self.jumps), *([MISSING] if self.has_missing else [])]
        shown = self.words[: self.shown_levels]
        return [*shown, OTHER] if self._has_other else shown

    def _above(self, jump: float) -> str:
        return f"> {self.show_border(jump)}"

    def show_border(self, border: float) -> str:
        """A place between two values of a number, in words; every digit of it, since it decides."""
        if self.kind == "number":
            return show_exact(border)
        return show_days(border, self.zone) if self.kind == "date" else show_duration(border)

    def show_amount(self, value: float) -> str:
        """A value of a number, such as the least of all rows, as `show` would tell it."""
        return show_number(value) if self.kind == "number" else self.show_border(value)

    def show_mean(self, value: float) -> str:
        """A mean of a number, roughly: of dates the day, of durations a few digits."""
        if math.isnan(value):
            return MISSING
        if self.kind == "duration":
            return show_duration(value, rough=True)
        return show_days(value, self.zone).split()[0] if self.kind == "date" else show_number(value)

    @property
    def is_level(self) -> list[bool]:
        """Which of this column's features are 0 or 1 (a category's level, a jump, missing), not the number itself."""
        return [self.is_category or place > 0 for place in range(len(self.feature_levels))]

    @property
    def is_jump(self) -> list[bool]:
        """Which of this column's features are jumps."""
        return [0 < place <= len(self.jumps) for place in range(len(self.feature_levels))]

    @property
    def _has_other(self) -> bool:
        return self.shown_levels < len(self.levels)

    @cached_property
    def words(self) -> list[str]:
        """The word for each level, no two alike: quotes set a text apart from another level that reads the same."""
        words = [""] * len(self.levels)
        taken = {OTHER} if self._has_other else set()
        by_text = sorted(range(len(words)), key=lambda code: _is_text(self.levels[code]))
        for code in by_text:
            word = self._plain_word(self.levels[code])
            while not word or word in taken:
                word = f'"{word}"'
            words[code] = word
            taken.add(word)
        return words

    def _plain_word(self, level: Any) -> str:
        if level is None:
            return MISSING
        if self.is_group and level != NONE_OF_THESE:
            return _without_common_prefix(level, self.sources)
        return str(level)

    def level_word(self, code: int) -> str:
        """The word for a level."""
        return self.words[code]

    @cached_property
    def _codes_of_levels(self) -> dict[Any, int]:
        return {level: code for code, level in enumerate(self.levels)}

    def values(self, frame: pd.DataFrame) -> np.ndarray:
        """(rows,) numbers, NaN where missing; or level codes, UNKNOWN where never seen."""
        if self.is_group:
            return self._group_codes(frame[self.sources])
        series = frame[self.sources[0]]
        return self._codes(from_arrow(series)) if self.is_category else self._numbers(series)

    def value_of(self, cell: Any) -> float | None:
        """What `values` has for a cell of a usual type; None for any other."""
        if cell is None or cell is pd.NA:
            return float(self._codes_of_levels.get(None, UNKNOWN)) if self.is_category else math.nan
        if self.is_category:
            # Not every NaN among categories counts as missing: that depends on the column's type.
            usual = type(cell) in _USUAL and cell == cell  # noqa: PLR0124 - NaN alone differs from itself
            return float(self._codes_of_levels.get(plain(cell), UNKNOWN)) if usual else None
        if type(cell) not in _USUAL_NUMBERS:
            return None
        try:
            number = float(cell)
        except OverflowError:
            return None
        return None if math.isinf(number) else number

    def _numbers(self, series: pd.Series) -> np.ndarray:
        return to_numbers(series, self.name, self.kind, self.zone)

    def _codes(self, series: pd.Series) -> np.ndarray:
        known = self._codes_of_levels
        if isinstance(series.array, pd.Categorical):
            theirs = [known.get(plain(level), UNKNOWN) for level in series.array.categories]
            return np.array([*theirs, known.get(None, UNKNOWN)], dtype=np.float64)[series.array.codes]  # -1: missing
        codes = np.array([known.get(value, UNKNOWN) for value in plain_values(series)], dtype=np.float64)
        codes[series.isna().to_numpy()] = known.get(None, UNKNOWN)
        return codes

    def _group_codes(self, dummies: pd.DataFrame) -> np.ndarray:
        flags = np.column_stack([to_numbers(dummies[source], source, "number") for source in self.sources])
        missing = np.isnan(flags)
        strange = np.argwhere(~missing & (flags != 0) & (flags != 1))
        if len(strange):
            row, j = strange[0]
            raise InputError(
                f"column {self.sources[j]!r} is a dummy of group {self.name!r}, but row {row} has "
                f"{flags[row, j]:g}; dummies are 0 or 1"
            )
        on = flags == 1
        if (on.sum(axis=1) > 1).any():
            row = int(np.flatnonzero(on.sum(axis=1) > 1)[0])
            both = [s for s, flag in zip(self.sources, on[row], strict=True) if flag]
            raise InputError(f"row {row} has more than one of the dummies of group {self.name!r} set: {both}")
        known = self._codes_of_levels
        by_source = np.array([known.get(source, UNKNOWN) for source in self.sources], dtype=np.float64)
        codes = by_source[on.argmax(axis=1)]
        off = ~on.any(axis=1)
        codes[off] = known.get(NONE_OF_THESE, UNKNOWN)
        codes[off & missing.any(axis=1)] = known.get(None, UNKNOWN)
        return codes

    def features(self, values: np.ndarray) -> np.ndarray:
        """(rows, features of this column) from this column's values."""
        if not self.is_category:
            missing = ~np.isfinite(values)
            scaled = np.where(missing, 0.0, (values - self.offset) / self.scale)
            above = [values > jump for jump in self.jumps]
            return np.column_stack([scaled, *above, missing] if self.has_missing else [scaled, *above])
        width = len(self.feature_levels)
        one_hot = np.zeros((len(values), width))
        codes = values.astype(np.int64)
        known = codes != UNKNOWN
        one_hot[np.flatnonzero(known), np.minimum(codes[known], width - 1)] = 1.0
        return one_hot

    def show(self, frame: pd.DataFrame, row: int, digits: int = DIGITS) -> str:
        """This column's value in one row, in words."""
        if self.is_group:
            code = int(self._group_codes(frame[self.sources].iloc[[row]])[0])
            return "never seen" if code == UNKNOWN else self.words[code]
        value = frame[self.sources[0]].iloc[row]
        level = None if is_missing(value) else plain(value)
        if self.is_category and level in self._codes_of_levels:
            return self.words[self._codes_of_levels[level]]
        if self.zone is not None and getattr(value, "tzinfo", None) is not None:
            value = pd.Timestamp(value).tz_convert(self.zone)
        return MISSING if level is None else show_value(value, digits)

    def show_apart(self, frame: pd.DataFrame, row: int, other: pd.DataFrame, place: int) -> tuple[str, str]:
        """This column's values in a row of each of two frames, in words that differ where the values do."""

        def words(digits: int) -> tuple[str, str]:
            return self.show(frame, row, digits), self.show(other, place, digits)

        return _with_digits(words, differ=2)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Column:
        """The inverse of `dataclasses.asdict`."""
        return cls(**data)


def learn_column(series: pd.Series, name: str, categorical: bool, scaling: str) -> Column:
    """What one column of the training table is."""
    kind = "category" if categorical else kind_of(series, name)
    if kind == "category":
        return _learn_category(from_arrow(series), name)
    zone = zone_of(series) if kind == "date" else None
    values = to_numbers(series, name, kind, zone)
    known = values[np.isfinite(values)]
    if types.infer_dtype(series, skipna=True) == "integer" and (np.abs(known) > LAST_EXACT_INTEGER).any():
        warnings.warn(
            f"column {name!r} holds integers beyond 2^53, which limis rounds; if they are names of things, drop the "
            "column or list it in categorical_features",
            stacklevel=5,  # the call of the explainer's fit
        )
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
        zone=zone,
    )


def learn_group(dummies: pd.DataFrame, name: str) -> Column:
    """A group of dummies that the user made of one category."""
    sources = list(dummies.columns)
    every = _category(name, sources, [None, *sources, NONE_OF_THESE])
    counts = np.bincount(every.values(dummies).astype(int), minlength=len(every.levels))
    seen = dict(zip(every.levels, counts.tolist(), strict=True))
    levels = [*sources, NONE_OF_THESE] if seen[NONE_OF_THESE] else sources
    return _category(name, sources, _in_order(levels, seen, bool(seen[None])))


def _learn_category(series: pd.Series, name: str) -> Column:
    nested = series.map(lambda value: isinstance(value, (list, dict, set, np.ndarray))) if series.dtype == "O" else None
    if nested is not None and nested.any():
        raise InputError(
            f"column {name!r} holds values that cannot be categories, such as "
            f"{series[nested].iloc[0]!r}; spread them over columns of their own"
        )
    counts = Counter(plain_values(series[series.notna()]))
    levels = _in_order(sorted(counts, key=str), counts, bool(series.isna().any()))
    return _category(name, [name], levels)


def _in_order(levels: list[Any], counts: dict[Any, int], missing: bool) -> list[Any]:
    """Missing first, the others as they are; by frequency where not all of them get a feature."""
    if len(levels) + missing > MAX_LEVELS:
        levels = sorted(levels, key=lambda level: -counts[level])
    return [None, *levels] if missing else levels


def _category(name: str, sources: list[str], levels: list[Any]) -> Column:
    shown = len(levels) if len(levels) <= MAX_LEVELS else MAX_LEVELS - 1
    return Column(name, sources, "category", levels, shown, None in levels, False, 0.0, 1.0)


def _scaling(known: np.ndarray, scaling: str) -> tuple[float, float]:
    if len(known) == 0 or scaling == "none":
        return 0.0, 1.0
    if scaling == "minmax":
        low, span = float(known.min()), float(known.max() - known.min())
        return low, span if span > 0 else 1.0
    largest = float(np.abs(known).max())
    # Squares of huge numbers would overflow; dividing by a power of two rounds nothing.
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    deviation = float((known / unit).std()) * unit
    # A constant column's deviation is rounding error, not a unit.
    constant = deviation <= 8 * np.finfo(np.float64).eps * largest
    return float((known / unit).mean()) * unit, 1.0 if constant else deviation


def show_value(value: Any, digits: int = DIGITS) -> str:
    """A value as a reader would write it."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    # Before the numbers, among which numpy counts its durations.
    if isinstance(value, (dt.timedelta, np.timedelta64)):
        return str(pd.Timedelta(value))
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    if isinstance(value, dt.datetime):
        # The second midnight of a day that has two is told from the first.
        return str(value) if value.fold else _MIDNIGHT.sub("", str(value))
    if isinstance(value, NUMBERS):
        return show_number(float(value), digits)
    return str(value)


def show_days(days: float, zone: str | None = None) -> str:
    """Days since 1970 as the moment they stand for, with the time where it is not midnight.

    Examples
    --------
    >>> [show_days(days) for days in (0.0, 19723.5, 2932896.0)]
    ['1970-01-01', '2024-01-01 12:00:00', '9999-12-31']
    >>> show_days(19723.5, "America/New_York")
    '2024-01-01 07:00:00-05:00'
    """
    moment = pd.Timestamp(EPOCH + from_days(days))
    return show_value(moment if zone is None else moment.tz_localize("UTC").tz_convert(zone))


def show_duration(days: float, rough: bool = False) -> str:
    """Days as a duration; roughly, with a few digits that count.

    Examples
    --------
    >>> show_duration(1.5), show_duration(1.23456789, rough=True)
    ('1 days 12:00:00', '1 days 05:37:47')
    """
    return show_value(from_days(days, rough))


def show_number(value: float, digits: int = DIGITS) -> str:
    """Four digits that count, or more, and every digit before the point.

    Examples
    --------
    >>> [show_number(value) for value in (28911.7, 0.0125, 40.0, 1234567.0, 2.5e-7)]
    ['28,912', '0.0125', '40', '1,234,567', '2.5e-07']
    """
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show_exact(value: float) -> str:
    """A number with the digits it takes to read the same number back, and no more.

    Examples
    --------
    >>> [show_exact(value) for value in (7000.0, 0.1, 1e15 + 0.125)]
    ['7,000', '0.1', '1,000,000,000,000,000.1']
    """
    return f"{value:,}".removesuffix(".0")


def show_apart(*values: float) -> tuple[str, ...]:
    """Numbers with as many digits as it takes for different ones to look different.

    Examples
    --------
    >>> show_apart(52.5, 52.503), show_apart(28911.7, 40.0), show_apart(2.0, 2.0)
    (('52.5', '52.503'), ('28,912', '40'), ('2', '2'))
    """
    return _with_digits(lambda digits: tuple(show_number(value, digits) for value in values), len(set(values)))


_Words = TypeVar("_Words", bound=tuple[str, ...])


def _with_digits(words: Callable[[int], _Words], differ: int) -> _Words:
    """The words with the fewest digits of which so many differ; where they never do, the shortest of all."""
    tried = (words(digits) for digits in range(DIGITS, ALL_DIGITS + 1))
    return next((told for told in tried if len(set(told)) >= differ), words(DIGITS))


def roundest(low: float, high: float) -> float:
    """The number of fewest digits that is at least ``low`` and below ``high``.

    Examples
    --------
    >>> roundest(6849, 7298), roundest(0, 114), roundest(0.123, 0.128), roundest(-3.7, -3.2)
    (7000.0, 0.0, 0.125, -3.5)
    """
    if low <= 0 < high:
        return 0.0
    if max(abs(low), abs(high)) > LARGEST_ROUNDED:
        return low
    digits = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for place in range(digits, digits - 17, -1):
        for share in (1.0, 0.5):  # halves read as well as wholes: 25, 2.5
            unit = share * 10.0**place
            number = round(math.ceil(low / unit) * unit, max(0, 1 - place) + 1)
            if low <= number < high:
                return number
    return low


def _is_text(level: Any) -> bool:
    return isinstance(level, str) and level != NONE_OF_THESE


def _without_common_prefix(name: str, names: list[str]) -> str:
    shared = os.path.commonprefix(names)  # noqa: RUF071 - letters, not folders, are compared
    # Cut only at a separator: "colour_red" and "colour_rose" share "colour_r", but the name ends at "colour_".
    cut = max(shared.rfind(mark) for mark in "_=-. :") + 1
    return name[cut:] or name


__all__ = [
    "MISSING",
    "NONE_OF_THESE",
    "OTHER",
    "UNKNOWN",
    "Column",
    "Kind",
    "kind_of",
    "learn_column",
    "learn_group",
    "show_apart",
    "show_days",
    "show_duration",
    "show_exact",
    "show_number",
    "show_value",
]
