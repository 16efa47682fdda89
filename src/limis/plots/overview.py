"""What each column contributes over many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from limis.errors import InputError
from limis.explanation import Explanations
from limis.plots.shared import (
    LEVEL,
    LONGEST_NAME,
    RAISES,
    axes_or_new,
    chosen,
    many_rows,
    only_floor,
    plain,
    scale_words,
)
from limis.report.words import Numbers, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["beeswarm", "mean"]
KINDS: tuple[Kind, ...] = ("beeswarm", "mean")
MOST_COLUMNS = 15
LOW, HIGH = np.array([0.13, 0.59, 0.80]), np.array([0.80, 0.11, 0.43])  # colours of a number's rank
SLOTS = 120  # places along the axis in which points are counted to spread them
SPREAD = 0.38  # of a line's height, to each side


def plot_global(explanations: Explanations, ax: Axes | None = None, kind: Kind = "beeswarm") -> Axes:
    """Draw what each original column contributes over many rows, the largest on average first.

    Contributions lead from the level of each row's neighbourhood to its local prediction: how the neighbourhoods
    differ from one another is not in them. Of curves they are what would be lost if the column alone had the values of
    training rows.

    Parameters
    ----------
    explanations : Explanations
        What to draw.
    ax : matplotlib axes, default=None
        Where to draw it; new axes are made when none are given.
    kind : {"beeswarm", "mean"}, default="beeswarm"
        "beeswarm": a point a row and column, numbers coloured by their rank among the training rows, and categories
        and missing numbers as grey squares. "mean": the mean size of the contributions as bars.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.
    """
    found = many_rows(explanations, "plot_global")
    chosen("kind", kind, KINDS)
    if not found.fits.has_contributions:
        raise InputError(
            "contributions have no meaning for these local models, which are neither linear nor trees; "
            "draw how well they follow the black box: plot_fidelity"
        )
    columns, rest, others = _by_size(found)
    names = [plain(str(found.column_contributions.columns[j]), LONGEST_NAME) for j in columns]
    names += [count(others, "other column", "other columns") + ", together"] if rest is not None else []
    ax = axes_or_new(ax, 8, 1.5 + 0.36 * len(names))
    parts = [found.column_contributions.to_numpy()[:, j] for j in columns] + ([] if rest is None else [rest])
    if kind == "mean":
        _draw_means(ax, parts, Numbers.of(found.training))
        ax.set_xlabel(f"mean size of the contribution to the {scale_words(found)}")
    else:
        _draw_swarms(ax, found, columns, parts)
        ax.set_xlabel(f"contribution to the {scale_words(found)}")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    pad = None if kind == "mean" else 22.0  # the legend stands under the title
    ax.set_title(f"Contributions in {count(len(found), 'row', 'rows')}", loc="left", pad=pad)
    only_floor(ax)
    return ax


def _by_size(found: Explanations) -> tuple[list[int], np.ndarray | None, int]:
    """The columns to draw, what all others contribute together to each row, and how many these are."""
    parts = found.column_contributions.to_numpy()
    order = np.argsort(-np.abs(parts).mean(axis=0), kind="stable")
    if len(order) <= MOST_COLUMNS + 1:  # a single other column takes the line that the sum would take
        return order.tolist(), None, 0
    others = order[MOST_COLUMNS:]
    return order[:MOST_COLUMNS].tolist(), parts[:, others].sum(axis=1), len(others)


def _draw_means(ax: Axes, parts: list[np.ndarray], numbers: Numbers) -> None:
    # Means are smaller than what they are means of.
    numbers = Numbers(None if numbers.decimals is None else numbers.decimals + 1)
    sizes = [float(np.abs(part).mean()) for part in parts]
    ax.barh(range(len(sizes)), sizes, height=0.6, color=RAISES)
    for line, size in enumerate(sizes):
        ax.text(1.02, line, numbers.show(size), transform=ax.get_yaxis_transform(), va="center", ha="left")
    ax.set_xlim(0, 1.04 * max(sizes) or 1.0)


def _draw_swarms(ax: Axes, found: Explanations, columns: list[int], parts: list[np.ndarray]) -> None:
    """A line of points a column, higher where there are more of them."""
    low, high = (float(end) for end in (min(0.0, *map(np.min, parts)), max(0.0, *map(np.max, parts))))
    margin = 0.04 * (high - low) or 1.0
    low, high = low - margin, high + margin
    ranks = found.training.table.ranks(found.values)
    is_category = found.training.table.is_category
    behind = [[j] for j in range(len(is_category))] if found.groups is None else found.groups.members
    size = float(np.clip(2000 / len(found), 6, 26))
    ax.axvline(0, color=LEVEL, linewidth=0.8, zorder=0)
    for line, part in enumerate(parts):
        at = line - SPREAD * _heights((part - low) / (high - low))
        rank = np.full(len(part), np.nan)
        own = behind[columns[line]] if line < len(columns) else []
        if len(own) == 1 and not is_category[own[0]]:
            rank = ranks[:, own[0]]
        known = np.isfinite(rank)
        # Those without a rank lie below, so that they hide no colours.
        ax.scatter(part[~known], at[~known], s=size, marker="s", color=LEVEL, alpha=0.6, linewidth=0, zorder=1)
        ax.scatter(part[known], at[known], s=size, color=_colours(rank[known]), alpha=0.8, linewidth=0, zorder=2)
    ax.set_xlim(low, high)
    for words, marker, colour in (
        ("low number", "o", LOW),
        ("middle", "o", (LOW + HIGH) / 2),
        ("high number", "o", HIGH),
        ("category, missing or sum", "s", LEVEL),
    ):
        ax.scatter([], [], marker=marker, color=[colour], label=words)
    ax.legend(
        loc="lower right",  # of the title's next line: it may be wider than the axes
        bbox_to_anchor=(1.0, 1.0),
        ncols=4,
        frameon=False,
        fontsize="small",
        borderpad=0.0,
        borderaxespad=0.2,
        handletextpad=0.1,
        columnspacing=1.0,
    )


def _colours(rank: np.ndarray) -> np.ndarray:
    """A colour a rank, from `LOW` to `HIGH`: (points, 3)."""
    return LOW + np.clip(rank, 0, 1)[:, None] * (HIGH - LOW)


def _heights(along: np.ndarray) -> np.ndarray:
    """Where points stand in their line, from -1 to 1: those in one place are spread to both sides of the middle.

    ``along`` is where they are on the axis, from 0 to 1.
    """
    slot = np.round(along * SLOTS).astype(int)
    order = np.argsort(slot, kind="stable")
    counts = np.bincount(slot)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    turn = np.empty(len(along), dtype=int)
    turn[order] = np.arange(len(along)) - starts[slot[order]]
    # 0, 1, -1, 2, -2, ... as far out as the fullest place needs.
    side = np.where(turn % 2 == 1, (turn + 1) // 2, -(turn // 2))
    return side / max(4, counts.max() // 2)
