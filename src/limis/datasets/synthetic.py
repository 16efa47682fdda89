"""Syn1 to Syn4: made-up data for which the right explanation of every row is known.

Eleven columns, X1 to X11. In Syn1 to Syn3 they are standard normal, and the output is
X1 + 2·X2 on one side of a boundary and X3 + 2·X4 on the other:

    Syn1    X10 = 0
    Syn2    X10 + exp(X11) = 1
    Syn3    X10 + X11³ = 0

In Syn4 they are uniform on [−1, 1], and the output is smooth, without a boundary:

    sin(X1) + 2·cos(X2) − X3²/2 − exp(−X4)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from limis.errors import InputError

__all__ = ["SyntheticData", "SyntheticFunction", "TrueFunction", "make_synthetic"]

COLUMNS = tuple(f"X{i}" for i in range(1, 12))

_BELOW = np.array([1.0, 2.0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
_ABOVE = np.array([0, 0, 1.0, 2.0, 0, 0, 0, 0, 0, 0, 0])

# Which side of the boundary a row is on: the sign, zero counting as above.
_BOUNDARIES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "Syn1": lambda x: x[:, 9],
    "Syn2": lambda x: x[:, 9] + np.exp(x[:, 10]) - 1,
    "Syn3": lambda x: x[:, 9] + x[:, 10] ** 3,
}
NAMES = (*_BOUNDARIES, "Syn4")


@dataclass(frozen=True)
class SyntheticFunction:
    """The function behind a synthetic data set; call it on rows to use it as a black box.

    Parameters
    ----------
    name : {"Syn1", "Syn2", "Syn3", "Syn4"}
        Which one.

    Examples
    --------
    >>> f = SyntheticFunction("Syn1")
    >>> row = np.arange(1.0, 12.0).reshape(1, 11)
    >>> f(row)
    array([11.])
    >>> f.coefficients(row)
    array([[0., 0., 1., 2., 0., 0., 0., 0., 0., 0., 0.]])
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InputError(f"unknown synthetic data {self.name!r}: choose from {', '.join(NAMES)}")

    def __call__(self, X: pd.DataFrame | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the outputs, of shape (n,)."""
        x = _matrix(X)
        if self.name == "Syn4":
            return np.sin(x[:, 0]) + 2 * np.cos(x[:, 1]) - x[:, 2] ** 2 / 2 - np.exp(-x[:, 3])
        return np.sum(x * self.coefficients(x), axis=1)

    def coefficients(self, X: pd.DataFrame | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the true local coefficients, of shape (n, 11); for Syn4, the gradient."""
        x = _matrix(X)
        if self.name == "Syn4":
            slopes = np.zeros_like(x)
            slopes[:, 0] = np.cos(x[:, 0])
            slopes[:, 1] = -2 * np.sin(x[:, 1])
            slopes[:, 2] = -x[:, 2]
            slopes[:, 3] = np.exp(-x[:, 3])
            return slopes
        return np.where(self.regime(x)[:, None] == 1, _ABOVE, _BELOW)

    def regime(self, X: pd.DataFrame | NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the side of the boundary, 0 or 1, of shape (n,); Syn4 has only 0."""
        x = _matrix(X)
        if self.name == "Syn4":
            return np.zeros(len(x), dtype=np.intp)
        return (_BOUNDARIES[self.name](x) >= 0).astype(np.intp)

    def boundary_distance(self, X: pd.DataFrame | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far the boundary is, of shape (n,); infinitely far for Syn4.

        As in the paper's figures this is the absolute difference of the boundary's two sides,
        abs(X10 + exp(X11) − 1) for Syn2, not the Euclidean distance.
        """
        x = _matrix(X)
        if self.name == "Syn4":
            return np.full(len(x), np.inf)
        return np.abs(_BOUNDARIES[self.name](x))


class TrueFunction(Protocol):
    """A function that knows the right explanation of every row."""

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """The outputs."""
        ...

    def coefficients(self, X: Any) -> NDArray[np.float64]:
        """The true local coefficients."""
        ...

    def regime(self, X: Any) -> NDArray[np.intp]:
        """Which rows behave alike."""
        ...

    def boundary_distance(self, X: Any) -> NDArray[np.float64]:
        """How far behaviour stays the same."""
        ...


@dataclass(frozen=True)
class SyntheticData:
    """Rows drawn for a synthetic function, and the truth about each.

    Attributes
    ----------
    name : str
        Syn1 to Syn4, or what kind of generated data this is.
    features : DataFrame of shape (n, columns)
        For Syn1 to Syn4, columns X1 to X11.
    outputs : ndarray of shape (n,)
        The function at each row, without noise.
    coefficients : ndarray of shape (n, number columns)
        True local coefficients of the columns that hold numbers; for Syn4, the gradient.
    regime : ndarray of shape (n,)
        Rows of one number behave alike: for Syn1 to Syn3 the side of the boundary, 0 or 1.
    boundary_distance : ndarray of shape (n,)
        How far the boundary is.
    black_box : SyntheticFunction or PiecewiseFunction
        The function itself, which also tells the truth about any other rows.
    labels : ndarray of shape (n,)
        Outputs with noise, where some was asked for: what a model would be trained on. Else the outputs.
    """

    name: str
    features: pd.DataFrame
    outputs: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    regime: NDArray[np.intp]
    boundary_distance: NDArray[np.float64]
    black_box: TrueFunction
    labels: NDArray[np.float64]


def make_synthetic(name: str, n: int = 1000, random_state: int | np.random.Generator | None = None) -> SyntheticData:
    """Draw rows of Syn1, Syn2, Syn3 or Syn4.

    Parameters
    ----------
    name : {"Syn1", "Syn2", "Syn3", "Syn4"}
        Which function.
    n : int, default=1000
        Number of rows.
    random_state : int, numpy Generator or None
        Decides which rows are drawn. Pass one generator on to draw training, probe and test
        rows that have nothing in common.

    Returns
    -------
    SyntheticData
        The rows and the truth about them.

    Examples
    --------
    >>> data = make_synthetic("Syn2", n=500, random_state=0)
    >>> data.features.shape
    (500, 11)
    >>> bool((data.black_box(data.features) == data.outputs).all())
    True
    """
    f = SyntheticFunction(name)
    if n < 1:
        raise InputError(f"n must be at least 1, not {n}")
    draw = np.random.default_rng(random_state)
    shape = (n, len(COLUMNS))
    x = draw.uniform(-1, 1, shape) if name == "Syn4" else draw.standard_normal(shape)
    outputs = f(x)
    return SyntheticData(
        name=name,
        features=pd.DataFrame(x, columns=list(COLUMNS)),
        outputs=outputs,
        coefficients=f.coefficients(x),
        regime=f.regime(x),
        boundary_distance=f.boundary_distance(x),
        black_box=f,
        labels=outputs,
    )


def _matrix(X: pd.DataFrame | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows as an (n, 11) matrix; a frame's columns are found by name."""
    if isinstance(X, pd.DataFrame):
        absent = [name for name in COLUMNS if name not in X.columns]
        if absent:
            raise InputError(f"columns {', '.join(absent)} are missing: expected X1 to X11")
        X = X[list(COLUMNS)].to_numpy()
    x = np.asarray(X, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != len(COLUMNS):
        raise InputError(f"rows must have 11 columns, X1 to X11, but the shape is {x.shape}")
    return x
