"""What would change the decision: suggestions for people of Adult, beside DiCE's on the same rows and constraints."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from limis.columns import Column
from limis.datasets import load_adult, split_rows
from limis.experiments import figures
from limis.experiments.black_boxes import fit_black_box
from limis.experiments.experiment import Experiment
from limis.experiments.protocol import Scope
from limis.experiments.runs import Arrays, Run, key_of
from limis.explainer import LimisExplainer
from limis.peers import Dice
from limis.perturb import gower_distance
from limis.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A person cannot change these; nor, in the harder setting, come into capital.
PERSONAL = ["age", "sex", "race", "native-country"]
SETTINGS = {"capital free": PERSONAL, "capital fixed": [*PERSONAL, "capital-gain", "capital-loss"]}
LIMIS: dict[str, dict[str, Any]] = {"LIMIS (tree)": {"surrogate": "tree"}, "LIMIS (default)": {}}
DICE: dict[str, Literal["random", "genetic"]] = {"DiCE random": "random", "DiCE genetic": "genetic"}
REJECTED = 500
BLOCK = 50  # rows of one run of DiCE, which takes seconds for some
_COSTS = {"LIMIS (tree)": 120.0, "LIMIS (default)": 110.0, "DiCE genetic": 100.0, "DiCE random": 15.0}
MOST_COLUMNS = 8
QUICK_ROWS, QUICK_REJECTED, QUICK_CALLS = 400, 10, 100


@dataclass(eq=False)
class Task:
    """What every method gets: the rows, and a black box that says 1 for an income of more than 50,000 dollars."""

    train: pd.DataFrame
    probe: pd.DataFrame
    rejected: pd.DataFrame  # test rows that the black box says 0 of, shuffled
    model: Any
    quick: bool = False

    @classmethod
    def draw(cls, seed: int, quick: bool) -> Task:
        """One division of Adult, and the black box on it."""
        data = load_adult()
        train, probe, test = (data.frame.iloc[part] for part in split_rows(len(data.frame), random_state=seed))
        if quick:
            train, probe = train[:QUICK_ROWS], probe[: QUICK_ROWS // 10]
        income = (data.target == ">50K").to_numpy(dtype=int)
        model = fit_black_box("XGBoost", "classification", train, income[train.index], n_jobs=1, quick=quick)
        rejected = test[model.predict(test) == 0].sample(frac=1, random_state=seed)
        return cls(train, probe, rejected, model, quick)

    def explainer(self, seed: int, **options: Any) -> LimisExplainer:
        """An explainer of the black box, fitted."""
        trial: dict[str, Any] = {"weighting": "forest"} if self.quick else {}
        options = {"surrogate": "ridge", **trial, **options}
        explainer = LimisExplainer(self.model, n_jobs=1, random_state=seed, **options)
        return explainer.fit(self.train, probe_rows=self.probe)


@dataclass(frozen=True)
class SuggestionsRun:
    """One method on some of the rejected rows, under one setting."""

    method: str
    setting: str
    seed: int
    start: int
    stop: int
    quick: bool = False

    def __str__(self) -> str:
        return f"suggestions, {self.method}, {self.setting}, rows {self.start} to {self.stop}, seed {self.seed}"

    @property
    def key(self) -> str:
        """What the run is kept under."""
        return key_of(str(self), repr(self))

    @property
    def cost(self) -> float:
        """Roughly how many seconds it takes."""
        return _COSTS[self.method]

    def execute(self, device: str = "cpu") -> Arrays:  # noqa: ARG002 - there are no networks over all rows
        """A suggestion for each row, or none."""
        task = Task.draw(self.seed, self.quick)
        rows = task.rejected[self.start : self.stop]
        after, found = self._limis(task, rows) if self.method in LIMIS else self._dice(task, rows)
        table, _ = Table.learn(task.train)
        return {**found, **_moved(table, rows, after)}

    def _limis(self, task: Task, rows: pd.DataFrame) -> tuple[pd.DataFrame, Arrays]:
        explainer = task.explainer(self.seed, **LIMIS[self.method])
        started = time.process_time()  # of one thread, whatever else the machine does
        told = explainer.suggest(rows, 1, immutable=SETTINGS[self.setting])
        seconds = time.process_time() - started
        best = [row.changed_rows()[:1] if row.confirmed else rows[place : place + 1] for place, row in enumerate(told)]
        return pd.concat(best), {
            "confirmed": np.array([row.confirmed for row in told]),
            "n_changes": np.array([row[0].n_changes if row.confirmed else 0 for row in told]),
            "proposed": np.array([float(any(n for n, _ in row.proposed.values())) for row in told]),
            "alone": np.array([float(any(did for _, did in row.proposed.values())) for row in told]),
            "questions": np.array([row.queries for row in told]),
            "ms": np.full(len(rows), 1000 * seconds / len(rows)),
        }

    def _dice(self, task: Task, rows: pd.DataFrame) -> tuple[pd.DataFrame, Arrays]:
        options: dict[str, Any] = {"max_calls": QUICK_CALLS} if self.quick else {}
        dice = Dice(
            task.model,
            task.train,
            DICE[self.method],
            immutable=SETTINGS[self.setting],
            random_state=self.seed,
            **options,
        )
        found = dice.find(rows)
        unknown = np.full(len(rows), np.nan)
        return found.changed, {
            "confirmed": found.confirmed,
            "n_changes": found.n_changes,
            "proposed": unknown,
            "alone": unknown,
            "questions": found.questions,
            "ms": 1000 * found.seconds,
        }

    def outcome(self, found: Arrays) -> pd.DataFrame:
        """One line a row."""
        lines = pd.DataFrame({name: found[name] for name in found if name != "machine"})
        return lines.assign(method=self.method, setting=self.setting)


def _moved(table: Table, before: pd.DataFrame, after: pd.DataFrame) -> Arrays:
    """How far rows were moved, as `Suggestion.distance` has it, and of those with one changed column where to."""
    own, other = table.values(before), table.values(after)
    ranks, other_ranks = table.ranks(own), table.ranks(other)
    distance = [
        gower_distance(ranks[[row]], other_ranks[[row]], table.is_category)[0, 0] * len(table.columns)
        for row in range(len(own))
    ]
    differs = own != other
    single = [
        _step(table.columns[int(changed.argmax())], after, row) if changed.sum() == 1 else ""
        for row, changed in enumerate(differs)
    ]
    return {"distance": np.array(distance, dtype=np.float64), "single": np.array(single, dtype=np.str_)}


def _step(column: Column, after: pd.DataFrame, row: int) -> str:
    return f"{column.name} -> {column.show(after, row)}"


def _runs(scope: Scope) -> list[Run]:
    n = min(scope.tests, QUICK_REJECTED if scope.quick else REJECTED)
    runs: list[Run] = []
    for seed in range(scope.seeds):
        for setting in SETTINGS:
            runs += [SuggestionsRun(method, setting, seed, 0, n, scope.quick) for method in LIMIS]
            runs += [
                SuggestionsRun(method, setting, seed, start, min(start + BLOCK, n), scope.quick)
                for method in DICE
                for start in range(0, n, BLOCK)
            ]
    return runs


def _tabulate(outcomes: list[pd.DataFrame]) -> pd.DataFrame:
    lines = pd.concat(outcomes, ignore_index=True)
    groups = lines.groupby(["setting", "method"], sort=False)
    order = pd.MultiIndex.from_product([SETTINGS, [*LIMIS, *DICE]])
    table = pd.DataFrame({key: _summary(part) for key, part in groups}).T.reindex(order).dropna(how="all")
    return table.rename_axis(["setting", "method"]).reset_index().infer_objects()


def _summary(lines: pd.DataFrame) -> dict[str, Any]:
    """One method under one setting."""
    done = lines[lines["confirmed"]]
    changes = done["single"][done["single"] != ""].value_counts()
    columns = done["single"][done["single"] != ""].str.split(" -> ").str[0].value_counts()
    return {
        "rows": len(lines),
        "confirmed": len(done) / len(lines),
        **{f"within {k}": float((done["n_changes"] <= k).sum()) / len(lines) for k in range(1, MOST_COLUMNS + 1)},
        "proposed": lines["proposed"].mean(),
        "alone": lines["alone"].mean(),
        "columns": done["n_changes"].mean(),
        "distance": done["distance"].mean(),
        "ms": lines["ms"].mean(),
        "median ms": lines["ms"].median(),
        "questions": lines["questions"].mean(),
        "same change": changes.index[0] if len(changes) else "",
        "its share": changes.iloc[0] / len(lines) if len(changes) else 0.0,
        "same column": columns.index[0] if len(columns) else "",
        "the column's share": columns.iloc[0] / len(lines) if len(columns) else 0.0,
    }


def _show(table: pd.DataFrame) -> pd.DataFrame:
    def percent(name: str) -> list[str]:
        return ["" if pd.isna(share) else f"{share:.1%}" for share in table[name]]

    def number(name: str, digits: int) -> list[str]:
        return ["" if pd.isna(value) else f"{value:,.{digits}f}" for value in table[name]]

    def named(words: str, share: str) -> list[str]:
        return [f"{text} ({part})" if text else "" for text, part in zip(table[words], percent(share), strict=True)]

    return pd.DataFrame(
        {
            "setting": table["setting"],
            "method": table["method"],
            "rows": table["rows"],
            "confirmed": percent("confirmed"),
            "by 1 column": percent("within 1"),
            "by 2 at most": percent("within 2"),
            "explanation alone": percent("alone"),
            "columns": number("columns", 2),
            "distance": number("distance", 2),
            "ms a row": number("ms", 1),
            "questions": number("questions", 0),
            "most frequent change": named("same change", "its share"),
            "most frequent single column": named("same column", "the column's share"),
        }
    )


def _draw(table: pd.DataFrame) -> Figure:
    settings = list(table["setting"].unique())
    figure, axes = figures.panels(settings, width=4.2)
    counts = list(range(1, MOST_COLUMNS + 1))
    for ax, setting in zip(axes[0], settings, strict=True):
        part = table[table["setting"] == setting]
        shares = part.melt("method", [f"within {k}" for k in counts], "columns", "share")
        shares["columns"] = shares["columns"].str.removeprefix("within ").astype(int)
        figures.curves(ax, shares.assign(**{"share ±": 0.0}), "columns", "share")
        # The search leads both explainers to much the same shares: the first line shows behind the second.
        ax.lines[0].set(linewidth=6, markersize=9, alpha=0.45)
        ax.set(xlabel="changed columns at most", xticks=counts, ylim=(0, 1.03))
    axes[0, 0].set_ylabel("share of rows, confirmed")
    figures.legend(figure, axes)
    return figure


SUGGESTIONS = Experiment(
    "suggestions",
    "Adult, XGBoost: changes that turn a predicted income of at most 50,000 dollars, beside DiCE's",
    _runs,
    _tabulate,
    _show,
    _draw,
    note="Test rows predicted <=50K, with age, sex, race and native country immutable, and in the second setting "
    "capital gain and loss as well; all methods share black box, training rows, rows and constraints. Shares are "
    "of all rows; columns and distance are means over those with a confirmed change, the distance the sum over "
    "columns of rank-space distances. 'Explanation alone' is the share with a confirmed change that was read off "
    "the local model (by climbing the tree, by slopes), before any search. LIMIS looks for three suggestions a "
    "row, of which the first is measured, and changes education and years of education together, which counts as "
    "two columns; DiCE looks for one, with its defaults, and may change either alone. Milliseconds are of one "
    "core, with the explanation and without the fit; questions are rows that the black box was asked about. Where "
    "rows are fewer than 500, they are the first of these.",
    seeds=1,
    synthetic=False,
)
