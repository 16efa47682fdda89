"""Local predictions against the black box, over many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from limis.errors import InputError
from limis.explanation import Explanations
from limis.plots.shared import LEVEL, LOWERS, RAISES, axes_or_new, many_rows, scale_words
from limis.report.words import Numbers, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_fidelity(explanations: Explanations, ax: Axes | None = None) -> Axes:
    """Draw what the local models say of their rows against what the black box says; of curves, without asking it.

    Trusted explanations are full discs, others crosses. On the diagonal both say the same, which does not yet mean that
    an explanation holds when a column changes: that is what `trusted` is about.

    Parameters
    ----------
    explanations : Explanations
        What to draw; the black box's outputs must be known.
    ax : matplotlib axes, default=None
        Where to draw it; new axes are made when none are given.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.
    """
    found = many_rows(explanations, "plot_fidelity")
    if found.outputs is None:
        raise InputError(
            "the black box's outputs on these rows are not known, so there is nothing to compare with; "
            "give them: explain(X, outputs=...)"
        )
    local, outputs = found.fits.predictions(), found.outputs
    trusted = found.fidelity["trusted"].to_numpy().astype(bool)
    low, high = (float(end) for end in (min(local.min(), outputs.min()), max(local.max(), outputs.max())))
    margin = 0.05 * (high - low) or 0.1 * abs(high) or 1.0
    ends = low - margin, high + margin
    ax = axes_or_new(ax, 5.6, 5.6)
    ax.plot(ends, ends, color=LEVEL, linestyle="--", linewidth=1, zorder=0, label="both say the same")
    for words, which, marker, colour in (
        ("not trusted", ~trusted, "x", LOWERS),
        ("trusted", trusted, "o", RAISES),
    ):
        label = f"{words}: {count(int(which.sum()), 'row', 'rows')}"
        ax.plot(outputs[which], local[which], marker, color=colour, alpha=0.85, markersize=5, label=label)
    ax.set_xlim(ends)
    ax.set_ylim(ends)
    ax.set_aspect("equal")
    scale = scale_words(found)
    ax.set_xlabel(f"black box: {scale}")
    ax.set_ylabel(f"{'expected without asking' if found.fits.has_curves else 'local prediction'}: {scale}")
    error = Numbers.of(found.training).show(float(np.abs(local - outputs).mean()))
    ax.set_title(f"{count(len(found), 'row', 'rows')}, mean error {error}", loc="left")
    ax.legend(loc="upper left", frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
