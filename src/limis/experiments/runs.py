"""One run: a method on one draw of synthetic data, and all that any figure needs of it."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from limis.datasets import SyntheticData
from limis.experiments.curve_slopes import curve_slopes
from limis.experiments.methods import Fitted, Method
from limis.experiments.protocol import Problem
from limis.explanation import Explanations
from limis.metrics import awd_nonzero, awd_norm, awd_positive, lmae, nse, selection_auc

Arrays = Mapping[str, np.ndarray]
# Part of what runs are kept under: another number forgets all runs of before.
FORMAT = 1
WEIGHED = 20  # test rows whose weights are kept


class Run(Protocol):
    """A piece of work that is done once and kept."""

    @property
    def key(self) -> str:
        """What it is kept under: equal for equal work alone."""
        ...

    @property
    def cost(self) -> float:
        """Roughly how many seconds it takes."""
        ...

    def execute(self, device: str = "cpu") -> Arrays:
        """Do it; networks are trained on ``device``."""
        ...

    def outcome(self, found: Arrays) -> Any:
        """What it found, as tables use it."""
        ...


def key_of(words: str, decisive: str) -> str:
    """A readable name of a run, made unique by a digest of everything that decides its result."""
    digest = hashlib.blake2b(f"{FORMAT} {decisive}".encode(), digest_size=5).hexdigest()
    return f"{re.sub('[^a-z0-9]+', '-', words.lower()).strip('-')}-{digest}"


@dataclass(frozen=True)
class SyntheticRun:
    """A method on one draw of Syn1, Syn2, Syn3 or Syn4."""

    method: Method
    data: str
    rows: int
    seed: int
    tests: int
    quick: bool = False

    def __str__(self) -> str:
        return f"{self.method.name}, {self.data}, {self.rows} rows, seed {self.seed}"

    @property
    def key(self) -> str:
        """What the run is kept under."""
        return key_of(str(self), repr(self))

    @property
    def cost(self) -> float:
        """Roughly how many seconds it takes."""
        return self.method.cost * self.rows / 1000

    @property
    def problem(self) -> Problem:
        """The rows it is about; they are drawn again where needed, not kept."""
        return Problem(self.data, self.rows, self.seed, self.tests)

    def execute(self, device: str = "cpu") -> Arrays:
        """Fit the method, explain the test rows."""
        problem = self.problem
        fitted = self.method.fit(problem, self.quick, device)
        started = time.perf_counter()
        found = fitted.explain(problem.test.features)
        seconds = time.perf_counter() - started
        return {
            **_explained(found, problem),
            "fit_seconds": np.array(fitted.seconds),
            "explain_seconds": np.array(seconds),
            **curve_arrays(fitted),
        }

    def outcome(self, found: Arrays) -> Outcome:
        """What the run found."""
        return Outcome(self, found)


def _explained(found: Explanations, problem: Problem) -> dict[str, np.ndarray]:
    weights = found.slope_weights
    several = len(np.unique(problem.training.regime)) > 1
    auc = selection_auc(weights, problem.training.regime, problem.test.regime) if several else np.nan
    if found.fits.has_curves:
        # Anchored at the black box's output, curves miss nothing at the row: what was expected without it counts.
        slopes, predictions = curve_slopes(found), found.fits.predictions()
    else:
        slopes = found.coefficients.xs("", axis=1, level="level").to_numpy()
        predictions = found.local_predictions.to_numpy()
    return {
        "coefficients": slopes.astype(np.float32),
        "predictions": predictions,
        "auc": np.array(auc),
        "selected_share": np.array(weights.mean()),
        "weights": weights[:WEIGHED].toarray().astype(np.float16),
    }


def curve_arrays(fitted: Fitted) -> dict[str, np.ndarray]:
    """The learning curve, where there is one."""
    log = fitted.log
    if log is None:
        return {}
    return {
        "curve_steps": np.array(log.steps),
        "curve_error": np.array(log.validation_error),
        "curve_share": np.array(log.selected_share),
        "curve_global_error": np.array(log.global_error),
        "curve_kept": np.array(log.kept),
        "penalty": np.array(log.penalty),
    }


@dataclass(frozen=True)
class Outcome:
    """What a synthetic run found, beside the truth about its test rows."""

    run: SyntheticRun
    found: Arrays

    @cached_property
    def truth(self) -> SyntheticData:
        """The test rows."""
        return self.run.problem.test

    @property
    def row_awd(self) -> np.ndarray:
        """Absolute weight difference of each test row, over its non-zero true coefficients: (tests,)."""
        true = self.truth.coefficients
        missed, counted = np.abs(self.found["coefficients"] - true), true != 0
        return (missed * counted).sum(axis=1) / counted.sum(axis=1)

    @property
    def distance_percentile(self) -> np.ndarray:
        """How far each test row is from the boundary, as the percentage of test rows that are nearer: (tests,)."""
        distance = self.truth.boundary_distance
        return 100 * np.argsort(np.argsort(distance)) / len(distance)

    def _fit_seconds(self) -> float:
        """On one CPU core; unknown of a run that was trained elsewhere."""
        on_cpu = "cuda" not in str(self.found.get("machine", ""))
        return float(self.found["fit_seconds"]) if on_cpu else np.nan

    def measures(self) -> dict[str, float]:
        """Everything that is one number a run."""
        true, found = self.truth.coefficients, self.found["coefficients"]
        outputs, predictions = self.truth.outputs, self.found["predictions"]
        return {
            "awd": awd_nonzero(true, found),
            "awd_positive": awd_positive(true, found),
            "awd_norm": awd_norm(true, found),
            "nse": nse(outputs, predictions),
            "lmae": lmae(outputs, predictions),
            "auc": float(self.found["auc"]),
            "selected_share": float(self.found["selected_share"]),
            "fit_seconds": self._fit_seconds(),
            "explain_ms": 1000 * float(self.found["explain_seconds"]) / len(outputs),
        }
