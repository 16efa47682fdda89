"""The audit's tables: every method on every data set and black box, by both laws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.errors import InputError
from limis.experiments import figures
from limis.experiments.audit_methods import (
    BARS,
    CEILING,
    CURVES,
    CURVES_20D,
    CURVES_200,
    CURVES_OF_F,
    GROUPS,
    QUERIES,
    RIDGE,
    SHAP,
    SHAP_AGAIN,
    TREE,
    UNTIL,
)
from limis.experiments.audit_paired import NOTE as PAIRS_NOTE
from limis.experiments.audit_paired import OF_CEILING, READABLE, draw_pairs, show_pairs, tabulate_pairs
from limis.experiments.audit_problem import BOXES
from limis.experiments.audit_runs import Audited, AuditRun, runs_of
from limis.experiments.experiment import Experiment
from limis.experiments.protocol import Scope
from limis.experiments.real_problem import LOADERS, MORE_LOADERS
from limis.experiments.runs import Run
from limis.fidelity.audit.figures import BY_BAR, REMOVAL, SHAPLEY, skills
from limis.fidelity.audit.figures import stability as compare
from limis.fidelity.audit.methods import Method

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL = ["data", "box", "seed"]
OWN = "its own moves"
SAME = 1e-3  # how far what f did may differ between the runs of a cell, made on several machines
AGAIN = f"{CURVES}, another seed"
LOWEST_CEILING = 0.2  # of the ceiling's skill: below it nothing is wanted of curves
# Every fit costs minutes on wide tables.
NOT_AGAIN = ("Blog", "News")
BASELINES = ("nothing changes", "blind answer")
METHODS = (
    *(
        CURVES,
        BARS,
        UNTIL,
        CURVES_200,
        CURVES_20D,
        CURVES_OF_F,
        RIDGE,
        QUERIES,
        TREE,
        "LIME",
        "LIME, quartiles",
        SHAP,
        SHAP_AGAIN,
        "SILO",
        "MAPLE",
        "global ridge",
        "global tree",
    ),
    CEILING,
)
RANGES = ["10", "50", "200", "1000", "any"]
JOINT = ["2, near", "2, any", "3, near", "3, any", "half, near", "half, any"]
SIZES = ["one or two", "half", "every size"]
LAWS = (
    "Law A takes values from the k nearest training rows; law B from held-out rows within the distance of the k-th "
    "nearest training row, changes columns that vary together, and replaces groups by rows alike in what is kept. "
)
NOTE = LAWS + (
    "Cells: how many of the 28, seven data sets by four black boxes, are finished. "
    "Skill is 1 − Σ(Δf − Δg)²/ΣΔf², of reasons with the answer as zero that shares f(x) − base evenly among the "
    "columns. 1,000 test rows a cell, German all of its 200, and the first 100 of them for reasons; LIME 50. Few rows "
    "can carry most squares, so the JSON has the median over rows, the share of rows below zero and 95% intervals "
    "beside each figure. SILO and MAPLE have the better of two penalties by law A on probe rows. SHAP is TreeSHAP, "
    "interventional, and permutation SHAP for the MLP and where TreeSHAP does not add up to the model's own output; "
    "attributions say nothing of changes. "
    "Ridges, trees and peers were run before curves were the default, and ridges before their slopes had ends; curves "
    "with questions, until trusted, and with another seed before mixtures were aimed (revisions up to 9; curves: 11)."
)


def _runs(scope: Scope) -> list[Run]:
    return [
        run
        for data in (*LOADERS, *MORE_LOADERS)
        for run in runs_of(scope, data, BOXES, GROUPS)
        if not (run.group == "limis, another seed" and data in NOT_AGAIN)
    ]


def _cell(run: AuditRun) -> dict[str, Any]:
    return {"data": run.problem.data, "box": run.problem.box, "seed": run.problem.seed}


# --- skill ------------------------------------------------------------------------------------------------------------


def tabulate_skill(outcomes: list[Audited]) -> pd.DataFrame:
    """Skill of every method by cell, law and kind of question."""
    parts, seen = [], set()
    check_same_questions(outcomes)
    for one in outcomes:
        cell = tuple(_cell(one.run).values())
        own = one.by_row[~one.by_row["method"].isin([AGAIN, *(BASELINES if cell in seen else ())])]
        if one.run.group == "limis, another seed":
            continue
        seen.add(cell)
        keep = (own["subset"] == "all") | (own["family"] == "single")
        table = skills(own[keep])
        for place, (name, value) in enumerate(_cell(one.run).items()):
            table.insert(place, name, value)
        parts.append(table)
    found = pd.concat(parts, ignore_index=True)
    numbers = found.select_dtypes("float").columns
    return found.assign(**{name: found[name].round(4) for name in numbers})


def check_same_questions(outcomes: list[Audited]) -> None:
    """All methods of a cell were asked the same: what f did, summed by kind of question, agrees between their runs."""
    asked: dict[tuple[Any, ...], pd.Series] = {}
    for one in outcomes:
        cell = tuple(_cell(one.run).values())
        own = one.by_row[(one.by_row["method"] == "nothing changes") & (one.by_row["subset"] == "all")]
        moved = own.groupby(["law", "family", "kind"])["moved"].sum()
        other = asked.setdefault(cell, moved)
        if not (moved.index.equals(other.index) and np.allclose(moved, other, rtol=SAME)):
            raise InputError(
                f"the runs of {one.run.problem} were asked different questions: black boxes fitted on two machines "
                "differ; remove the runs of one of them from the cache and make them anew"
            )


def _tabulate_verdicts(outcomes: list[Audited]) -> pd.DataFrame:
    """The skills, with one line more a cell: ridges' by the moves that they are fitted on and chosen by."""
    own = [
        {**_cell(one.run), "law": OWN, "family": "single", "kind": OWN, "subset": "all", "method": RIDGE}
        | {"skill": round(one.own_moves, 4)}
        for one in outcomes
        if np.isfinite(one.own_moves)
    ]
    table = tabulate_skill(outcomes)
    table = table[(table["family"] == "single") & (table["subset"] == "all")]
    return pd.concat([table, pd.DataFrame(own)], ignore_index=True)


