"""The explained row above the training rows that speak for it, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limis.errors import InputError
from limis.explanation import Explanation
from limis.plots.shared import (
    LEVEL,
    RAISES,
    axes_or_new,
    line_below,
    one_row,
    plain,
    room,
    row_name,
    scale_words,
    without_frame,
)
from limis.report.card import Amount, Line, training_lines
from limis.report.words import Numbers, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS, LEAST_COLUMNS = 7, 2
LEAST_SCALE = 0.7  # of the letters; in axes too narrow for them columns are left out
LONGEST_CELL = 20
LETTER = 0.085  # inches, about, at the size that letters have where there is room
LINE = 0.3  # inches
GAP = 2  # letters between columns
DIFFERS = "\N{NOT EQUAL TO} "


def plot_training_rows(explanation: Explanation, k: int = 8, ax: Axes | None = None) -> Axes:
    """Draw a table of the explained row and of the training rows that count most for it.

    A value unlike the explained row's is bold and begins with ≠. The columns with the largest contributions are shown;
    where contributions have no meaning, those that set the neighbourhood apart most. In narrow axes there are fewer.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    k : int, default=8
        How many training rows to show.
    ax : matplotlib axes, default=None
        Where to draw it; new axes are made when none are given.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.
    """
    one = one_row(explanation, "plot_training_rows")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f"k is how many training rows to show, a whole number from 1 on, not {k!r}")
    columns, numbers = _columns(one), Numbers.of(one.all.training)
    lines = training_lines(one, columns, numbers, int(k))
    cells, marked = _cells(one, columns, lines)
    if ax is None:
        ax = axes_or_new(ax, max(6.0, LETTER * sum(_widths(cells))), 1.0 + LINE * len(cells))
    else:
        while len(columns) > LEAST_COLUMNS and 72 * LETTER * sum(_widths(cells)) > room(ax)[0] / LEAST_SCALE:
            columns = columns[:-1]
            cells, marked = _cells(one, columns, training_lines(one, columns, numbers, int(k)))
    ax.set_title(f"{row_name(one)} and the training rows that speak for it", loc="left")
    more = len(one.all.training.table.columns) - len(columns)
    told = [f"output: {scale_words(one.all)}"] if one.all.training.black_box.is_classifier else []
    told += [f"{DIFFERS}unlike this row"]
    told += [f"not shown: {count(more, 'other column', 'other columns')}"] if more else []
    if len(lines) == 1:
        told = ["no training row has weight here: this is the global model"]
    line_below(ax, "; ".join(told))
    without_frame(ax)
    _draw(ax, cells, marked)
    return ax


def _columns(one: Explanation) -> list[str]:
    """The columns worth comparing, most telling first."""
    if one.all.fits.has_contributions:
        return [name for reason in one.reasons() for name in reason.columns][:MOST_COLUMNS]
    names = one.neighbourhood()["column"].tolist() or one.all.training.table.names
    return names[:MOST_COLUMNS]


def _cells(one: Explanation, columns: list[str], lines: list[Line]) -> tuple[list[list[str]], list[list[bool]]]:
    """The words of the table, its head first, and which of them are unlike the explained row's."""
    labels = ["this row", *map(str, one.all.training.frame.index[one.weights.index[: len(lines) - 1]])]
    cells = [["row", "weight", "output", *(plain(name, LONGEST_CELL) for name in columns)]]
    marked = [[False] * len(cells[0])]
    for label, line in zip(labels, lines, strict=True):
        values = [
            (DIFFERS if differs else "") + plain(value, LONGEST_CELL)
            for value, differs in zip(line.values, line.differs, strict=True)
        ]
        cells.append([plain(label, LONGEST_CELL), line.weight, _output(line.output), *values])
        marked.append([False, False, False, *line.differs])
    return cells, marked


def _output(amount: Amount | None) -> str:
    if amount is None:
        return "not known"
    return amount.number if amount.probability is None else f"{amount.number} ({amount.probability})"


def _widths(cells: list[list[str]]) -> list[int]:
    """How many letters each column has room for."""
    return [max(map(len, column)) + GAP for column in zip(*cells, strict=True)]


def _draw(ax: Axes, cells: list[list[str]], marked: list[list[bool]]) -> None:
    """Words in columns as wide as their longest; letters are smaller where the axes are."""
    widths = _widths(cells)
    width, height = room(ax)
    # Letters that fit the width, and lines that fit the height.
    scale = min(1.0, width / (72 * LETTER * sum(widths)), height / (72 * 0.7 * LINE * len(cells)))
    letters = max(3.5, 10 * scale)
    starts = np.cumsum([0, *widths[:-1]])
    ax.set_xlim(0, sum(widths))
    ax.set_ylim(len(cells) - 0.5, -0.5)
    ax.axhspan(0.5, 1.5, color=RAISES, alpha=0.15, linewidth=0)
    ax.axhline(0.5, color=LEVEL, linewidth=0.8)
    for place, (line, signs) in enumerate(zip(cells, marked, strict=True)):
        for start, words, differs in zip(starts, line, signs, strict=True):
            weight = "bold" if differs or place == 0 else "normal"
            ax.text(start, place, words, va="center", ha="left", fontsize=letters, fontweight=weight)
