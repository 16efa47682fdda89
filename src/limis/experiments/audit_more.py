"""More of the audit: small tables looked at once, and what questions at fit are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from limis.experiments import figures
from limis.experiments.audit_methods import (
    AT_FIT,
    BY_QUESTIONS,
    CEILING,
    CURVES,
    CURVES_20D,
    CURVES_200,
    CURVES_OF_F,
    GLOBAL,
    asked_at_fit,
)
from limis.experiments.audit_problem import BOXES
from limis.experiments.audit_runs import runs_of
from limis.experiments.audit_tables import CELL, JOINT, LAWS, RANGES, in_short, tabulate_skill
from limis.experiments.experiment import Experiment
from limis.experiments.protocol import Scope
from limis.experiments.real_problem import SMALL_LOADERS
from limis.experiments.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THREE_CLASSES = ("Wine",)
PEERS = ("SILO, MAPLE", GLOBAL)  # for outputs of one number
SHOWN = (CURVES, CURVES_200, CURVES_20D, CURVES_OF_F, "SILO", "MAPLE", "global ridge", "global tree", CEILING)
ASKED_DATA = ("Adult", "Weather", "German", "Bike")
BOXES_ASKED = ("XGBoost", "LightGBM, defaults")


def _small_runs(scope: Scope) -> list[Run]:
    return [
        run
        for data in SMALL_LOADERS
        for run in runs_of(scope, data, BOXES, (CURVES, *(() if data in THREE_CLASSES else PEERS)))
    ]


def _show_small(table: pd.DataFrame) -> pd.DataFrame:
    """For each table and law the mean over black boxes and (the worst of them)."""
    lines = []
    for data in dict.fromkeys(table["data"]):
        for method in SHOWN:
            for law in ("A", "B"):
                part = table[(table["data"] == data) & (table["method"] == method) & (table["law"] == law)]
                if len(part):
                    lines.append({"data": data, "method": method, "law": law, **_by_kind(part)})
    return pd.DataFrame(lines).fillna("")


def _by_kind(part: pd.DataFrame) -> dict[str, str]:
    """Skill by range, and on joint changes: mean and (worst cell)."""
    told = {}
    part = part[part["subset"] == "all"]
    for family, kinds in (("single", RANGES), ("joint", JOINT)):
        for kind in kinds:
            found = part[(part["family"] == family) & (part["kind"] == kind)]["skill"].dropna()
            if len(found):
                name = f"k = {kind}" if family == "single" else kind
                told[name] = f"{in_short(found.mean())} ({in_short(found.min())})"
    return told


def _asked_runs(scope: Scope) -> list[Run]:
    return [run for data in ASKED_DATA for run in runs_of(scope, data, BOXES_ASKED, (BY_QUESTIONS,))]


def _show_asked(table: pd.DataFrame) -> pd.DataFrame:
    """For each number of questions and law: mean and (worst cell)."""
    lines = []
    for n_questions in AT_FIT:
        for law in ("A", "B"):
            part = table[(table["method"] == asked_at_fit(n_questions)) & (table["law"] == law)]
            if len(part):
                cells = part.groupby(CELL).ngroups
                lines.append({"questions at fit": f"{n_questions:,}", "law": law, "cells": cells, **_by_kind(part)})
    return pd.DataFrame(lines).fillna("")


def _draw(table: pd.DataFrame) -> Figure:
    """Skill against range, a panel a law, a line a method: the mean over cells."""
    figure, axes = figures.panels(["law A", "law B"], 1, height=3.0)
    own = table[(table["subset"] == "all") & (table["family"] == "single") & (table["method"] != "nothing changes")]
    for ax, law in zip(axes[0], ("A", "B"), strict=True):
        part = own[own["law"] == law]
        for method in dict.fromkeys(part["method"]):
            means = part[part["method"] == method].groupby("kind")["skill"].mean().reindex(RANGES)
            ax.plot(range(len(RANGES)), means.clip(lower=-1.0), marker=".", label=method)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_xticks(range(len(RANGES)), RANGES)
        ax.set_xlabel("nearest rows that values come from")
    axes[0][0].set_ylabel("skill")
    axes[0][-1].legend(fontsize=6)
    return figure


MORE = (
    Experiment(
        "audit-small",
        "Audit: tables of scikit-learn's own, looked at once, with all their rows as training rows",
        _small_runs,
        tabulate_skill,
        _show_small,
        _draw,
        note="Mean over black boxes and (the worst). No probe rows are given: each row is one of fits without it. "
        "At most 100 test rows; law B takes values from the rows asked about where there are no others. Wine has three "
        "classes, each row is asked about for the one predicted, and peers are left out. Nothing was chosen on "
        "Diabetes and Cancer; tests of classes used Wine before. " + LAWS,
        seeds=1,
        synthetic=False,
        cell=(*CELL, "method"),
    ),
    Experiment(
        "audit-questions",
        "Audit: what curves foresee by how many questions the black box is asked at fit",
        _asked_runs,
        tabulate_skill,
        _show_asked,
        _draw,
        note="Mean over cells and (the worst): Adult, Weather, German and Bike, XGBoost and LightGBM. The default is "
        "500,000. " + LAWS,
        seeds=1,
        synthetic=False,
        cell=(*CELL, "method"),
    ),
)
