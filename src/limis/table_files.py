"""Tables in files: reading them, with the types that the training table has."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pandas as pd
import pyarrow as pa
from pandas.api import types

from limis.errors import InputError

READABLE = (".csv", ".parquet")
_TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def check_input(path: Path) -> None:
    """Refuse a file that is not there."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if not path.exists():
        raise InputError(f"{path} is not there")


def read_table(path: Path, like: pd.DataFrame | None = None) -> pd.DataFrame:
    """A table from a CSV or Parquet file; CSV columns get the types that those of the same name have in ``like``."""
    check_input(path)
    if path.suffix.lower() not in READABLE:
        raise InputError(f"{path} does not end in {' or '.join(READABLE)}, which says how to read it")
    if path.suffix.lower() == ".parquet":
        frame = _read_parquet(path)
    else:
        frame = _read_csv(lambda: path.open(newline="", encoding="utf-8-sig"), str(path), _csv_types(like))
    # Whoever made a column the index did not mean it as a feature, but rows to explain may need it to be told apart.
    is_id = like is not None and frame.index.name is not None and frame.index.name not in frame.columns
    frame = frame.reset_index(drop=not is_id)
    if len(frame) == 0:
        raise InputError(f"{path} has column names but no rows")
    return frame


def read_csv_bytes(data: bytes, name: str, like: pd.DataFrame) -> pd.DataFrame:
    """A table from the bytes of a CSV file called ``name``, as `read_table` would read it."""

    def opened() -> TextIO:
        return io.TextIOWrapper(io.BytesIO(data), newline="", encoding="utf-8-sig")

    frame = _read_csv(opened, name, _csv_types(like))
    if len(frame) == 0:
        raise InputError(f"{name} has column names but no rows")
    return frame


def as_seen(frame: pd.DataFrame, like: pd.DataFrame, path: Path | str) -> pd.DataFrame:
    """The columns of ``frame`` that are in ``like``, in types that a model which saw those will take."""
    seen = {}
    for name in frame.columns.intersection(like.columns, sort=False):
        values, wanted = frame[name], like[name].dtype
        if types.is_datetime64_any_dtype(wanted) and not types.is_datetime64_any_dtype(values.dtype):
            values = _dates(values, path)
        elif types.is_timedelta64_dtype(wanted) and _is_text(values):
            values = _durations(values, path)
        elif types.is_numeric_dtype(wanted) and not types.is_bool_dtype(wanted) and _is_text(values):
            values = _numbers(values, path)
        elif isinstance(values.dtype, pd.BooleanDtype) and types.is_bool_dtype(wanted):
            # Missing never happened before; numbers have a word for it, and 1 and 0 are still true and false.
            values = values.astype(float) if values.isna().any() else values.astype(bool)
        elif _is_text(like[name]) and values.isna().all():
            values = values.astype(object)  # an empty column is read as numbers
        seen[name] = values
    return pd.DataFrame(seen, index=frame.index)


def _read_csv(opened: Callable[[], TextIO], path: str, dtypes: dict[str, str]) -> pd.DataFrame:
    try:
        with opened() as file:
            _check_csv(file, path)
        with opened() as file:
            frame = pd.read_csv(file, dtype=dict.fromkeys(dtypes, "str"), low_memory=False)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except (pd.errors.ParserError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as CSV: {error}") from None
    for name in frame.columns:
        if dtypes.get(name) == "boolean":
            frame[name] = _truths(frame[name], path)
    for name in _object_columns(frame):
        # True, False and missing together would be neither a text nor a number to a model.
        if types.infer_dtype(frame[name], skipna=True) != "string":
            frame[name] = frame[name].map(str, na_action="ignore")
    return frame


def _csv_types(like: pd.DataFrame | None) -> dict[str, str]:
    """What pandas could take for something else: text that looks like numbers, and truth with missing values."""
    if like is None:
        return {}
    text = {name: "str" for name in like.columns if _is_text(like[name])}
    return text | {name: "boolean" for name in like.columns if types.is_bool_dtype(like[name].dtype)}


def _is_text(values: pd.Series) -> bool:
    if isinstance(values.dtype, pd.CategoricalDtype):
        return types.is_string_dtype(values.dtype.categories.dtype)
    if types.is_object_dtype(values.dtype):
        return types.infer_dtype(values, skipna=True) == "string"
    return types.is_string_dtype(values.dtype)


def _check_csv(file: TextIO, path: str) -> None:
    """Find what pandas would silently mend: repeated names, lines with too few values or too many."""
    lines = csv.reader(file, strict=True)
    started = 0
    try:
        header = next(lines, [])
        if not any(name.strip() for name in header):
            raise InputError(f"{path} is empty: a first line with the column names is expected")
        repeated = sorted(name for name, n in Counter(header).items() if n > 1)
        if repeated:
            raise InputError(f"{path} has the column {repeated[0]!r} more than once; rename or remove one")
        started = lines.line_num
        for line in lines:
            if line and len(line) != len(header):
                raise InputError(
                    f"{path}, line {started + 1}: {_count(len(line), 'value')}, but the first line names "
                    f"{_count(len(header), 'column')}; mend or remove that line"
                )
            started = lines.line_num
    except csv.Error as error:
        raise InputError(f"{path}, line {started + 1}: {error}; is a quote never closed?") from None


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from None
    return _plain_columns(frame, path)


def frame_of(table: pa.Table, path: Path) -> pd.DataFrame:
    """Rows of a Parquet file that were read by Arrow, as `read_table` would read them; an index stays one."""
    return _plain_columns(table.to_pandas(), path)


def _plain_columns(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """A frame that Parquet gave, without types that only Arrow has."""
    if frame.columns.has_duplicates:
        raise InputError(f"{path} has the column {frame.columns[frame.columns.duplicated()][0]!r} more than once")
    for name in _object_columns(frame):
        kind = types.infer_dtype(frame[name])
        if kind == "decimal":
            frame[name] = frame[name].astype(float)
        elif kind == "date":
            frame[name] = pd.to_datetime(frame[name])
    return frame


def _object_columns(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame.columns if types.is_object_dtype(frame[name].dtype)]


def _dates(values: pd.Series, path: Path | str) -> pd.Series:
    dates = pd.to_datetime(values, errors="coerce", format="ISO8601")
    return _all_read(dates, values, path, "dates", "write dates as 2024-12-31")


def _durations(values: pd.Series, path: Path | str) -> pd.Series:
    durations = pd.to_timedelta(values, errors="coerce")
    return _all_read(durations, values, path, "durations", "write durations as 1 days 12:00:00")


def _numbers(values: pd.Series, path: Path | str) -> pd.Series:
    return _all_read(pd.to_numeric(values, errors="coerce"), values, path, "numbers", "write numbers as 1234.5")


def _truths(values: pd.Series, path: Path | str) -> pd.Series:
    truths = values.str.lower().map(_TRUTHS).astype("boolean")
    return _all_read(truths, values, path, "true or false", "write True or False")


def _all_read(found: pd.Series, values: pd.Series, path: Path | str, kind: str, advice: str) -> pd.Series:
    """What was found in the cells of a column, or an error that names the first in which nothing was."""
    wrong = found.isna() & values.notna()
    if wrong.any():
        first = values[wrong].index[0]
        raise InputError(
            f"{path}: column {values.name!r} held {kind} at fit, but row {first} has {values[first]!r}; {advice}"
        )
    return found


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
