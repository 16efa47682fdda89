"""What is to be explained: Parquet files, their rows and their columns, known from their ends alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from limis.errors import InputError

ENDING = ".parquet"
# What Arrow raises is an OSError or a ValueError of its own kind; of damaged files also plain ones of both.
UNREADABLE = (pa.ArrowException, OSError, ValueError)


@dataclass(frozen=True)
class SourceFile:
    """One file, as it was when the work was planned."""

    name: str  # under the source folder
    size: int
    modified: int  # nanoseconds
    rows: int


@dataclass(frozen=True)
class Source:
    """All files of the input, in the order of their names, and one schema that takes the rows of each."""

    folder: Path
    files: list[SourceFile]
    schema: pa.Schema

    @property
    def rows(self) -> int:
        """The rows of all files."""
        return sum(file.rows for file in self.files)


def look_at(path: Path, needed: Collection[str]) -> Source:
    """Read the end of every file: how many rows, and whether it has the columns that are needed."""
    folder, names = _files_of(path)
    files, schema = [], pa.schema([])
    for name in names:
        file = folder / name
        try:
            with pq.ParquetFile(file) as opened:
                rows, own = opened.metadata.num_rows, opened.schema_arrow
        except UNREADABLE as error:
            raise unreadable(file, error) from None
        _check_columns(file, own, needed)
        if rows:  # a file without rows may well have columns without types
            schema = _with_fields_of(schema, own, file)
        state = file.stat()
        files.append(SourceFile(name, state.st_size, state.st_mtime_ns, rows))
    source = Source(folder, files, schema)
    if source.rows == 0:
        raise InputError(f"{path} has no rows to explain")
    return source


def read_rows(path: Path, start: int, stop: int, batch_rows: int) -> pa.Table:
    """The rows from ``start`` to before ``stop``; of a large row group only so many are in memory at a time."""
    try:
        with pq.ParquetFile(path) as file:
            first, groups, skipped = 0, [], 0
            for number in range(file.num_row_groups):
                rows = file.metadata.row_group(number).num_rows
                if first + rows <= start:
                    skipped += rows
                elif first < stop:
                    groups.append(number)
                first += rows
            kept, place = [], skipped
            for batch in file.iter_batches(batch_size=batch_rows, row_groups=groups, use_threads=False):
                if place >= stop:
                    break
                low, high = max(start - place, 0), min(stop - place, len(batch))
                if low < high:
                    kept.append(batch.slice(low, high - low))
                place += len(batch)
            return pa.Table.from_batches(kept, schema=kept[0].schema if kept else file.schema_arrow)
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def own_columns(schema: pa.Schema) -> list[str]:
    """The columns that are told of again: all but an index that pandas added and nobody named."""
    pandas = schema.pandas_metadata or {}
    index = [name for name in pandas.get("index_columns", []) if isinstance(name, str)]
    several = len(index) > 1
    unnamed = {name for name in index if several or re.fullmatch(r"__index_level_\d+__", name)}
    return [name for name in schema.names if name not in unnamed]


def in_schema(table: pa.Table, schema: pa.Schema, path: Path) -> pa.Table:
    """The columns of a table in the types that all parts share; those it does not have are missing."""
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.chunked_array([pa.nulls(len(table), field.type)]))
            continue
        try:
            columns.append(table.column(field.name).cast(field.type))
        except pa.ArrowException as error:
            message = f"{path}: column {field.name!r} does not fit {field.type}, its type in all files: {error}"
            raise InputError(message) from None
    return pa.table(columns, schema=schema)


def unreadable(path: Path, error: Exception) -> InputError:
    """The error of a file that is there, but is no Parquet or is damaged."""
    return InputError(f"{path} cannot be read as Parquet: {error}")


def _files_of(path: Path) -> tuple[Path, list[str]]:
    if not path.exists():
        raise InputError(f"{path} is not there")
    if path.is_file():
        if path.suffix.lower() != ENDING:
            raise InputError(f"{path} does not end in {ENDING}; tables are explained in parts from Parquet alone")
        return path.parent, [path.name]
    found = (file.relative_to(path) for file in path.rglob("*") if file.suffix.lower() == ENDING and file.is_file())
    # As other readers of such folders do, leave out what is hidden or marked as no data.
    names = sorted(name.as_posix() for name in found if not any(part.startswith((".", "_")) for part in name.parts))
    if not names:
        raise InputError(f"the folder {path} has no files that end in {ENDING}")
    return path, names


def _check_columns(file: Path, schema: pa.Schema, needed: Collection[str]) -> None:
    repeated = [name for name, n in Counter(schema.names).items() if n > 1]
    if repeated:
        raise InputError(f"{file} has the column {repeated[0]!r} more than once; rename or remove one")
    missing = [name for name in needed if name not in schema.names]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"{file} has no column {missing[0]!r}{more}; add it, or take the file out of the folder")


def _with_fields_of(schema: pa.Schema, own: pa.Schema, file: Path) -> pa.Schema:
    """One schema for two: numbers become the wider kind, and dictionaries, which differ between files, plain values."""
    for name in own_columns(own):
        kind = own.field(name).type
        field = pa.field(name, kind.value_type if pa.types.is_dictionary(kind) else kind)
        if name in schema.names and schema.field(name).type == field.type:
            continue
        try:
            schema = pa.unify_schemas([schema, pa.schema([field])], promote_options="permissive")
        except pa.ArrowException:
            before = schema.field(name).type
            raise InputError(
                f"{file}: column {name!r} holds {field.type}, but {before} in the files before; give it one type"
            ) from None
    return schema
