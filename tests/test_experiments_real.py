"""The experiments on real data: problems, methods in groups, row-by-row results, and who wins."""

import numpy as np
import pandas as pd
import pytest
from small_data import N, small

from limis.experiments import EXPERIMENTS, Cache, Scope, black_boxes, make_missing, real_methods, real_problem
from limis.experiments.paper_real import BOXES, GLOBAL, INFERENCE, ORIGINAL, SLIPS, TABLES, Key
from limis.experiments.real_fidelity import INFERENCES, NEGATIVE, SLIP, WORSE, runs_of, side_by_side
from limis.experiments.real_problem import RealProblem
from limis.experiments.real_runs import RealRun, Told
from limis.experiments.real_tables import PEERS, measures, tidy, verdicts
from limis.experiments.results import finish


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
    errors = shown.set_index("method")["XGBoost error"]
    assert f"({paper:.4g})" in shown.set_index("method").loc["SILO", "XGBoost nse"]
    assert errors["Original"].endswith(f"({ORIGINAL[data][0]:.4g})")
    assert errors["global, of labels"].endswith(f"({GLOBAL[data, surrogate]:.4g})")
    assert not next(iter(verdicts(table, "nse").values())).startswith("unfinished")


@pytest.mark.usefixtures("few_rows")
def test_the_neighbourhood_table_is_written(tmp_path):
    scope = Scope(seeds=1, tests=12, quick=True)
    runs = runs_of(scope, ["Blog"], ["XGBoost"], ["ridge"])
    cache = Cache(tmp_path / "cache")
    make_missing(runs, cache)
    table = finish(EXPERIMENTS["real-neighbourhood"], scope, tmp_path, cache)
    assert (table["near_lmae"].dropna() > 0).all()
    assert (tmp_path / "real-neighbourhood.png").exists()


@pytest.mark.usefixtures("few_rows")
def test_sampling_at_inference_stands_beside_weighting(tmp_path):
    experiment, scope = EXPERIMENTS["real-inference"], Scope(seeds=3, tests=20, quick=True)
    runs = [run for run in experiment.runs(scope) if run.problem.data == "Blog"]
    assert [run.group for run in runs] == list(INFERENCES)  # of one seed
    cache = Cache(tmp_path / "cache")
    make_missing(runs, cache)
    weighed, drawn = (cache.load(run) for run in runs)
    assert drawn["method"].tolist() == [real_methods.SAMPLED]
    assert np.isfinite(drawn["local"]).all()
    assert not np.allclose(weighed["local"], drawn["local"])
    shown = experiment.show(finish(experiment, scope, tmp_path, cache)).set_index("data")
    for inference, number in zip(("weights", "sampled"), INFERENCE["Blog"], strict=True):
        assert shown.loc["Blog", f"LMAE, {inference}"].endswith(f"({number:.4g})")
    assert shown.loc["Blog", "sampling adds to the LMAE"].endswith("(+1.6%)")  # as the paper says
    assert (tmp_path / "real-inference.png").exists()


@pytest.mark.usefixtures("few_rows")
def test_half_a_pair_is_not_shown(tmp_path):
    experiment, scope = EXPERIMENTS["real-inference"], Scope(tests=20, quick=True)
    cache = Cache(tmp_path / "cache")
    make_missing([run for run in experiment.runs(scope) if run.problem.data == "Blog"][:1], cache)
    assert experiment.show(finish(experiment, scope, tmp_path, cache, plot=False)).empty


def test_who_samples_is_in_no_other_table():
    others = [one for one in EXPERIMENTS.values() if one.name.startswith("real-") and one.name != "real-inference"]
    runs = [run for one in others for run in one.runs(Scope(seeds=1)) if isinstance(run, RealRun)]
    assert {run.group for run in runs} == set(real_methods.GROUPS) - {real_methods.SAMPLED}
    assert {run.group for run in runs_of(Scope(seeds=1), ["Blog"], ["RF"], ["tree"])} == set(real_methods.COMPARED)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("data", ["Blog", "Adult"])
def test_learning_curves_are_in_the_outputs_units(tmp_path, data):
    experiment, scope = EXPERIMENTS["real-convergence"], Scope(seeds=2, tests=10, quick=True)
    runs = [run for run in experiment.runs(scope) if run.problem.data == data]
    assert [run.method.name for run in runs] == ["LIMIS (paper), one run", "STE", "Gumbel-softmax"]
    cache = Cache(tmp_path / "cache")
    make_missing(runs, cache)
    curves = [cache.load(run) for run in runs]
    for found in curves:
        assert (np.diff(found["curve_steps"]) > 0).all()
        assert len(found["curve_error"]) == len(found["curve_steps"]) > 1
        assert np.isfinite(found["curve_error"]).all()
        assert found["curve_kept"] < len(found["curve_steps"])
    assert not np.allclose(curves[1]["curve_error"][1:3], curves[2]["curve_error"][1:3])
    # Without early stopping every probe row is in the curve.
    problem = runs[0].problem
    explainer = problem.plain_explainer()
    features = explainer.training_.table.features(explainer.training_.table.values(problem.probe))
    missed = np.abs(explainer.global_fit_.predict(features) - problem.answers.probe).mean()
    assert curves[0]["curve_global_error"] == pytest.approx(missed, rel=1e-3)
    table = finish(experiment, scope, tmp_path, cache)
    first = table[(table["method"] == runs[0].method.name) & (table["step"] == 0)]["reward"]
    assert first.tolist() == pytest.approx([missed - curves[0]["curve_error"][0]], rel=1e-3)
    assert experiment.show(table)["step 40"].ne("").all()
    assert (tmp_path / "real-convergence.png").exists()


