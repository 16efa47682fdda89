"""Labels explained without a model: numbers as they are, two classes as 0 and 1, more as 0 and 1 for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.utils import column_or_1d

from limis.errors import InputError
from limis.kinds import plain

MOST_CLASSES = 100


def find_class(label: Any, classes: Sequence[Any]) -> int | None:
    """Where a class stands among all; its text will do, as a command line has nothing else. None: it is not there."""
    same = [place for place, known in enumerate(classes) if plain(known) == plain(label)]
    alike = [place for place, known in enumerate(classes) if str(known) == str(label)]
    return next(iter([*same, *alike]), None)


def read_labels(y: Any, n_rows: int, classes: list[Any] | None = None) -> tuple[np.ndarray, list[Any] | None]:
    """The labels as numbers and, where they are classes, the classes.

    Of two classes the second counts as 1; more have a column each: (rows, classes).
    """
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
    if len(found) < 2:
        raise InputError(f"y has only one class ({', '.join(map(str, found))}): there is nothing to explain")
    if len(found) > MOST_CLASSES:
        raise InputError(f"y has {len(found)} classes; at most {MOST_CLASSES} can be explained, or numbers")
    unknown = ~series.isin(found)
    if unknown.any():
        raise InputError(f"label {series[unknown].iloc[0]!r} was not among the classes seen at fit, {found}")
    if len(found) == 2:
        return (series == found[1]).to_numpy(dtype=np.float64), list(found)
    return np.column_stack([series == label for label in found]).astype(np.float64), list(found)
