"""Reading curves: which values, and what the model would say with each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from limis.columns import Column
from limis.curves.model import CurveFits

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
    lines: list[dict[str, Any]] = []
    for unit, members in enumerate(ground.units.members):
        columns = [training.table.columns[j] for j in members]
        values = np.vstack([shown.values[unit], here[members]])
        cells_shown = slice(shown.starts[unit], shown.starts[unit + 1])
        said, half = np.append(changes[cells_shown], 0.0), np.append(widths[cells_shown], 0.0)
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
    output = one.local_prediction + found["change"]
    found.insert(3, "output", output)
    found.insert(4, "low", output - found["half"])
    found.insert(5, "high", output + found["half"])
    return found.drop(columns="half")


def _cell(columns: list[Column], frame: pd.DataFrame, row: int) -> Any:
    """A value as the table has it; of several columns, in words."""
    if len(columns) == 1 and not columns[0].is_group:
        return frame[columns[0].sources[0]].iloc[row]
    return " / ".join(column.show(frame, row) for column in columns)
