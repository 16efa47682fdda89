"""The coefficients of one row, on a scale on which they can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limis.columns import Column
from limis.errors import InputError
from limis.explanation import Explanation
from limis.local_view import FIXED, UNKNOWN_HERE
from limis.plots.shared import (
    LEVEL,
    LONGEST_NAME,
    LOWERS,
    RAISES,
    axes_or_new,
    line_below,
    one_row,
    only_floor,
    plain,
    row_name,
    scale_words,
)
from limis.report.words import MINUS, count, shorten_condition

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 12


@dataclass
class _Line:
    """One feature: what it is called, and its coefficient on the scale of the drawing and in original units."""

    name: str
    effect: float  # NaN: not known
    said: str
    is_held: bool  # by the row: a number, a jump it is past, its own level


def plot_coefficients(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the coefficients of one row, the largest effects first.

    Slopes in different units cannot be compared, so a number's coefficient is drawn as the effect of one standard
    deviation of the training rows, which stands beside its name. A level's is drawn as it is. The coefficients
    in original units stand at the right.

    Parameters
    ----------
    explanation : Explanation
        What to draw; its local model must have coefficients.
    ax : matplotlib axes, default=None
        Where to draw it; new axes are made when none are given.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.
    """
    one = one_row(explanation, "plot_coefficients")
    if not one.all.fits.has_coefficients:
        cure = "draw what it rests on: plot_training_rows"
        if one.all.fits.has_rules or one.all.fits.has_curves:
            cure = "draw its tree: plot_tree" if one.all.fits.has_rules else "draw its curves: plot_curves"
        raise InputError(f"this local model has no coefficients; {cure}")
    known, others_unknown = _lines(one)
    unknown = _unknown_values(one)[: MOST // 2]
    shown = known[: MOST - len(unknown)] + unknown
    ax = axes_or_new(ax, 9, 1.6 + 0.34 * len(shown))
    ax.axvline(0, color=LEVEL, linewidth=0.8, zorder=0)
    for place, line in enumerate(shown):
        _draw(ax, place, line)
    # What is at zero throughout still needs room around it.
    reach = max([abs(line.effect) for line in shown if np.isfinite(line.effect)] or [0.0])
    ax.set_xlim(-1.08 * (reach or 1.0), 1.08 * (reach or 1.0))
    ax.set_yticks(range(len(shown)), [line.name for line in shown])
    for label, line in zip(ax.get_yticklabels(), shown, strict=True):
        label.set_fontweight("bold" if line.is_held else "normal")
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlabel(f"effect on the {scale_words(one.all)}")
    smaller = len(known) + len(unknown) - len(shown)
    left_out = [count(smaller, "smaller coefficient", "smaller coefficients")] if smaller else []
    left_out += [f"{count(others_unknown, 'level', 'levels')} {UNKNOWN_HERE}"] if others_unknown else []
    line_below(ax, "bold: what this row has" + (f"; not drawn: {', '.join(left_out)}" if left_out else ""))
    ax.set_title(f"{row_name(one)}: coefficients", loc="left")
    only_floor(ax)
    return ax


def _lines(one: Explanation) -> tuple[list[_Line], int]:
    """The features with a coefficient, largest effect first, and how many levels the row does not hold have none."""
    training, status = one.all.training, one.status
    table = training.table
    coefficients = one.coefficients.to_numpy()
    # One standard deviation of a number, in original units; a level is there or not.
    steps = np.where(table.is_level, 1.0, training.feature_deviation * table.feature_scale)
    held = one.all.fits.features[one.row] > 0
    found = []
    for place, (name, level) in enumerate(table.feature_names):
        value, step = float(coefficients[place]), float(steps[place])
        if np.isnan(value):
            continue
        j = int(table.feature_column[place])
        column, is_level, state = table.columns[j], bool(table.is_level[place]), str(status[name])
        words = name if not level else f"{name} {level}" if table.is_jump[place] else f"{name} = {level}"
        told = plain(shorten_condition(words, name, LONGEST_NAME))
        told += f", per {_amount(column, step)}" if not is_level and step > 0 else ""
        told += f" ({state})" if state == FIXED or (state and not column.is_category) else ""
        is_held = bool(held[place]) if is_level else not np.isnan(one.all.values[one.row, j])
        if state and value * step == 0:
            # A zero beside "fixed here" would read as "no effect", which nobody has seen.
            found.append(_Line(told, np.nan, "effect not seen", is_held))
            continue
        found.append(_Line(told, value * step, _signed(value), is_held))
    found.sort(key=lambda line: -abs(np.nan_to_num(line.effect)))
    return found, int((np.isnan(coefficients) & ~held).sum())


def _unknown_values(one: Explanation) -> list[_Line]:
    """The row's own values that have no coefficient, since nothing it rests on has them."""
    found = []
    for column, value in zip(one.all.training.table.columns, one.all.values[one.row], strict=True):
        name = column.name
        if one.status[name] == UNKNOWN_HERE and (column.is_category or np.isnan(value)):
            words = plain(shorten_condition(f"{name} = {one.values[name]}", name, LONGEST_NAME))
            found.append(_Line(words, np.nan, UNKNOWN_HERE, is_held=True))
    return found


def _amount(column: Column, step: float) -> str:
    """One standard deviation in the units of its column."""
    if column.kind == "duration":
        return column.show_mean(step)
    text = f"{step:,.3g}" if step < 1e6 else f"{step:.3g}"
    return text if column.kind == "number" else f"{text} days"


def _signed(value: float) -> str:
    """Three digits with a sign: coefficients in original units differ by orders of magnitude."""
    return "0" if value == 0 else f"{value:+#.3g}".rstrip(".").replace("-", MINUS)


def _draw(ax: Axes, place: int, line: _Line) -> None:
    """A coefficient as a point, full where it raises and hollow where it lowers."""
    right = ax.get_yaxis_transform()
    if np.isnan(line.effect):
        ax.text(1.02, place, line.said, transform=right, va="center", ha="left", fontsize="small")
        return
    colour = RAISES if line.effect >= 0 else LOWERS
    face = colour if line.effect >= 0 else ax.get_facecolor()
    ax.plot([line.effect], [place], marker="o", color=colour, markerfacecolor=face, linestyle="none", zorder=2)
    ax.text(1.02, place, line.said, transform=right, va="center", ha="left", fontsize="small")
