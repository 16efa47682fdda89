"""How a weight estimator was trained: its learning curves, and its error by the price of selecting rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from limis.errors import InputError
from limis.plots.shared import LEVEL, RAISES, axes_or_new
from limis.report.words import percent
from limis.training.fitting import TRAINED
from limis.training.trainer import TrainingLog

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from limis.explainer import LimisExplainer

LINES = ("-", "--", "-.", ":")
MOST_NAMED = 8
ERROR = "held-out error, in deviations of the outputs"


def plot_learning(explainer: LimisExplainer, ax: Axes | None = None) -> Axes:
    """Draw the error on held-out rows while a weight estimator was trained.

    A line a training run, thick for the one that did best; a diamond is the check whose estimator was kept, the dotted
    line the error of the global model.

    Parameters
    ----------
    explainer : LimisExplainer
        A fitted one whose weighting was trained.
    ax : matplotlib axes, default=None
        Where to draw it; new axes are made when none are given.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.
    """
    logs = _logs(explainer, "plot_learning")
    best = min(logs, key=lambda log: log.error)
    ax = axes_or_new(ax, 7, 4.2)
    for place, log in enumerate(logs):
        line = ax.plot(
            log.steps,
            log.validation_error,
            linestyle=LINES[place % len(LINES)],
            linewidth=2.5 if log is best else 1.2,
            label=_words(log, log is best) if place < MOST_NAMED or log is best else None,
        )
        ax.plot([log.steps[log.kept]], [log.error], marker="D", color=line[0].get_color(), linestyle="none", label=None)
    _draw_global(ax, best)
    ax.set_xlabel("training steps" + (f"\n{len(logs):,} runs, not all of them named" if len(logs) > MOST_NAMED else ""))
    ax.set_ylabel(ERROR)
    _finish(ax, "Training of the weight estimator")
    return ax


def plot_penalties(explainer: LimisExplainer, ax: Axes | None = None) -> Axes:
    """Draw the error on held-out rows against λ, the price of selecting rows, with the share of rows selected.

    Of several runs at one λ the best is on the line, the others are points beside it.

    Parameters
    ----------
    explainer : LimisExplainer
        A fitted one that tried several λ: with a ``weighting`` such as "pairwise" and ``selection_penalty="auto"``.
    ax : matplotlib axes, default=None
        Where to draw it; new axes are made when none are given.

    Returns
    -------
    matplotlib axes
        They are never shown: that is the caller's to do.
    """
    logs = _logs(explainer, "plot_penalties")
    penalties = sorted({log.penalty for log in logs})
    if len(penalties) < 2:
        raise InputError(
            f"only one λ was tried ({penalties[0]:g}), so there is nothing to compare; several are tried with "
            'weighting="pairwise" and selection_penalty="auto"'
        )
    best = [min((log for log in logs if log.penalty == penalty), key=lambda log: log.error) for penalty in penalties]
    chosen = min(best, key=lambda log: log.error)
    ax = axes_or_new(ax, 6, 4.2)
    # λ = 0 is among them, which has no place on a logarithmic axis: they stand side by side.
    places = np.arange(len(penalties))
    ax.plot(places, [log.error for log in best], marker="o", color=RAISES)
    others = [log for log in logs if not any(log is one for one in best)]
    ax.plot([penalties.index(log.penalty) for log in others], [log.error for log in others], "x", color=LEVEL)
    at = penalties.index(chosen.penalty)
    ax.plot([at], [chosen.error], marker="D", markersize=9, color=RAISES, linestyle="none", label="chosen")
    _draw_global(ax, chosen)
    ax.set_xticks(places, [_tick(log) for log in best])
    ax.set_xlim(-0.4, len(penalties) - 0.6)
    ax.set_xlabel("λ, the price of selecting rows")
    ax.set_ylabel(ERROR)
    _finish(ax, "Error by the price of selecting rows")
    return ax


def _logs(explainer: LimisExplainer, name: str) -> list[TrainingLog]:
    """The learning curves of a fitted explainer; an InputError where its weighting was not trained."""
    if not hasattr(explainer, "get_params"):
        raise InputError(f"{name} draws a fitted LimisExplainer, not a {type(explainer).__name__}")
    check_is_fitted(explainer)
    logs = getattr(explainer, "training_log_", [])
    if not logs:
        weighting = f"weighting={getattr(explainer, 'weighting', None)!r}"
        raise InputError(
            f"this explainer's weighting was not trained ({weighting}), so there are no learning curves; trained are "
            f"weighting={', '.join(map(repr, ('retrieved', *TRAINED)))}"
        )
    return logs


def _words(log: TrainingLog, is_best: bool) -> str:
    """What a run is called."""
    share = log.selected_share[log.kept]
    selects = f", selects {percent(share)}" if np.isfinite(share) else ""
    return f"λ = {log.penalty:.3g}{selects}{' (best)' if is_best else ''}"


def _tick(log: TrainingLog) -> str:
    share = log.selected_share[log.kept]
    return f"{log.penalty:.3g}" + (f"\nselects {percent(share)}" if np.isfinite(share) else "")


def _draw_global(ax: Axes, log: TrainingLog) -> None:
    if np.isfinite(log.global_error):
        ax.axhline(log.global_error, color=LEVEL, linestyle=":", label="global model", zorder=0)


def _finish(ax: Axes, title: str) -> None:
    ax.set_title(title, loc="left")
    ax.legend(frameon=False, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