def _show_skill(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and worst cell of every method, by law and kind of question, what is not known left out."""
    own = table[table["subset"] == "all"]
    lines = []
    for method in METHODS:
        for law in ("A", "B"):
            part = own[(own["method"] == method) & (own["law"] == law)]
            if part.empty:
                continue
            line = {"method": method, "law": law, "cells": part.groupby(CELL).ngroups}
            for family, kinds in (("single", RANGES), ("joint", JOINT), ("reasons", SIZES)):
                for kind in kinds:
                    found = part[(part["family"] == family) & (part["kind"] == kind)]["skill"].dropna()
                    name = {"single": f"k = {kind}", "joint": kind, "reasons": f"why, {kind}"}[family]
                    line[name] = f"{in_short(found.mean())} ({in_short(found.min())})" if len(found) else ""
            lines.append(line)
    return pd.DataFrame(lines)


def in_short(value: float) -> str:
    """Two digits, or the size of what is absurd."""
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0e}"


def _draw_skill(table: pd.DataFrame) -> Figure:
    """Skill against range, a panel a law and black box: the median over data sets, and the zero line."""
    boxes = list(dict.fromkeys(table["box"]))
    figure, axes = figures.panels(boxes, 2, height=2.6)
    own = table[(table["subset"] == "all") & (table["family"] == "single")]
    for row, law in zip(axes, ("A", "B"), strict=True):
        row[0].set_ylabel(f"skill, law {law}")
        for ax, box in zip(row, boxes, strict=True):
            part = own[(own["box"] == box) & (own["law"] == law)]
            for method in [name for name in METHODS if name in set(part["method"])]:
                middle = part[part["method"] == method].groupby("kind")["skill"].median().reindex(RANGES)
                style = {"linewidth": 2.4} if method == CURVES else {"linewidth": 1, "alpha": 0.8}
                ax.plot(range(len(RANGES)), middle.clip(lower=-1.0), marker=".", label=method, **style)
            ax.axhline(0, color="black", linewidth=0.8)
            ax.set_xticks(range(len(RANGES)), RANGES)
            ax.set_ylim(-1.05, 1.05)
    axes[-1][0].set_xlabel("nearest rows that values come from")
    axes[0][-1].legend(fontsize=6)
    return figure


# --- promises ---------------------------------------------------------------------------------------------------------


def _lines(outcomes: list[Audited], name: str) -> pd.DataFrame:
    parts = [
        one.tables[name].assign(**_cell(one.run))
        for one in outcomes
        if name in one.tables and len(one.tables[name]) and one.run.group != "limis, another seed"
    ]
    found = pd.concat(parts, ignore_index=True)
    return found[[*CELL, *(column for column in found if column not in CELL)]]


def _tabulate_promises(outcomes: list[Audited]) -> pd.DataFrame:
    kept = _lines(outcomes, "coverage").assign(what="bound kept")
    trusted = _lines(outcomes, "trust").assign(what="trusted")
    told = [kept, trusted]
    if any(len(one.tables.get("intervals", ())) for one in outcomes):
        told.append(_lines(outcomes, "intervals").assign(what="interval kept", sort="all rows"))
    return pd.concat(told, ignore_index=True).round(4)


def _show_promises(table: pd.DataFrame) -> pd.DataFrame:
    """How often bounds hold: mean and worst cell, by law and range; and what trusted rows are worth."""
    lines = []
    bounds = table[(table["what"] == "bound kept") & (table["sort"] == "all rows") & (table["rows"] > 0)]
    # Runs from before trust was a promise tell another thing under the name.
    promised = table["asked_both"].notna() if "asked_both" in table else np.zeros(len(table), dtype=bool)
    trusted = table[(table["what"] == "trusted") & (table["sort"] == "all rows") & promised]
    for method in [name for name in METHODS if name in set(bounds["method"])]:
        for law in ("A", "B"):
            own = bounds[(bounds["method"] == method) & (bounds["law"] == law)]
            line = {"method": method, "law": law, "promised": f"{own['promised'].mean():.0%}"}
            for kind in RANGES:
                found = own[own["range"] == kind]["kept"].dropna()
                line[f"kept, k = {kind}"] = f"{found.mean():.0%} ({found.min():.0%})" if len(found) else ""
            rows = trusted[(trusted["method"] == method) & (trusted["law"] == law)]
            line |= _kept_by_trusted(rows)
            told = table[(table["what"] == "interval kept") & (table["method"] == method) & (table["law"] == law)]
            for name, words in (("kept", "intervals kept"), ("moving_kept", "where the model moves")):
                found = told[name].dropna() if name in told else told["kept"][:0]
                line[words] = f"{found.mean():.0%} ({found.min():.0%})" if len(found) else ""
            lines.append(line)
    return pd.DataFrame(lines).fillna("")


def _kept_by_trusted(rows: pd.DataFrame) -> dict[str, str]:
    """What trusted rows keep of what is promised, over cells."""
    if rows.empty:
        return {}
    moving = rows["rows"] * (1 - rows["flat"])
    line = {
        "trust in cells": str(len(rows)),
        "trusted, of rows not flat": f"{np.average(rows['trusted'].fillna(0), weights=moving):.0%}",
    }
    for name, words in (("foresee", "of these foresee half"), ("reasons_hold", "reasons hold")):
        weight = (rows["trusted"] * moving).where(rows[name].notna(), 0)
        line[words] = f"{np.average(rows[name].fillna(0), weights=weight):.0%}" if weight.sum() else ""
    asked = rows["asked_both"].sum()
    return line | {"keep both": f"{rows['keep_both'].sum() / asked:.1%} of {asked:,.0f}" if asked else ""}


def _draw_promises(table: pd.DataFrame) -> Figure:
    """Promised against kept, by quintile of the bound: a point a cell."""
    figure, axes = figures.panels(["A", "B"], 1, height=3.0)
    own = table[(table["what"] == "bound kept") & table["sort"].str.startswith("trust quintile")]
    for ax, law in zip(axes[0], ("A", "B"), strict=True):
        part = own[(own["law"] == law) & (own["method"] == CURVES)]
        for place, quintile in enumerate(sorted(part["sort"].unique())):
            found = part[part["sort"] == quintile]["kept"].dropna()
            ax.scatter(np.full(len(found), place + 1), found, s=8, alpha=0.4)
        ax.axhline(0.95, color="black", linewidth=0.8)
        ax.set_xlabel(f"quintile of the bound, the smallest first (law {law})")
    axes[0][0].set_ylabel("share of rows kept")
    return figure


# --- the strongest column, and stability ------------------------------------------------------------------------------


def _tabulate_reasons(outcomes: list[Audited]) -> pd.DataFrame:
    named = _lines(outcomes, "strongest").assign(what="strongest column")
    again = _lines(outcomes, "stability").assign(what="asked again")
    seeds = _between_seeds(outcomes).assign(what="asked again")
    return pd.concat([named, again, seeds], ignore_index=True).round(4)


def _between_seeds(outcomes: list[Audited]) -> pd.DataFrame:
    """Curves' reasons against those of a fit with another seed."""
    found = {(one.run.problem, name): own for one in outcomes for name, own in one.attributions.items()}
    lines = []
    for (problem, name), own in found.items():
        if name == AGAIN and (problem, CURVES) in found:
            both = (found[problem, which][: len(own)] for which in (CURVES, AGAIN))
            first, second = (Method(CURVES, len(own), attributions=held) for held in both)
            table = compare([first], {CURVES: {"another seed": second}})
            lines.append(table.assign(data=problem.data, box=problem.box, seed=problem.seed))
    return pd.concat(lines, ignore_index=True) if lines else pd.DataFrame()


def _show_reasons(table: pd.DataFrame) -> pd.DataFrame:
    """How often the strongest column and its sign are named, and how stable reasons are: mean and worst cell."""
    lines = []
    for method in [name for name in METHODS if name in set(table["method"])]:
        own, line = table[table["method"] == method], {"method": method}
        for by in (REMOVAL, BY_BAR, SHAPLEY):
            part = own[(own["what"] == "strongest column") & (own["by"] == by)]
            for name, words in (("same_column", "column"), ("same_sign", "sign")):
                found = part[name].dropna()
                line[f"{words}, by {by}"] = f"{found.mean():.0%} ({found.min():.0%})" if len(found) else ""
        found = part["importances"].dropna() if "importances" in part else pd.Series(dtype=float)
        line["rank of importances"] = f"{found.mean():.2f} ({found.min():.2f})" if len(found) else ""
        for why in ("jitter", "another seed", "other reference rows"):
            part = own[(own["what"] == "asked again") & (own["asked_again"] == why)]
            found = part["same_strongest"].dropna() if len(part) else part.get("same_strongest", pd.Series(dtype=float))
            line[f"same strongest, {why}"] = f"{found.mean():.0%} ({found.min():.0%})" if len(found) else ""
        lines.append(line)
    return pd.DataFrame(lines)


def _draw_reasons(table: pd.DataFrame) -> Figure:
    """How often the strongest column is named: a point a cell."""
    figure, axes = figures.panels([REMOVAL, BY_BAR, SHAPLEY], 1, height=3.0)
    own = table[table["what"] == "strongest column"]
    methods = list(own["method"].unique())
    for ax, by in zip(axes[0], (REMOVAL, BY_BAR, SHAPLEY), strict=True):
        for place, method in enumerate(methods):
            found = own[(own["method"] == method) & (own["by"] == by)]["same_column"].dropna()
            ax.scatter(found, np.full(len(found), place), s=8, alpha=0.5)
        ax.set_yticks(range(len(methods)), methods)
        ax.set_xlim(0, 1)
        ax.set_xlabel("share of rows whose strongest column is named")
    return figure


# --- beside the first round -------------------------------------------------------------------------------------------


def _show_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """For each cell: what the first round said of ridges, and what the audit says of them, curves, peers, ceiling."""
    lines = []
    for (data, box), cell in table.groupby(["data", "box"], sort=False):
        reach = next(kind for kind in ("200", "50", "10", "any") if kind in set(cell["kind"]))
        line: dict[str, Any] = {"data": data, "black box": box, "near is k =": reach}
        first = cell[cell["law"] == OWN]["skill"]
        line["first round: by its own moves"] = in_short(first.mean()) if len(first) else ""
        for law in ("A", "B"):
            for kind, words in ((reach, "near"), ("any", "any row")):
                asked = cell[(cell["law"] == law) & (cell["kind"] == kind)].set_index("method")
                for method, short in ((RIDGE, "ridge"), (CURVES, "curves")):
                    told = "unfinished"
                    if method in asked.index:
                        told = "{} ({} to {})".format(*map(in_short, asked.loc[method, ["skill", "low", "high"]]))
                    line[f"{law}, {words}, {short}"] = told
            found = cell[(cell["law"] == law) & (cell["kind"] == reach)].set_index("method")["skill"]
            peers = found[found.index.isin(READABLE) & ~found.index.isin((RIDGE, TREE))].dropna()
            line[f"{law}, best peer"] = f"{peers.idxmax()} {in_short(float(peers.max()))}" if len(peers) else ""
            line[f"{law}, ceiling"] = in_short(float(found.get(CEILING, np.nan)))
        lines.append(line)
    return pd.DataFrame(lines)


def _draw_verdicts(table: pd.DataFrame) -> Figure:
    """Ridges' skill by their own moves against that by each law: a point a cell."""
    figure, axes = figures.panels(["law A, k = 200", "law B, k = 200", "law A, any", "law B, any"], 1, height=2.6)
    own = table[table["law"] == OWN].set_index(CELL)["skill"]
    for ax, (law, kinds) in zip(
        axes[0], (("A", ("200", "50")), ("B", ("200", "50")), ("A", ("any",)), ("B", ("any",))), strict=True
    ):
        part = table[(table["law"] == law) & (table["method"] == RIDGE) & table["kind"].isin(kinds)]
        found = part.groupby(CELL)["skill"].last().reindex(own.index)
        ax.scatter(own.clip(-1, 1), found.clip(-1, 1), s=10)
        ax.plot([-1, 1], [-1, 1], color="black", linewidth=0.6)
        ax.axhline(0, color="black", linewidth=0.6)
    axes[0][0].set_ylabel("skill by the law")
    axes[0][0].set_xlabel("skill by its own moves")
    return figure


# --- beside the ceiling -----------------------------------------------------------------------------------------------


def _tabulate_ceiling(outcomes: list[Audited]) -> pd.DataFrame:
    """The skill of curves and of the ceiling on single changes."""
    table = tabulate_skill(outcomes)
    kept = (table["family"] == "single") & (table["subset"] == "all") & table["method"].isin((CURVES, CEILING))
    return table.loc[kept, [*CELL, "law", "kind", "method", "skill"]].reset_index(drop=True)


def _show_ceiling(table: pd.DataFrame) -> pd.DataFrame:
    """For each cell and law the skill of curves, of the ceiling's, by range; below the share wanted it is marked."""
    by_method = table.pivot_table(index=[*CELL, "law", "kind"], columns="method", values="skill")
    both = by_method.reindex(columns=[CURVES, CEILING]).dropna()
    lines = []
    for (data, box, law), part in both.groupby(level=["data", "box", "law"], sort=False):
        line, means = {"data": data, "black box": box, "law": law}, part.groupby(level="kind").mean()
        own = dict(zip(means.index, means.to_numpy().tolist(), strict=True))
        for kind in RANGES:
            if kind in own:
                curves, ceiling = own[kind]
                short = ceiling > LOWEST_CEILING and curves < OF_CEILING * ceiling
                mark = " (short)" if short or curves < 0 else ""
                line[f"k = {kind}"] = f"{in_short(curves)} of {in_short(ceiling)}{mark}"
        lines.append(line)
    return pd.DataFrame(lines).fillna("")


def _draw_ceiling(table: pd.DataFrame) -> Figure:
    """Skill of curves against that of the ceiling: a point a cell and range."""
    figure, axes = figures.panels(["law A", "law B"], 1, height=3.0)
    for ax, law in zip(axes[0], ("A", "B"), strict=True):
        part = table[table["law"] == law].pivot_table(index=[*CELL, "kind"], columns="method", values="skill")
        part = part.reindex(columns=[CURVES, CEILING]).dropna().clip(-1, 1)
        ax.scatter(part[CEILING], part[CURVES], s=8, alpha=0.6)
        ax.plot([0, 1], [0, 1], color="black", linewidth=0.6)
        ax.plot([LOWEST_CEILING, 1], [OF_CEILING * LOWEST_CEILING, OF_CEILING], color="black", linewidth=0.6, ls=":")
        ax.set_xlabel("skill of the booster that nobody can read")
    axes[0][0].set_ylabel("skill of curves")
    return figure


def _experiment(
    name: str,
    description: str,
    tabulate: Any,
    show: Any,
    draw: Any,
    note: str,
    cell: tuple[str, ...] = (*CELL, "method"),
) -> Experiment:
    return Experiment(name, description, _runs, tabulate, show, draw, note=note, seeds=1, synthetic=False, cell=cell)


AUDIT = (
    _experiment(
        "audit-skill",
        "Audit: mean and (worst cell) of skill on changes by range, on joint changes, and of reasons, by both laws",
        tabulate_skill,
        _show_skill,
        _draw_skill,
        NOTE,
    ),
    _experiment(
        "audit-verdicts",
        "Audit: ridges by their own moves, as the first round measured them, beside both laws and curves, cell by cell",
        _tabulate_verdicts,
        _show_verdicts,
        _draw_verdicts,
        "The first round measured ridges, its default, by the moves that they are fitted on and chosen by. Near: from "
        "of the 200 nearest rows, or of the widest range below that the table is long enough for; 95% intervals over "
        "rows. " + LAWS,
    ),
    _experiment(
        "audit-ceiling",
        "Audit: curves beside a booster of fixed size that nobody can read, cell by cell",
        _tabulate_ceiling,
        _show_ceiling,
        _draw_ceiling,
        f"Wanted of curves: {OF_CEILING:.0%} of the booster's skill wherever that is above {LOWEST_CEILING}, and "
        "nowhere below zero; what falls short is marked. The booster has 500 trees of 63 leaves, taught what the black "
        "box says of all training rows and of 60,000 mixtures. " + LAWS,
    ),
    _experiment(
        "audit-promises",
        "Audit: how often the promised bound on the error on changes holds, mean and (worst cell), and what trust is",
        _tabulate_promises,
        _show_promises,
        _draw_promises,
        "The bound is promised for changes to values of the 200 nearest training rows. Of rows trusted it is promised "
        "that at least half of what those changes do is foreseen, and that reasons miss at most half of what groups of "
        "columns do; rows where the model is flat are counted apart. By law B groups are replaced by rows alike in "
        "what is kept, which no reasons against all training rows foretell, not even the model's own Shapley values. "
        + LAWS,
    ),
    _experiment(
        "audit-pairs",
        "Audit: who is ahead of whom on the same questions: peers, questions about the row, and who speaks",
        tabulate_pairs,
        show_pairs,
        draw_pairs,
        PAIRS_NOTE + LAWS,
        cell=(),  # p-values are of all comparisons together
    ),
    _experiment(
        "audit-reasons",
        "Audit: how often reasons name the truly strongest column and its sign, and are the same when asked again",
        _tabulate_reasons,
        _show_reasons,
        _draw_reasons,
        "Mean over cells and (worst cell). The strongest by single removal: the column whose replacement by reference "
        "rows changes f most, named by what is said of that or by the largest bar; by f's own Shapley values, from "
        "random orders of the columns, which have some noise. "
        "The rank of importances is that of mean sizes over the rows against those of f's own Shapley values. "
        "A jitter moves every number by a hundredth of its standard deviation, which moves f itself: TreeSHAP of "
        "jittered rows says by how much the reasons of boosters change.",
    ),
)
