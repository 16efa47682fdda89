"""The audit's tables, on a trial of one cell."""

import warnings

import numpy as np
import pandas as pd
import pytest

from limis import InputError
from limis.experiments.audit_methods import BY_QUESTIONS, CEILING, GLOBAL, GROUPS, QUERIES, RIDGE, SHAP
from limis.experiments.audit_problem import BOXES
from limis.experiments.audit_runs import AuditRun
from limis.experiments.audit_tables import check_same_questions
from limis.experiments.protocol import Scope
from limis.experiments.real_problem import RealProblem
from limis.experiments.registry import AUDIT, named

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # importing shap warns of what matplotlib will do some day
    import shap  # noqa: F401 - imported here, it does not warn when the methods import it

pytestmark = pytest.mark.slow

TRIED = ("limis, curves", BY_QUESTIONS, "limis, ridge", "SILO, MAPLE", GLOBAL, "LIME", "SHAP")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LIMIS_CACHE", str(tmp_path_factory.mktemp("kept")))
        problem = RealProblem("Adult", "LightGBM, defaults", 0, 20, quick=True)
        runs = [AuditRun(problem, group) for group in TRIED]
        return [run.outcome(run.execute()) for run in runs]


def test_the_audit_is_named_and_has_a_run_for_every_cell_and_group():
    assert [one.name for one in named(["audit"])] == [one.name for one in AUDIT]
    runs = AUDIT[0].runs(Scope(seeds=1))
    assert len({run.key for run in runs}) == len(runs)
    cells = {(run.problem.data, run.problem.box) for run in runs}
    assert len(cells) == 7 * len(BOXES)
    assert {run.group for run in runs} == set(GROUPS)


def test_every_table_is_made_shown_and_drawn(outcomes):
    for experiment in AUDIT:
        table = experiment.tabulate(outcomes)
        if experiment.name == "audit-why-asked":  # the trial asks nobody about reasons
            assert table.empty
            continue
        shown = experiment.show(table)
        # A trial has too few probe rows for a bound.
        assert len(shown) > 0 or experiment.name == "audit-promises"
        assert not any("nan" in str(cell) for line in shown.to_numpy() for cell in line)
        experiment.draw(table)


def test_methods_say_what_they_can(outcomes):
    table = AUDIT[0].tabulate(outcomes)
    single = table[(table["family"] == "single") & (table["subset"] == "all")]
    assert {RIDGE, QUERIES, "SILO", "MAPLE", "LIME", CEILING, "nothing changes"} <= set(single["method"])
    assert SHAP not in set(single["method"])
    reasons = table[table["family"] == "reasons"]
    assert SHAP in set(reasons["method"])
    assert (single[single["method"] == "nothing changes"]["skill"].dropna() == 0).all()
    assert (reasons[reasons["method"] == "blind answer"]["skill"].dropna() == 0).all()
    # A booster taught with 500 mixtures knows more than nothing.
    assert single[single["method"] == CEILING]["skill"].mean() > 0
    verdicts = AUDIT[1].tabulate(outcomes)
    assert np.isfinite(verdicts[verdicts["law"] == "its own moves"]["skill"]).all()


def test_runs_that_were_asked_other_questions_are_not_put_together(outcomes):
    other = outcomes[1].by_row.copy()
    other["moved"] = other["moved"] * 1.1
    changed = type(outcomes[1])(**{**vars(outcomes[1]), "by_row": pd.DataFrame(other)})
    with pytest.raises(InputError, match="were asked different questions"):
        check_same_questions([outcomes[0], changed])
