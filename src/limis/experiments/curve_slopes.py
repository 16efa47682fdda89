"""The slopes of curves near a row, to hold against true coefficients."""

from __future__ import annotations

from typing import cast

import numpy as np

from limis.curves.model import CurveFits
from limis.explanation import Explanations

SHARE = 0.25  # of the values shown, those nearest to the row's own


def curve_slopes(found: Explanations, share: float = SHARE) -> np.ndarray:
    """The slope of each number's curve by least squares over the nearest of its values: (rows, columns).

    The row's own value, where nothing changes, is one of them. Categories have no slope: NaN.
    """
    fits = cast(CurveFits, found.fits)
    shown, table = fits.ground.shown, fits.ground.table
    changes = fits.curves(np.arange(len(fits.values)))
    slopes = np.full(fits.values.shape, np.nan)
    for unit, members in enumerate(fits.ground.units.members):
        if len(members) > 1 or table.is_category[members[0]]:
            continue
        own = fits.values[:, members]  # (rows, 1)
        apart = np.abs(shown.values[unit][:, 0] - own)  # (rows, values)
        nearest = np.argsort(apart, axis=1, kind="stable")[:, : max(1, round(share * apart.shape[1]))]
        at = np.column_stack([shown.values[unit][nearest, 0], own])
        change = np.take_along_axis(changes[:, shown.starts[unit] : shown.starts[unit + 1]], nearest, axis=1)
        change = np.column_stack([change, np.zeros(len(own))])
        at -= at.mean(axis=1, keepdims=True)
        square = (at**2).sum(axis=1)
        slopes[:, members[0]] = np.divide((at * change).sum(axis=1), square, out=np.zeros(len(at)), where=square > 0)
    return slopes
