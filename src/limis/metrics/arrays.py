"""Checks that every metric makes of its input."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limis.errors import InputError


def alike(**arrays: ArrayLike) -> list[NDArray[np.float64]]:
    """Return the arrays as floats, of one shape, finite and not empty."""
    checked = {name: finite(array, name) for name, array in arrays.items()}
    if len({array.shape for array in checked.values()}) > 1:
        shapes = " and ".join(f"{name} {array.shape}" for name, array in checked.items())
        raise InputError(f"shapes differ: {shapes}")
    return list(checked.values())


def finite(array: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return the array as floats, finite and not empty."""
    try:
        numbers = np.atleast_1d(np.asarray(array, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold numbers: {error}") from error
    if numbers.size == 0:
        raise InputError(f"{name} is empty")
    if not np.isfinite(numbers).all():
        where = np.argwhere(~np.isfinite(numbers))[0]
        raise InputError(f"{name} holds {numbers[tuple(where)]} in row {where[0]}")
    return numbers
