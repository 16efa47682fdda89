"""Methods of the audit held against each other on the same questions: differences of skill, row by row.

Who is ahead of whom is told by intervals over rows that both were asked about; where many are compared at once, by
p-values that Holm's method raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from limis.experiments import figures
from limis.experiments.audit_methods import (
    CEILING,
    CURVES,
    CURVES_20D,
    CURVES_200,
    CURVES_OF_F,
    RIDGE,
    SPEAKERS,
    TREE,
    speaker,
)
from limis.fidelity.audit.figures import DRAWS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from limis.experiments.audit_runs import Audited

READABLE = (RIDGE, TREE, "LIME", "LIME, quartiles", "SILO", "MAPLE", "global ridge", "global tree")
ALPHA = 0.05
QUESTIONS = "questions about the row"
OF_CEILING = 0.85  # what is wanted of curves
OF_A_BOOSTER = f"{OF_CEILING:.0%} of an unreadable booster's skill against curves"
# What is asked of a comparison: is the first ahead of the second?
PAIRS: dict[str, list[tuple[str, str]]] = {
    "readable peers against curves": [(peer, CURVES) for peer in (*READABLE, "nothing changes")],
    OF_A_BOOSTER: [(CEILING, CURVES)],
    QUESTIONS: [(CURVES_200, CURVES), (CURVES_20D, CURVES), (CURVES_OF_F, CURVES)],
    "who speaks, with the taught model": [
        (speaker("learned", True), speaker(other, True)) for other in SPEAKERS if other != "learned"
    ],
    "who speaks, without it": [
        (speaker("learned", False), speaker(other, False)) for other in SPEAKERS if other not in ("learned", "none")
    ],
}
NOTE = (
    "Difference of pooled skills on the questions that both were asked, with 95% intervals from rows drawn with "
    "replacement; a figure each cell, law and kind of question. Ahead and behind: beyond chance, by Holm-adjusted "
    "p-values over all comparisons of the pair's kind. Of the gap: how much of the way from the curves without "
    "questions to those of the model itself, asked about every value that is shown, over all figures, and in the cell "
    "with the least. "
)


def tabulate_pairs(outcomes: list[Audited]) -> pd.DataFrame:
    """A line a comparison, cell, law and kind of question."""
    cells: dict[tuple[Any, ...], dict[str, pd.DataFrame]] = {}
    for one in outcomes:
        problem = one.run.problem
        own = one.by_row[(one.by_row["subset"] == "all") & one.by_row["family"].isin(("single", "joint"))]
        for method, part in own.groupby("method", sort=False):
            cells.setdefault((problem.data, problem.box, problem.seed), {})[str(method)] = part
    lines = [
        {"data": cell[0], "box": cell[1], "seed": cell[2], "pairs": pairs, **line}
        for cell, methods in cells.items()
        for pairs, compared in PAIRS.items()
        for first, second in compared
        if first in methods and second in methods
        for line in differences(
            first, methods[first], second, methods[second], OF_CEILING if pairs == OF_A_BOOSTER else 1
        )
    ]
    found = pd.DataFrame(lines)
    if found.empty:  # no cell has both of any pair yet
        return found
    for place in found.groupby("pairs").groups.values():
        for side in ("ahead", "behind"):
            found.loc[place, f"p_{side}"] = holm(found.loc[place, f"p_{side}"].to_numpy())
    return found.round(5)


def differences(
    first: str, one: pd.DataFrame, second: str, two: pd.DataFrame, share: float = 1
) -> Iterator[dict[str, Any]]:
    """Such a share of the first's skill less the second's, on the rows that both explain."""
    rng = np.random.default_rng(0)
    keys = ["law", "family", "kind"]
    both = one.merge(two, on=[*keys, "row"], suffixes=("", "_two"))
    for (law, family, kind), part in both.groupby(keys, sort=False):
        missed, other, moved = (part[name].to_numpy() for name in ("missed", "missed_two", "moved"))
        if len(part) < 2 or moved.sum() <= 0:
            continue
        drawn = rng.integers(len(part), size=(DRAWS, len(part)))
        total = moved[drawn].sum(axis=1)
        less = other - share * missed
        again = (less[drawn].sum(axis=1) / np.where(total > 0, total, np.nan))[total > 0] - (1 - share)
        difference = float(less.sum() / moved.sum()) - (1 - share)
        spread = float(again.std()) if len(again) else 0.0
        score = difference / spread if spread > 0 else 0.0
        low, high = np.quantile(again, (0.025, 0.975))
        yield {
            "first": first,
            "second": second,
            "law": law,
            "family": family,
            "kind": kind,
            "rows": len(part),
            "difference": difference,
            "low": float(low),
            "high": float(high),
            "p_ahead": float(norm.sf(score)),
            "p_behind": float(norm.cdf(score)),
        }


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values: rejecting those at most α errs anywhere with a probability of at most α.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    raised = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    found = np.empty(len(p_values))
    found[order] = np.minimum(raised, 1.0)
    return found


def show_pairs(table: pd.DataFrame) -> pd.DataFrame:
    """For each pair: mean difference, its extremes, and in how many figures the first is ahead or behind."""
    lines, whole = [], table[table["first"] == CURVES_OF_F].groupby(["law", "family"])
    for (first, second, law, family), part in table.groupby(["first", "second", "law", "family"], sort=False):
        gap = whole.get_group((law, family)) if second == CURVES and (law, family) in whole.groups else None
        lines.append(
            {
                "method": first,
                "against": second,
                "law": law,
                "changes": family,
                "cells": part.groupby(["data", "box", "seed"]).ngroups,
                "figures": len(part),
                "mean difference": f"{part['difference'].mean():+.3f}",
                "least": f"{part['difference'].min():+.3f}",
                "most": f"{part['difference'].max():+.3f}",
                "ahead": int((part["p_ahead"] <= ALPHA).sum()),
                "behind": int((part["p_behind"] <= ALPHA).sum()),
                "of the gap": "" if gap is None or part["pairs"].iloc[0] != QUESTIONS else _closed(part, gap),
            }
        )
    return pd.DataFrame(lines)


def _closed(part: pd.DataFrame, whole: pd.DataFrame) -> str:
    """How much of the way to the model's own curves: over all figures, and (in the worst cell)."""
    cell = ["data", "box", "seed"]
    both = part.merge(whole, on=[*cell, "kind"], suffixes=("", "_whole"))
    by_cell = both.groupby(cell)[["difference", "difference_whole"]].sum()
    shares = by_cell["difference"] / by_cell["difference_whole"].where(by_cell["difference_whole"] > 0)
    total = both["difference"].sum() / both["difference_whole"].sum()
    return f"{total:.2f} ({shares.min():.2f})"


def draw_pairs(table: pd.DataFrame) -> Figure:
    """Differences on single changes by law A against those by law B: a point a cell and range."""
    kinds = list(dict.fromkeys(table["pairs"]))
    figure, axes = figures.panels(kinds, 1, height=3.0)
    own = table[table["family"] == "single"]
    for ax, kind in zip(axes[0], kinds, strict=True):
        part = own[own["pairs"] == kind]
        keys = ["data", "box", "seed", "first", "second", "kind"]
        by_law = part.pivot_table(index=keys, columns="law", values="difference")
        for (first, second), points in by_law.groupby(level=["first", "second"], sort=False):
            label = first if kind.startswith(("readable", "questions")) else second
            ax.scatter(points["A"].clip(-1, 1), points["B"].clip(-1, 1), s=8, alpha=0.6, label=label)
        ax.axhline(0, color="black", linewidth=0.6)
        ax.axvline(0, color="black", linewidth=0.6)
        ax.set_xlabel("difference of skill, law A")
        ax.legend(fontsize=6)
    axes[0][0].set_ylabel("law B")
    return figure
