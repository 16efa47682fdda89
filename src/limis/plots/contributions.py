"""One explanation as a waterfall: overall mean → rows like this one → reasons → local prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limis.errors import require
from limis.explanation import Explanation
from limis.plots.text import as_it_stands
from limis.report.chart import shown_reasons
from limis.report.words import Numbers, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RAISES, LOWERS, LEVEL = "#1a66c9", "#b54708", "#6b7580"
LONGEST_NAME = 48


def plot_contributions(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw how a local prediction comes about, with the black box's value as a dashed line.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    ax : matplotlib axes, default=None
        Where to draw it; new axes are made when none are given.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.
    """
    names, starts, changes = _steps(explanation)
    if ax is None:
        plt = require("matplotlib.pyplot", "plots")
        _, ax = plt.subplots(figsize=(8, 1.2 + 0.36 * len(names)), layout="constrained")
    numbers = Numbers.of(explanation.all.training)
    _draw_steps(ax, starts, changes, numbers)
    ends = [start + change for start, change in zip(starts, changes, strict=True)]
    if explanation.all.outputs is not None:
        ends.append(explanation.model_output)
        _draw_line(ax, explanation.model_output, numbers)
    low, high = min(starts + ends), max(starts + ends)
    margin = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    ax.set_xlim(low - margin, high + margin)
    ax.set_yticks(range(len(names)), [as_it_stands(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(as_it_stands(_scale_words(explanation)))
    ax.set_title(as_it_stands(f"Row {shorten(str(explanation.label), LONGEST_NAME)}"), loc="left", pad=18)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def _steps(one: Explanation) -> tuple[list[str], list[float], list[float]]:
    """The name of each line, where its bar starts, and how far it goes; a level is a bar of no length."""
    overall = one.all.training.overall_mean
    shown, rest = shown_reasons(one)
    lines = [*shown, *([rest] if rest else [])]
    names = ["all training rows", "rows like this one"]
    starts, changes = [overall, overall], [0.0, one.neighbourhood_shift]
    at = one.base_value
    for reason in lines:
        status = f" ({reason.status})" if reason.status else ""
        names.append(shorten(reason.words, LONGEST_NAME) + status)
        starts.append(at)
        changes.append(reason.contribution)
        at += reason.contribution
    return [*names, "local prediction"], [*starts, one.local_prediction], [*changes, 0.0]


def _draw_steps(ax: Axes, starts: list[float], changes: list[float], numbers: Numbers) -> None:
    """Steps as bars, full where they raise and hollow where they lower; the two ends as marks."""
    last = len(starts) - 1
    for line, (start, change) in enumerate(zip(starts, changes, strict=True)):
        if line in (0, last):
            ax.plot([start], [line], marker="D", color=LEVEL, linestyle="none")
            text = numbers.show(start)
        else:
            colour = RAISES if change >= 0 else LOWERS
            ax.barh(line, change, left=start, height=0.6, edgecolor=colour, facecolor=colour if change >= 0 else "none")
            text = numbers.signed(change)
        if line != last:  # where this line ends, the next begins
            ax.plot([start + change] * 2, [line, line + 1], color=LEVEL, linewidth=0.8, zorder=0)
        ax.text(1.02, line, text, transform=ax.get_yaxis_transform(), va="center", ha="left")


def _draw_line(ax: Axes, output: float, numbers: Numbers) -> None:
    """The black box's value, to compare the local prediction with."""
    ax.axvline(output, color=LEVEL, linestyle="--", linewidth=1, zorder=0, label="black box")
    ax.annotate(
        f"black box {numbers.show(output)}",
        (output, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        color=LEVEL,
        fontsize="small",
    )


def _scale_words(one: Explanation) -> str:
    box = one.all.training.black_box
    if box.scale == "value":
        return "output"
    one_class = shorten(str(box.classes[1]), LONGEST_NAME) if box.classes is not None else "class 1"
    return f"{box.scale} of {one_class}"
