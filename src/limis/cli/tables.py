"""Reading tables from files and writing results to them, in the format their extension names."""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pandas.api import types

from limis.class_explanations import ClassExplanations
from limis.errors import InputError
from limis.explanation import Explanations
from limis.local_view import FIXED, UNKNOWN_HERE

READABLE = (".csv", ".parquet")
WRITABLE = (".parquet", ".csv", ".json", ".html")


def check_output(path: Path, extensions: Collection[str], inputs: Collection[Path] = ()) -> None:
    """Refuse, before any work is done, a file that could not be written at its end."""
    if path.suffix.lower() not in extensions:
        raise InputError(f"{path} does not end in {_any(extensions)}, which says how to write it")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} is not there; make it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"the folder {path.parent} cannot be written to")
    if any(path.exists() and read.exists() and path.samefile(read) for read in inputs):
        raise InputError(f"{path} is read and would be overwritten; name another file for the output")


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
        raise InputError(f"{path} does not end in {_any(READABLE)}, which says how to read it")
    frame = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path, _csv_types(like))
    # Whoever made a column the index did not mean it as a feature, but rows to explain may need it to be told apart.
    is_id = like is not None and frame.index.name is not None and frame.index.name not in frame.columns
    frame = frame.reset_index(drop=not is_id)
    if len(frame) == 0:
        raise InputError(f"{path} has column names but no rows")
    return frame


def as_seen(frame: pd.DataFrame, like: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The columns of ``frame`` that are in ``like``, in types that a model which saw those will take."""
    seen = {}
    for name in frame.columns.intersection(like.columns, sort=False):
        values, wanted = frame[name], like[name].dtype
        if types.is_datetime64_any_dtype(wanted) and not types.is_datetime64_any_dtype(values.dtype):
            values = _dates(values, path)
        elif isinstance(values.dtype, pd.BooleanDtype) and types.is_bool_dtype(wanted):
            # Missing never happened before; numbers have a word for it, and 1 and 0 are still true and false.
            values = values.astype(float) if values.isna().any() else values.astype(bool)
        elif _is_text(like[name]) and values.isna().all():
            values = values.astype(object)  # an empty column is read as numbers
        seen[name] = values
    return pd.DataFrame(seen, index=frame.index)


def take_column(frame: pd.DataFrame, name: str, path: Path, option: str) -> pd.Series:
    """Take a column out of a table."""
    if name not in frame.columns:
        raise InputError(f"{path} has no column {name!r} for {option}; {_columns_of(frame)}")
    return frame.pop(name)


def drop_columns(frame: pd.DataFrame, names: Collection[str], path: Path) -> pd.DataFrame:
    """The table without some columns."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise InputError(f"{path} has no column {absent[0]!r} for --drop; {_columns_of(frame)}")
    return frame.drop(columns=list(names))


def check_names(rows: pd.DataFrame, own: Collection[str], path: Path, others: str) -> None:
    """Refuse rows with a column that the output would have twice; ``others`` are formats without columns."""
    twice = [name for name in rows.columns if name in own]
    if twice:
        raise InputError(f"{path} has a column {twice[0]!r}, and so would the output; rename it, or write {others}")


def write_explanations(found: Explanations | ClassExplanations, rows: pd.DataFrame, path: Path, title: str) -> None:
    """Write explanations in the format of the extension; CSV and Parquet keep the rows' own columns before them.

    Of several classes, CSV and Parquet have a line a row and class.
    """
    extension = path.suffix.lower()
    with replacing(path) as unfinished:
        if extension == ".json":
            unfinished.write_text(found.to_json() + "\n", encoding="utf-8")
        elif extension == ".html":
            unfinished.write_text(found.to_html(title=title), encoding="utf-8")
        else:
            table = _class_lines(found, rows) if isinstance(found, ClassExplanations) else _lines(found, rows)
            if extension == ".csv":
                table.to_csv(unfinished, index=False)
            else:
                table.to_parquet(unfinished, index=False)


def _lines(found: Explanations, rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, found.to_frame(), _untold(found)], axis=1)


def _class_lines(found: ClassExplanations, rows: pd.DataFrame) -> pd.DataFrame:
    n = len(found.classes)
    told = found.to_frame().reset_index(drop=True)
    untold = pd.concat([_untold(part).assign(_case=range(len(found))) for part in found.parts], ignore_index=True)
    untold = untold.sort_values("_case", kind="stable").drop(columns="_case").reset_index(drop=True)
    own = rows.loc[rows.index.repeat(n)].reset_index(drop=True)
    return pd.concat([own, told, untold], axis=1)


def _untold(found: Explanations) -> pd.DataFrame:
    """The columns whose contribution of nearly zero does not mean that they have no effect."""
    lists = {
        word.replace(" ", "_"): [", ".join(line.index[line == word]) for _, line in found.status.iterrows()]
        for word in (FIXED, UNKNOWN_HERE)
    }
    return pd.DataFrame(lists, index=found.index)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write to, put in its place when all went well and removed when not."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _read_csv(path: Path, dtypes: dict[str, str]) -> pd.DataFrame:
    try:
        _check_csv(path)
        frame = pd.read_csv(path, dtype=dtypes, encoding="utf-8-sig", low_memory=False)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except (pd.errors.ParserError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as CSV: {error}") from None
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


def _check_csv(path: Path) -> None:
    """Find what pandas would silently mend: repeated names, lines with too few values or too many."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file, strict=True)
        started = 0
        try:
            header = next(lines, [])
            if not any(name.strip() for name in header):
                raise InputError(f"{path} is empty: a first line with the column names is expected")
            repeated = sorted({name for name in header if header.count(name) > 1})
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


def _dates(values: pd.Series, path: Path) -> pd.Series:
    dates = pd.to_datetime(values, errors="coerce", format="ISO8601")
    wrong = dates.isna() & values.notna()
    if wrong.any():
        first = values[wrong].index[0]
        raise InputError(
            f"{path}: column {values.name!r} held dates at fit, but row {first} has {values[first]!r}; "
            "write dates as 2024-12-31"
        )
    return dates


def _columns_of(frame: pd.DataFrame, most: int = 8) -> str:
    names = [str(name) for name in frame.columns]
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        return f"its only column is {names[0]!r}: values are to be separated by commas"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return "it has " + ", ".join(repr(name) for name in names[:most]) + more


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _any(extensions: Collection[str]) -> str:
    *first, last = extensions
    return f"{', '.join(first)} or {last}" if first else last
