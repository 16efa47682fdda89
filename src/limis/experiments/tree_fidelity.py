"""Explanations by tree beside those of peers with the same kind of tree: at the row, and when columns change."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.datasets import Dataset, load_adult, load_weather
from limis.experiments import figures
from limis.experiments.black_boxes import fit_black_box
from limis.experiments.experiment import Experiment
from limis.experiments.protocol import OWN_LAW, PIECEWISE, Problem, Scope
from limis.experiments.runs import Arrays, Run, key_of
from limis.experiments.tables import cell, summarised
from limis.explainer import LimisExplainer
from limis.peers import Lime, Maple, Silo
from limis.training import ProbeRows, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REAL: dict[str, Callable[[], Dataset]] = {"Adult": load_adult, "Weather": load_weather}
POSITIVE = {"Adult": ">50K", "Weather": "Yes"}
REAL_ROWS, SYNTHETIC_ROWS = 5_000, 1_000
MOST_TESTS = 300  # LIME takes a fifth of a second for each
MEASURES = ("nse", "lmae", "skill", "explain_ms")
QUICK_ROWS, QUICK_SAMPLES = 500, 200


@dataclass
class _Task:
    """What every method gets."""

    train: pd.DataFrame
    probe: pd.DataFrame
    test: pd.DataFrame
    model: Any


@dataclass(frozen=True)
class TreeRun:
    """One draw of a data set, and all methods on it, which share the black box and the moves."""

    data: str
    seed: int
    tests: int
    quick: bool = False
    cost: float = field(default=150.0, repr=False)

    def __str__(self) -> str:
        return f"trees, {self.data}, seed {self.seed}"

    @property
    def key(self) -> str:
        """What the run is kept under."""
        return key_of(str(self), repr(self))

    def execute(self, device: str = "cpu") -> Arrays:  # noqa: ARG002 - there are no networks over all rows
        """Every method on the same test rows and the same moves of them."""
        task = self._prepare()
        explainer = LimisExplainer(task.model, surrogate="tree", n_jobs=1, random_state=self.seed)
        explainer.fit(task.train, probe_rows=task.probe)
        outputs = explainer.training_.black_box.outputs(task.test)
        asked = ProbeRows.ask(explainer.training_, task.test, outputs, np.random.default_rng(self.seed))
        lines = []
        for name, make in self._methods(task).items():
            method = explainer if make is None else make(explainer)
            started = time.perf_counter()
            found = method.explain(task.test, outputs=outputs)
            spent = 1000 * (time.perf_counter() - started) / len(task.test)
            judged = judge(found.training.table, found.fits, asked)
            lines.append({"method": name, **judged, "explain_ms": spent})
        table = pd.DataFrame(lines)
        return {"method": table["method"].to_numpy(dtype=np.str_)} | {
            measure: table[measure].to_numpy(dtype=np.float64) for measure in MEASURES
        }

    def _methods(self, task: _Task) -> dict[str, Callable[[LimisExplainer], Any] | None]:
        tree: dict[str, Any] = {"local_model": "tree", "random_state": self.seed}
        samples: dict[str, Any] = {"num_samples": QUICK_SAMPLES} if self.quick else {}
        return {
            "LIMIS (tree)": None,
            "SILO (tree)": lambda explainer: Silo(explainer, n_jobs=1, **tree),
            "MAPLE (tree)": lambda explainer: Maple(explainer, n_jobs=1, validation=task.probe, **tree),
            "LIME (tree)": lambda explainer: Lime(explainer, **tree, **samples),
            "LIME (tree, no quartiles)": lambda explainer: Lime(explainer, discretise=False, **tree, **samples),
        }

    def _prepare(self) -> _Task:
        if self.data in REAL:
            return self._real()
        problem = Problem(self.data, QUICK_ROWS if self.quick else SYNTHETIC_ROWS, self.seed, self.tests)
        return _Task(
            problem.training.features, problem.probes.features, problem.test.features, problem.training.black_box
        )

    def _real(self) -> _Task:
        data = REAL[self.data]()
        n = QUICK_ROWS if self.quick else REAL_ROWS
        order = np.random.default_rng(self.seed).permutation(len(data.frame))
        train, probe, test = (
            data.frame.iloc[part] for part in np.split(order, [n, n + n // 10, n + n // 10 + self.tests])[:3]
        )
        label = (data.target == POSITIVE[self.data]).to_numpy(dtype=int)
        model = fit_black_box("XGBoost", "classification", train, label[train.index], n_jobs=1, quick=self.quick)
        return _Task(train, probe, test, model)

    def outcome(self, found: Arrays) -> pd.DataFrame:
        """One line a method."""
        table = pd.DataFrame({name: found[name] for name in ("method", *MEASURES)})
        return table.assign(data=self.data, seed=self.seed)


def _runs(scope: Scope) -> list[Run]:
    names = (*PIECEWISE, *REAL)
    tests = min(scope.tests, MOST_TESTS)
    return [TreeRun(name, seed, tests, scope.quick) for name in names for seed in range(scope.seeds)]


def _tabulate(outcomes: list[pd.DataFrame]) -> pd.DataFrame:
    return summarised(pd.concat(outcomes, ignore_index=True), ["data", "method"], MEASURES)


def _show(table: pd.DataFrame) -> pd.DataFrame:
    digits = {"nse": 3, "lmae": 3, "skill": 3, "explain_ms": 1}
    shown = {
        measure: [cell(*pair, digits=places) for pair in zip(table[measure], table[f"{measure} ±"], strict=True)]
        for measure, places in digits.items()
    }
    return pd.DataFrame({"data": table["data"], "method": table["method"], **shown})


def _draw(table: pd.DataFrame) -> Figure:
    names = list(table["data"].unique())
    words = {"nse": "NSE", "skill": "skill on changes"}
    figure, axes = figures.panels(names, len(words), height=1.8)
    for row, (measure, label) in zip(axes, words.items(), strict=True):
        row[0].set_ylabel(label)
        for ax, name in zip(row, names, strict=True):
            figures.dots(ax, table[table["data"] == name], measure, paper=None)
            ax.set_xlim(left=-1.5, right=1.05)
    return figure


TREES = Experiment(
    "tree-fidelity",
    "Local trees of depth 3 on Syn1 to Syn3 and on XGBoost for Adult and Weather, beside those of peers: NSE and skill",
    _runs,
    _tabulate,
    _show,
    _draw,
    note=f"{OWN_LAW} "
    "All methods have trees of depth 3 and share black box, test rows and moves. There are 1,000 training rows of "
    "synthetic data and 5,000 of Adult and Weather, which are on logits.",
    seeds=3,
    synthetic=False,
)
