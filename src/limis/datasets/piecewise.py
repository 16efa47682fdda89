"""New synthetic data: linear in every regime, with any number of regimes and the troubles of real tables.

Columns X1, X2, … hold correlated standard normal numbers. The first ones have slopes, others in each regime. The next
two decide which regime a row is in, and have no slope themselves; then come columns without any effect. A category,
where there is one, is the last column.

Boundaries cut the two switching columns into bands that hold equal shares of the rows:

    linear       parallel lines
    curved       circles around the origin
    categorical  none: the level of the category alone decides
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from limis.datasets.synthetic import SyntheticData
from limis.errors import InputError

__all__ = ["PiecewiseFunction", "make_piecewise"]

Boundary = Literal["linear", "curved", "categorical"]
CATEGORY = "kind"
_REFERENCE_ROWS = 20_000  # that decide where bands end


@dataclass(frozen=True, eq=False)
class PiecewiseFunction:
    """A function that is linear in each of its regimes; call it on rows to use it as a black box.

    Made by `make_piecewise`. Regimes of a row with a category: the band it lies in, and the level's own place, are
    added, and counted on from the first regime past the last.

    Attributes
    ----------
    columns : tuple of str
        Names of the number columns, in order.
    slopes : ndarray of shape (regimes, number columns)
        The coefficients of each regime.
    intercepts : ndarray of shape (regimes,)
        The output of each regime where every number is zero.
    switches : slice
        The two columns that decide the band; none where the category alone decides.
    direction : ndarray of shape (2,) or None
        Bands are counted along this direction, of length one; from the origin outwards where None.
    ends : ndarray
        Where one band ends and the next begins; empty where there is only one.
    levels : tuple of str
        Levels of the category; empty where there is none.
    """

    columns: tuple[str, ...]
    slopes: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    switches: slice
    direction: NDArray[np.float64] | None
    ends: NDArray[np.float64]
    levels: tuple[str, ...]

    def __call__(self, X: pd.DataFrame | NDArray) -> NDArray[np.float64]:
        """Return the outputs, of shape (n,)."""
        x, codes = self._read(X)
        regime = self._regime(x, codes)
        return self.intercepts[regime] + np.sum(x * self.slopes[regime], axis=1)

    def coefficients(self, X: pd.DataFrame | NDArray) -> NDArray[np.float64]:
        """Return the true local coefficients of the number columns, of shape (n, number columns)."""
        return self.slopes[self.regime(X)]

    def regime(self, X: pd.DataFrame | NDArray) -> NDArray[np.intp]:
        """Return the regime of each row, from 0 on, of shape (n,)."""
        return self._regime(*self._read(X))

    def boundary_distance(self, X: pd.DataFrame | NDArray) -> NDArray[np.float64]:
        """Return how far the nearest boundary is in the plane of the switching columns, of shape (n,).

        Infinitely far where there is none; another level of a category is at no distance.
        """
        x, _ = self._read(X)
        if not self.ends.size:
            return np.full(len(x), np.inf)
        return np.abs(_height(x[:, self.switches], self.direction)[:, None] - self.ends).min(axis=1)

    def _regime(self, x: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.intp]:
        if not self.ends.size:
            return codes % len(self.slopes)
        band = np.searchsorted(self.ends, _height(x[:, self.switches], self.direction), side="right")
        return (band + codes) % len(self.slopes)

    def _read(self, X: pd.DataFrame | NDArray) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Return the numbers, and the level's place in the category (0 without one)."""
        names = [*self.columns, CATEGORY] if self.levels else list(self.columns)
        if not isinstance(X, pd.DataFrame):
            if np.ndim(X) != 2 or np.shape(X)[1] != len(names):
                raise InputError(f"rows must have {len(names)} columns, but the shape is {np.shape(X)}")
            X = pd.DataFrame(X, columns=names)
        absent = [name for name in names if name not in X.columns]
        if absent:
            raise InputError(f"columns {', '.join(absent)} are missing: expected {names[0]} to {names[-1]}")
        x = X[list(self.columns)].to_numpy(dtype=np.float64)
        if not self.levels:
            return x, np.zeros(len(x), dtype=np.intp)
        codes = pd.Index(self.levels).get_indexer(pd.Index(X[CATEGORY].astype(object)))
        if (codes < 0).any():
            raise InputError(f"{CATEGORY} has the level {X[CATEGORY].iloc[codes.argmin()]!r}; known are {self.levels}")
        return x, codes


