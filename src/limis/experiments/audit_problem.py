"""What the audit asks about each data set and black box: one exam for all methods."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version

import numpy as np
import pandas as pd

from limis.blackbox import Output
from limis.experiments.kept import digest, kept
from limis.experiments.real_problem import RealProblem
from limis.fidelity.audit.auditing import prepare, reference_rows
from limis.fidelity.audit.exam import Exam

BOXES = ("XGBoost", "LightGBM, defaults", "RF, defaults", "MLP")
QUESTIONS, QUICK_QUESTIONS = 1_500_000, 20_000
FORMAT = 3  # of the questions: raised when they are drawn otherwise
EVERY_ROW = 10**9


@dataclass(frozen=True)
class AuditProblem:
    """A data set, a black box, and which of the test rows are asked about."""

    problem: RealProblem

    def __str__(self) -> str:
        return str(self.problem)

    @property
    def output(self) -> Output:
        """Forests say exactly 0 or 1 so often that logits mean nothing: probabilities are explained."""
        return "probability" if self.problem.box.startswith("RF") and self.problem.classifies else "auto"

    @cached_property
    def held_out(self) -> pd.DataFrame | None:
        """All other test rows: law B takes values from them, and where there are none from the rows asked about."""
        others = replace(self.problem, tests=EVERY_ROW).test.iloc[len(self.problem.test) :]
        return others if len(others) else None

    @property
    def reference(self) -> pd.DataFrame:
        """The rows that all methods know the population by."""
        return reference_rows(self.problem.train, random_state=self.problem.seed)

    @cached_property
    def exam(self) -> Exam:
        """Questions and answers, asked once."""
        problem = self.problem
        decisive = digest(problem.digest, problem.seed, problem.tests, FORMAT, version("numpy"))
        made: Exam = kept(f"{problem.data}-{problem.box}-exam".lower().replace(" ", ""), decisive, self._ask)
        made.box.box.model = problem.model
        return made

    def _ask(self) -> Exam:
        problem = self.problem
        exam = prepare(
            problem.model,
            problem.train,
            problem.test,
            held_out=self.held_out,
            reference=self.reference,
            output=self.output,
            max_questions=QUICK_QUESTIONS if problem.quick else QUESTIONS,
            random_state=problem.seed,
        )
        exam.ask()
        # The model is kept on its own, and is large.
        return replace_model(exam)

    def choosing_rows(self, n: int) -> tuple[pd.DataFrame, np.ndarray]:
        """Probe rows that peers are chosen on, with what the black box says of them."""
        frame = self.problem.probe.iloc[:n]
        return frame, self.exam.box.box.outputs(self.exam.ground.table.read(frame))


def replace_model(exam: Exam) -> Exam:
    """The exam without the model it asked."""
    exam.box.box = replace(exam.box.box, model=None)
    return exam
