"""One run of the audit: a group of methods on one exam, and row by row what each got right."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from limis.experiments.audit_methods import BY_QUESTIONS, FEW_CELLS, GAMES, GROUPS, RIDGE
from limis.experiments.audit_problem import FORMAT, AuditProblem
from limis.experiments.methods import REVISION
from limis.experiments.protocol import Scope
from limis.experiments.real_problem import RealProblem
from limis.experiments.runs import Arrays, key_of
from limis.explanation import Explanations
from limis.fidelity.audit.auditing import judged
from limis.fidelity.audit.methods import read_method
from limis.fidelity.audit.tally import KEYS, SUMS
from limis.metrics import skill_on_changes
from limis.training import ProbeRows

SENSITIVE = {"Adult": ("sex", "race"), "German": ("personal_status_sex",)}
# Seconds on one core, roughly: who waits for whom.
COSTS = {
    "limis, ridge": 300.0,
    "limis, tree": 300.0,
    "limis, curves": 100.0,
    "limis, who speaks": 120.0,
    "limis, another seed": 100.0,
    "limis, reasons by questions": 150.0,
    GAMES: 200.0,
    BY_QUESTIONS: 200.0,
    "LIME": 100.0,
    "SHAP": 100.0,
}
SLOW = {"Blog": 5.0, "News": 2.0, "Facebook": 1.5, "Weather": 1.5}
TABLES = ("strongest", "at_row", "coverage", "intervals", "trust", "stability")


@dataclass(frozen=True)
class AuditRun:
    """A group of methods on one data set and black box."""

    problem: RealProblem
    group: str

    def __str__(self) -> str:
        return f"audit, {self.group}, {self.problem}"

    @property
    def key(self) -> str:
        """What the run is kept under."""
        own = f", revision {REVISION}" if self.group.startswith("limis") else ""
        return key_of(str(self), f"{self!r}, questions {FORMAT}{own}")

    @property
    def cost(self) -> float:
        """Roughly how many seconds it takes."""
        return COSTS.get(self.group, 200.0) * SLOW.get(self.problem.data, 1.0)

    def execute(self, device: str = "cpu") -> Arrays:  # noqa: ARG002 - there are no networks over all rows
        """Explain the rows and hold the explanations against the answers."""
        problem = AuditProblem(self.problem)
        explained = list({**GROUPS, **FEW_CELLS}[self.group](problem))
        explanations = {name: given for name, given, _ in explained}
        again = {name: repeated for name, _, repeated in explained if repeated}
        found = judged(problem.exam, explanations, again, SENSITIVE.get(self.problem.data, ()))
        by_row = found.by_row
        methods = [read_method(name, given, problem.exam) for name, given in explanations.items()]
        return {
            **{name: by_row[name].to_numpy(dtype=np.str_) for name in KEYS},
            "row": by_row["row"].to_numpy(),
            **{name: by_row[name].to_numpy(dtype=np.float64) for name in SUMS},
            "own_moves": np.array(_skill_by_own_moves(explanations.get(RIDGE), self.problem)),
            "tables": np.array(json.dumps({name: getattr(found, name).to_dict("records") for name in TABLES})),
            "facts": np.array(json.dumps(found.facts)),
            **{f"attributions: {one.name}": one.attributions for one in methods if one.attributions is not None},
        }

    def outcome(self, found: Arrays) -> Audited:
        """What it found, as tables use it."""
        by_row = pd.DataFrame({name: found[name] for name in (*KEYS, "row", *SUMS)})
        prefix = "attributions: "
        return Audited(
            self,
            by_row,
            {name: pd.DataFrame(lines) for name, lines in json.loads(str(found["tables"])).items()},
            json.loads(str(found["facts"])),
            {name.removeprefix(prefix): array for name, array in found.items() if name.startswith(prefix)},
            float(found.get("own_moves", np.nan)),
        )


@dataclass
class Audited:
    """A finished run."""

    run: AuditRun
    by_row: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    facts: dict[str, Any]
    attributions: dict[str, np.ndarray]
    own_moves: float  # ridges' skill by the law that they are fitted on and chosen by; NaN of other methods


def runs_of(scope: Scope, data: str, boxes: Iterable[str], groups: Iterable[str]) -> list[AuditRun]:
    """Groups of methods on one data set, by each black box and seed."""
    groups = list(groups)
    return [
        AuditRun(RealProblem(data, box, seed, scope.tests, scope.rows, scope.quick), group)
        for box in boxes
        for seed in range(scope.seeds)
        for group in groups
    ]


def _skill_by_own_moves(found: Explanations | None, problem: RealProblem) -> float:
    """Skill on the moves that ridges are fitted on and chosen by: how they were measured before there was a law B."""
    if found is None or found.outputs is None:
        return float("nan")
    rng = np.random.default_rng([problem.seed, 4])
    asked = ProbeRows.ask(found.training, found.frame, found.outputs, rng).asked
    assert asked is not None
    foreseen = found.fits.changes(asked.rows, asked.moved(found.training.table))
    return skill_on_changes(asked.changes, foreseen)
