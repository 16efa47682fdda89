"""The training frame as Parquet: every column comes back with its type and values, or is refused by name.

Arrow alone would lose some of it. A category's unused levels and their order, integers among missing values and
columns of mixed objects do not survive Parquet, so categories are kept as codes and objects as JSON texts.
"""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pandas.api.types import is_object_dtype, pandas_dtype

from limis.errors import StoreError
from limis.store.plain import checked, from_json, one_line, to_json


@dataclass
class ColumnType:
    """The type of one column."""

    dtype: str  # in pandas' words
    categories: list[Any] | None = None
    categories_dtype: str | None = None
    ordered: bool = False


def pack_frame(frame: pd.DataFrame) -> tuple[list[dict[str, Any]], bytes]:
    """The type of each column, as plain data, and the Parquet file."""
    types, arrays = [], []
    for name, column in frame.items():
        try:
            kind, array = _pack(column)
            described = asdict(kind)
            changed = not _same(column, _unpack(from_json(to_json(described)), pa.chunked_array([array])))
        except Exception as error:  # each type fails in its own way, and the column must be named
            raise _refused(name, column, one_line(error)) from error
        if changed:
            raise _refused(name, column, "it would come back changed")
        types.append(described)
        arrays.append(array)
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays, names=list(frame.columns)), sink)
    return types, sink.getvalue()


def unpack_frame(types: list[dict[str, Any]], parquet: bytes) -> pd.DataFrame:
    """The inverse of `pack_frame`."""
    table = pq.read_table(io.BytesIO(parquet))
    columns = zip(table.column_names, types, table.columns, strict=True)
    return pd.DataFrame({name: _unpack(described, array) for name, described, array in columns})


def _pack(column: pd.Series) -> tuple[ColumnType, pa.Array]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        kind = ColumnType("category", list(categories), str(categories.dtype), bool(dtype.ordered))
        return kind, pa.array(column.cat.codes.to_numpy(np.int32))
    if is_object_dtype(dtype):
        return ColumnType("object"), pa.array([to_json(value) for value in column], pa.string())
    if isinstance(dtype, pd.SparseDtype):
        column = pd.Series(np.asarray(column))
    return ColumnType(str(dtype)), pa.Array.from_pandas(column)


def _unpack(described: dict[str, Any], array: pa.ChunkedArray) -> pd.Series:
    kind = ColumnType(**checked(ColumnType, described))
    if kind.dtype == "category":
        index: dict[str, Any] = {"data": kind.categories, "dtype": kind.categories_dtype}
        categories: Any = pd.Index(**index)
        return pd.Series(pd.Categorical.from_codes(array.to_numpy(), categories=categories, ordered=kind.ordered))
    if kind.dtype == "object":
        # All texts in one: parsing them one by one takes far longer.
        return pd.Series(from_json(f"[{','.join(array.to_pylist())}]"), dtype=object)
    # pandas reads this word as its own strings, which write themselves as "string" or "str".
    dtype = pd.ArrowDtype(pa.string()) if kind.dtype == "string[pyarrow]" else pandas_dtype(kind.dtype)
    if hasattr(dtype, "__from_arrow__"):
        return pd.Series(dtype.__from_arrow__(array))
    return array.to_pandas().astype(dtype)


def _same(column: pd.Series, back: pd.Series) -> bool:
    # As objects, because the same strings may be kept in two ways.
    return str(back.dtype) == str(column.dtype) and back.astype(object).equals(column.astype(object))


def _refused(name: Any, column: pd.Series, why: str) -> StoreError:
    return StoreError(
        f"column {name!r} (of type {column.dtype}) cannot be saved: {why}; "
        "convert it to numbers, strings or categories before fitting"
    )
