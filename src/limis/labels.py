"""Labels explained without a model: numbers as they are, two classes as 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.utils import column_or_1d

from limis.errors import InputError


def read_labels(y: Any, n_rows: int, classes: list[Any] | None = None) -> tuple[np.ndarray, list[Any] | None]:
    """The labels as numbers and, where they are two classes, the classes (the second counts as 1)."""
    dtype: Any = getattr(y, "dtype", None)
    if types.is_extension_array_dtype(dtype) and types.is_bool_dtype(dtype):
        y = np.asarray(y, dtype=object)  # scikit-learn would make numbers of them
    series = pd.Series(column_or_1d(y, warn=True)).infer_objects()
    if len(series) != n_rows:
        raise InputError(f"y has {len(series)} labels, but X has {n_rows} rows")
    if series.isna().any():
        raise InputError(f"y is missing (NaN) in row {int(np.flatnonzero(series.isna())[0])}; drop such rows")
    if types.is_numeric_dtype(series.dtype) and not types.is_bool_dtype(series.dtype) and classes is None:
        numbers = series.to_numpy(dtype=np.float64)
        if np.isinf(numbers).any():
            raise InputError(f"y is infinite in row {int(np.flatnonzero(np.isinf(numbers))[0])}")
        return numbers, None
    found = sorted(series.unique(), key=str) if classes is None else classes
    if len(found) != 2:
        raise InputError(
            f"y has {len(found)} class(es) ({', '.join(map(str, found[:5]))}); "
            "limis explains two classes or numbers so far"
        )
    unknown = ~series.isin(found)
    if unknown.any():
        raise InputError(f"label {series[unknown].iloc[0]!r} was not among the classes seen at fit, {found}")
    return (series == found[1]).to_numpy(dtype=np.float64), list(found)
