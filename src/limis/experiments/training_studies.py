"""How the weight estimator is trained: objectives, penalties, sizes, learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.experiments import figures, methods
from limis.experiments.experiment import Experiment, grid
from limis.experiments.methods import Trained, paper_once
from limis.experiments.paper_numbers import AWD, MEAN, MINUTES
from limis.experiments.protocol import PIECEWISE, SIZES, Scope
from limis.experiments.recovery import awd_table, show_awd
from limis.experiments.runs import Arrays, Outcome, Run
from limis.experiments.tables import CELL, beside_paper, cell, measured, shown, summarised, with_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIS = (methods.PAPER, methods.DEFAULT)
BASELINES = (methods.GUMBEL, methods.STE, methods.STRAIGHT_THROUGH, methods.L2R, methods.RLOO)
PENALTIES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
WITH_CURVES = (methods.PAPER, methods.PAPER_ONCE, methods.PAPER_TEXT, methods.GUMBEL, methods.STE, methods.RLOO)
IN_PAPERS_ABLATION = (*LIMIS, methods.GUMBEL, methods.STE, methods.LIME, methods.SILO, methods.MAPLE)
OWN_ABLATION = (
    methods.PAPER_ONCE, methods.PAPER_TEXT, methods.REINFORCE, methods.RLOO, methods.RLOO_ALL_ROWS, methods.TOWERS_RLOO,
    methods.TOWERS_HELD_OUT, methods.TOWERS_ALL_ROWS, methods.KERNEL_ALL_ROWS, methods.TOWERS_CHANGES,
)  # fmt: skip
Curve = tuple[dict[str, Any], Arrays]  # whose it is, by data, method and seed; what its run found
STE_IS = 'STE is, as the paper describes it, direct weighted optimisation; "straight-through" samples. '


# --- lambda-curve ----------------------------------------------------------------------------------------


def _penalty_runs(scope: Scope) -> list[Run]:
    tried = [paper_once(penalty) for penalty in PENALTIES]
    return grid((*tried, methods.DEFAULT), PIECEWISE, scope.sizes(1000), scope)


def _penalty_table(outcomes: list[Outcome]) -> pd.DataFrame:
    lines = measured(outcomes)
    lines["penalty"] = [_penalty(one) for one in outcomes]
    table = summarised(lines, ["data", "method", "penalty"], ["lmae", "awd", "selected_share"])
    return table.sort_values(["data", "penalty"], kind="stable", ignore_index=True)


def _penalty(one: Outcome) -> float:
    method = one.run.method
    penalty = method.plan.penalty if isinstance(method, Trained) else None
    return np.nan if penalty is None else penalty


def _show_penalty(table: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for line in table.to_dict("records"):
        penalty = "" if np.isnan(line["penalty"]) else f"{line['penalty']:g}"
        numbers = {name: cell(line[name], line[f"{name} ±"]) for name in ("lmae", "awd", "selected_share")}
        lines.append({"data": line["data"], "method": line["method"], "λ": penalty, **numbers})
    return pd.DataFrame(lines)


def _draw_penalty(table: pd.DataFrame) -> Figure:
    names = list(table["data"].unique())
    labels = {"lmae": "LMAE", "awd": "AWD", "selected_share": "selected share"}
    figure, axes = figures.panels(names, len(labels), height=2.2)
    penalties = sorted(table["penalty"].dropna().unique())
    for row, (measure, words) in zip(axes, labels.items(), strict=True):
        row[0].set_ylabel(words)
        for ax, name in zip(row, names, strict=True):
            part = table[table["data"] == name]
            tried = part.dropna(subset="penalty")
            figures.curve(ax, tried.assign(place=tried["penalty"].map(penalties.index)), "place", measure)
            for mean in part.loc[part["penalty"].isna(), measure]:
                ax.axhline(
                    mean, color=figures.COLOURS["LIMIS (default)"], linestyle="--", linewidth=1, label="LIMIS (default)"
                )
            ax.set_xticks(range(len(penalties)), [f"{penalty:g}" for penalty in penalties])
        row[0].set_ylim(bottom=0)
    for ax in axes[-1]:
        ax.set_xlabel("λ")
    figures.legend(figure, axes)
    return figure


# --- learning-curves -----------------------------------------------------------------------------------------


def _curve_table(outcomes: list[Outcome]) -> pd.DataFrame:
    """Rewards at each check of training, and at the end on the test rows (without a step)."""
    lines = rewards([(_place(one), one.found) for one in outcomes if "curve_steps" in one.found])
    return summarised(pd.DataFrame([*lines, *_final_rewards(outcomes)]), ["data", "method", "step"], ["reward"])


def _place(one: Outcome) -> dict[str, Any]:
    return {"data": one.run.data, "method": one.run.method.name, "seed": one.run.seed}


def rewards(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Global LMAE less LIMIS's at every check of any run; one that has stopped stays at what it kept."""
    steps = sorted({int(step) for _, found in curves for step in found["curve_steps"]})
    lines = []
    for place, found in curves:
        gains = found["curve_global_error"] - found["curve_error"]
        checked = dict(zip(found["curve_steps"].tolist(), gains.tolist(), strict=True))
        kept, last = float(gains[found["curve_kept"]]), max(checked)
        lines += [
            {**place, "step": float(step), "reward": checked.get(step, kept)}
            for step in steps
            if step in checked or step > last
        ]
    return lines


