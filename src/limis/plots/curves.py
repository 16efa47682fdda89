"""The response curves of one row: what the model would say with other values of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.errors import InputError, require
from limis.explanation import Explanation
from limis.plots.shared import LEVEL, LONGEST_NAME, RAISES, one_row, plain, row_name, scale_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST, ACROSS = 6, 3
MOST_LEVELS = 12
LONGEST_LEVEL = 24


def plot_curves(explanation: Explanation, ax: Axes | None = None, *, column: str | None = None) -> Any:
    """Draw what the model would say of a row with other values of its columns, one changed at a time.

    Numbers are lines with a mark at the values that were looked at; categories are marks beside their levels. A ring
    is the row as it is; intervals that hold for 95% of changes are shaded, or lines through the marks.

    Parameters
    ----------
    explanation : Explanation
        What to draw; its local model must be curves.
    ax : matplotlib axes, default=None
        Where to draw one curve. Without axes the columns that could move the output most are drawn beside each other.
    column : str, default=None
        Which one; the column that could move the output most where not given.

    Returns
    -------
    matplotlib axes
        Or an array of them, where several were made. They are never shown: that is the caller's to do.
    """
    one = one_row(explanation, "plot_curves")
    if not one.all.fits.has_curves:
        raise InputError('this local model is no curves; fit with surrogate="curves"')
    found = one.curve_frame()
    names = _leading(found)
    if column is not None:
        one.curve(column)  # says what there is, where this is not
        names = [str(column)]
    if ax is not None:
        _draw(one, found[found["column"] == names[0]], ax)
        ax.set_title(f"{row_name(one)}: {plain(names[0], LONGEST_NAME)}", loc="left")
        return ax
    names = names[:MOST]
    plt = require("matplotlib.pyplot", "plots")
    across = min(ACROSS, len(names))
    down = -(-len(names) // across)
    figure, axes = plt.subplots(
        down, across, figsize=(3.6 * across, 0.5 + 2.7 * down), layout="constrained", squeeze=False, sharey=True
    )
    for place, one_axes in enumerate(axes.ravel()):
        if place >= len(names):
            one_axes.set_visible(False)
            continue
        _draw(one, found[found["column"] == names[place]], one_axes)
    for line in axes:
        line[0].set_ylabel(scale_words(one.all))
    figure.suptitle(f"{row_name(one)}: what the model would say with other values", x=0.01, ha="left")
    return axes if len(names) > 1 else axes[0, 0]


def _leading(found: pd.DataFrame) -> list[str]:
    """The columns by how far their curves reach."""
    reach = found.groupby("column", sort=False)["change"].agg(np.ptp)
    return [str(name) for name in reach.sort_values(ascending=False, kind="stable").index]


def _draw(one: Explanation, curve: pd.DataFrame, ax: Axes) -> None:
    """One curve; the row's own value is ringed."""
    name = str(curve["column"].iloc[0])
    ax.axhline(one.local_prediction, color=LEVEL, linewidth=0.8, linestyle=":")
    known = {column.name: column for column in one.all.training.table.columns}
    is_number = name in known and known[name].kind == "number"
    if is_number:
        places = pd.to_numeric(curve["value"], errors="coerce").to_numpy(dtype=float)
        missing = np.isnan(places)
        known = curve[~missing]
        ax.fill_between(places[~missing], known["low"], known["high"], color=RAISES, alpha=0.15, linewidth=0)
        ax.plot(places[~missing], curve["output"][~missing], color=RAISES, marker=".", markersize=4, linewidth=1.2)
        if missing.any():  # beside the numbers
            width = np.ptp(places[~missing]) if (~missing).any() else 1.0
            at = (places[~missing].min() if (~missing).any() else 0.0) - 0.12 * (width or 1.0)
            places = np.where(missing, at, places)
            ax.plot(places[missing], curve["output"][missing], color=RAISES, marker="s", linestyle="none")
            ax.annotate("missing", (at, curve["output"][missing].iloc[0]), fontsize="x-small")
    else:
        order = curve["output"].argsort(kind="stable")
        kept = curve.iloc[order]
        if len(kept) > MOST_LEVELS:  # the ends, and the row's own
            inner = kept.iloc[MOST_LEVELS // 2 : -(MOST_LEVELS // 2)]
            kept = kept.drop(inner.index[~inner["own"].to_numpy()])
        curve, places = kept, np.arange(len(kept), dtype=float)
        ax.vlines(places, curve["low"], curve["high"], color=RAISES, linewidth=1.2)
        ax.plot(places, curve["output"], color=RAISES, marker="o", markersize=4, linestyle="none")
        words = [plain(str(value), LONGEST_LEVEL) for value in curve["value"]]
        ax.set_xticks(places, words, rotation=35, ha="right", fontsize="x-small")
    own = curve["own"].to_numpy()
    ax.plot(
        places[own], curve["output"][own], marker="o", markersize=10, markerfacecolor="none", color="black",
        linestyle="none",
    )  # fmt: skip
    ax.set_xlabel(plain(name, LONGEST_NAME))
    ax.spines[["top", "right"]].set_visible(False)
