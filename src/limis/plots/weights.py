"""How the weight of one explanation is shared out among the training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp

from limis.explanation import Explanation
from limis.perturb import gower_distance
from limis.plots.shared import LEVEL, LOWERS, RAISES, axes_or_new, chosen, line_below, one_row, row_name
from limis.report.words import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGAINST = (None, "distance")
MOST_WITHOUT = 2_000  # rows without weight that are drawn


def plot_weights(explanation: Explanation, ax: Axes | None = None, against: Literal["distance"] | None = None) -> Axes:
    """Draw how many training rows an explanation rests on, or how far from the explained row they are.

    Where the level and the slopes rest on different rows, both are drawn.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    ax : matplotlib axes, default=None
        Where to draw it; new axes are made when none are given.
    against : {None, "distance"}, default=None
        None: the share of all weight that the strongest rows have together, by how many they are. "distance": each
        row's share against its Gower distance from the explained row, the share of columns in which they differ.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.
    """
    one = one_row(explanation, "plot_weights")
    chosen("against", against, AGAINST)
    ax = axes_or_new(ax, 7, 4.2)
    parts = _parts(one)
    if not parts:
        ax.text(0.5, 0.5, "no training row has weight here:\nthis is the global model", ha="center", va="center")
        ax.set_xlim(0, 1)
    elif against is None:
        _draw_shares(ax, parts)
    else:
        _draw_distances(ax, one, parts)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(f"{row_name(one)}: weights of the training rows", loc="left")
    return ax


def _parts(one: Explanation) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """What the weights are for, which rows have them, and their shares, largest first."""
    weights, slope_weights = one.all.weights[[one.row]], one.all.slope_weights[[one.row]]
    named = {"weight": weights}
    if (abs(weights - slope_weights)).max() > 0:
        named = {"level": weights, "slopes": slope_weights}
    return [(name, *_shares(line)) for name, line in named.items() if line.sum() > 0]


def _shares(line: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-line.data, kind="stable")
    return line.indices[order], line.data[order] / line.data.sum()


def _effective(shares: np.ndarray) -> float:
    """How many rows of equal weight would tell as much."""
    return float(1 / (shares**2).sum())


def _draw_shares(ax: Axes, parts: list[tuple[str, np.ndarray, np.ndarray]]) -> None:
    """The share of the strongest rows together; the effective number of rows as a mark on it."""
    for (name, _, shares), colour, line in zip(parts, (RAISES, LOWERS), ("-", "--"), strict=False):
        effective = _effective(shares)
        ranks, together = np.arange(len(shares) + 1), np.append(0.0, np.minimum(1.0, np.cumsum(shares)))
        words = f"{name}: {count(len(shares), 'row', 'rows')}, effectively {_rows(effective)}"
        ax.plot(ranks, 100 * together, color=colour, linestyle=line, drawstyle="steps-pre", label=words)
        at = 100 * together[min(len(shares), round(effective))]
        ax.plot([effective, effective], [0, at], color=colour, linestyle=":", linewidth=1)
        ax.plot([effective], [at], marker="o", color=colour, linestyle="none")
    ax.set_ylim(0, 104)
    ax.set_xlim(0, 1.02 * max(len(shares) for _, _, shares in parts))
    ax.set_xlabel("strongest training rows")
    ax.set_ylabel("share of the weight, %")
    ax.legend(loc="lower right", frameon=False)


def _rows(effective: float) -> str:
    return f"{effective:,.1f}" if effective < 10 else f"{effective:,.0f}"


def _draw_distances(ax: Axes, one: Explanation, parts: list[tuple[str, np.ndarray, np.ndarray]]) -> None:
    """Each row's share against its distance, and the rows without weight on the ground."""
    training = one.all.training
    table = training.table
    own = table.ranks(one.all.values[[one.row]])
    distance = gower_distance(own, table.ranks(training.values), table.is_category)[0]
    without = np.setdiff1d(np.arange(len(training)), np.concatenate([rows for _, rows, _ in parts]))
    if len(without):
        drawn = without[:: -(-len(without) // MOST_WITHOUT)]
        words = f"no weight: {count(len(without), 'row', 'rows')}"
        ground, on_the_ground = np.full(len(drawn), 0.02), ax.get_xaxis_transform()
        ax.plot(distance[drawn], ground, "|", color=LEVEL, alpha=0.4, label=words, transform=on_the_ground, zorder=1)
    for (name, rows, shares), colour, marker in zip(parts, (RAISES, LOWERS), ("o", "x"), strict=False):
        words = f"{name}: {count(len(rows), 'row', 'rows')}, effectively {_rows(_effective(shares))}"
        ax.plot(distance[rows], 100 * shares, marker, color=colour, alpha=0.85, markersize=5, label=words, zorder=2)
    ax.set_xlim(0, 1.04 * max(float(distance.max()), 1e-3))
    least, most = min(shares[-1] for _, _, shares in parts), max(shares[0] for _, _, shares in parts)
    ax.set_yscale("log")
    # Room for the rows on the ground, and for the legend; there are no shares above 100%.
    ax.set_ylim(50 * least * (least / most) ** 0.1, min(200.0, 200 * most * (most / least) ** 0.3))
    ax.set_xlabel("Gower distance from this row")
    ax.set_ylabel("share of the weight, %, on a logarithmic scale")
    ax.legend(loc="upper right", frameon=False)
    if len(without) > MOST_WITHOUT:
        line_below(ax, f"of the rows without weight, about {MOST_WITHOUT:,} are drawn")
