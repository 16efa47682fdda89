"""Reading curves: which values, and what the model would say with each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from limis.columns import Column
from limis.curves.model import CurveFits
from limis.errors import InputError
from limis.kinds import is_missing, plain

if TYPE_CHECKING:
    from limis.explanation import Explanation, Explanations


def curve_frame(found: Explanations, rows: Sequence[int] | np.ndarray) -> pd.DataFrame:
    """All curves of some rows: row, column, value, output, its interval, change, and whether the value is the own one.

    Numbers come in their order; the row's own value is among them.
    """
    if not found.fits.has_curves:
        raise InputError('this local model is no curves; fit with surrogate="curves"')
    rows = np.asarray(rows, dtype=np.int64)
    fits = cast(CurveFits, found.fits)
    ground, own_values, own_frame = fits.ground, fits.values[rows], found.frame.iloc[rows]
    shown, changes = ground.shown, fits.curves(rows)
    widths = fits.half_widths(rows, changes)
    own_width = np.nan if fits.has_stand_in else 0.0  # the model itself was never asked
    within = found.training.black_box.within
    parts: list[tuple[np.ndarray, ...]] = []  # of each unit: kept, cells, change, half, own; (rows, values) each
    for unit, members in enumerate(ground.units.members):
        columns = [found.training.table.columns[j] for j in members]
        here, there = own_values[:, None, members], shown.values[unit][None]
        is_own = ((here == there) | (np.isnan(here) & np.isnan(there))).all(axis=2)
        cells = slice(shown.starts[unit], shown.starts[unit + 1])
        told = np.broadcast_to(_cells(columns, found.training.frame.iloc[shown.donors[unit]]), is_own.shape)
        part: tuple[np.ndarray, ...] = (
            _beside(~is_own, np.ones(len(rows), dtype=bool)),
            _beside(told, _cells(columns, own_frame)),
            _beside(changes[:, cells], np.zeros(len(rows))),
            _beside(widths[:, cells], np.full(len(rows), own_width)),
            _beside(np.zeros_like(is_own), np.ones(len(rows), dtype=bool)),
        )
        if not columns[0].is_category:
            numbers = _beside(np.broadcast_to(there[:, :, 0], is_own.shape), here[:, 0, 0])
            order = np.argsort(numbers, axis=1, kind="stable")
            part = tuple(np.take_along_axis(held, order, axis=1) for held in part)
        parts.append(part)
    kept, values, change, half, own = (np.concatenate(held, axis=1) for held in zip(*parts, strict=True))
    names = np.repeat(np.array(ground.units.names, dtype=object), shown.sizes + 1)
    labels, row = found.index[rows], np.nonzero(kept)[0]
    start = found.local_predictions.to_numpy()[rows][row]
    beyond, half = start + change[kept], half[kept]
    output = within(beyond)
    return pd.DataFrame(
        {
            "row": (labels.to_flat_index() if isinstance(labels, pd.MultiIndex) else labels)[row],
            "column": np.tile(names, (len(rows), 1))[kept],
            "value": values[kept].tolist(),  # numbers alone become a column of numbers
            "output": output,
            "low": within(beyond - half),
            "high": within(beyond + half),
            "change": change[kept] + (output - beyond),  # nothing, unless the output was kept within its range
            "own": own[kept],
        }
    )


def _beside(shown: np.ndarray, own: np.ndarray) -> np.ndarray:
    """What holds for the values shown, then for the row's own: (rows, values + 1)."""
    return np.concatenate([shown, own[:, None]], axis=1)


def _cells(columns: list[Column], frame: pd.DataFrame) -> np.ndarray:
    """Values as the table has them; of several columns, in words: (rows,) objects."""
    cells: list[Any] = []
    if len(columns) == 1 and not columns[0].is_group:
        cells = frame[columns[0].sources[0]].tolist()
    else:
        raw = zip(*(frame[source].tolist() for column in columns for source in column.sources), strict=True)
        said: dict[Any, str] = {}  # many rows share few values, and words take long
        for row, key in enumerate(raw):
            if key not in said:
                said[key] = " / ".join(column.show(frame, row) for column in columns)
            cells.append(said[key])
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


def curve_dicts(one: Explanation) -> list[dict[str, Any]]:
    """All curves as JSON-ready data: a column, and what would be said with each of its values."""
    found = curve_frame(one.all, [one.row]).groupby("column", sort=False)
    return [{"column": str(name), "values": _values(curve)} for name, curve in found]


def _values(curve: pd.DataFrame) -> list[dict[str, Any]]:
    parts = (curve[name].tolist() for name in ("value", "output", "low", "high", "own"))
    return [
        {
            "value": None if is_missing(value) else plain(value),
            "output": output,
            "low": _known(low),
            "high": _known(high),
            "own": own,
        }
        for value, output, low, high, own in zip(*parts, strict=True)
    ]


def _known(end: float) -> float | None:
    return end if np.isfinite(end) else None
