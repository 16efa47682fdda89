"""Looking at files before any work is done, and writing results to them, in the format their extension names."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from limis.class_explanations import ClassExplanations
from limis.errors import InputError
from limis.explanation import Explanations
from limis.lines import explained_lines, with_curves

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
            table = explained_lines(found, rows)
            if extension == ".csv":
                table.to_csv(unfinished, index=False)
            else:
                with_curves(table, found).to_parquet(unfinished, index=False)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write to, put in its place when all went well and removed when not."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _columns_of(frame: pd.DataFrame, most: int = 8) -> str:
    names = [str(name) for name in frame.columns]
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        return f"its only column is {names[0]!r}: values are to be separated by commas"
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return "it has " + ", ".join(repr(name) for name in names[:most]) + more


def _any(extensions: Collection[str]) -> str:
    *first, last = extensions
    return f"{', '.join(first)} or {last}" if first else last
