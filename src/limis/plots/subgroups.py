"""Groups of rows as a heat map: a line a group, a column a column of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.errors import require
from limis.plots.shared import plain
from limis.report.words import shorten
from limis.subgroups import Subgroups

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From light to dark without a turn, so that a grey print keeps the order.
COLOURS = "YlGnBu"
UNKNOWN = "#e6e9ec"
MOST_COLUMNS = 20
LONGEST_GROUP, LONGEST_COLUMN = 40, 20
CELL_WIDTH, CELL_HEIGHT = 0.52, 0.3  # inches
LEAST_HEIGHT = 3.2  # that the label of the colours takes
_NUMBER_WIDTH, _NUMBER_HEIGHT = 0.36, 0.16  # that four digits take
LABELS = {
    "coefficients": "mean |coefficient|,\ncolumns scaled to [0, 1]",
    "contributions": "mean |contribution|",
}


def plot_subgroups(found: Subgroups, ax: Axes | None = None) -> Axes:
    """Draw how much each column weighs in each group.

    Parameters
    ----------
    found : Subgroups
        What to draw.
    ax : matplotlib axes, default=None
        Where to draw it; new axes are made when none are given.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.

    Notes
    -----
    Of more than 20 columns the heaviest are drawn. Colours follow the square root of the weight, so that one heavy
    column does not bleach all others; cells in grey are not known.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from limis import LimisExplainer
    >>> from limis.subgroups import subgroups
    >>> X = pd.DataFrame(np.random.default_rng(0).random((120, 2)), columns=["a", "b"])
    >>> explained = LimisExplainer(lambda rows: rows["a"], weighting="forest").fit(X).explain(X[:20])
    >>> ax = subgroups(explained, "b").plot()
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['a', 'b']
    """
    values, left_out = heaviest(found.values)
    if ax is None:
        plt = require("matplotlib.pyplot", "plots")
        _, ax = plt.subplots(figsize=size_for(values), layout="constrained")
    names = [with_size(str(group), int(n)) for group, n in found.sizes.items()]
    heatmap(ax, values, names, norm_for(values))
    label = LABELS[found.measure]
    ax.figure.colorbar(ax.images[0], ax=ax, label=label, fraction=0.05, pad=0.02)
    if left_out:
        ax.set_xlabel(f"{left_out} lighter columns are left out")
    return ax


def heaviest(values: pd.DataFrame, most: int = MOST_COLUMNS) -> tuple[pd.DataFrame, int]:
    """The columns that weigh most in any group, in their order, and how many others there are."""
    if values.shape[1] <= most:
        return values, 0
    kept = values.max().nlargest(most).index
    return values.loc[:, values.columns.isin(kept)], values.shape[1] - most


def size_for(values: pd.DataFrame) -> tuple[float, float]:
    """A figure in which numbers fit into the cells."""
    return 4.4 + CELL_WIDTH * values.shape[1], max(LEAST_HEIGHT, 1.6 + CELL_HEIGHT * len(values))


def norm_for(values: pd.DataFrame) -> Any:
    """Colours by the square root, from zero to the largest of all values."""
    largest = float(np.nanmax(values.to_numpy(), initial=0.0))
    return require("matplotlib.colors", "plots").PowerNorm(0.5, 0.0, largest or 1.0)


def with_size(group: str, n: int) -> str:
    """A group's name with its number of rows."""
    return f"{shorten(group, LONGEST_GROUP)} ({n:,})"


def heatmap(ax: Axes, values: pd.DataFrame, names: Sequence[str], norm: Any, *, column_names: bool = True) -> None:
    """Cells with their numbers where they fit, groups at the left, columns below."""
    cells = np.ma.masked_invalid(values.to_numpy(dtype=float))
    colours = require("matplotlib", "plots").colormaps[COLOURS].with_extremes(bad=UNKNOWN)
    ax.imshow(cells, aspect="auto", cmap=colours, norm=norm)
    ax.set_yticks(range(len(values)), [plain(name) for name in names])
    columns = [plain(str(name), LONGEST_COLUMN) for name in values] if column_names else []
    ax.set_xticks(range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if _numbers_fit(ax, values):
        _write_numbers(ax, cells, norm)


def _numbers_fit(ax: Axes, values: pd.DataFrame) -> bool:
    box = ax.get_window_extent()
    dpi = ax.figure.get_dpi()
    n_groups, n_columns = values.shape
    return box.width / dpi / n_columns >= _NUMBER_WIDTH and box.height / dpi / n_groups >= _NUMBER_HEIGHT


def _write_numbers(ax: Axes, cells: np.ma.MaskedArray, norm: Any) -> None:
    for (line, column), value in np.ma.ndenumerate(cells):
        dark = norm(value) > 0.55
        ax.text(
            column,
            line,
            _short(float(value), norm.vmax),
            ha="center",
            va="center",
            fontsize=7,
            color="white" if dark else "black",
        )


def _short(value: float, largest: float) -> str:
    """At most four characters for the usual sizes; a power of ten where all are small or this one is huge.

    Examples
    --------
    >>> _short(0.001, 2.0), _short(0.001, 0.02), _short(12.34, 12.34), _short(123.4, 200.0), _short(4e7, 4e7)
    ('0.00', '1e-3', '12.3', '123', '4e7')
    """
    if value >= 9999.5 or (0 < value < 0.005 and largest < 0.1):
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.{max(0, 3 - len(str(int(value))))}f}"
