"""The drawings of an audit: where points, lines and words stand, for a template to place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from limis.fidelity.audit.sentences import BASELINES
from limis.report.audit_tables import QUINTILE, interval, kept_interval, range_words, skill
from limis.report.words import MINUS, percent

if TYPE_CHECKING:
    from limis.fidelity.audit.result import Audit

WIDTH, LEFT, RIGHT, TOP, TALL = 400.0, 46.0, 392.0, 26.0, 190.0
LINE = 15.0  # height of a line of words
CLIP = -1.0  # skill below is drawn here, with its value beneath
N_COLOURS = 8
DODGE = 9.0  # between points of different methods that stand at one place


@dataclass
class Point:
    """A value of one method at one place of the axis."""

    place: int
    value: float
    low: float
    high: float
    told: str


@dataclass
class Series:
    """All points of one method; ``style`` is its colour and shape, the same in all drawings."""

    name: str
    style: int
    points: list[Point]

    @property
    def colour(self) -> int:
        """One of the colours of the style sheet."""
        return self.style % N_COLOURS

    @property
    def sample(self) -> str:
        """The shape, for a key of the drawing."""
        return _shape(self.style, 12, 7)


@dataclass
class Scale:
    """The axis upwards."""

    low: float
    high: float
    ticks: Sequence[float]
    words: Callable[[float], str]
    rules: Sequence[float] = ()  # values that a dashed line goes through

    def y(self, value: float) -> float:
        """How far down a value stands; not beyond the ends."""
        return TOP + TALL * (self.high - min(max(value, self.low), self.high)) / (self.high - self.low)


@dataclass
class Mark:
    """A shape or line in the colour of a method."""

    path: str
    colour: int
    told: str = ""


@dataclass
class Below:
    """The value of a point that lies below the drawing."""

    shape: str
    colour: int
    x: float
    y: float
    words: str


@dataclass
class Panel:
    """One drawing with its axes."""

    title: str
    told: str
    axis: str
    places: list[tuple[float, str]]
    ticks: list[tuple[float, str, bool]]  # the last: whether it is zero
    rules: list[float]
    bottom: float
    lines: list[Mark] = field(default_factory=list)
    whiskers: list[Mark] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    clipped: list[Mark] = field(default_factory=list)
    below: list[Below] = field(default_factory=list)
    width: float = WIDTH
    left: float = LEFT
    right: float = RIGHT
    line: float = LINE

    @property
    def height(self) -> float:
        """With the words beneath."""
        return self.bottom + 2.6 * LINE


@dataclass
class Plot:
    """Panels that share a key and what is said of them."""

    heading: str
    note: str
    keys: list[Series]
    panels: list[Panel]
    promised: str = ""


def plots(audit: Audit) -> list[Plot]:
    """The drawings for which something is known."""
    return [plot for plot in (_of_changes(audit), _of_promises(audit), _of_reasons(audit)) if plot is not None]


# --- which values -----------------------------------------------------------------------------------------------------


def _of_changes(audit: Audit) -> Plot | None:
    """Skill against range."""
    note = (
        "Skill 1 is every change foreseen; the zero line is saying that nothing changes (so “nothing changes” has no "
        "line of its own), and below it a method is worse than that. Upright lines: 95% intervals over rows."
    )
    axis = "new value from so many nearest rows"
    return _of_skills(audit, "single", "Skill on single changes, by range", note, axis, joined=True)


def _of_reasons(audit: Audit) -> Plot | None:
    """Skill of reasons by size of the group."""
    note = (
        "Groups of columns are replaced, and the reasons of these columns are held against what the prediction loses. "
        "The zero line is the blind answer, which shares the prediction evenly among all columns. Upright lines: 95% "
        "intervals over rows."
    )
    axis = "columns in the group"
    return _of_skills(audit, "reasons", "Skill of reasons, by size of the group", note, axis, joined=False)


def _of_skills(audit: Audit, family: str, heading: str, note: str, axis: str, *, joined: bool) -> Plot | None:
    """A panel a law."""
    skills = audit.skills
    own = skills[(skills["family"] == family) & (skills["subset"] == "all") & ~skills["method"].isin(BASELINES)]
    own = own[np.isfinite(own["skill"])]
    if own.empty:
        return None
    kinds = list(dict.fromkeys(own["kind"]))
    scale = _skill_scale(float(own[["skill", "low"]].min(axis=None)))
    panels = []
    keys: dict[str, Series] = {}
    for law, part in own.groupby("law"):
        series = {
            str(name): Series(
                str(name), _style(audit, str(name)), [_skill_point(line, kinds) for _, line in lines.iterrows()]
            )
            for name, lines in part.groupby("method", sort=False)
        }
        keys |= series
        panels.append(
            _draw(f"Law {law}", heading, axis, [str(kind) for kind in kinds], _in_order(series), scale, joined)
        )
    if (own["skill"] < CLIP).any():
        note += f" A skill below {MINUS}1 is marked at the lower edge; its value stands beneath."
    return Plot(heading, note, _in_order(keys), panels)


def _skill_point(line: pd.Series, kinds: list[str]) -> Point:
    """One skill; what is told names its law and range."""
    where = range_words(line["kind"]) if line["family"] == "single" else line["kind"]
    told = f"{line['method']}, law {line['law']}, {where}: {skill(line['skill'])}"
    between = interval(line["low"], line["high"])
    told += f" ({between})" if between else ""
    return Point(kinds.index(line["kind"]), line["skill"], line["low"], line["high"], told)


def _of_promises(audit: Audit) -> Plot | None:
    """For how many rows bounds hold, by range and by quintile of the bound."""
    own = audit.coverage[(audit.coverage["rows"] > 0) & audit.coverage["kept"].notna()]
    if own.empty:
        return None
    by_range = own[own["sort"] == "all rows"]
    kind = _trust_range(audit, own)
    by_bound = own[own["sort"].str.fullmatch(QUINTILE) & (own["range"] == kind)]
    promised = sorted(set(own["promised"].dropna()))
    drawn = pd.concat([by_range, by_bound])
    least = min(kept_interval(kept, n)[0] for kept, n in zip(drawn["kept"], drawn["rows"], strict=True))
    scale = _share_scale(least, promised)
    ranges, quintiles = list(dict.fromkeys(by_range["range"])), sorted(set(by_bound["sort"]))
    heading = "Promised and kept: for how many rows the bound on the error holds"
    panels = [
        *_kept_panels(audit, by_range, "range", ranges, "all rows", "new value from so many nearest rows", scale),
        *_kept_panels(
            audit,
            by_bound,
            "sort",
            quintiles,
            f"changes {_within(kind)}",
            "fifth of the rows; 1: the smallest bounds",
            scale,
        ),
    ]
    note = (
        "A bound is on the root mean square error over a row’s single changes. First all rows, by range; then fifths "
        "of the rows, from the smallest bounds (the most trusted rows) to the largest, for single changes "
        f"{_within(kind)}. Upright lines: 95% intervals (Wilson). The axis need not begin at zero."
    )
    keys = {name: Series(str(name), _style(audit, str(name)), []) for name in dict.fromkeys(own["method"])}
    words = "promised: " + ", ".join(percent(share) for share in promised)
    return Plot(heading, note, _in_order(keys), panels, words)


def _kept_panels(
    audit: Audit, own: pd.DataFrame, by: str, kinds: list[str], title: str, axis: str, scale: Scale
) -> list[Panel]:
    """A panel a law of the shares of rows that keep a promise."""
    panels = []
    for law, part in own.groupby("law"):
        series = []
        for name, lines in part.groupby("method", sort=False):
            points = []
            for _, line in lines.iterrows():
                low, high = kept_interval(line["kept"], line["rows"])
                told = f"{name}, law {law}, {range_words(line['range'])}, {line['sort']}: {percent(line['kept'])}"
                points.append(Point(kinds.index(line[by]), line["kept"], low, high, f"{told} of {line['rows']:,} rows"))
            series.append(Series(str(name), _style(audit, str(name)), points))
        labels = [str(kind).removeprefix("trust quintile ") for kind in kinds]
        panels.append(_draw(f"Law {law}, {title}", "Promised and kept", axis, labels, series, scale, joined=True))
    return panels


def _trust_range(audit: Audit, own: pd.DataFrame) -> str:
    """The range that trust is about, or the widest that is known."""
    kinds = list(dict.fromkeys(own["range"]))
    about = [kind for kind in audit.trust["range"] if kind in kinds]
    return str(about[0] if about else kinds[-1])


def _within(kind: str) -> str:
    """How far single changes go, within a sentence."""
    return "to any row’s value" if kind == "any" else f"within the {kind} nearest rows"


def _style(audit: Audit, name: str) -> int:
    """Which of the methods it is."""
    return [own for own in audit.methods if own not in BASELINES].index(name)


def _in_order(keys: dict[str, Series]) -> list[Series]:
    """Methods in the order of their styles."""
    return sorted(keys.values(), key=lambda one: one.style)


# --- where they stand -------------------------------------------------------------------------------------------------


def _skill_scale(least: float) -> Scale:
    """From a little below zero, or from as far down as needed but not below the clip, to 1."""
    low = next((edge for edge in (-0.25, -0.5) if least >= edge), CLIP)
    step = 0.5 if low == CLIP else 0.25
    return Scale(low, 1.0, np.arange(low, 1.01, step).tolist(), skill)


def _share_scale(least: float, promised: list[float]) -> Scale:
    """From the ten percent below the least share to all rows."""
    low = max(0.0, min(0.8, np.floor(10 * least) / 10))
    step = 0.05 if low > 0.75 else 0.1 if low > 0.35 else 0.2
    ticks = np.arange(1.0, low - 1e-9, -step)
    return Scale(float(low), 1.0, ticks.tolist(), lambda share: f"{share:.0%}", promised)


def _draw(
    title: str, heading: str, axis: str, labels: list[str], series: list[Series], scale: Scale, joined: bool
) -> Panel:
    """Place all series in one drawing; values below it are written beneath its lower edge."""
    slot = (RIGHT - LEFT) / len(labels)
    middle = [LEFT + slot * (place + 0.5) for place in range(len(labels))]
    panel = Panel(
        title=title,
        told=f"{heading}: {title}. The numbers are in the tables below.",
        axis=axis,
        places=list(zip(middle, labels, strict=True)),
        ticks=[(scale.y(tick), scale.words(tick), abs(tick) < 1e-9) for tick in scale.ticks],
        rules=[scale.y(rule) for rule in scale.rules],
        bottom=TOP + TALL,
    )
    dodge = min(DODGE, 0.7 * slot / len(series))
    under = [0] * len(labels)  # values written beneath each place
    for order, one in enumerate(series):
        aside = dodge * (order - (len(series) - 1) / 2)
        points = sorted(one.points, key=lambda point: point.place)
        if joined:
            way = " L".join(f"{middle[p.place] + aside:.1f} {scale.y(p.value):.1f}" for p in points)
            panel.lines.append(Mark(f"M{way}", one.colour))
        for point in points:
            if point.value < scale.low:
                under[point.place] += 1
                _mark_below(panel, one, point, middle[point.place], aside, under[point.place])
            else:
                _mark(panel, one, point, middle[point.place] + aside, scale)
    panel.bottom += LINE * max(under) + (4 if any(under) else 0)
    return panel


def _mark(panel: Panel, one: Series, point: Point, x: float, scale: Scale) -> None:
    """A point with its interval."""
    if np.isfinite(point.low) and np.isfinite(point.high):
        ends = f"M{x:.1f} {scale.y(point.low):.1f} V{scale.y(point.high):.1f}"
        panel.whiskers.append(Mark(ends, one.colour))
    panel.marks.append(Mark(_shape(one.style, x, scale.y(point.value)), one.colour, point.told))


def _mark_below(panel: Panel, one: Series, point: Point, middle: float, aside: float, order: int) -> None:
    """An arrow at the lower edge, and the value beneath, under those of other methods."""
    edge = TOP + TALL
    panel.clipped.append(Mark(f"M{middle + aside - 4:.1f} {edge - 8:.1f} h8 l-4 8 z", one.colour, point.told))
    level = edge + LINE * order
    shape = _shape(one.style, middle - 22, level - 4)
    panel.below.append(Below(shape, one.colour, middle - 14, level, _brief(point.value)))


def _brief(value: float) -> str:
    """A value far below, in few letters."""
    text = f"{value:.2f}" if value > -100 else f"{value:.0f}" if value > -1e5 else f"{value:.0e}"
    return text.replace("-", MINUS)


def _shape(style: int, x: float, y: float) -> str:
    """A disc, square, diamond, triangle or cross about a point; with the colour it tells methods apart."""
    shapes = (
        f"M{x - 4:.1f} {y:.1f} a4 4 0 1 0 8 0 a4 4 0 1 0 -8 0 z",
        f"M{x - 3.6:.1f} {y - 3.6:.1f} h7.2 v7.2 h-7.2 z",
        f"M{x:.1f} {y - 5:.1f} l5 5 l-5 5 l-5 -5 z",
        f"M{x:.1f} {y - 4.8:.1f} l4.8 8.4 h-9.6 z",
        f"M{x - 1.5:.1f} {y - 4.5:.1f} h3 v3 h3 v3 h-3 v3 h-3 v-3 h-3 v-3 h3 z",
    )
    return shapes[style % len(shapes)]
