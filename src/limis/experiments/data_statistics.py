"""The paper's table of data statistics, beside the data that limis loads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from limis.datasets import compare_with_paper
from limis.datasets.checks import PAPER
from limis.experiments import figures
from limis.experiments.experiment import Experiment
from limis.experiments.protocol import Scope
from limis.experiments.real_problem import LOADERS
from limis.experiments.runs import Arrays, Run, key_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("statistic", "here", "paper", "why")
# What a panel of the figure is about, and its ticks; a label has one of the two numbers.
PANELS = {
    "rows": (("rows",), (50_000, 100_000, 500_000)),
    "columns after one-hot encoding": (("columns",), (50, 100, 200)),
    "label's mean, or % positive": (("label mean", "positive labels, %"), (10, 100, 1000)),
}


@dataclass(frozen=True)
class DataRun:
    """One data set, counted."""

    data: str
    quick: bool = False
    cost: float = field(default=3.0, repr=False)

    def __str__(self) -> str:
        return f"statistics of {self.data}"

    @property
    def key(self) -> str:
        """What the run is kept under."""
        return key_of(str(self), repr(self))

    def execute(self, device: str = "cpu") -> Arrays:  # noqa: ARG002 - nothing is trained
        """Load the data and compare it with the paper's."""
        dataset = LOADERS[self.data]()
        table = compare_with_paper(dataset)
        return {
            "statistic": table.index.to_numpy(dtype=np.str_),
            "here": table["here"].to_numpy(),
            "paper": table["paper"].to_numpy(),
            "why": np.where(table["differs"], PAPER[dataset.name].because, ""),
        }

    def outcome(self, found: Arrays) -> pd.DataFrame:
        """One line a statistic."""
        return pd.DataFrame({"data": self.data, **{name: found[name] for name in COLUMNS}})


def _runs(scope: Scope) -> list[Run]:
    return [DataRun(name, scope.quick) for name in LOADERS]


def _tabulate(outcomes: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(outcomes, ignore_index=True)


def _show(table: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for data, part in table.groupby("data", sort=False):
        here, paper = (part.set_index("statistic")[column] for column in ("here", "paper"))
        lines.append(
            {
                "data": data,
                "rows": _beside(f"{here['rows']:,.0f}", f"{paper['rows']:,.0f}"),
                "columns": _beside(f"{here['columns']:.0f}", f"{paper['columns']:.0f}"),
                "label": _beside(_label(here), _label(paper)),
                "differs because": "; ".join(part["why"][part["why"] != ""].unique()),
            }
        )
    return pd.DataFrame(lines)


def _beside(here: str, paper: str) -> str:
    return here if here == paper else f"{here} (paper {paper})"


def _label(of: pd.Series) -> str:
    """As the paper writes it: mean (5%-50%-95%) of numbers, count (share) of the positive class."""
    if "label mean" in of:
        return f"{of['label mean']:,.1f} ({of['label 5%']:.0f}-{of['label 50%']:.0f}-{of['label 95%']:.0f})"
    return f"{of['positive labels']:,.0f} ({of['positive labels, %']:.1f}%)"


def _draw(table: pd.DataFrame) -> Figure:
    names = list(table["data"].unique())
    figure, axes = figures.panels(list(PANELS))
    ours = {"s": 28, "color": figures.COLOURS["LIMIS (default)"], "label": "here"}
    theirs = {"s": 60, "marker": "D", "facecolors": "none", "edgecolors": figures.PAPER, "label": "the paper"}
    for ax, (statistics, ticks) in zip(axes[0], PANELS.values(), strict=True):
        part = table[table["statistic"].isin(statistics)]
        places = [names.index(data) for data in part["data"]]
        ax.scatter(part["here"], places, **ours)
        ax.scatter(part["paper"], places, **theirs)
        ax.set(xscale="log", ylim=(len(names) - 0.5, -0.5))
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.set_yticks(range(len(names)), names)
        ax.minorticks_off()
    figures.legend(figure, axes)
    return figure


DATA_STATISTICS = Experiment(
    "data-statistics",
    "The five real data sets: rows, columns and labels, beside the paper's table",
    _runs,
    _tabulate,
    _show,
    _draw,
    note="Columns are counted after one-hot encoding. Labels are told as in the paper: the mean and the 5%, 50% and "
    "95% percentiles of a regression, how many are positive of a classification. Numbers are compared to the "
    "digits that the paper gives.",
    seeds=1,
    synthetic=False,
)
