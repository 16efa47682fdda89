"""What the figures share: panels side by side, a colour a method, curves with bands, dots with the paper's beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from limis.errors import require
from limis.experiments.paper_numbers import MEAN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOURS = {
    "LIMIS (default)": "#1a66c9",
    "LIMIS (tree)": "#0f8b8d",
    "LIMIS (paper)": "#b54708",
    "LIMIS (paper), one run": "#d98a4a",
    "LIMIS (paper, text)": "#e3a063",
    "SILO": "#3a7d44",
    "MAPLE": "#7a4fa3",
    "LIME": "#c2416b",
    "LIME (slopes)": "#dd8fae",
    "DiCE random": "#d98a4a",
    "DiCE genetic": "#b54708",
    "global ridge": "#6b7580",
    "random selection": "#6b7580",
    "Gumbel-softmax": "#3a7d44",
    "STE": "#7a4fa3",
    "straight-through": "#c2416b",
    "L2R": "#6b7580",
    "RLOO": "#0f8b8d",
}
OTHER, PAPER = "#6b7580", "#1b1f24"
MARKERS = "osD^vP*X<>hp"


def panels(
    titles: Sequence[str], n_rows: int = 1, *, height: float = 3.4, width: float | None = None, share_y: bool = True
) -> tuple[Figure, np.ndarray]:
    """A figure with a column of axes for each title: axes of shape (rows, titles)."""
    width = width or (3.4 if len(titles) < 4 else 2.9)
    figure = require("matplotlib.figure", "plots").Figure(
        figsize=(max(6.4, width * len(titles)), height * n_rows), layout="constrained", dpi=130
    )
    axes = figure.subplots(n_rows, len(titles), squeeze=False, sharey="row" if share_y else False)
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title("mean of Syn1 to Syn3" if title == MEAN else title, loc="left", fontsize="medium")
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#e6e9ec", linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, axes


def curve(ax: Axes, part: pd.DataFrame, x: str, y: str, number: int = 0) -> None:
    """A method's means as a line, with the 95% interval as a band."""
    method = part["method"].iloc[0]
    colour = COLOURS.get(method, OTHER)
    part = part.sort_values(x)
    mark = MARKERS[number % len(MARKERS)] if len(part) <= 12 else ""
    ax.plot(part[x], part[y], color=colour, marker=mark, markersize=4, linewidth=1.4, label=method)
    half = part[f"{y} ±"].fillna(0)
    ax.fill_between(part[x], part[y] - half, part[y] + half, color=colour, alpha=0.15, linewidth=0)


def curves(ax: Axes, table: pd.DataFrame, x: str, y: str) -> None:
    """A curve a method."""
    for number, (_, part) in enumerate(table.groupby("method", sort=False)):
        curve(ax, part, x, y, number)


def paper_curve(ax: Axes, table: pd.DataFrame, x: str) -> None:
    """The paper's numbers of each method, as hollow marks on a dashed line."""
    for method, part in table.dropna(subset="paper").sort_values(x).groupby("method", sort=False):
        colour = COLOURS.get(str(method), OTHER)
        ax.plot(
            part[x], part["paper"], "--", color=colour, marker="o", markersize=5, markerfacecolor="white", linewidth=0.9
        )


def over_sizes(table: pd.DataFrame) -> Figure:
    """AWD over the number of training rows, a panel a data set; dashed is what the paper reports."""
    names, sizes = list(table["data"].unique()), sorted(table["rows"].unique())
    figure, axes = panels(names)
    for ax, name in zip(axes[0], names, strict=True):
        part = table[table["data"] == name]
        curves(ax, part, "rows", "awd")
        paper_curve(ax, part, "rows")
        ax.set(xscale="log", yscale="log", xlabel="training rows")
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.set_xlim(0.85 * sizes[0], sizes[-1] / 0.85)
        ax.minorticks_off()
        plain_log_ticks(ax.yaxis)
    axes[0, 0].set_ylabel("AWD")
    legend(figure, axes, "hollow, dashed: the paper's numbers" if table["paper"].notna().any() else None)
    return figure


def curves_by_data(
    table: pd.DataFrame, x: str, y: str, x_label: str, y_label: str, *, share_y: bool = True
) -> tuple[Figure, np.ndarray]:
    """Curves over x, a panel a data set, with a legend."""
    names = list(table["data"].unique())
    figure, axes = panels(names, share_y=share_y)
    for ax, name in zip(axes[0], names, strict=True):
        curves(ax, table[table["data"] == name], x, y)
        ax.set_xlabel(x_label)
    axes[0, 0].set_ylabel(y_label)
    legend(figure, axes)
    return figure, axes


def dots(ax: Axes, table: pd.DataFrame, value: str, paper: str | None = "paper") -> None:
    """A method a line, its mean a dot with its interval, the paper's number a hollow diamond."""
    methods = list(table["method"])
    places = np.arange(len(methods))
    colours = [COLOURS.get(method, OTHER) for method in methods]
    ax.hlines(places, table[value] - table[f"{value} ±"], table[value] + table[f"{value} ±"], colors=colours)
    ax.scatter(table[value], places, color=colours, s=28, zorder=3)
    if paper is not None and table[paper].notna().any():
        ax.scatter(table[paper], places, marker="D", s=30, facecolors="white", edgecolors=PAPER, zorder=4)
    ax.set_yticks(places, methods)
    ax.set_ylim(len(methods) - 0.5, -0.5)


def plain_log_ticks(axis: Axis) -> None:
    """Numbers a reader knows at the ticks of a logarithmic axis, instead of powers of ten."""
    ticker = require("matplotlib.ticker", "plots")
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def legend(figure: Figure, axes: np.ndarray, note: str | None = None) -> None:
    """One legend below all panels."""
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(len(labels), 5),
        frameon=False,
        fontsize="small",
        title=note,
        title_fontsize="small",
    )
