"""The paper's protocol on synthetic data: which rows train, probe and test, and how far an experiment goes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from limis.datasets import SyntheticData, make_synthetic
from limis.explainer import LimisExplainer
from limis.training import ProbeRows

PIECEWISE = ("Syn1", "Syn2", "Syn3")
ALL_DATA = (*PIECEWISE, "Syn4")
SIZES = (500, 1000, 2000)
OWN_LAW = (
    "Skill is on the changes of the first round, drawn by the law that the default is fitted on and chosen by, which "
    "flatters it: audit-verdicts has what other questions give."
)


@dataclass(frozen=True)
class Scope:
    """How far an experiment goes.

    Parameters
    ----------
    seeds : int, default=10
        Independent runs.
    tests : int, default=1000
        Test rows of each.
    quick : bool, default=False
        A trial: the smallest data and few training steps. Its numbers mean nothing.
    rows : int, default=None
        Training rows of real data, at most; all of them where not given.
    """

    seeds: int = 10
    tests: int = 1000
    quick: bool = False
    rows: int | None = None

    def sizes(self, *sizes: int) -> tuple[int, ...]:
        """Those of the numbers of training rows that this scope covers; a trial knows the smallest size alone."""
        return (SIZES[0],) if self.quick else sizes


@dataclass(frozen=True)
class Problem:
    """One draw of a synthetic data set: N training rows, N/10 probe rows and test rows, all of them independent.

    The function itself is the black box, and columns are not scaled.
    """

    data: str
    rows: int
    seed: int
    tests: int

    @cached_property
    def training(self) -> SyntheticData:
        """The rows that may be selected."""
        return self._draw(self.rows, 0)

    @cached_property
    def probes(self) -> SyntheticData:
        """The held-out rows that reward and choose."""
        return self._draw(self.rows // 10, 1)

    @cached_property
    def test(self) -> SyntheticData:
        """The rows to explain."""
        return self._draw(self.tests, 2)

    def _draw(self, rows: int, part: int) -> SyntheticData:
        return make_synthetic(self.data, rows, random_state=1000 * self.seed + part)

    def plain_explainer(self) -> LimisExplainer:
        """An explainer that costs little, to build peers on and to put trained weightings into."""
        explainer = LimisExplainer(
            self.training.black_box,
            surrogate="ridge",
            weighting="forest",
            scaling="none",
            n_jobs=1,
            random_state=self.seed,
        )
        return explainer.fit(self.training.features, probe_rows=self.probes.features)

    def probe_rows(self, explainer: LimisExplainer) -> ProbeRows:
        """All probe rows as the trainer takes them.

        An explainer would keep half of them to measure itself; in the paper all of them reward.
        """
        return ProbeRows(explainer.training_.table.values(self.probes.features), self.probes.outputs)
