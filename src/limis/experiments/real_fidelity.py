"""The paper's tables on real data, beside the peers: how well explanations follow the black box, and predict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from limis.experiments import figures
from limis.experiments.black_boxes import KINDS
from limis.experiments.experiment import Experiment
from limis.experiments.paper_real import SLIPS, TIMES
from limis.experiments.protocol import OWN_LAW, Scope
from limis.experiments.real_methods import (
    CEILING,
    COMPARED,
    LIME_TESTS,
    LIME_TESTS_OF_FORESTS,
    OF_LABELS,
    SAMPLED,
    SURROGATES,
    Surrogate,
)
from limis.experiments.real_problem import LOADERS, POSITIVE, RealProblem
from limis.experiments.real_runs import RealRun
from limis.experiments.real_tables import CELL, DEFAULT, PEERS, paper_key, tidy, verdicts
from limis.experiments.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FOLLOWS = {"nse": "NSE", "skill": "skill on changes"}
REGRESSION = tuple(name for name in LOADERS if name not in POSITIVE)
CLASSIFICATION = tuple(name for name in LOADERS if name in POSITIVE)
INFERENCES = ("LIMIS (paper)", SAMPLED)
SEVERAL_SEEDS = "XGBoost"  # the black box that all seeds are run for; the others have one
VERDICTS = ("best", "tied", "behind", "unfinished")
WORSE, NEGATIVE, SLIP = "▼", "▽", "†"
NOTE = (
    f"Error is MAE for regression and APR, of which more is better, for classification; {WORSE} marks one worse than "
    f"that of the global model fitted to the labels, {NEGATIVE} an NSE or skill below zero. {OWN_LAW} SILO "
    f"and MAPLE have the better of two penalties on probe rows, LIME the better of quartiles or none, for {LIME_TESTS} "
    f"of the test rows ({LIME_TESTS_OF_FORESTS} with forests, which answer slowly). Classification is on logits, or on "
    "probabilities where too many are 0 or 1, and the paper's black boxes are smoother than these: its numbers, in "
    "parentheses, cannot be compared with ours, only methods with each other."
)
_BLOG_MLP = "the MLP's own error on Blog is 4.893 beside ridges and 4.939 beside trees"
_FACEBOOK_LIGHTGBM = (
    "the LMAE of LIMIS on Facebook with LightGBM is 21.29 in one table and 8.217, which is the MLP's, in that of "
    "neighbours"
)


def runs_of(
    scope: Scope,
    data: Iterable[str],
    boxes: Iterable[str],
    surrogates: Iterable[Surrogate],
    groups: Iterable[str] = COMPARED,
) -> list[Run]:
    """Every group of methods in every cell."""
    return [
        RealRun(RealProblem(name, box, seed, scope.tests, scope.rows, scope.quick), surrogate, group)
        for name in data
        for box in boxes
        for seed in range(scope.seeds if box == SEVERAL_SEEDS else 1)
        for surrogate in surrogates
        for group in groups
    ]


def _runs_main(scope: Scope) -> list[Run]:
    return [*runs_of(scope, REGRESSION, KINDS, ["ridge"]), *runs_of(scope, CLASSIFICATION, KINDS, ["tree"])]


# --- texts ------------------------------------------------------------------------------------------------------------


def _number(value: float, digits: int = 4) -> str:
    """Four digits, whatever the size."""
    if np.isnan(value):
        return ""
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:.0f}"


def _with_paper(value: float, paper: float, mark: str = "", slip: str = "") -> str:
    return f"{_number(value)}{mark}" + ("" if np.isnan(paper) else f" ({_number(paper)}{slip})")


def _noting(*slips: str) -> str:
    """The note with what the paper says in two ways, or cannot mean."""
    return f"{NOTE} {SLIP} In the paper {'; '.join(slips)}."


def side_by_side(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """A line a data set and method, with the measures of each black box side by side."""
    lines = []
    for (data, surrogate), part in table.groupby(["data", "surrogate"], sort=False):
        for method in part["method"].unique():
            line = {"data": data, "local model": surrogate, "method": method}
            for box in [box for box in KINDS if box in set(part["box"])]:
                own = part[(part["method"] == method) & (part["box"] == box)]
                for measure in measures:
                    text = "" if own.empty else _text(own.iloc[0], part[part["box"] == box], measure)
                    line[f"{box} {measure}"] = text
            lines.append(line)
    return pd.DataFrame(lines)


def _text(line: pd.Series, cell: pd.DataFrame, measure: str) -> str:
    if line["method"] == OF_LABELS and measure != "error":
        return ""
    value, paper = float(line[measure]), float(line.get(f"{measure} paper", np.nan))
    mark = ""
    if measure in ("nse", "skill") and value < 0:
        mark = NEGATIVE
    if measure == "error":
        simple = cell.loc[cell["method"] == OF_LABELS, "error"]
        more_is_better = line["data"] in POSITIVE
        # A method that explained fewer rows stands apart: other rows are harder or easier.
        full = line["method"] == "Original" or line["tests"] == cell["tests"].max()
        if (
            full
            and len(simple)
            and (value < float(simple.iloc[0]) if more_is_better else value > float(simple.iloc[0]))
        ):
            mark = WORSE
    key = paper_key(line["data"], line["box"], line["surrogate"], line["method"], measure)
    return _with_paper(value, paper, mark, SLIP if key in SLIPS else "")


# --- figures ----------------------------------------------------------------------------------------------------------


def _draw(measures: dict[str, str]) -> Callable[[pd.DataFrame], Figure]:
    """A panel a data set and measure: a dot for each black box and method."""

    def draw(table: pd.DataFrame) -> Figure:
        shown = table[~table["method"].isin(["Original", OF_LABELS, CEILING])]
        names, methods = list(shown["data"].unique()), list(shown["method"].unique())
        figure, axes = figures.panels(names, len(measures), height=2.2)
        for row, (measure, label) in zip(axes, measures.items(), strict=True):
            row[0].set_ylabel(label)
            for ax, name in zip(row, names, strict=True):
                part = shown[shown["data"] == name]
                # All panels have the first one's names beside them, so all have their methods in one order.
                means = part.groupby("method")[measure].mean().reindex(methods).rename_axis("method").reset_index()
                figures.dots(ax, means.assign(**{f"{measure} ±": np.nan}), measure, paper=None)
                if measure in ("nse", "skill"):
                    ax.set_xlim(left=max(-1.5, ax.get_xlim()[0]), right=1.05)
        return figure

    return draw


# --- who wins ---------------------------------------------------------------------------------------------------------


def _show_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """For each cell NSE and skill of the default, the best peer, the global model and the booster, and who wins."""
    lines = []
    judged = {measure: verdicts(table, measure) for measure in _FOLLOWS}
    for cell, part in table.groupby(CELL, sort=False):
        by_method = part.set_index("method")
        line = dict(zip(("data", "black box", "local model"), cell, strict=True))
        for measure, found in judged.items():
            known = by_method[measure]
            line[measure] = _number(known.get(DEFAULT, np.nan))
            line[f"best peer's {measure}"] = _best_peer(by_method, measure)
            line[f"global model's {measure}"] = _number(known.get(f"global {cell[2]}", np.nan))
            line[f"booster's {measure}"] = _number(known.get(CEILING, np.nan))
            line[f"{measure} verdict"] = found[tuple(map(str, cell))]
        own, best = (1 - by_method["nse"].get(name, np.nan) for name in (DEFAULT, _best_full(by_method)))
        line["1 − NSE below SILO's and MAPLE's"] = "" if np.isnan(own / best) else f"{100 * (1 - own / best):.0f}%"
        lines.append(line)
    total = {"data": "all", "black box": f"{len(lines)} cells"}
    for measure, found in judged.items():
        counts = {word: sum(text.startswith(word) for text in found.values()) for word in VERDICTS}
        total[f"{measure} verdict"] = ", ".join(f"{word} {count}" for word, count in counts.items() if count)
        total[f"global model's {measure}"] = f"higher in {_n_below_global(table, measure)}"
    return pd.DataFrame([*lines, total]).fillna("")


def _n_below_global(table: pd.DataFrame, measure: str) -> int:
    """In how many cells one model for all rows does better than the default, by whatever little."""
    by_cell = table.pivot_table(index=CELL, columns="method", values=measure)
    everywhere = by_cell.filter(regex="^global (ridge|tree)$").max(axis=1)
    return int((everywhere > by_cell[DEFAULT]).sum()) if DEFAULT in by_cell else 0


def _best_peer(by_method: pd.DataFrame, measure: str) -> str:
    """Who is least behind the default, on the rows that both explained, and by how much."""
    behind = by_method.get(f"{measure} behind", pd.Series(dtype=float))
    behind = behind[behind.index.isin(PEERS)].dropna()
    if behind.empty:
        return ""
    name = str(behind.idxmin())
    middle, low, high = (float(by_method[f"{measure} behind{end}"][name]) for end in ("", " low", " high"))
    return f"{name}: {middle:.3f} behind ({low:.3f} to {high:.3f})"


def _best_full(by_method: pd.DataFrame) -> str:
    """The peer with the highest NSE among those that explained all test rows."""
    full = by_method.loc[by_method.index.isin(("SILO", "MAPLE")), "nse"]
    return str(full.idxmax()) if len(full) else ""


def _show_neighbourhood(table: pd.DataFrame) -> pd.DataFrame:
    """The errors around the row side by side, with a verdict among the default and the peers for every data set."""
    shown = side_by_side(table, ["near_lmae", "lmae", "near_mae"])
    found = verdicts(table, "near_lmae", PEERS)
    lines = []
    for data, part in shown.groupby("data", sort=False):
        texts = {f"{box} near_lmae": text for (name, box, _), text in found.items() if name == data}
        lines += [*part.to_dict("records"), {"data": data, "local model": "ridge", "method": "verdict", **texts}]
    return pd.DataFrame(lines).fillna("")


def _show_times(table: pd.DataFrame) -> pd.DataFrame:
    own = table[table["method"] == DEFAULT]
    return pd.DataFrame(
        {
            "data": line["data"],
            "fit, seconds": f"{line['fit_seconds']:.0f}",
            "explanation, ms": f"{line['explain_ms']:.2f}",
            "paper: training, minutes on a V100": _number(TIMES[line["data"]][0]),
            "paper: explanation, seconds": _number(TIMES[line["data"]][1]),
        }
        for line in own.to_dict("records")
    )


def _show_inference(table: pd.DataFrame) -> pd.DataFrame:
    """LMAE and NSE with weights and with sampling, where both are finished, and what sampling adds to the LMAE."""
    lines = []
    for data, part in table.groupby("data", sort=False):
        by_method = part.set_index("method").to_dict("index")
        if not by_method.keys() >= set(INFERENCES):
            continue
        own, drawn = (by_method[name] for name in INFERENCES)
        line = {"data": data}
        for measure, words in (("lmae", "LMAE"), ("nse", "NSE")):
            line[f"{words}, weights"] = _with_paper(own[measure], own[f"{measure} paper"])
            line[f"{words}, sampled"] = _with_paper(drawn[measure], drawn[f"{measure} paper"])
        more, papers = (100 * (drawn[name] / own[name] - 1) for name in ("lmae", "lmae paper"))
        lines.append({**line, "sampling adds to the LMAE": f"{more:+.1f}% ({papers:+.1f}%)"})
    return pd.DataFrame(lines)


def _experiment(
    name: str,
    description: str,
    runs: Callable[[Scope], list[Run]],
    show: Callable[[pd.DataFrame], pd.DataFrame],
    drawn: dict[str, str],
    note: str = NOTE,
    seeds: int = 3,
) -> Experiment:
    return Experiment(name, description, runs, tidy, show, _draw(drawn), note=note, seeds=seeds, synthetic=False)


FIDELITY = (
    _experiment(
        "real-main",
        "Real data, regression with ridges and classification with trees: error, NSE and skill beside the peers",
        _runs_main,
        lambda table: side_by_side(table, ["error", "nse", "skill"]),
        _FOLLOWS,
        note=_noting(
            "the global ridge's error on News is .2989, taken as 2989",
            _BLOG_MLP,
            "MAPLE's numbers on Weather with RF repeat those with the MLP",
        ),
    ),
    _experiment(
        "real-regression-trees",
        "Real data, regression with trees: error, NSE, skill and LMAE beside the peers",
        lambda scope: runs_of(scope, REGRESSION, KINDS, ["tree"]),
        lambda table: side_by_side(table, ["error", "nse", "skill", "lmae"]),
        _FOLLOWS,
        note=_noting(_BLOG_MLP) + ' Its regression trees have "criterion - gini", which is for classes.',
    ),
    _experiment(
        "real-regression-lmae",
        "Real data, regression with ridges: LMAE beside the peers",
        lambda scope: runs_of(scope, REGRESSION, KINDS, ["ridge"]),
        lambda table: side_by_side(table, ["lmae"]),
        {"lmae": "LMAE, lower is better"},
        note=_noting(_FACEBOOK_LIGHTGBM),
    ),
    _experiment(
        "real-classification-ridge",
        "Real data, classification with ridges: error, NSE and skill beside the peers",
        lambda scope: runs_of(scope, CLASSIFICATION, KINDS, ["ridge"]),
        lambda table: side_by_side(table, ["error", "nse", "skill"]),
        _FOLLOWS,
    ),
    _experiment(
        "real-neighbourhood",
        "Real data, ridges: LMAE and MAE at neighbours of the row and at the row, XGBoost and LightGBM",
        lambda scope: runs_of(scope, LOADERS, KINDS[:2], ["ridge"]),
        _show_neighbourhood,
        {"near_lmae": "LMAE of neighbours"},
        note="Neighbours are the row with noise of a tenth of a standard deviation on its numbers; categories stay, as "
        "noise on one-hot columns leads to no row that exists. The verdict is among the default, LIME, SILO and MAPLE. "
        + _noting(_FACEBOOK_LIGHTGBM),
    ),
    _experiment(
        "real-verdicts",
        "Real data, all 40 cells: is the default best, tied or behind in NSE and in skill on changes",
        lambda scope: runs_of(scope, LOADERS, KINDS, SURROGATES),
        _show_verdicts,
        _FOLLOWS,
        note=f"{OWN_LAW} "
        "Against LIME, SILO, MAPLE, the local mean and the global model, on rows that both explained. Tied: "
        "the paired 95% interval of the difference, over test rows, holds zero. The booster cannot be read: "
        "it is fitted to the black box's outputs and shows what can be foreseen at all.",
    ),
    _experiment(
        "real-times",
        "Real data, XGBoost, ridge: seconds to fit the default and milliseconds for an explanation",
        lambda scope: runs_of(scope, LOADERS, [SEVERAL_SEEDS], ["ridge"]),
        _show_times,
        {"explain_ms": "ms an explanation"},
        note="On one CPU core. The paper's table of times has 380 columns for Blog, its table of data 280.",
    ),
    _experiment(
        "real-inference",
        "Real data, XGBoost, ridge: LMAE and NSE of LIMIS (paper) with weights and with rows sampled by them",
        lambda scope: runs_of(replace(scope, seeds=1), LOADERS, [SEVERAL_SEEDS], ["ridge"], INFERENCES),
        _show_inference,
        {"lmae": "LMAE, lower is better", "nse": "NSE"},
        note="Both have the same estimator. A row is drawn with its weight over the largest one as probability, once "
        "for each explanation. The paper's numbers are in parentheses; the last column tells by how much sampling "
        "changes the LMAE here and there.",
        seeds=1,
    ),
)
