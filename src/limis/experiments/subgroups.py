"""What weighs for whom on Adult and Weather: the paper's heat maps, and whether what it observes of them holds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.columns import show_number
from limis.errors import require
from limis.experiments.experiment import Experiment
from limis.experiments.protocol import Scope
from limis.experiments.real_problem import RealProblem
from limis.experiments.runs import Run
from limis.experiments.subgroup_claims import ADULT, EXTREMES, N_RESAMPLES, SAME, WEATHER, Look, judge_sensitive
from limis.experiments.subgroup_runs import GroupedRows, GroupsRun
from limis.plots.subgroups import CELL_HEIGHT, CELL_WIDTH, LABELS, LEAST_HEIGHT, heatmap, norm_for, with_size
from limis.subgroups import Subgroups
from limis.subgroups.resampling import FEWEST
from limis.subgroups.result import summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEIGHT, FIDELITY, CLAIM, SENSITIVE = "weight", "fidelity", "claim", "sensitive column"
COLUMNS = (
    *("kind", "family", "group", "observation", "column", "rows", "value", "low", "high"),
    *("rows against", "value against", "verdict", "by contributions"),
)
TEXTS = ("family", "group", "observation", "column", "verdict", "by contributions")


# --- from rows to a tidy table --------------------------------------------------------------------------


def _runs(look: Look, scope: Scope) -> list[Run]:
    return [GroupsRun(RealProblem(look.data, "XGBoost", 0, scope.tests, scope.rows, scope.quick))]


def _tabulate(look: Look, outcomes: list[GroupedRows]) -> pd.DataFrame:
    (every,) = outcomes
    grouped = every.part(look.chosen(every.sampled))
    masks = {group.name: group.mask(grouped.frame) for groups in look.families.values() for group in groups}
    filled = {name: mask for name, mask in masks.items() if mask.any()}
    rng = np.random.default_rng(0)
    found = summarise(grouped.rows, filled, "coefficients", N_RESAMPLES, rng)
    lines = _group_lines(look, found)
    lines += [{"kind": CLAIM, **one} for one in look.judged(grouped.rows.weight, grouped.contributions, grouped.frame)]
    if look.sensitive:
        contributed = replace(grouped.rows, weight=grouped.contributions)
        lines += _sensitive_lines(look, found, summarise(contributed, filled, "contributions", N_RESAMPLES, rng))
    table = pd.DataFrame(lines).reindex(columns=list(COLUMNS))
    return table.fillna(dict.fromkeys(TEXTS, ""))


def _group_lines(look: Look, found: Subgroups) -> list[dict[str, Any]]:
    """A line a group and column, and one a group and measure of fidelity; a group without rows is told as such."""
    lines: list[dict[str, Any]] = []
    for family, groups in look.families.items():
        for name in (group.name for group in groups):
            line = {"family": family, "group": name, "rows": int(found.sizes.get(name, 0))}
            weights = {"value": found.values, "low": found.low, "high": found.high}
            lines += [
                {"kind": WEIGHT, **line, "column": column}
                | {end: frame[column].get(name, np.nan) for end, frame in weights.items()}
                for column in found.values
            ]
            if line["rows"]:
                lines += [{"kind": FIDELITY, **line, **one} for one in _fidelity(found.fidelity.T[name])]
    return lines


def _fidelity(of: pd.Series) -> list[dict[str, Any]]:
    return [
        {
            "column": name,
            "value": of[name],
            "low": of.get(f"{name} low", np.nan),
            "high": of.get(f"{name} high", np.nan),
        }
        for name in ("nse", "lmae", "trusted", "effective_rows", "error")
    ]


def _sensitive_lines(look: Look, found: Subgroups, contributed: Subgroups) -> list[dict[str, Any]]:
    return [
        {
            "kind": SENSITIVE,
            "observation": f"{column} has no high weight in most groups",
            "column": column,
            **judge_sensitive(column, found),
            "by contributions": judge_sensitive(column, contributed)["verdict"],
        }
        for column in look.sensitive
    ]


# --- what is printed and drawn --------------------------------------------------------------------------


def _show(table: pd.DataFrame) -> pd.DataFrame:
    """A line an observation of the paper."""
    judged = table[table["kind"].isin([CLAIM, SENSITIVE])]
    return pd.DataFrame(
        {
            "observation": line["observation"],
            **(_shown_claim(line) if line["kind"] == CLAIM else _shown_sensitive(line)),
            "verdict": line["verdict"],
            "by contributions": line["by contributions"],
        }
        for line in judged.to_dict("records")
    )


def _shown_claim(line: dict[Hashable, Any]) -> dict[str, str]:
    few = f", fewer than {FEWEST}" if min(line["rows"], line["rows against"]) < FEWEST else ""
    difference = line["value"] - line["value against"]
    ends = "" if few else f"{_number(difference)} ({_number(line['low'])} to {_number(line['high'])})"
    return {
        "rows": f"{line['rows']:.0f} and {line['rows against']:.0f}{few}",
        "weights": f"{_number(line['value'])} and {_number(line['value against'])}",
        "difference (95% interval)": ends,
    }


def _shown_sensitive(line: dict[Hashable, Any]) -> dict[str, str]:
    heavy, light = line["value"], line["value against"]
    return {
        "rows": f"{line['rows']:.0f} groups",
        "weights": f"clearly above the median column in {heavy:.0f}, below in {light:.0f}",
        "difference (95% interval)": "",
    }


def _number(value: float) -> str:
    return "none" if np.isnan(value) else show_number(value, 3)


def _draw(table: pd.DataFrame) -> Figure:
    cells = table[table["kind"] == WEIGHT]
    columns = list(cells["column"].unique())
    families = {str(family): part for family, part in cells.groupby("family", sort=False)}
    wide = {
        family: part.pivot_table(index="group", columns="column", values="value", sort=False, dropna=False)
        .reindex(index=part["group"].unique(), columns=columns)
        .astype(float)
        for family, part in families.items()
    }
    heights = [len(part) for part in wide.values()]
    size = (5.2 + CELL_WIDTH * len(columns), max(LEAST_HEIGHT, 1.6 + CELL_HEIGHT * sum(heights) + 0.35 * len(heights)))
    figure = require("matplotlib.figure", "plots").Figure(figsize=size, layout="constrained", dpi=130)
    axes = figure.subplots(len(wide), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    norm = norm_for(pd.concat(list(wide.values())))
    for place, (ax, (family, values)) in enumerate(zip(axes, wide.items(), strict=True)):
        sizes = families[family].drop_duplicates("group").set_index("group")["rows"]
        names = [_with_size(group, int(sizes[group])) for group in values.index]
        heatmap(ax, values, names, norm, column_names=place == len(wide) - 1)
        ax.set_title(family, loc="left", fontsize="medium")
    figure.colorbar(axes[0].images[0], ax=list(axes), label=LABELS["coefficients"], pad=0.02)
    return figure


def _with_size(group: str, n: int) -> str:
    return with_size(group, n) + (" too few" if n < FEWEST else "")


# --- the experiments --------------------------------------------------------------------------------------

NOTE = (
    "XGBoost, the default explainer with ridges, test rows of seed 0. A weight is the mean over a group's rows of the "
    "absolute coefficient, in logits, of a column scaled to [0, 1] over the training rows; of a category it is the "
    "mean absolute difference between two of its levels. So a column with a long tail weighs for all of its range, of "
    "which most rows see little: the last column judges by mean absolute contributions instead. An observation holds, "
    "or does not, where the 95% interval of the difference, from resampled rows, is above or below zero; otherwise, "
    f"and from fewer than {FEWEST} rows, it cannot be told. The paper gives heat maps without numbers."
)


def _experiment(name: str, description: str, look: Look, note: str) -> Experiment:
    return Experiment(
        name,
        description,
        partial(_runs, look),
        partial(_tabulate, look),
        _show,
        _draw,
        note=f"{NOTE} {note}",
        seeds=1,
        synthetic=False,
    )


GROUPS_OF_ROWS = (
    _experiment(
        "subgroups-adult",
        "Adult, XGBoost, ridge: what weighs by age, gender, marital status, race and education",
        ADULT,
        "A sensitive column has no high weight in a group where its whole interval is below the median column's "
        "weight, and a high one where it is above; 'most' are more than half of the groups.",
    ),
    _experiment(
        "subgroups-weather",
        "Weather, XGBoost, ridge: what weighs by rain, wind, humidity, pressure and temperature",
        WEATHER,
        "The paper's 'humidity' may be that of 9am or of 3pm, so both are judged. Fast wind and low pressure have no "
        "borders in its text; here they are above 25 km/h and at most 1,005 hPa.",
    ),
    _experiment(
        "subgroups-weather-extremes",
        "Weather, XGBoost, ridge: what weighs on dry, calm and hot days and on wet, windy and cold ones",
        EXTREMES,
        "Dry, calm and hot is a rainfall of at most 1, a wind speed at 3pm of at most 5 and a temperature at 3pm above "
        "30; wet, windy and cold is above 15, above 25 and below 10. Such days are rare: all test rows are searched "
        "for them, not only those that other tables rest on. Intervals of so few rows are widened as Student's are. A "
        f"difference does not hold where the whole interval is within {SAME:.0%} of the mean of both weights.",
    ),
)
