"""Reasons in the audit: those of curves against SHAP's, and against others' by as many questions, cell by cell."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.experiments import figures
from limis.experiments.audit_methods import (
    BARS,
    BUDGETS,
    CURVES,
    ESTIMATORS,
    GAMES,
    PAIR_GAMES,
    PAIR_INDICES,
    SHAP,
    by_estimator,
    reasons_by,
)
from limis.experiments.audit_paired import ALPHA, differences, holm
from limis.experiments.audit_problem import BOXES
from limis.experiments.audit_runs import Audited, runs_of
from limis.experiments.audit_tables import LAWS
from limis.experiments.experiment import Experiment
from limis.experiments.protocol import Scope
from limis.experiments.real_problem import LOADERS, MORE_LOADERS
from limis.experiments.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Pairs = dict[str, list[tuple[str, str]]]  # by what both may ask: who is held against whom

ALONE: Pairs = {"nothing asked": [(BARS, SHAP), (CURVES, SHAP), *((CURVES, name) for name in PAIR_INDICES)]}
ASKED: Pairs = {
    f"{times} questions a column": [
        *((reasons_by(times), by_estimator(estimator, times)) for estimator in ESTIMATORS),
        (reasons_by(times), SHAP),
    ]
    for times in BUDGETS
}


def _runs(scope: Scope, groups: tuple[str, ...]) -> list[Run]:
    return [run for data in (*LOADERS, *MORE_LOADERS) for run in runs_of(scope, data, BOXES, groups)]


def tabulate_why(outcomes: list[Audited], compared: Pairs) -> pd.DataFrame:
    """A line a comparison, cell and law: skill of both on the rows that both explain, groups of all sizes together."""
    cells: dict[tuple[Any, ...], dict[str, pd.DataFrame]] = {}
    for one in outcomes:
        problem = one.run.problem
        own = one.by_row[one.by_row["family"] == "reasons"]
        for method, part in own.groupby("method", sort=False):
            summed = part.groupby(["law", "family", "row"], as_index=False)[["missed", "moved"]].sum()
            cells.setdefault((problem.data, problem.box, problem.seed), {})[str(method)] = summed.assign(kind="all")
    lines = [
        {"data": cell[0], "box": cell[1], "seed": cell[2], "pairs": pairs, **line, **_skills(methods, line)}
        for cell, methods in cells.items()
        for pairs, both in compared.items()
        for first, second in both
        if first in methods and second in methods
        for line in differences(first, methods[first], second, methods[second])
    ]
    found = pd.DataFrame(lines)
    if found.empty:
        return found
    for place in found.groupby("pairs").groups.values():
        for side in ("ahead", "behind"):
            found.loc[place, f"p_{side}"] = holm(found.loc[place, f"p_{side}"].to_numpy())
    return found.round(5)


def _skills(methods: dict[str, pd.DataFrame], line: dict[str, Any]) -> dict[str, float]:
    """Skill of both on the rows that both explain."""
    parts = [methods[line[name]] for name in ("first", "second")]
    parts = [part[part["law"] == line["law"]].set_index("row") for part in parts]
    rows = parts[0].index.intersection(parts[1].index)
    told = [float(1 - part.loc[rows, "missed"].sum() / part.loc[rows, "moved"].sum()) for part in parts]
    return {"first_skill": told[0], "second_skill": told[1]}


def _show(table: pd.DataFrame) -> pd.DataFrame:
    """For each comparison and law: both skills, the difference and its extremes over cells, and who is ahead."""
    lines = []
    for (first, second, law), part in table.groupby(["first", "second", "law"], sort=False):
        worst = part.iloc[int(part["difference"].argmin())]
        lines.append(
            {
                "method": first,
                "against": second,
                "law": law,
                "cells": len(part),
                "skill": f"{part['first_skill'].mean():.3f}",
                "of the other": f"{part['second_skill'].mean():.3f}",
                "mean difference": f"{part['difference'].mean():+.3f}",
                "least": f"{worst['difference']:+.3f} ({worst['data']}, {worst['box']})",
                "ahead": int((part["p_ahead"] <= ALPHA).sum()),
                "behind": int((part["p_behind"] <= ALPHA).sum()),
            }
        )
    return pd.DataFrame(lines)


def _draw(table: pd.DataFrame) -> Figure:
    """Skill of the reasons against that of the others': a point a cell."""
    kinds = list(dict.fromkeys(table["pairs"]))
    figure, axes = figures.panels(kinds, 1, height=3.0)
    for ax, kind in zip(axes[0], kinds, strict=True):
        own = table[(table["pairs"] == kind) & (table["law"] == "A")]
        for (first, second), part in own.groupby(["first", "second"], sort=False):
            label = f"{first} / {second}" if kind in ALONE else second
            ax.scatter(part["second_skill"].clip(-1, 1), part["first_skill"].clip(-1, 1), s=8, alpha=0.6, label=label)
        ax.plot([-1, 1], [-1, 1], color="black", linewidth=0.6)
        ax.set_xlabel("skill of the other's reasons, law A")
        ax.legend(fontsize=5)
        ax.set_xlim(np.clip(own["second_skill"].min() - 0.05, -1, 1), 1)
        ax.set_ylim(np.clip(own["first_skill"].min() - 0.05, -1, 1), 1)
    axes[0][0].set_ylabel("skill of limis'")
    return figure


NOTE = (
    "Skill of reasons, the answer as zero that shares f(x) − base evenly among the columns; groups of all sizes "
    "together. SHAP's values are exact for trees. Ahead and behind: beyond chance, by Holm-adjusted p-values over all "
    "comparisons with as many questions. The committed lines are of revision 9 of the default, before mixtures were "
    "aimed. "
)


def _experiment(name: str, description: str, groups: tuple[str, ...], compared: Pairs, note: str) -> Experiment:
    return Experiment(
        name,
        description,
        partial(_runs, groups=groups),
        partial(tabulate_why, compared=compared),
        _show,
        _draw,
        note=NOTE + note + LAWS,
        seeds=1,
        synthetic=False,
    )


WHY = (
    _experiment(
        "audit-why",
        "Audit: reasons of curves, which ask nothing, against SHAP's and against values of pairs",
        (CURVES, SHAP, PAIR_GAMES),
        ALONE,
        "Bars alone leave pairs out, and share the rest. Values of pairs are of 20 rows, not of forests, by 2,000 "
        "groups of columns, each replaced by those of all 100 reference rows: 200,000 questions a row. ",
    ),
    _experiment(
        "audit-why-asked",
        "Audit: reasons by questions about the row against others' by as many questions, and against SHAP's",
        ("limis, reasons by questions", GAMES, SHAP),
        ASKED,
        "Each row has so many questions for each of its columns, and 40 rows are explained; RegressionMSR and "
        "ProxySHAP are written after their papers, the others are shapiq's. ",
    ),
)
