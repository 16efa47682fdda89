"""The local tree of one row, drawn from left to right with the row's own way through it."""

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
    with_chance,
    without_frame,
)
from limis.report.tree import LINE, Branch, Drawing, draw
from limis.report.words import Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INCHES = 1 / 88  # of a unit of the drawing
LETTERS = 11.5  # points of a letter in a drawing of 72 units to the inch
LEAST_LETTERS, READABLE_LETTERS, MOST_LETTERS = 4.0, 7.5, 10.0
SHORTER = (34, 26)  # letters of a condition, in axes that have no room for readable ones otherwise


def plot_tree(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the tree of one row: the row's own way thick and bold, and what the tree says at every leaf.

    Parameters
    ----------
    explanation : Explanation
        What to draw; its local model must be a tree (``surrogate="tree"``).
    ax : matplotlib axes, default=None
        Where to draw it; new axes, as wide as the conditions need, are made when none are given. In narrower axes
        names are cut and letters are smaller.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.
    """
    one = one_row(explanation, "plot_tree")
    if not one.all.fits.has_rules:
        raise InputError(
            'this local model is no tree; fit the explainer with surrogate="tree", or draw the model as it is: '
            "plot_contributions"
        )
    numbers = Numbers.of(one.all.training)
    drawing = draw(one, numbers)
    ax = axes_or_new(ax, max(5.0, INCHES * drawing.width), 0.9 + INCHES * drawing.height)
    without_frame(ax)
    ax.set_title(f"{row_name(one)}: the local tree's {scale_words(one.all)}", loc="left")
    black_box = "" if one.all.outputs is None else f"; black box {with_chance(one.all, numbers, one.model_output)}"
    line_below(ax, f"thick: this row's way{black_box}")
    for longest in SHORTER:
        if _letters(ax, drawing) >= READABLE_LETTERS:
            break
        drawing = draw(one, numbers, longest)
    letters = _letters(ax, drawing)
    ax.set_xlim(0, drawing.width)
    ax.set_ylim(drawing.height, 0)
    for branch in drawing.branches:
        _draw_branch(ax, branch, letters)
    for answer in drawing.answers:
        weight = "bold" if answer.on_path else "normal"
        ax.text(answer.x + 6, answer.y, answer.words, va="center", ha="left", fontsize=letters, fontweight=weight)
    return ax


def _letters(ax: Axes, drawing: Drawing) -> float:
    """The size of letters, in points, that the axes have room for."""
    width, height = room(ax)
    a_unit = min(width / drawing.width, 1.2 * height / drawing.height)
    return float(np.clip(LETTERS * a_unit, LEAST_LETTERS, MOST_LETTERS))


def _draw_branch(ax: Axes, branch: Branch, letters: float) -> None:
    """A branch as a smooth step and a straight line, with its condition above."""
    (x, y), (bend, level), (end, _) = branch.start, branch.bend, branch.end
    way = np.linspace(0, 1, 20)
    smooth = way**2 * (3 - 2 * way)
    ax.plot(
        np.append(x + (bend - x) * way, end),
        np.append(y + (level - y) * smooth, level),
        color=RAISES if branch.on_path else LEVEL,
        linewidth=2.5 if branch.on_path else 1.0,
        zorder=2 if branch.on_path else 1,
        solid_capstyle="round",
    )
    weight = "bold" if branch.on_path else "normal"
    words = plain(branch.words)
    ax.text(branch.x, level - 0.1 * LINE, words, va="bottom", ha="left", fontsize=letters, fontweight=weight)