def told(method, local, seed=0, missed=0.5, box="XGBoost"):
    rng = np.random.default_rng(1)
    outputs = rng.normal(size=400)
    problem = RealProblem("Blog", box, seed, 400)
    ones = np.ones(400)
    return Told(problem, "ridge", method, outputs, outputs, local(outputs), ones, missed * ones, ones, ones, 1.0, 1.0)


def test_rows_that_seeds_share_count_once(monkeypatch):
    noise = np.random.default_rng(2).normal(size=400)

    def width(places):
        monkeypatch.setattr(RealProblem, "parts", property(lambda problem: (None, None, places(problem.seed))))
        pairs = [
            (told("LIMIS (default)", lambda f: f + 0.3 * noise, s), told("SILO", lambda f: f - 0.3 * noise[::-1], s))
            for s in range(3)
        ]
        line = tidy(pairs).set_index("method").loc["SILO"]
        return line["nse behind high"] - line["nse behind low"]

    shared, apart = width(lambda _: np.arange(400)), width(lambda seed: np.arange(400) + 400 * seed)
    assert shared == pytest.approx(3**0.5 * apart, rel=0.2)  # three times as many rows, a third of the variance


def test_who_is_ahead_is_ahead_beyond_the_interval():
    noise = np.random.default_rng(2).normal(size=400)
    default = told("LIMIS (default)", lambda outputs: outputs + 0.3 * noise)
    worse = told("SILO", lambda outputs: outputs + 0.9 * noise, missed=0.9)
    same = told("MAPLE", lambda outputs: outputs - 0.3 * noise)
    better = told("LIME", lambda outputs: outputs + 0.1 * noise, missed=0.1)
    cell = ("Blog", "XGBoost", "ridge")
    assert verdicts(tidy([[default, worse]]), "nse", ["SILO"]) == {cell: "best"}
    assert verdicts(tidy([[default, worse, same]]), "nse", ["SILO", "MAPLE"]) == {cell: "tied with MAPLE"}
    assert verdicts(tidy([[default, worse, same, better]]), "nse", PEERS) == {cell: "behind LIME"}
    assert verdicts(tidy([[default, worse]]), "skill", ["SILO"]) == {cell: "best"}
    # A seed that a rival has not is not compared.
    assert verdicts(
        tidy([[default, worse, told("LIMIS (default)", lambda outputs: outputs, seed=1)]]), "nse", ["SILO"]
    ) == {cell: "unfinished: SILO"}
    # Before all rivals are known nobody has won.
    assert verdicts(tidy([[default, worse, same]]), "nse", PEERS) == {cell: "unfinished: LIME"}
    assert verdicts(tidy([[worse, same, better]]), "nse", PEERS) == {cell: "unfinished: LIMIS (default)"}


def test_what_is_worse_than_the_global_model_is_marked():
    far = told("SILO", lambda outputs: outputs + 10)
    simple = told("global, of labels", lambda outputs: outputs + 1)
    lines = side_by_side(tidy([[far, simple, told("LIMIS (default)", lambda outputs: outputs)]]), ["error", "nse"])
    by_method = lines.set_index("method")
    assert WORSE in by_method.loc["SILO", "XGBoost error"]
    assert NEGATIVE in by_method.loc["SILO", "XGBoost nse"]
    assert WORSE not in by_method.loc["LIMIS (default)", "XGBoost error"]
    assert measures(far)["error"] == pytest.approx(10)


def test_numbers_that_the_paper_cannot_mean_are_marked():
    assert TABLES.keys() >= SLIPS
    for box, number in zip(BOXES, ORIGINAL["Blog"], strict=True):
        table = tidy([[told("LIMIS (default)", lambda outputs: outputs + 1, box=box)]])
        (text,) = side_by_side(table, ["error"]).query("method == 'Original'")[f"{box} error"]
        assert text.endswith(f"({number:.4g}{SLIP if box == 'MLP' else ''})")
    assert SLIP in EXPERIMENTS["real-main"].note


def test_panels_have_their_methods_in_one_order():
    lines = [
        ("Adult", "LIMIS (default)", 0.9),
        ("Adult", "SILO", 0.5),
        ("Blog", "SILO", 0.4),
        ("Blog", "LIMIS (default)", 0.8),
    ]
    table = pd.DataFrame(lines, columns=["data", "method", "nse"]).assign(skill=0.0)
    figure = EXPERIMENTS["real-verdicts"].draw(table)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["LIMIS (default)", "SILO"]
    for ax, values in zip(figure.axes[:2], ([0.9, 0.5], [0.8, 0.4]), strict=True):
        np.testing.assert_allclose(ax.collections[-1].get_offsets()[:, 0], values)


def test_the_runs_of_a_cell_differ_in_key():
    runs = [
        run
        for name in ("real-main", "real-regression-trees", "real-classification-ridge")
        for run in EXPERIMENTS[name].runs(Scope(seeds=3))
    ]
    assert len({run.key for run in runs}) == len(runs) == 5 * (3 + 3) * 2 * 4
    assert all(isinstance(run, RealRun) for run in runs)
