"""One explanation as a waterfall: mean of the reference → reasons → the rest → the model's output.

Of ridges and trees: overall mean → rows like this one → reasons → local prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limis.explanation import Explanation
from limis.plots.shared import (
    LEVEL,
    LONGEST_NAME,
    LOWERS,
    RAISES,
    axes_or_new,
    one_row,
    only_floor,
    plain,
    row_name,
    scale_words,
)
from limis.report.chart import shown_reasons, step
from limis.report.words import Numbers, shorten, shorten_condition

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_contributions(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw how a prediction comes about: from the mean of the reference, column by column, to the model's output.

    Of ridges and trees, from all rows over rows like this one to the local prediction, with the black box's value as a
    dashed line.

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
    explanation = one_row(explanation, "plot_contributions")
    numbers = Numbers.of(explanation.all.training)
    names, starts, changes, texts = _steps(explanation, numbers)
    ax = axes_or_new(ax, 8, 1.2 + 0.36 * len(names))
    _draw_steps(ax, starts, changes, texts)
    ends = [start + change for start, change in zip(starts, changes, strict=True)]
    if explanation.all.outputs is not None and not explanation.all.fits.has_curves:
        ends.append(explanation.model_output)
        _draw_line(ax, explanation.model_output, numbers)
    low, high = min(starts + ends), max(starts + ends)
    margin = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    ax.set_xlim(low - margin, high + margin)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(scale_words(explanation.all))
    ax.set_title(row_name(explanation), loc="left", pad=18)
    only_floor(ax)
    return ax


def _steps(one: Explanation, numbers: Numbers) -> tuple[list[str], list[float], list[float], list[str]]:
    """The name of each line, where its bar starts, how far it goes and that in words; a level goes nowhere."""
    has_curves = one.all.fits.has_curves
    start = one.base_value if has_curves else one.all.training.overall_mean
    names, starts, changes, texts = ["all training rows"], [start], [0.0], [numbers.show(start)]
    if has_curves:
        names = [plain(shorten(one.reference.name, LONGEST_NAME))]
    else:
        names.append("rows like this one")
        starts.append(start)
        changes.append(one.neighbourhood_shift)
        texts.append(numbers.signed(one.neighbourhood_shift))
    shown, others = shown_reasons(one)
    lines = [*shown, *([others] if others else [])]
    at = one.base_value
    for reason in lines:
        status = f" ({reason.status})" if reason.status else ""
        names.append(plain(shorten_condition(reason.words, reason.columns[0], LONGEST_NAME)) + status)
        starts.append(at)
        changes.append(reason.contribution)
        texts.append(step(reason, numbers))
        at += reason.contribution
    if has_curves:
        names.append("the rest")
        starts.append(at)
        changes.append(one.rest)
        texts.append(numbers.signed(one.rest))
    local = one.local_prediction
    end = "this row" if has_curves else "local prediction"
    return [*names, end], [*starts, local], [*changes, 0.0], [*texts, numbers.show(local)]


def _draw_steps(ax: Axes, starts: list[float], changes: list[float], texts: list[str]) -> None:
    """Steps as bars, full where they raise and hollow where they lower; the two ends as marks."""
    last = len(starts) - 1
    for line, (start, change, text) in enumerate(zip(starts, changes, texts, strict=True)):
        if line in (0, last):
            ax.plot([start], [line], marker="D", color=LEVEL, linestyle="none")
        else:
            colour = RAISES if change >= 0 else LOWERS
            ax.barh(line, change, left=start, height=0.6, edgecolor=colour, facecolor=colour if change >= 0 else "none")
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