def _final_rewards(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Global LMAE less the method's, on the test rows."""
    final = measured(outcomes)
    ridge = final[final["method"] == methods.GLOBAL_RIDGE.name].set_index(["data", "seed"])["lmae"]
    return [
        {**_place(one), "step": np.nan, "reward": ridge[one.run.data, one.run.seed] - one.measures()["lmae"]}
        for one in outcomes
        if one.run.method.name != methods.GLOBAL_RIDGE.name and (one.run.data, one.run.seed) in ridge.index
    ]


def show_rewards(table: pd.DataFrame) -> pd.DataFrame:
    """The reward at some steps, and at the end on the test rows where that is known."""
    steps = np.sort(table["step"].dropna().unique())
    some = steps[np.unique(np.linspace(0, len(steps) - 1, 5).round().astype(int))]
    table = table[table["step"].isin(some) | table["step"].isna()].sort_values("step", kind="stable")
    words = [f"step {step:g}" if step >= 0 else "end, test rows" for step in table["step"]]
    return shown(table.assign(at=words), "reward", ["data", "method"], "at").sort_values("data", kind="stable")


def draw_rewards(table: pd.DataFrame, *, share_y: bool = True) -> tuple[Figure, np.ndarray]:
    """Rewards over the steps; at zero a method is as good as the global ridge."""
    figure, axes = figures.curves_by_data(
        table.dropna(subset="step"),
        "step",
        "reward",
        "training steps",
        "LMAE of the global ridge − LMAE",
        share_y=share_y,
    )
    for ax in axes[0]:
        ax.axhline(0, color=figures.OTHER, linewidth=0.8, linestyle=":")
    return figure, axes


def _draw_curves(table: pd.DataFrame) -> Figure:
    figure, axes = draw_rewards(table)
    final = table[table["step"].isna() & (table["method"] == methods.DEFAULT.name)].set_index("data")["reward"]
    for ax, name in zip(axes[0], table["data"].unique(), strict=True):
        ax.axhline(final[name], color=figures.COLOURS[methods.DEFAULT.name], linewidth=1.2, linestyle="--")
    axes[0, 0].annotate(
        "LIMIS (default), test rows", (0.98, final.iloc[0]), xycoords=("axes fraction", "data"), xytext=(0, -3),
        textcoords="offset points", ha="right", va="top", fontsize="small", color=figures.COLOURS[methods.DEFAULT.name],
    )  # fmt: skip
    return figure


# --- sample-complexity ---------------------------------------------------------------------------------------


def _sample_runs(scope: Scope) -> list[Run]:
    return grid((*LIMIS, methods.STE, methods.RANDOM), PIECEWISE, (250, *scope.sizes(*SIZES)), scope)


# --- optimisation-ablation -----------------------------------------------------------------------------------


def _ablation_runs(scope: Scope) -> list[Run]:
    papers = grid(IN_PAPERS_ABLATION, PIECEWISE, scope.sizes(1000, 2000), scope)
    return [*papers, *grid(OWN_ABLATION, PIECEWISE, scope.sizes(1000), scope)]


def _ablation_table(outcomes: list[Outcome]) -> pd.DataFrame:
    """Means over Syn1 to Syn3 alone, as in the paper, with what trained them."""
    table = summarised(with_mean(measured(outcomes)), CELL, ["awd", "nse", "auc", "fit_seconds", "explain_ms"])
    table = table[table["data"] == MEAN].sort_values("rows", kind="stable")
    plans = {one.run.method.name: getattr(one.run.method, "plan", None) for one in outcomes}
    for what in ("estimator", "objective", "probes"):
        table.insert(3, what, [getattr(plans[name], what, "") for name in table["method"]])
    return beside_paper(beside_paper(table, AWD), MINUTES, "paper_minutes").reset_index(drop=True)


def _show_ablation(table: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for line in table.to_dict("records"):
        minutes = "" if np.isnan(line["paper_minutes"]) else f" (paper {line['paper_minutes']:.0f} min)"
        lines.append(
            {
                **{name: line[name] for name in ("rows", "method", "estimator", "objective", "probes")},
                "awd": cell(line["awd"], line["awd ±"], line["paper"]),
                "training": f"{line['fit_seconds']:.1f} s{minutes}",
            }
        )
    return pd.DataFrame(lines)


def _draw_ablation(table: pd.DataFrame) -> Figure:
    sizes = sorted(table["rows"].unique())
    figure, axes = figures.panels([f"{size:,} training rows" for size in sizes], height=5, width=5.5, share_y=False)
    for ax, size in zip(axes[0], sizes, strict=True):
        figures.dots(ax, table[table["rows"] == size].sort_values("awd"), "awd")
        ax.set(xlabel="AWD; hollow: the paper's", xscale="log")
        figures.plain_log_ticks(ax.xaxis)
    return figure


TRAINING = (
    Experiment(
        "differentiable-baselines",
        "LIMIS against Gumbel-softmax, STE, straight-through, L2R and RLOO at 500, 1,000 and 2,000 training rows: AWD",
        lambda scope: grid((*LIMIS, *BASELINES), PIECEWISE, scope.sizes(*SIZES), scope),
        awd_table,
        show_awd,
        figures.over_sizes,
        note=STE_IS + "RLOO is REINFORCE with eight selections a probe row, each the others' baseline.",
    ),
    Experiment(
        "sample-complexity",
        "AWD over the number of training rows: LIMIS, STE and random selection",
        _sample_runs,
        awd_table,
        show_awd,
        figures.over_sizes,
        note=STE_IS,
    ),
    Experiment(
        "optimisation-ablation",
        "What trains the estimator and what that costs: objectives, estimators and probes, mean AWD and seconds",
        _ablation_runs,
        _ablation_table,
        _show_ablation,
        _draw_ablation,
        note="Seconds are of one CPU core, the paper's minutes of a K80. " + STE_IS,
    ),
    Experiment(
        "lambda-curve",
        "The selection penalty λ against LMAE, AWD and the selected share, 1,000 training rows",
        _penalty_runs,
        _penalty_table,
        _show_penalty,
        _draw_penalty,
        note="The default has no λ. The paper gives the figure only.",
    ),
    Experiment(
        "learning-curves",
        "LMAE of the global ridge less that of LIMIS over the training steps, 1,000 training rows",
        lambda scope: grid((*WITH_CURVES, methods.DEFAULT, methods.GLOBAL_RIDGE), PIECEWISE, scope.sizes(1000), scope),
        _curve_table,
        show_rewards,
        _draw_curves,
        note="Curves are on probe rows, which for LIMIS (paper) also reward; the end is on test rows. The default has "
        "no curve of this kind. The paper gives the figure only.",
    ),
)
