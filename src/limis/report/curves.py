"""What curves tell a reader: what other values would lead to, which pairs matter, and small drawings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from limis.columns import MISSING, Column
from limis.curves.model import CurveFits
from limis.explanation import Explanation
from limis.local_view import Reason
from limis.report.words import Numbers, is_zero, shorten

MOST_WHAT_IFS, MOST_PAIRS, MOST_DRAWN, MOST_LEVELS = 4, 3, 3, 6
PAIR_SHARE = 0.05  # of the outputs' standard deviation: what less a pair does together is not told
# Sizes of a drawing: all of it, around what is drawn, and of a level's line and its name.
WIDTH, HEIGHT = 260, 132
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 22
LEVEL, NAMES, LETTERS = 17, 112, 15
GAP = 24  # beside numbers, for missing values
SEEN = 0.7  # how far a line may leave its way without being seen to

Say = Callable[[float], str]  # an output in words


@dataclass
class WhatIf:
    """What the model would say with another value of one column; without an interval where that is not known."""

    column: str
    value: str
    own: str
    said: str
    ends: str

    def __str__(self) -> str:
        ends = f" ({self.ends})" if self.ends else ""
        return f"with {self.column} {self.value} instead of {self.own} it would say {self.said}{ends}"


@dataclass
class Drawing:
    """One curve, placed: a line and its band of a number, dots of levels; a ring is the row's own value.

    Lines and dots are paths as SVG has them.
    """

    column: str
    told: str  # for those who hear the drawing
    height: int
    is_levels: bool
    outputs: list[tuple[int, str]]  # where the least and the most stand, and what they are
    own: tuple[int, int]
    ends: list[tuple[int, str]] = field(default_factory=list)  # of numbers: the first and the last, and those missing
    names: list[tuple[int, str, bool]] = field(default_factory=list)  # of levels: height, name, whether it is the own
    line: str = ""
    band: str = ""
    whiskers: str = ""
    dots: str = ""


@dataclass
class Curve:
    """The curve of one unit with its values in words and, of numbers, as numbers."""

    name: str
    columns: frozenset[str]
    frame: pd.DataFrame
    words: list[str]
    places: np.ndarray | None  # (values,) NaN where missing; None: levels
    own: int

    @property
    def reach(self) -> float:
        """How far the values shown could move the output."""
        return float(self.frame["change"].abs().max())


def curves_of(one: Explanation) -> list[Curve]:
    """All curves of a row."""
    fits = one.all.fits
    assert isinstance(fits, CurveFits)
    units, columns = fits.ground.units, one.all.training.table.columns
    by_name = {name: [columns[j] for j in members] for name, members in zip(units.names, units.members, strict=True)}
    found = one.curve_frame().groupby("column", sort=False)
    return [_curve(str(name), frame.reset_index(drop=True), by_name[str(name)]) for name, frame in found]


def _curve(name: str, frame: pd.DataFrame, columns: list[Column]) -> Curve:
    members, own = frozenset(column.name for column in columns), int(frame["own"].to_numpy().argmax())
    column = columns[0]
    if len(columns) > 1 or column.is_group:  # already in words
        return Curve(name, members, frame, [str(value) for value in frame["value"]], None, own)
    cells = pd.DataFrame({column.sources[0]: frame["value"].to_numpy()})
    words = [column.show(cells, row) for row in range(len(cells))]
    for row, word in enumerate(words):
        if word == words[own] and row != own:  # more digits, where fewer would hide the difference
            words[row] = column.show_apart(cells, own, cells, row)[1]
    return Curve(name, members, frame, words, None if column.is_category else column.values(cells), own)


def what_ifs(curves: list[Curve], numbers: Numbers, say: Say, most: int = MOST_WHAT_IFS) -> list[WhatIf]:
    """Of the columns whose curves reach furthest, the value at which each does."""
    told = []
    for curve in sorted(curves, key=lambda one: -one.reach)[:most]:
        at = int(curve.frame["change"].abs().to_numpy().argmax())
        line = curve.frame.iloc[at]
        if is_zero(numbers.show(line["change"])):
            continue
        known = np.isfinite([line["low"], line["high"]]).all()
        ends = f"{say(line['low'])} to {say(line['high'])}" if known else ""
        told.append(WhatIf(curve.name, curve.words[at], curve.words[curve.own], say(line["output"]), ends))
    return told


def pairs_told(one: Explanation, numbers: Numbers, most: int = MOST_PAIRS) -> list[tuple[str, str, str]]:
    """The pairs that visibly do something only together: both names, and how much with its sign."""
    least = PAIR_SHARE * one.all.training.output_deviation
    found = one.interactions
    lines = zip(*(found[name].tolist() for name in ("first", "second", "value")), strict=True)
    told = [(first, second, numbers.signed(value)) for first, second, value in lines if abs(value) >= least]
    return [line for line in told[:most] if not is_zero(line[2])]


def drawings(curves: list[Curve], reasons: list[Reason], numbers: Numbers, say: Say) -> list[Drawing]:
    """The curves of the columns that do most for the row, all on one scale of outputs."""
    # A reason may be of several curves' columns, or of some of one's.
    sizes = {
        curve.columns: sum(abs(reason.contribution) for reason in reasons if curve.columns & set(reason.columns))
        for curve in curves
    }
    moving = [curve for curve in curves if not is_zero(numbers.show(curve.reach))]
    drawn = sorted(moving, key=lambda curve: (-sizes[curve.columns], -curve.reach))[:MOST_DRAWN]
    if not drawn:
        return []
    ends = np.concatenate([curve.frame[["output", "low", "high"]].to_numpy(dtype=float).ravel() for curve in drawn])
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    return [_draw(curve, low, high, say) for curve in drawn]


def _draw(curve: Curve, low: float, high: float, say: Say) -> Drawing:
    said = curve.frame["output"]
    least, most = int(said.to_numpy().argmin()), int(said.to_numpy().argmax())
    told = (
        f"{curve.words[curve.own]}, as in this row: {say(said[curve.own])}. "
        f"Least with {curve.words[least]}: {say(said[least])}; most with {curve.words[most]}: {say(said[most])}."
    )
    draw = _draw_levels if curve.places is None else _draw_number
    return draw(curve, (low, high), told, say)


def _draw_number(curve: Curve, ends: tuple[float, float], told: str, say: Say) -> Drawing:
    assert curve.places is not None
    known = np.isfinite(curve.places)
    right = WIDTH - RIGHT - (0 if known.all() else GAP)
    across, up = _scale(curve.places[known], LEFT, right), _scale(np.array(ends), HEIGHT - BOTTOM, TOP)
    x = np.array([across(place) if np.isfinite(place) else right + GAP for place in curve.places])
    y, low, high = (np.array([up(end) for end in curve.frame[name]]) for name in ("output", "low", "high"))
    own = (round(x[curve.own]), round(y[curve.own]))
    drawing = Drawing(curve.name, told, HEIGHT, False, [(round(up(end)), say(end)) for end in ends], own)
    if known.any():
        drawing.line = _path(x[known], y[known])
        sure = known & np.isfinite(low) & np.isfinite(high)
        if sure.sum() > 1:
            above = _path(x[sure][::-1], high[sure][::-1])
            drawing.band = f"{_path(x[sure], low[sure])}L{above.removeprefix('M')}Z"
        first, last = np.flatnonzero(known)[[0, -1]].tolist()
        drawing.ends = [(LEFT, curve.words[first]), (right, curve.words[last])][: 1 + (last > first)]
    for place in np.flatnonzero(~known).tolist():
        drawing.ends.append((WIDTH, MISSING))
        _add_dot(drawing, place == curve.own, (x[place], y[place]), (x[place], low[place]), (x[place], high[place]))
    return drawing


def _draw_levels(curve: Curve, ends: tuple[float, float], told: str, say: Say) -> Drawing:
    order = np.argsort(-curve.frame["output"].to_numpy(), kind="stable").tolist()
    if len(order) > MOST_LEVELS:  # the ends, and the row's own
        inner = order[MOST_LEVELS // 2 : -(MOST_LEVELS // 2)]
        order = [place for place in order if place not in inner or place == curve.own]
    across = _scale(np.array(ends), NAMES, WIDTH - RIGHT)
    own = (round(across(float(curve.frame["output"][curve.own]))), TOP + LEVEL * order.index(curve.own) + LEVEL // 2)
    height = TOP + LEVEL * len(order) + BOTTOM
    drawing = Drawing(curve.name, told, height, True, [(round(across(end)), say(end)) for end in ends], own)
    for rank, place in enumerate(order):
        x, low, high = (across(float(curve.frame[name][place])) for name in ("output", "low", "high"))
        y = TOP + LEVEL * rank + LEVEL // 2
        drawing.names.append((y + 4, shorten(curve.words[place], LETTERS), place == curve.own))
        _add_dot(drawing, place == curve.own, (x, y), (low, y), (high, y))
    return drawing


def _add_dot(
    drawing: Drawing, own: bool, at: tuple[float, float], low: tuple[float, float], high: tuple[float, float]
) -> None:
    """A dot with its interval; the row's own value has a mark of its own, and no interval."""
    if own:
        return
    drawing.dots += f"M{at[0]:.0f} {at[1]:.0f}h0"
    if np.isfinite([*low, *high]).all():
        drawing.whiskers += f"M{low[0]:.0f} {low[1]:.0f}L{high[0]:.0f} {high[1]:.0f}"


