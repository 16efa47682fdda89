"""The methods of the bench: all explain the same rows of the same fitted model, and time themselves.

What is timed of a peer is the peer's own work: not what limis adds to show its answer like one of its own.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from limis.errors import require
from limis.experiments.real_problem import RealProblem
from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.peers import Lime, Maple, Silo
from limis.peers.base import Peer
from limis.peers.lime_view import LimeView
from limis.table import Table
from limis.threads import one_thread
from limis.walk import LocalFits

VALIDATING = 1000  # probe rows that MAPLE chooses its features on
LIME_FEATURES = 10  # the package's default
ALPHA = 1.0  # of the ridges of SILO and MAPLE
QUICK_SECONDS = 2.0  # that training an estimator may take in a trial


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Parameters
    ----------
    rows : int, default=1000
        Test rows, explained together by the fast methods.
    rounds : int, default=5
        How often each method takes its turn.
    alone : int, default=20
        Rows explained one at a time in each round.
    peer_rows, lime_rows, kernel_rows : int
        Rows that SILO and MAPLE, LIME, and KernelSHAP explain in each round: each round others.
    lime_samples : int, default=5000
        Made-up rows of LIME for each explanation.
    background : int, default=100
        Training rows that KernelSHAP takes absent columns' values from.
    kernel_samples : int, default=None
        Its coalitions for each explanation; None: as many as it takes itself.
    quick : bool, default=False
        A trial on little data.
    """

    rows: int = 1000
    rounds: int = 5
    alone: int = 20
    peer_rows: int = 200
    lime_rows: int = 20
    kernel_rows: int = 2
    lime_samples: int = 5000
    background: int = 100
    kernel_samples: int | None = None
    quick: bool = False

    def with_rows(self, rows: int) -> Size:
        """The same with another number of test rows; where they are too few, slow methods get fewer a round.

        Examples
        --------
        >>> Size().with_rows(50).lime_rows
        10
        """
        most = max(1, rows // self.rounds)
        names = ("alone", "peer_rows", "lime_rows", "kernel_rows")
        return replace(self, rows=rows, **{name: min(getattr(self, name), most) for name in names})


@dataclass
class Told:
    """What a method said of some rows, and how long it took."""

    seconds: float  # the black box's time within
    predictions: np.ndarray  # (rows,) what the explanations say of their own rows
    table: Table | None = None
    fits: LocalFits | None = None  # None: they say nothing of changed rows
    alone: float | None = None  # seconds without the black box's, of a method that goes row by row
    curves: float | None = None  # seconds more to write out the curves of all rows
    reasons: float | None = (
        None  # seconds more to work out reasons, with pairs, where these are worked out when asked for
    )


@dataclass
class Setup:
    """What the methods share: the problem, how much is measured, and an explainer that peers are made from."""

    problem: RealProblem
    size: Size
    explainer: LimisExplainer | None = None

    @property
    def fitted(self) -> LimisExplainer:
        """The explainer with ridges, which is always measured first."""
        assert self.explainer is not None
        return self.explainer


class Method(ABC):
    """A way to explain; making one is its fit."""

    settings: ClassVar[str]  # what to know of it
    rows: int  # in a round

    @abstractmethod
    def explain(self, frame: pd.DataFrame) -> Told:
        """Explain rows together, the black box's answers and their time included."""

    def explain_alone(self, frames: list[pd.DataFrame], outputs: np.ndarray) -> float:
        """Seconds to explain rows one at a time, the black box's answers given."""
        raise NotImplementedError  # of methods that go row by row `explain` tells it


class Limis(Method):
    """LIMIS with some kind of surrogate."""

    settings = (
        "LimisExplainer() with ridges or trees; an explanation is explain(), which asks the black box once "
        "a row, with its contributions and its fidelity"
    )
    surrogate: ClassVar[str]

    def __init__(self, setup: Setup) -> None:
        problem, self.rows = setup.problem, setup.size.rows
        self.explainer = LimisExplainer(
            problem.model,
            surrogate=self.surrogate,
            time_budget=QUICK_SECONDS if setup.size.quick and self.surrogate != "curves" else None,
            random_state=problem.seed,
        )
        self.explainer.fit(problem.train, probe_rows=problem.probe)

    def explain(self, frame: pd.DataFrame) -> Told:
        """Explain rows together."""
        seconds, found = timed(lambda: whole(self.explainer.explain(frame)))
        return Told(seconds, found.fits.predictions(), found.training.table, found.fits)

    def explain_alone(self, frames: list[pd.DataFrame], outputs: np.ndarray) -> float:
        """One after another."""

        def work() -> None:
            for frame, output in zip(frames, outputs, strict=True):
                whole(self.explainer.explain(frame, outputs=[output]))

        return timed(work)[0]


class LimisRidge(Limis):
    """Slopes on two scales."""

    surrogate = "ridge"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        setup.explainer = self.explainer


class LimisTree(Limis):
    """The same with trees."""

    surrogate = "tree"


class LimisCurves(Limis):
    """Response curves, by all cores: they are not drawn on a device."""

    surrogate = "curves"
    settings = (
        'LimisExplainer(surrogate="curves"); an explanation is explain(), which asks the black box once a row, with '
        "its fidelity; with curves: found.curves as well; reasons: found.contributions and found.interactions alone"
    )

    def explain(self, frame: pd.DataFrame) -> Told:
        """Explain rows together; what writing out their curves takes, and working out reasons, is told besides."""
        seconds, found = timed(lambda: whole(self.explainer.explain(frame)))
        curves, _ = timed(lambda: found.curves)
        reasons, _ = timed(lambda: (found.contributions, found.interactions))
        return Told(seconds, found.fits.predictions(), found.training.table, found.fits, curves=curves, reasons=reasons)


class LimeMethod(Method):
    """LIME by its own package."""

    settings = (
        "the lime package, continuous, otherwise its defaults: 5,000 made-up rows and the ten columns that weigh most; "
        "explain_instance alone is timed, and turning its made-up rows into a table counts as the black box's time"
    )

    def __init__(self, setup: Setup) -> None:
        self.rows = setup.size.lime_rows
        self.peer = Lime(
            setup.fitted, discretise=False, num_samples=setup.size.lime_samples, num_features=LIME_FEATURES
        )
        self.timed = _TimedLime(self.peer.lime_.explain_instance)
        self.peer.lime_.explain_instance = self.timed

    def explain(self, frame: pd.DataFrame) -> Told:
        """One row after another; what the peer adds to LIME's own work is left out of the time."""
        self.timed.seconds = self.timed.asking = 0.0
        found = self.peer.explain(frame)
        own = self.timed.seconds - self.timed.asking
        return Told(self.timed.seconds, found.fits.predictions(), found.training.table, found.fits, alone=own)


class EncodedLime(Method):
    """LIME by its own package, on the matrix that the black box itself sees: one-hot levels are columns like others."""

    settings = (
        "the same on the black box's own columns, levels one-hot, all of them continuous to LIME: nothing has to be "
        "turned into a table; no skill, as it says nothing of changed categories"
    )

    def __init__(self, setup: Setup) -> None:
        problem, self.rows, self.samples = setup.problem, setup.size.lime_rows, setup.size.lime_samples
        self.encode, self.booster = problem.model[:-1].transform, problem.model[-1]
        tabular = require("lime.lime_tabular", "peers")
        self.lime = tabular.LimeTabularExplainer(
            np.asarray(self.encode(problem.train)),
            mode="regression",
            discretize_continuous=False,
            random_state=np.random.RandomState(problem.seed),
        )
        self.margins = {"output_margin": True} if problem.classifies else {}

    def explain(self, frame: pd.DataFrame) -> Told:
        """One row after another."""
        asked = _TimedLime(self.lime.explain_instance)
        said = []
        for row in np.asarray(self.encode(frame)):
            explained = asked(
                row,
                lambda drawn: self.booster.predict(drawn, **self.margins),
                num_features=LIME_FEATURES,
                num_samples=self.samples,
            )
            said.append(float(explained.local_pred[0]))
        return Told(asked.seconds, np.array(said), alone=asked.seconds - asked.asking)


class _TimedLime:
    """LIME's ``explain_instance`` and the seconds it took, and those of them in which it waited for answers."""

    def __init__(self, explain_instance: Callable[..., Any]) -> None:
        self.explain_instance = explain_instance
        self.seconds = self.asking = 0.0

    def __call__(self, row: np.ndarray, ask: Callable[[np.ndarray], np.ndarray], **options: Any) -> Any:
        def timed_ask(drawn: np.ndarray) -> np.ndarray:
            seconds, answers = timed(lambda: ask(drawn))
            self.asking += seconds
            return answers

        seconds, explained = timed(lambda: self.explain_instance(row, timed_ask, **options))
        self.seconds += seconds
        return explained


class TreeShap(Method):
    """SHAP values that are read from the black box's own trees."""

    settings = (
        "shap.TreeExplainer of the XGBoost model without a background, on rows encoded by the model's own pipeline, "
        "which is timed too; SHAP values sum to the model's output at the row, and say nothing of other rows: no skill"
    )

    def __init__(self, setup: Setup) -> None:
        self.rows = setup.size.rows
        self.encode = setup.problem.model[:-1].transform
        self.shap = require("shap", "peers").TreeExplainer(setup.problem.model[-1])

    def explain(self, frame: pd.DataFrame) -> Told:
        """Encode the rows and read the values from the trees."""
        seconds, values = timed(lambda: self.shap.shap_values(self.encode(frame)))
        return Told(seconds, float(np.ravel(self.shap.expected_value)[0]) + values.sum(axis=1))

    def explain_alone(self, frames: list[pd.DataFrame], outputs: np.ndarray) -> float:  # noqa: ARG002 - it asks no black box
        """The same for each row; the black box is never asked."""
        return timed(lambda: [self.shap.shap_values(self.encode(frame)) for frame in frames])[0]


class TreeShapWithReference(TreeShap):
    """The same against reference rows, as reasons are."""

    settings = (
        "shap.TreeExplainer of the XGBoost model, interventional, with as many training rows as KernelSHAP has as its "
        "background, on rows encoded by the model's own pipeline, which is timed too; no skill, as for TreeSHAP"
    )

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.rows = setup.size.peer_rows
        model, train = setup.problem.model, setup.problem.train
        background = np.asarray(self.encode(train.iloc[: setup.size.background]), dtype=np.float64)
        tree = require("shap", "peers").TreeExplainer
        self.shap = tree(model[-1], background, feature_perturbation="interventional")


class KernelShap(Method):
    """SHAP values of any model, sampled."""

    settings = (
        "shap.KernelExplainer of the original columns, its defaults: nsamples and l1_reg chosen by it; the background "
        "are training rows drawn at random, as means of levels exist nowhere; turning its made-up rows into a table "
        "counts as the black box's time; no skill, as for TreeSHAP"
    )

    def __init__(self, setup: Setup) -> None:
        self.rows = setup.size.kernel_rows
        self.training = setup.fitted.training_.without_jumps()
        self.view = LimeView.of(self.training)
        self.samples = "auto" if setup.size.kernel_samples is None else setup.size.kernel_samples
        self.asking = 0.0
        rng = np.random.default_rng(setup.problem.seed)
        drawn = rng.choice(len(self.training), min(setup.size.background, len(self.training)), replace=False)
        self.shap = require("shap", "peers").KernelExplainer(self._ask, self.view.training_rows[drawn])

    def _ask(self, rows: np.ndarray) -> np.ndarray:
        seconds, outputs = timed(lambda: self.training.black_box.outputs(self.view.frame(rows)))
        self.asking += seconds
        return outputs

    def explain(self, frame: pd.DataFrame) -> Told:
        """One row after another, each with thousands of questions."""
        rows = self.view.rows(self.training.table.values(frame))
        self.asking = 0.0
        seconds, values = timed(lambda: self.shap.shap_values(rows, nsamples=self.samples, silent=True))
        return Told(seconds, self.shap.expected_value + values.sum(axis=1), alone=seconds - self.asking)


_FORESTS = (
    "a penalty of 1 instead of the published .001: for SILO what probe rows choose on both data sets, for MAPLE on "
    "some seeds; its forest is grown on all cores, its ridges are fitted on one thread, which is faster"
)


@contextmanager
def _one_thread() -> Iterator[None]:
    """For small ridges: several threads would spend more time waiting for each other than on them."""
    with one_thread(), threadpool_limits(1):
        yield


class _Forest(Method):
    peer: Peer

    def explain(self, frame: pd.DataFrame) -> Told:
        with _one_thread():
            seconds, found = timed(lambda: self.peer.explain(frame))
        return Told(seconds, found.fits.predictions(), found.training.table, found.fits)

    def explain_alone(self, frames: list[pd.DataFrame], outputs: np.ndarray) -> float:
        def work() -> None:
            for frame, output in zip(frames, outputs, strict=True):
                self.peer.explain(frame, outputs=[output])

        with _one_thread():
            return timed(work)[0]


class SiloMethod(_Forest):
    """SILO, as limis has it."""

    settings = f"limis.peers.Silo with ridges; {_FORESTS}"

    def __init__(self, setup: Setup) -> None:
        self.rows = setup.size.peer_rows
        self.peer = Silo(setup.fitted, alpha=ALPHA, n_jobs=-1)


class MapleMethod(_Forest):
    """MAPLE, as limis has it."""

    settings = f"limis.peers.Maple with ridges, which chooses its features on probe rows; {_FORESTS}"

    def __init__(self, setup: Setup) -> None:
        problem, self.rows = setup.problem, setup.size.peer_rows
        validation, outputs = problem.probe.iloc[:VALIDATING], problem.answers.probe[:VALIDATING]
        with _one_thread():
            self.peer = Maple(setup.fitted, alpha=ALPHA, n_jobs=-1, validation=validation, validation_outputs=outputs)


METHODS: dict[str, Callable[[Setup], Method]] = {
    "LIMIS ridge": LimisRidge,
    "LIMIS tree": LimisTree,
    "LIMIS curves": LimisCurves,
    "LIME": LimeMethod,
    "LIME, encoded": EncodedLime,
    "TreeSHAP": TreeShap,
    "TreeSHAP, reference": TreeShapWithReference,
    "KernelSHAP": KernelShap,
    "SILO": SiloMethod,
    "MAPLE": MapleMethod,
}
# Packages that some of them need, with the extra that brings them.
NEEDED = {
    "LIME": ("lime", "peers"),
    "LIME, encoded": ("lime", "peers"),
    "TreeSHAP": ("shap", "peers"),
    "TreeSHAP, reference": ("shap", "peers"),
    "KernelSHAP": ("shap", "peers"),
}


def whole(found: Explanations) -> Explanations:
    """Explanations with what a reader wants of them at once; reasons of curves are worked out when they are read."""
    _ = found.fidelity
    if not found.fits.has_curves:
        _ = found.contributions
    return found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds that some work takes, and what it gives."""
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found
