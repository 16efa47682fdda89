"""What weighs for whom, as a table of cells whose shade is their weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.class_explanations import ClassExplanations
from limis.columns import show_number
from limis.plots.subgroups import heaviest
from limis.report.words import percent
from limis.serve.words import Explained
from limis.subgroups import Subgroups, subgroups

SHADES = 9
MOST_ROWS = 500  # that groups are made of: more would sharpen little and take long
N_RESAMPLES = 100


@dataclass
class Cell:
    """A weight: in words, with its interval, and how dark it is drawn."""

    words: str
    interval: str
    shade: int


@dataclass
class Group:
    """A group of rows."""

    name: str
    n_rows: int
    trusted: str
    cells: list[Cell]


@dataclass
class GroupsView:
    """A heat map, and what stands out in it."""

    columns: list[str]
    groups: list[Group]
    left_out: int
    flags: list[str]
    n_rows: int


def view_groups(found: Explained, by: str, measure: str, label: str, sensitive: list[str]) -> GroupsView:
    """Tell of groups by a column; of several classes, of the one called ``label``."""
    part = found.for_class(label) if isinstance(found, ClassExplanations) else found
    groups = subgroups(part, by, measure=measure, n_resamples=N_RESAMPLES)  # type: ignore[arg-type]
    shown, left_out = heaviest(groups.values)
    largest = float(np.nanmax(shown.to_numpy(), initial=0.0)) or 1.0
    lines = [
        Group(
            str(name),
            int(groups.sizes[name]),
            percent(float(groups.fidelity["trusted"][name])),
            [_cell(groups, name, column, largest) for column in shown.columns],
        )
        for name in shown.index
    ]
    return GroupsView(list(shown.columns), lines, left_out, groups.flags(sensitive), len(part))


def _cell(groups: Subgroups, name: str, column: str, largest: float) -> Cell:
    value, low, high = (float(frame[column][name]) for frame in (groups.values, groups.low, groups.high))
    if np.isnan(value):
        return Cell("", "not known", 0)
    interval = "" if np.isnan(low) else f"{show_number(low, 3)} to {show_number(high, 3)}"
    # By the square root, so that one heavy column does not bleach all others.
    return Cell(show_number(value, 3), interval, round(SHADES * (value / largest) ** 0.5))