def _scale(values: np.ndarray, start: float, stop: float) -> Callable[[float], float]:
    """From values to places in a drawing; all are in the middle where they are one."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if not 0 < high - low < np.inf:
        return lambda value: (start + stop) / 2 if np.isfinite(value) else np.nan
    return lambda value: start + (stop - start) * (value - low) / (high - low)


def _path(x: np.ndarray, y: np.ndarray) -> str:
    kept = _bends(x, y)
    return "M" + "L".join(f"{one:.0f} {other:.0f}" for one, other in zip(x[kept], y[kept], strict=True))


def _bends(x: np.ndarray, y: np.ndarray) -> list[int]:
    """The points without which a line would look different: both ends, and where it leaves the way between them."""
    if len(x) < 3:
        return list(range(len(x)))
    way = np.linspace(y[0], y[-1], len(y)) if x[0] == x[-1] else y[0] + (y[-1] - y[0]) * (x - x[0]) / (x[-1] - x[0])
    off = np.abs(y - way)
    furthest = int(off[1:-1].argmax()) + 1
    if off[furthest] <= SEEN:
        return [0, len(x) - 1]
    left, right = _bends(x[: furthest + 1], y[: furthest + 1]), _bends(x[furthest:], y[furthest:])
    return left + [furthest + place for place in right[1:]]
