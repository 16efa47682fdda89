"""One run: the test rows of a data set explained once, and row by row all that its groups are made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from limis.experiments.methods import REVISION
from limis.experiments.real_problem import RealProblem
from limis.experiments.runs import Arrays, key_of
from limis.experiments.subgroup_claims import LOOKS
from limis.explainer import LimisExplainer
from limis.subgroups.measure import RowNumbers, column_weights

# What rows are grouped by.
BY = {
    "Adult": ("age", "sex", "marital-status", "race", "education"),
    "Weather": ("RainToday", "Rainfall", "WindSpeed3pm", "Humidity3pm", "Pressure3pm", "Temp3pm"),
}
ALL_TESTS = 10**9


@dataclass(frozen=True)
class GroupedRows:
    """What a run found: numbers of every explained row, and what groups are made by."""

    rows: RowNumbers
    contributions: pd.DataFrame  # (rows, columns) absolute
    frame: pd.DataFrame  # (rows, `BY`)
    sampled: np.ndarray  # (rows,) bool: the others were explained because rare groups need them

    def part(self, chosen: np.ndarray) -> GroupedRows:
        """Some of the rows."""
        rows = self.rows
        assert rows.outputs is not None
        assert rows.errors is not None
        fewer = RowNumbers(
            rows.weight[chosen],
            rows.local[chosen],
            rows.trusted[chosen],
            rows.effective_rows[chosen],
            rows.outputs[chosen],
            rows.errors[chosen],
        )
        return GroupedRows(fewer, self.contributions[chosen], self.frame[chosen], self.sampled[chosen])


@dataclass(frozen=True)
class GroupsRun:
    """The default explainer with ridges on one black box, for test rows and for all rows of rare groups."""

    problem: RealProblem
    cost: float = field(default=250.0, repr=False)

    def __str__(self) -> str:
        return f"subgroups, {self.problem}"

    @property
    def key(self) -> str:
        """What the run is kept under."""
        return key_of(str(self), f"{self!r}, revision {REVISION}")

    def execute(self, device: str = "cpu") -> Arrays:  # noqa: ARG002 - there are no networks over all rows
        """Explain the rows, and keep what each column weighs in each."""
        problem = self.problem
        every = replace(problem, tests=ALL_TESTS)
        sampled = np.arange(len(every.test)) < problem.tests
        wanted = np.flatnonzero(sampled | self._rare(every.test))
        test = every.test.iloc[wanted]
        explainer = LimisExplainer(problem.model, surrogate="ridge", n_jobs=1, random_state=problem.seed)
        found = explainer.fit(problem.train, probe_rows=problem.probe).explain(test)
        rows = RowNumbers.of(found, "coefficients", every.test_labels[wanted])
        assert rows.outputs is not None
        assert rows.errors is not None
        return {
            "columns": np.array(list(rows.weight.columns), dtype=np.str_),
            "coefficients": rows.weight.to_numpy(),
            "contributions": column_weights(found, "contributions").to_numpy(),
            "local": rows.local,
            "trusted": rows.trusted,
            "effective_rows": rows.effective_rows,
            "outputs": rows.outputs,
            "errors": rows.errors,
            "sampled": sampled[wanted],
            **{name: _plain_array(test[name]) for name in BY[problem.data]},
        }

    def _rare(self, test: pd.DataFrame) -> np.ndarray:
        """The rows of groups that all test rows are searched for."""
        rare = np.zeros(len(test), dtype=bool)
        for look in LOOKS[self.problem.data]:
            if look.every_test_row:
                for group in (group for groups in look.families.values() for group in groups):
                    rare |= group.mask(test)
        return rare

    def outcome(self, found: Arrays) -> GroupedRows:
        """The rows as they were explained."""
        columns = found["columns"].tolist()
        rows = RowNumbers(
            pd.DataFrame(found["coefficients"], columns=columns),
            **{name: found[name] for name in ("local", "trusted", "effective_rows", "outputs", "errors")},
        )
        return GroupedRows(
            rows,
            pd.DataFrame(found["contributions"], columns=columns),
            pd.DataFrame({name: found[name] for name in BY[self.problem.data]}),
            found["sampled"],
        )


def _plain_array(series: pd.Series) -> np.ndarray:
    numeric = pd.api.types.is_numeric_dtype(series.dtype)
    return series.to_numpy(dtype=np.float64) if numeric else series.to_numpy(dtype=np.str_)