def make_piecewise(
    n: int = 1000,
    *,
    regimes: int = 2,
    boundary: Boundary = "linear",
    n_relevant: int = 4,
    n_irrelevant: int = 4,
    correlation: float = 0.0,
    categorical_switch: int = 0,
    jump: float = 0.0,
    noise: float = 0.0,
    function_state: int = 0,
    random_state: int | np.random.Generator | None = None,
) -> SyntheticData:
    """Draw rows of a function that is linear in each of its regimes.

    Every regime has slopes, between 1 and 2 in size and of either sign, on a random half of the relevant columns.

    Parameters
    ----------
    n : int, default=1000
        Number of rows.
    regimes : int, default=2
        How many regimes there are.
    boundary : {"linear", "curved", "categorical"}, default="linear"
        What divides them: parallel lines, circles, or the level of a category alone.
    n_relevant : int, default=4
        Columns that have a slope in some regime.
    n_irrelevant : int, default=4
        Columns that have none, and do not decide the regime either.
    correlation : float, default=0.0
        Between any two number columns, from 0 to less than 1.
    categorical_switch : int, default=0
        Levels of a category that decides, together with the boundary, which regime a row is in. A categorical
        boundary needs at least as many levels as regimes, and has twice as many where 0 is given.
    jump : float, default=0.0
        How far apart the regimes' intercepts are: the standard deviation they are drawn with.
    noise : float, default=0.0
        Standard deviation of what the labels have on top of the outputs.
    function_state : int, default=0
        Decides the function. Rows drawn with one and the same have the same truth.
    random_state : int, numpy Generator or None
        Decides which rows are drawn. Pass one generator on to draw training, probe and test
        rows that have nothing in common.

    Returns
    -------
    SyntheticData
        The rows and the truth about them.

    Examples
    --------
    >>> data = make_piecewise(500, regimes=3, boundary="curved", categorical_switch=2, random_state=0)
    >>> data.features.columns.tolist()
    ['X1', 'X2', 'X3', 'X4', 'X5', 'X6', 'X7', 'X8', 'X9', 'X10', 'kind']
    >>> sorted(set(data.regime.tolist()))
    [0, 1, 2]
    """
    if boundary == "categorical" and categorical_switch == 0:
        categorical_switch = 2 * regimes
    _check(
        boundary,
        correlation,
        n=(n, 1),
        regimes=(regimes, 1),
        n_relevant=(n_relevant, 1),
        n_irrelevant=(n_irrelevant, 0),
        categorical_switch=(categorical_switch, regimes if boundary == "categorical" else 0),
    )
    make = np.random.default_rng(function_state)
    angle = make.uniform(0, 2 * np.pi)
    direction = np.array([np.cos(angle), np.sin(angle)]) if boundary == "linear" else None
    switching = 0 if boundary == "categorical" else 2
    ends = np.empty(0)
    if switching:
        height = _height(_draw_numbers(make, _REFERENCE_ROWS, switching, correlation), direction)
        ends = np.quantile(height, np.arange(1, regimes) / regimes)
    count = n_relevant + switching + n_irrelevant
    slopes = np.zeros((regimes, count))
    for regime in range(regimes):
        with_slope = make.permutation(n_relevant)[: (n_relevant + 1) // 2]
        slopes[regime, with_slope] = make.uniform(1, 2, len(with_slope)) * make.choice([-1, 1], len(with_slope))
    f = PiecewiseFunction(
        columns=tuple(f"X{i + 1}" for i in range(count)),
        slopes=slopes,
        intercepts=jump * make.standard_normal(regimes),
        switches=slice(n_relevant, n_relevant + switching),
        direction=direction,
        ends=ends,
        levels=tuple(f"level {i + 1}" for i in range(categorical_switch)),
    )

    draw = np.random.default_rng(random_state)
    features = pd.DataFrame(_draw_numbers(draw, n, count, correlation), columns=list(f.columns))
    if f.levels:
        features[CATEGORY] = draw.choice(f.levels, n)
    outputs = f(features)
    return SyntheticData(
        name=f"{regimes} regimes, {boundary}",
        features=features,
        outputs=outputs,
        coefficients=f.coefficients(features),
        regime=f.regime(features),
        boundary_distance=f.boundary_distance(features),
        black_box=f,
        labels=outputs + noise * draw.standard_normal(n),
    )


def _height(plane: NDArray[np.float64], direction: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return what bands divide: the way along the direction, or the distance from the origin."""
    # Not a matrix product, whose rounding may differ between a row alone and in company.
    return np.hypot(*plane.T) if direction is None else np.sum(plane * direction, axis=1)


def _draw_numbers(draw: np.random.Generator, n: int, columns: int, correlation: float) -> NDArray[np.float64]:
    """Return standard normal columns, all sharing a part that makes them correlated."""
    shared = draw.standard_normal((n, 1))
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * draw.standard_normal((n, columns))


def _check(boundary: str, correlation: float, **counts: tuple[int, int]) -> None:
    """Refuse options without a meaning; counts come with the least they may be."""
    if boundary not in get_args(Boundary):
        raise InputError(f"boundary must be one of {', '.join(get_args(Boundary))}, not {boundary!r}")
    for name, (given, least) in counts.items():
        if given < least:
            raise InputError(f"{name} must be at least {least}, not {given}")
    if not 0 <= correlation < 1:
        raise InputError(f"correlation must be at least 0 and less than 1, not {correlation}")
