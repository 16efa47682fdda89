"""What a user gives beside the table: outputs and sample weights, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from limis.errors import InputError


def checked_outputs(outputs: Any, n_rows: int, name: str, n_outputs: int = 1) -> np.ndarray:
    """Finite numbers, as a copy: one a row or, where there are several classes, one a row and class."""
    each = "one number a row" if n_outputs == 1 else f"{n_outputs} numbers a row, one a class"
    try:
        given = np.array(outputs, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers: give {each}") from None
    if n_outputs == 1 and given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.shape != ((n_rows,) if n_outputs == 1 else (n_rows, n_outputs)):
        raise InputError(f"{name} has shape {given.shape}, but there are {n_rows} rows: give {each}")
    bad = ~np.isfinite(given.reshape(n_rows, -1)).all(axis=1)
    if bad.any():
        raise InputError(f"{name} has NaN or infinity in row {int(np.flatnonzero(bad)[0])}")
    return given


def checked_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights that are not negative, with mean 1, since only their ratios count; None where they are all equal."""
    if sample_weight is None:
        return None
    weight = checked_outputs(sample_weight, n_rows, "sample_weight")
    if (weight < 0).any() or weight.sum() == 0:
        raise InputError("sample_weight must not be negative, nor zero for every row")
    return None if (weight == weight[0]).all() else weight / weight.mean()
