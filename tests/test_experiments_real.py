"""The experiments on real data: problems, methods in groups, row-by-row results, and who wins."""

import numpy as np
import pandas as pd
import pytest

from limis.datasets import Dataset
from limis.experiments import EXPERIMENTS, Cache, Scope, black_boxes, make_missing, real_methods, real_problem
from limis.experiments.paper_real import TABLES, Key
from limis.experiments.real_fidelity import NEGATIVE, WORSE, runs_of, side_by_side
from limis.experiments.real_problem import RealProblem
from limis.experiments.real_runs import RealRun, Told
from limis.experiments.real_tables import measures, tidy, verdicts
from limis.experiments.results import finish

N = 400


def small(task):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=N), "b": rng.integers(0, 9, N), "c": rng.choice(["x", "y"], N)})
    value = 2 * frame["a"] + frame["b"] * (frame["c"] == "x") + 0.3 * rng.normal(size=N)
    target = value if task == "regression" else pd.Series(np.where(value > 2, ">50K", "<=50K"))
    return Dataset("small", frame, target, task, "", "", "")


@pytest.fixture
def few_rows(monkeypatch, tmp_path):
    monkeypatch.setenv("LIMIS_CACHE", str(tmp_path / "kept"))
    loaders = {"Blog": lambda: small("regression"), "Adult": lambda: small("classification")}
    monkeypatch.setattr(real_problem, "LOADERS", loaders)
    monkeypatch.setattr(black_boxes, "QUICK_TREES", 5)
    monkeypatch.setattr(real_methods, "LIME_TESTS", 8)
    monkeypatch.setattr(real_methods, "CHOOSING_LIME", 6)


@pytest.mark.parametrize("box", black_boxes.KINDS)
@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_black_box_learns_both_tasks(box, task):
    data = small(task)
    target = data.target.to_numpy() if task == "regression" else (data.target == ">50K").to_numpy(dtype=int)
    model = black_boxes.fit_black_box(box, task, data.frame, target, quick=True)
    said = model.predict(data.frame)
    assert said.shape == (N,)
    if task == "classification":
        assert set(said) <= {0, 1}
        assert model.predict_proba(data.frame).shape == (N, 2)


@pytest.mark.usefixtures("few_rows")
def test_a_black_box_is_fitted_and_asked_once(monkeypatch):
    first = RealProblem("Blog", "XGBoost", 0, 20, quick=True)
    said = first.answers
    monkeypatch.setattr(real_problem, "fit_black_box", lambda *_, **__: pytest.fail("fitted again"))
    again = RealProblem("Blog", "XGBoost", 0, 20, quick=True)
    np.testing.assert_array_equal(said.test.outputs, again.answers.test.outputs)
    np.testing.assert_allclose(again.model.predict(again.test), said.test.outputs, rtol=1e-6)


@pytest.mark.usefixtures("few_rows")
def test_rows_are_divided_without_overlap_and_by_seed():
    parts = RealProblem("Blog", "XGBoost", 0, 30, rows=50).parts
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
    assert [len(part) for part in parts] == [50, 6, 30]  # probe rows shrink with the training rows
    assert not np.array_equal(parts[2], RealProblem("Blog", "XGBoost", 1, 30, rows=50).parts[2])


@pytest.mark.usefixtures("few_rows")
def test_neighbours_are_near_and_keep_categories():
    problem = RealProblem("Blog", "XGBoost", 0, 20, quick=True)
    near = problem._neighbours(np.random.default_rng(0))
    rows = problem.test.iloc[np.repeat(np.arange(20), real_problem.NEIGHBOURS)]
    assert (near["c"].to_numpy() == rows["c"].to_numpy()).all()
    steps = (near["a"].to_numpy() - rows["a"].to_numpy()) / problem.train["a"].std()
    # 200 draws of a standard deviation of .1: its estimate has a standard error of .005.
    assert steps.std() == pytest.approx(real_problem.NOISE, abs=0.025)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize(("data", "surrogate"), [("Blog", "ridge"), ("Adult", "tree")])
