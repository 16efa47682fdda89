"""Reading curves: which values, and what the model would say with each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from limis.columns import Column
from limis.curves.model import CurveFits
from limis.kinds import is_missing, plain
from limis.perturb import MovedRows

if TYPE_CHECKING:
    from limis.explanation import Explanation


def curve_frame(one: Explanation) -> pd.DataFrame:
    """All curves of a row: row, column, value, output, its interval, change, and whether the value is the row's own.

    Numbers come in their order; the row's own value is among them.
    """
    fits, training = cast(CurveFits, one.all.fits), one.all.training
    ground, here = fits.ground, fits.values[one.row]
    shown, changes = ground.shown, fits.curves(one.row)
    widths = fits.half_widths(one.row, changes)
    own_width = np.nan if fits.has_stand_in else 0.0  # the model itself was never asked
    lines: list[dict[str, Any]] = []
    for unit, members in enumerate(ground.units.members):
        columns = [training.table.columns[j] for j in members]
        values = np.vstack([shown.values[unit], here[members]])
        cells_shown = slice(shown.starts[unit], shown.starts[unit + 1])
        said, half = np.append(changes[cells_shown], 0.0), np.append(widths[cells_shown], own_width)
        cells = [_cell(columns, training.frame, int(donor)) for donor in shown.donors[unit]]
        cells.append(_cell(columns, one.all.frame, one.row))
        own = ((values == values[-1]) | (np.isnan(values) & np.isnan(values[-1]))).all(axis=1)
        kept = np.flatnonzero(~own)
        kept = np.append(kept, len(values) - 1)
        if not columns[0].is_category:
            kept = kept[np.argsort(values[kept, 0], kind="stable")]
        lines += [
            {
                "column": ground.units.names[unit],
                "value": cells[place],
                "change": said[place],
                "half": half[place],
                "own": bool(own[place]),
            }
            for place in kept
        ]
    found = pd.DataFrame(lines, columns=["column", "value", "change", "half", "own"])
    found.insert(0, "row", [one.label] * len(found))
    within = training.black_box.within
    output, half = (one.local_prediction + found["change"]).to_numpy(), found["half"].to_numpy()
    found.insert(3, "output", within(output))
    found.insert(4, "low", within(output - half))
    found.insert(5, "high", within(output + half))
    found["change"] += found["output"] - output  # nothing, unless the output was kept within its range
    return found.drop(columns="half")


def pair_names(one: Explanation) -> list[list[str]]:
    """The pairs of columns whose joint effect the local model carries."""
    ground = cast(CurveFits, one.all.fits).ground
    return [[ground.units.names[unit] for unit in pair] for pair in ground.pairs.tolist()]


def joint_effects(one: Explanation) -> list[float]:
    """Of each pair, what it adds on average to the two curves, in size, where both take a training row's values."""
    fits = cast(CurveFits, one.all.fits)
    reference = fits.ground.reference
    moved = MovedRows(fits.ground.table, reference)
    _, by_pair = fits.parts(np.full(len(reference), one.row), moved)
    return np.abs(by_pair).mean(axis=0).tolist()


def curve_dicts(one: Explanation) -> list[dict[str, Any]]:
    """All curves as JSON-ready data: a column, and what would be said with each of its values."""
    found = curve_frame(one).groupby("column", sort=False)
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


def _cell(columns: list[Column], frame: pd.DataFrame, row: int) -> Any:
    """A value as the table has it; of several columns, in words."""
    if len(columns) == 1 and not columns[0].is_group:
        return frame[columns[0].sources[0]].iloc[row]
    return " / ".join(column.show(frame, row) for column in columns)
