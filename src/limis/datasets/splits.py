"""Dividing rows at random."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from limis.errors import InputError

__all__ = ["split_rows"]


def split_rows(
    n: int,
    fractions: Sequence[float] = (0.72, 0.08, 0.20),
    random_state: int | np.random.Generator | None = None,
) -> tuple[NDArray[np.intp], ...]:
    """Divide row numbers at random into parts of given shares.

    Parameters
    ----------
    n : int
        Number of rows.
    fractions : sequence of float, default=(0.72, 0.08, 0.20)
        Share of each part, summing to one. The default is the paper's: training, probe and test
        rows.
    random_state : int, numpy Generator or None
        Decides which row goes where.

    Returns
    -------
    tuple of ndarray
        Row numbers of each part, in increasing order.

    Raises
    ------
    InputError
        If the fractions do not sum to one, or a part would be empty.

    Examples
    --------
    >>> training, probe, test = split_rows(1000, random_state=0)
    >>> training.size, probe.size, test.size
    (720, 80, 200)
    """
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.ndim != 1 or not (shares > 0).all() or not np.isclose(shares.sum(), 1):
        raise InputError(f"fractions must be positive and sum to one, not {fractions}")
    edges = np.rint(np.cumsum(shares)[:-1] * n).astype(np.intp)
    parts = np.split(np.random.default_rng(random_state).permutation(n), edges)
    if not all(part.size for part in parts):
        sizes = ", ".join(str(part.size) for part in parts)
        raise InputError(f"{n} rows are too few for the fractions {fractions}: parts of {sizes}")
    return tuple(np.sort(part) for part in parts)
