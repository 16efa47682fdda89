"""Polars frames on their way in and out; on the way in they are recognised without importing polars."""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

from limis.errors import InputError

ROW = "row"  # the column that tells which row a line is about, since polars has no row labels


def is_polars(X: Any) -> bool:
    """Whether this is a frame of polars, lazy or not."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(X, (polars.DataFrame, polars.LazyFrame))


def from_polars(X: Any) -> Any:
    """A polars frame as a pandas one; anything else as it is."""
    if not is_polars(X):
        return X
    if not hasattr(X, "to_pandas"):
        raise InputError("a lazy polars frame was passed, which holds no rows yet; pass X.collect()")
    return X.to_pandas()


def to_polars(frame: pd.DataFrame) -> Any:
    """A pandas frame as a polars one, its row labels in the column "row"."""
    import polars as pl

    return pl.from_pandas(frame.rename_axis(index=ROW).reset_index())