def test_all_methods_of_a_cell_make_a_table(tmp_path, data, surrogate):
    runs = runs_of(Scope(seeds=1, tests=20, quick=True), [data], ["XGBoost"], [surrogate])
    cache = Cache(tmp_path / "cache")
    assert make_missing(runs, cache) == len(runs) == 4
    table = tidy([run.outcome(cache.load(run)) for run in runs])
    assert set(table["method"]) == {
        *("Original", "LIMIS (default)", "LIMIS (paper)", "LIME", "SILO", "MAPLE", "local mean"),
        *(f"global {surrogate}", "global, of labels", "booster (unreadable)"),
    }
    by_method = table.set_index("method")
    assert by_method.loc["LIME", "tests"] == 8
    assert by_method.loc["SILO", "tests"] == 20
    assert by_method.loc["local mean", "skill"] == pytest.approx(0)
    assert by_method["nse"].notna().all()
    assert np.isnan(by_method.loc["LIMIS (default)", "nse behind"])
    low, high = by_method.loc["SILO", ["nse behind low", "nse behind high"]]
    assert low <= by_method.loc["SILO", "nse behind"] <= high
    paper = TABLES[Key(data, "XGBoost", surrogate, "SILO", "nse")]
    assert by_method.loc["SILO", "nse paper"] == paper
    shown = side_by_side(table, ["error", "nse", "skill"])
    assert f"({paper:.4g})" in shown.set_index("method").loc["SILO", "XGBoost nse"]
    assert len(verdicts(table, "nse")) == 1


@pytest.mark.usefixtures("few_rows")
def test_the_neighbourhood_table_is_written(tmp_path):
    scope = Scope(seeds=1, tests=12, quick=True)
    runs = runs_of(scope, ["Blog"], ["XGBoost"], ["ridge"])
    cache = Cache(tmp_path / "cache")
    make_missing(runs, cache)
    table = finish(EXPERIMENTS["real-neighbourhood"], scope, tmp_path, cache)
    assert (table["near_lmae"].dropna() > 0).all()
    assert (tmp_path / "real-neighbourhood.png").exists()


def told(method, local, seed=0, missed=0.5):
    rng = np.random.default_rng(1)
    outputs = rng.normal(size=400)
    problem = RealProblem("Blog", "XGBoost", seed, 400)
    ones = np.ones(400)
    return Told(problem, "ridge", method, outputs, outputs, local(outputs), ones, missed * ones, ones, ones, 1.0, 1.0)


def test_who_is_ahead_is_ahead_beyond_the_interval():
    noise = np.random.default_rng(2).normal(size=400)
    default = told("LIMIS (default)", lambda outputs: outputs + 0.3 * noise)
    worse = told("SILO", lambda outputs: outputs + 0.9 * noise, missed=0.9)
    same = told("MAPLE", lambda outputs: outputs - 0.3 * noise)
    better = told("LIME", lambda outputs: outputs + 0.1 * noise, missed=0.1)
    cell = ("Blog", "XGBoost", "ridge")
    assert verdicts(tidy([[default, worse]]), "nse") == {cell: "best"}
    assert verdicts(tidy([[default, worse, same]]), "nse") == {cell: "tied with MAPLE"}
    assert verdicts(tidy([[default, worse, same, better]]), "nse") == {cell: "behind LIME"}
    assert verdicts(tidy([[default, worse]]), "skill") == {cell: "best"}


def test_what_is_worse_than_the_global_model_is_marked():
    far = told("SILO", lambda outputs: outputs + 10)
    simple = told("global, of labels", lambda outputs: outputs + 1)
    lines = side_by_side(tidy([[far, simple, told("LIMIS (default)", lambda outputs: outputs)]]), ["error", "nse"])
    by_method = lines.set_index("method")
    assert WORSE in by_method.loc["SILO", "XGBoost error"]
    assert NEGATIVE in by_method.loc["SILO", "XGBoost nse"]
    assert WORSE not in by_method.loc["LIMIS (default)", "XGBoost error"]
    assert measures(far)["error"] == pytest.approx(10)


def test_the_runs_of_a_cell_differ_in_key():
    runs = [
        run
        for name in ("real-main", "real-regression-trees", "real-classification-ridge")
        for run in EXPERIMENTS[name].runs(Scope(seeds=3))
    ]
    assert len({run.key for run in runs}) == len(runs) == 5 * (3 + 3) * 2 * 4
    assert all(isinstance(run, RealRun) for run in runs)
