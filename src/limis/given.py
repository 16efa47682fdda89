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


def at_most(most: int, rng: np.random.Generator, X: Any, *beside: Any) -> tuple[Any, ...]:
    """A table and what belongs to its rows, with no more than ``most`` of them: random ones, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, nothing = at_most(2, np.random.default_rng(0), np.arange(8).reshape(4, 2), [0, 1, 2, 3], None)
    >>> X[:, 0].tolist() == [2 * place for place in y], len(y), nothing
    (True, 2, None)
    """
    n_rows = _length(X)
    if n_rows is None or n_rows <= most or hasattr(X, "tocsr"):
        return (X, *beside)
    chosen = np.sort(rng.choice(n_rows, most, replace=False))

    def some(part: Any) -> Any:
        if part is None or _length(part) != n_rows:
            return part  # of another length: what comes after says so
        return part.iloc[chosen] if hasattr(part, "iloc") else np.asarray(part)[chosen]

    return tuple(some(part) for part in (X, *beside))


def _length(part: Any) -> int | None:
    if getattr(part, "shape", ()):
        return int(part.shape[0])
    return len(part) if isinstance(part, (list, tuple)) else None
