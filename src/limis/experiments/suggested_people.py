"""The paper's table of ten people: what a local tree of depth 3 sees in each, and what would change the decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.experiments import figures
from limis.experiments.experiment import Experiment
from limis.experiments.protocol import Scope
from limis.experiments.runs import Arrays, Run, key_of
from limis.experiments.suggestions import SETTINGS, Task
from limis.explanation import Explanation, Explanations
from limis.suggest import RowSuggestions, suggest
from limis.trees.view import nodes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PEOPLE = 10
WEIGHT = "fnlwgt"  # how many people the census lets a person stand for: nothing that anybody could change
TEXTS = ("setting", "characteristics", "climb", "suggestion", "source")
NUMBERS = ("person", "before", "climb confirmed", "climb after", "confirmed", "after")


@dataclass(frozen=True)
class PeopleRun:
    """The first people of a shuffled test part whom the black box gives at most 50,000 dollars."""

    seed: int
    quick: bool = False
    cost: float = field(default=60.0, repr=False)

    def __str__(self) -> str:
        return f"suggested people, seed {self.seed}"

    @property
    def key(self) -> str:
        """What the run is kept under."""
        return key_of(str(self), repr(self))

    def execute(self, device: str = "cpu") -> Arrays:  # noqa: ARG002 - there are no networks over all rows
        """Explain the people by trees, and suggest changes under each setting."""
        task = Task.draw(self.seed, self.quick)
        explained = task.explainer(self.seed, surrogate="tree").explain(task.rejected[:PEOPLE])
        lines = [line for setting in SETTINGS for line in _people(explained, setting)]
        table = pd.DataFrame(lines)
        return {name: table[name].to_numpy(dtype=np.str_) for name in TEXTS} | {
            name: table[name].to_numpy(dtype=np.float64) for name in NUMBERS
        }

    def outcome(self, found: Arrays) -> pd.DataFrame:
        """One line a person and setting."""
        table = pd.DataFrame({name: found[name] for name in (*TEXTS, *NUMBERS)})
        return table.astype({"person": int, "climb confirmed": bool, "confirmed": bool}).assign(seed=self.seed)


def _people(explained: Explanations, setting: str) -> list[dict[str, Any]]:
    """A line a person: what the tree alone suggests, and what is suggested in the end."""
    immutable = [*SETTINGS[setting], WEIGHT]
    # One question is that about the nearest leaf with the wished outcome, and nothing is left for a search.
    climbs = suggest(explained, 1, immutable=immutable, max_queries=1)
    told = suggest(explained, 1, immutable=immutable)
    return [
        {
            "person": place,
            "setting": setting,
            "characteristics": _characteristics(one),
            "before": row.probability,
            **_climb(climb),
            **_best(row),
        }
        for place, (one, climb, row) in enumerate(zip(explained, climbs, told, strict=True), start=1)
    ]


def _characteristics(one: Explanation) -> str:
    """The columns that the row's path through its tree asks about, with the row's values."""
    asked = [node.sides[0].column for node in nodes(one).values() if node.on_path and node.sides is not None]
    return ", ".join(f"{column}: {one.values[column]}" for column in dict.fromkeys(asked))


def _climb(row: RowSuggestions) -> dict[str, Any]:
    """What climbing the tree alone leads to, right or wrong."""
    for one in row:
        if one.source == "tree":
            return {"climb": one.text, "climb confirmed": one.confirmed, "climb after": one.probability_after}
    return {"climb": "", "climb confirmed": False, "climb after": np.nan}


def _best(row: RowSuggestions) -> dict[str, Any]:
    """The first suggestion."""
    for one in row:
        return {
            "suggestion": one.text,
            "source": one.source,
            "confirmed": one.confirmed,
            "after": one.probability_after,
        }
    return {"suggestion": "", "source": "", "confirmed": False, "after": np.nan}


def _runs(scope: Scope) -> list[Run]:
    return [PeopleRun(seed, scope.quick) for seed in range(scope.seeds)]


def _tabulate(outcomes: list[pd.DataFrame]) -> pd.DataFrame:
    first = ["seed", "person", "setting", "characteristics", "before"]
    table = pd.concat(outcomes, ignore_index=True)
    return table[[*first, *(name for name in table if name not in first)]]


def _show(table: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for (_, person), part in table.groupby(["seed", "person"], sort=False):
        line = {
            "no": person,
            "characteristics": part["characteristics"].iloc[0],
            "p(>50K)": f"{part['before'].iloc[0]:.1%}",
        }
        for one in part.to_dict("records"):
            line[f"tree alone, {one['setting']}"] = _words(one["climb"], one["climb confirmed"], one["climb after"])
            line[f"suggestion, {one['setting']}"] = _words(one["suggestion"], one["confirmed"], one["after"])
        lines.append(line)
    return pd.DataFrame(lines)


def _words(change: str, confirmed: bool, after: float) -> str:
    if not change:
        return "-"
    return f"{change} ({'confirmed' if confirmed else 'not confirmed'}: {after:.1%})"


def _draw(table: pd.DataFrame) -> Figure:
    settings = list(table["setting"].unique())
    figure, axes = figures.panels(settings)
    colour = figures.COLOURS["LIMIS (tree)"]
    for ax, setting in zip(axes[0], settings, strict=True):
        part = table[(table["setting"] == setting) & (table["seed"] == table["seed"].min())]
        ax.hlines(part["person"], part["before"], part["after"], colors=colour)
        ax.scatter(part["before"], part["person"], s=28, facecolors="white", edgecolors=colour, zorder=3, label="as is")
        ax.scatter(part["after"], part["person"], s=28, color=colour, zorder=3, label="after the suggested change")
        ax.axvline(0.5, color=figures.PAPER, linewidth=0.8, linestyle=":")
        ax.set(xlim=(-0.03, 1.03), yticks=part["person"], ylim=(PEOPLE + 0.5, 0.5), xlabel="probability of >50K")
    axes[0, 0].set_ylabel("person")
    figures.legend(figure, axes)
    return figure


PEOPLE_TABLE = Experiment(
    "suggestions-people",
    "Adult, XGBoost, trees of depth 3: ten people predicted to earn at most 50,000 dollars, and what would change that",
    _runs,
    _tabulate,
    _show,
    _draw,
    note="The first ten such people of the shuffled test rows. Characteristics are the columns on their way through "
    "their local tree. 'Tree alone' is the paper's way: the change that leads to the nearest leaf with the wished "
    "outcome, if the tree has one. Suggestions are what is left after a search. Both are checked on the black "
    "box, whose probability of more than 50,000 dollars for the changed row is given. Age, sex, race, native "
    "country and the census's weight are immutable, and with 'capital fixed' capital gain and loss as well.",
    seeds=1,
    synthetic=False,
)
