"""One run on real data: a group of methods on one black box, and row by row all that any table needs of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from limis.experiments.methods import REVISION
from limis.experiments.real_methods import GROUPS, SAMPLED, Explained, Surrogate, lime_tests
from limis.experiments.real_problem import RealProblem
from limis.experiments.runs import Arrays, key_of

# Seconds on one core, roughly: who waits for whom. Who samples waits for the estimator that others train.
COSTS = {
    "LIMIS (default)": 200.0,
    "LIMIS (paper)": 900.0,
    "SILO, MAPLE and simple ones": 300.0,
    "LIME": 500.0,
    SAMPLED: 60.0,
}


@dataclass(frozen=True)
class RealRun:
    """A group of methods with one kind of local model on one black box."""

    problem: RealProblem
    surrogate: Surrogate
    group: str

    def __str__(self) -> str:
        return f"{self.group}, {self.surrogate}, {self.problem}"

    @property
    def key(self) -> str:
        """What the run is kept under."""
        decisive = {"LIMIS (default)": f", revision {REVISION}", "LIME": f", {lime_tests(self.problem.box)} tests"}
        return key_of(str(self), repr(self) + decisive.get(self.group, ""))

    @property
    def cost(self) -> float:
        """Roughly how many seconds it takes."""
        return COSTS[self.group]

    def execute(self, device: str = "cpu") -> Arrays:
        """All methods of the group on the same test rows, moves and neighbours."""
        return as_arrays(self.problem, list(GROUPS[self.group](self.problem, self.surrogate, device)))

    def outcome(self, found: Arrays) -> list[Told]:
        """What each method of the group says."""
        return told(self.problem, self.surrogate, found)


@dataclass
class Told:
    """What one method says of the test rows, row by row, beside the black box and the labels."""

    problem: RealProblem
    surrogate: Surrogate
    method: str
    labels: np.ndarray  # (rows,)
    outputs: np.ndarray  # (rows,) f
    local: np.ndarray  # (rows,) g
    moved: np.ndarray  # (rows,) sum of squares of f's changes over the row's moves
    missed: np.ndarray  # (rows,) the same of what g did not foresee of them
    near_error: np.ndarray  # (rows,) mean |f − g| at its neighbours
    near_label_error: np.ndarray  # (rows,) mean |label − g| there
    fit_seconds: float
    explain_ms: float
    options: str = field(default="")

    def first(self, n: int) -> Told:
        """What it says of the first rows."""
        names = ("labels", "outputs", "local", "moved", "missed", "near_error", "near_label_error")
        return replace(self, **{name: getattr(self, name)[:n] for name in names})


def as_arrays(problem: RealProblem, explained: Iterable[Explained]) -> Arrays:
    """What methods say, a line a method; rows that a method did not explain are NaN."""
    every, answers = list(explained), problem.answers
    asked = answers.test.asked
    assert asked is not None
    n = len(answers.test)

    def by_row(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.bincount(rows, weights=values, minlength=n)

    def line(one: Explained) -> dict[str, np.ndarray]:
        m = len(one.local)
        own = asked.rows < m
        near = answers.near.reshape(n, -1)[:m]
        foreseen_near = one.near.reshape(m, -1)
        labels = problem.test_labels[:m, None]
        return {
            "local": one.local,
            "missed": by_row((asked.changes[own] - one.foreseen) ** 2, asked.rows[own])[:m],
            "near_error": np.abs(near - foreseen_near).mean(axis=1),
            "near_label_error": np.abs(labels - foreseen_near).mean(axis=1),
        }

    lines = [line(one) for one in every]
    return {
        "method": np.array([one.method for one in every]),
        "options": np.array([one.options for one in every]),
        "fit_seconds": np.array([one.fit_seconds for one in every]),
        "explain_ms": np.array([one.explain_ms for one in every]),
        "labels": problem.test_labels,
        "outputs": answers.test.outputs,
        "moved": by_row(asked.changes**2, asked.rows),
        **{name: np.array([_padded(one[name], n) for one in lines]) for name in lines[0]},
    }


def told(problem: RealProblem, surrogate: Surrogate, found: Arrays) -> list[Told]:
    """What was kept, a method each, without the rows that it did not explain."""
    lines = []
    for place, method in enumerate(found["method"].tolist()):
        known = ~np.isnan(found["local"][place])
        shared = {name: found[name][known] for name in ("labels", "outputs", "moved")}
        own = {name: found[name][place][known] for name in ("local", "missed", "near_error", "near_label_error")}
        one = Told(
            problem,
            surrogate,
            method,
            **shared,
            **own,
            fit_seconds=float(found["fit_seconds"][place]),
            explain_ms=float(found["explain_ms"][place]),
            options=str(found["options"][place]),
        )
        lines.append(one)
    return lines


def _padded(values: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([values, np.full(n - len(values), np.nan)])
