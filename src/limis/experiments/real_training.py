"""How training goes on real data: learning curves of the paper's LIMIS beside STE and Gumbel-softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from limis.experiments import methods
from limis.experiments.experiment import Experiment
from limis.experiments.methods import Trained
from limis.experiments.protocol import Scope
from limis.experiments.real_problem import RealProblem
from limis.experiments.runs import Arrays, Run, curve_arrays, key_of
from limis.experiments.tables import summarised
from limis.experiments.training_studies import Curve, draw_rewards, rewards, show_rewards
from limis.training import ProbeRows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = ("Adult", "Weather", "Blog")
METHODS = (methods.PAPER_ONCE, methods.STE, methods.GUMBEL)
# A method's cost is for 1,000 training rows; here a step weighs 5,000.
THOUSANDS_OF_ROWS = 5


@dataclass(frozen=True)
class CurveRun:
    """A weight estimator, trained with ridges on one black box."""

    problem: RealProblem
    method: Trained

    def __str__(self) -> str:
        return f"curve of {self.method.name}, {self.problem}"

    @property
    def key(self) -> str:
        """What the run is kept under."""
        return key_of(str(self), repr(self))

    @property
    def cost(self) -> float:
        """Roughly how many seconds it takes."""
        return self.method.cost * THOUSANDS_OF_ROWS

    def execute(self, device: str = "cpu") -> Arrays:
        """Train it on all probe rows, as the paper does."""
        problem, explainer = self.problem, self.problem.plain_explainer()
        probes = ProbeRows(explainer.training_.table.values(problem.probe), problem.answers.probe)
        return curve_arrays(self.method.fit_on(explainer, probes, problem.seed, problem.quick, device))

    def outcome(self, found: Arrays) -> Curve:
        """The learning curve, and whose it is."""
        return {"data": self.problem.data, "method": self.method.name, "seed": self.problem.seed}, found


def _runs(scope: Scope) -> list[Run]:
    return [
        CurveRun(RealProblem(data, "XGBoost", 0, scope.tests, scope.rows, scope.quick), method)
        for data in DATA
        for method in METHODS
    ]


def _tabulate(curves: list[Curve]) -> pd.DataFrame:
    return summarised(pd.DataFrame(rewards(curves)), ["data", "method", "step"], ["reward"])


def _draw(table: pd.DataFrame) -> Figure:
    figure, _ = draw_rewards(table, share_y=False)  # the outputs' units differ
    return figure


CONVERGENCE = Experiment(
    "real-convergence",
    "Real data, XGBoost, ridge: LMAE of the global ridge less that of LIMIS, STE and Gumbel-softmax over the steps",
    _runs,
    _tabulate,
    show_rewards,
    _draw,
    note="On probe rows: for LIMIS those that also reward, for the others, which stop by them, held-out ones. A method "
    "that has stopped stays at what it kept. STE is, as the paper describes it, direct weighted optimisation. The "
    "paper gives the figure only.",
    seeds=1,
    synthetic=False,
)
