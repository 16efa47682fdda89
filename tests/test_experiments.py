"""The experiments: runs that are made once, and tables that say what they found."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from limis import InputError
from limis.experiments import (
    EXPERIMENTS,
    GROUPS,
    Cache,
    Scope,
    adult_fidelity,
    black_boxes,
    make_missing,
    methods,
    named,
    tree_fidelity,
)
from limis.experiments.page import markdown
from limis.experiments.protocol import Problem
from limis.experiments.results import as_json, finish, read
from limis.experiments.runs import SyntheticRun
from limis.experiments.tables import beside_paper, binned, cell, half_width, measured, shown, summarised, with_mean

SMALL = Scope(seeds=2, tests=40, quick=True)
SYNTHETIC = [EXPERIMENTS[name] for name in GROUPS["all-synthetic"]]


@dataclasses.dataclass(frozen=True)
class CountedRun:
    """A run that does nothing but count itself, and can be told to break."""

    key: str
    cost: float = 1.0
    made: list = dataclasses.field(default_factory=list, compare=False)
    broken: bool = False

    def execute(self, device="cpu"):  # noqa: ARG002 - as all runs have it
        if self.broken:
            raise KeyboardInterrupt
        self.made.append(self.key)
        return {"number": np.array(len(self.made))}


def ridge_run(seed=0, **changes):
    return SyntheticRun(
        **{"method": methods.GLOBAL_RIDGE, "data": "Syn1", "rows": 100, "seed": seed, "tests": 10} | changes
    )


def made_up(run, error=0.1):
    """What a run might have found: coefficients that are all wrong by the same amount."""
    rng = np.random.default_rng([run.seed, len(run.method.name), run.rows])
    truth = run.problem.test
    found = {
        "coefficients": (truth.coefficients + error).astype(np.float32),
        "predictions": truth.outputs + rng.normal(size=run.tests),
        "auc": np.array(0.75),
        "selected_share": np.array(0.2),
        "weights": rng.random((min(run.tests, 100), run.rows)).astype(np.float16),
        "fit_seconds": np.array(2.0),
        "explain_seconds": np.array(0.4),
        "machine": np.array("some machine"),
    }
    if isinstance(run.method, methods.Trained) and run.method.plan.terms == methods.PAPER.plan.terms:
        found |= {
            "curve_steps": np.array([0, 10, 20]),
            "curve_error": np.array([0.9, 0.7, 0.6]),
            "curve_share": np.array([0.5, 0.4, 0.3]),
            "curve_global_error": np.array(1.0),
            "curve_kept": np.array(2),
            "penalty": np.array(1.0),
        }
    return found


def outcomes_of(experiment, scope=SMALL, error=0.1):
    return [run.outcome(made_up(run, error)) for run in experiment.runs(scope)]


# --- the cache --------------------------------------------------------------------------------------------


def test_a_run_is_made_once_and_its_arrays_come_back(tmp_path):
    cache, run = Cache(tmp_path / "cache"), CountedRun("one")
    assert make_missing([run, run], cache) == 1
    assert make_missing([run], cache) == 0
    assert run.made == ["one"]
    assert cache.load(run)["number"] == 1
    assert str(cache.load(run)["machine"])
    assert (tmp_path / "cache" / ".gitignore").read_text() == "*\n"


def test_a_killed_command_goes_on_where_it_was(tmp_path):
    cache, made = Cache(tmp_path), []
    runs = [CountedRun("a", 3, made), CountedRun("b", 2, made), CountedRun("c", 1, made)]
    stopped = [runs[0], dataclasses.replace(runs[1], broken=True), runs[2]]
    with pytest.raises(KeyboardInterrupt):
        make_missing(stopped, cache)
    assert made == ["a"]
    assert make_missing(runs, cache) == 2
    assert made == ["a", "b", "c"]


def test_the_longest_runs_go_first(tmp_path):
    made = []
    make_missing([CountedRun(f"r{cost}", cost, made) for cost in (1, 3, 2)], Cache(tmp_path))
    assert made == ["r3", "r2", "r1"]


def test_a_file_that_was_not_finished_is_no_run(tmp_path, monkeypatch):
    cache, run = Cache(tmp_path), CountedRun("one")

    def die_midway(file, **_):
        file.write(b"half")
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", die_midway)
        with pytest.raises(OSError, match="no space"):
            make_missing([run], cache)
    assert [path.name for path in tmp_path.iterdir()] == [".gitignore"]
    assert make_missing([run], cache) == 1


def test_what_decides_a_result_is_in_the_key_and_nothing_else():
    run = ridge_run(method=methods.PAPER_ONCE)
    others = [
        dataclasses.replace(run, quick=True),
        dataclasses.replace(run, tests=11),
        dataclasses.replace(run, seed=1),
        dataclasses.replace(run, rows=101),
        dataclasses.replace(run, data="Syn2"),
        dataclasses.replace(run, method=methods.paper_once(penalty=0.5)),
        dataclasses.replace(run, method=methods.LIME),
        dataclasses.replace(run, method=dataclasses.replace(methods.LIME, options=(("num_samples", 7),))),
    ]
    assert len({run.key, *(other.key for other in others)}) == len(others) + 1
    dearer = dataclasses.replace(run, method=dataclasses.replace(methods.PAPER_ONCE, cost=1e6))
    assert dearer.key == run.key == ridge_run(method=methods.paper_once(penalty=1.0)).key
    assert run.key.startswith("limis-paper-one-run-syn1-100-rows-seed-0-")


def test_processes_find_what_one_process_finds(tmp_path):
    runs = [ridge_run(seed) for seed in range(2)]
    assert make_missing(runs, Cache(tmp_path / "one")) == 2
    assert make_missing(runs, Cache(tmp_path / "two"), jobs=2) == 2
    for run in runs:
        alone, beside = Cache(tmp_path / "one").load(run), Cache(tmp_path / "two").load(run)
        np.testing.assert_array_equal(alone["coefficients"], beside["coefficients"])


# --- runs ---------------------------------------------------------------------------------------------------


def test_the_parts_of_a_problem_are_of_the_papers_sizes_and_share_no_row():
    problem = Problem("Syn2", 200, seed=3, tests=50)
    frames = [problem.training.features, problem.probes.features, problem.test.features]
    assert [len(frame) for frame in frames] == [200, 20, 50]
    assert not pd.concat(frames).duplicated().any()
    assert len(problem.probe_rows(problem.plain_explainer())) == 20


def test_a_trained_method_keeps_its_learning_curve_in_the_outputs_units():
    run = SyntheticRun(methods.PAPER, "Syn1", 120, seed=0, tests=15, quick=True)
    found = run.execute()
    assert found["coefficients"].shape == (15, 11)
    assert found["weights"].shape == (15, 120)
    assert found["curve_steps"].tolist() == [0, 10, 20, 30, 40]
    ridge = run.problem.plain_explainer().global_fit_
    probes = run.problem.probes
    missed = np.abs(ridge.predict(probes.features.to_numpy()) - probes.outputs).mean()
    assert float(found["curve_global_error"]) == pytest.approx(missed, rel=1e-4)
    np.testing.assert_array_equal(found["coefficients"], run.execute()["coefficients"])


@pytest.mark.parametrize(
    "method", [methods.RANDOM, methods.L2R, methods.TOWERS_CHANGES, methods.MAPLE], ids=lambda m: m.name
)
def test_what_a_run_finds_can_be_measured(method):
    run = SyntheticRun(method, "Syn1", 120, seed=0, tests=15, quick=True)
    measures = run.outcome(run.execute()).measures()
    assert all(np.isfinite(list(measures.values())))
    if method is methods.RANDOM:
        assert measures["selected_share"] == pytest.approx(0.5, abs=0.05)
        assert measures["auc"] == pytest.approx(0.5, abs=0.05)


def test_the_global_ridge_scores_as_the_readers_of_the_paper_know_it():
    run = SyntheticRun(methods.GLOBAL_RIDGE, "Syn1", 500, seed=0, tests=200)
    assert run.outcome(run.execute()).measures()["awd"] == pytest.approx(0.75, abs=0.02)


# --- tables -------------------------------------------------------------------------------------------------


def test_the_rows_awd_average_to_the_tables():
    run = ridge_run(method=methods.PAPER, tests=40)
    one = run.outcome(made_up(run, error=0.25))
    np.testing.assert_allclose(one.row_awd, 0.25, atol=1e-6)
    measures = one.measures()
    assert measures["awd"] == pytest.approx(0.25)
    assert measures["awd_norm"] == pytest.approx(0.25 * np.sqrt(11))
    assert measures["explain_ms"] == pytest.approx(10.0)


def test_distances_are_percentiles_of_the_test_rows():
    run = ridge_run(tests=40)
    one = run.outcome(made_up(run))
    nearest = np.argmin(one.truth.boundary_distance)
    assert one.distance_percentile[nearest] == 0
    assert sorted(one.distance_percentile) == pytest.approx(np.arange(40) * 2.5)


def test_bins_are_equally_wide_and_hold_their_own_rows():
    percentiles = np.array([0.0, 9.9, 10.0, 55.0, 99.9, 100.0])
    values = np.array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0])
    assert binned(values, percentiles) == [(5.0, 2.0), (15.0, 5.0), (55.0, 7.0), (95.0, 10.0)]


def test_intervals_are_students():
    values = pd.Series([1.0, 2.0, 4.0, 5.0])
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert half_width(values) == pytest.approx((high - low) / 2)
    assert np.isnan(half_width(values[:1]))


def test_means_over_seeds_keep_the_order_and_count_seeds():
    lines = pd.DataFrame({"method": ["b", "a", "b"], "seed": [0, 0, 1], "awd": [1.0, 7.0, 3.0]})
    table = summarised(lines, ["method"], ["awd"])
    assert table["method"].tolist() == ["b", "a"]
    assert table["awd"].tolist() == [2.0, 7.0]
    assert table["seeds"].tolist() == [2, 1]


def test_the_mean_over_data_needs_all_three():
    runs = [ridge_run(data=name) for name in ("Syn1", "Syn2", "Syn3", "Syn4")]
    runs += [ridge_run(data="Syn1", method=methods.SILO)]
    errors = [0.1, 0.2, 0.6, 5.0, 0.1]
    outcomes = [run.outcome(made_up(run, error)) for run, error in zip(runs, errors, strict=True)]
    lines = with_mean(measured(outcomes))
    means = lines[lines["data"] == "Syn1-3"]
    assert means["method"].tolist() == ["global ridge"]
    assert means["awd"].iloc[0] == pytest.approx(0.3)


def test_the_papers_numbers_stand_beside_their_own_cells():
    table = EXPERIMENTS["differentiable-baselines"].tabulate(
        outcomes_of(EXPERIMENTS["differentiable-baselines"], Scope(seeds=1, tests=5))
    )
    numbers = table.set_index(["method", "data", "rows"])["paper"]
    assert numbers["LIMIS (paper)", "Syn1", 1000] == 0.2129
    assert numbers["STE", "Syn3", 2000] == 0.4307
    assert numbers["L2R", "Syn1-3", 500] == 0.6756
    assert numbers["LIMIS (default)"].isna().all()
    assert beside_paper(table[:1], {}, "other")["other"].isna().all()


def test_the_papers_means_are_those_of_its_cells():
    from limis.experiments.paper_numbers import AUC, AWD, MEAN

    for numbers in (AWD, AUC):
        for (method, data, rows), mean in numbers.items():
            parts = [numbers.get((method, name, rows)) for name in ("Syn1", "Syn2", "Syn3")]
            if data == MEAN and None not in parts:
                assert mean == pytest.approx(np.mean(parts), abs=4e-4), (method, rows)  # the paper rounds once wrongly


def test_cells_say_what_is_known():
    assert cell(0.2129, 0.0123, 0.398) == "0.213 ± 0.012 (paper 0.398)"
    assert cell(0.2) == "0.200"
    assert cell(float("nan"), 0.1, 0.3) == ""


def test_a_shown_table_has_a_column_a_data_set():
    table = pd.DataFrame(
        {"data": ["B", "A", "B"], "method": ["x", "x", "y"], "awd": [1.0, 2.0, 3.0], "awd ±": [0.5, np.nan, 0.1]}
    )
    wide = shown(table.assign(seeds=3), "awd", ["method"], "data", digits=1)
    assert wide.to_dict("records") == [
        {"method": "x", "B": "1.0 ± 0.5", "A": "2.0"},
        {"method": "y", "B": "3.0 ± 0.1", "A": ""},
    ]
    uneven = shown(table.assign(seeds=[3, 1, 2]), "awd", ["method"], "data", digits=1)
    assert uneven["seeds"].tolist() == [1, 2]


def test_a_run_that_stopped_early_stays_at_what_it_kept():
    experiment = EXPERIMENTS["learning-curves"]
    outcomes = outcomes_of(experiment, Scope(seeds=1, tests=20, quick=True))
    stopped = next(one for one in outcomes if one.run.method is methods.STE and one.run.data == "Syn1")
    stopped.found.update(
        {"curve_steps": np.array([0, 10]), "curve_error": np.array([0.8, 0.9]), "curve_kept": np.array(0)}
    )
    table = experiment.tabulate(outcomes)
    part = table[(table["method"] == "STE") & (table["data"] == "Syn1")].set_index("step")["reward"]
    assert part[[0.0, 10.0, 20.0]].tolist() == pytest.approx([0.2, 0.1, 0.2])
    lmae = {one.run.method: one.measures()["lmae"] for one in outcomes if one.run.data == "Syn1"}
    assert part[np.nan] == pytest.approx(lmae[methods.GLOBAL_RIDGE] - lmae[methods.STE])


def test_the_shares_of_the_weights_sum_to_one():
    experiment = EXPERIMENTS["weight-distribution"]
    outcomes = outcomes_of(experiment)
    outcomes[0].found["weights"][:] = 1.0  # the upper end belongs to the last bin
    table = experiment.tabulate(outcomes)
    assert table.groupby(["data", "method"])["share"].sum().tolist() == pytest.approx([1.0] * 6)


def test_weights_that_fall_with_distance_are_seen_to():
    experiment = EXPERIMENTS["weight-distance"]
    outcomes = outcomes_of(experiment, Scope(seeds=1, tests=10, quick=True))
    for one in outcomes:
        queries, rows = one.truth.features.to_numpy(), one.run.problem.training.features.to_numpy()
        distance = np.linalg.norm(queries[:, None] - rows[None], axis=2)
        one.found["weights"] = np.exp(-distance).astype(np.float16)
    part = experiment.tabulate(outcomes).query("data == 'Syn1' and method == 'LIMIS (paper)'")
    assert part["weight"].is_monotonic_decreasing
    assert part["distance"].is_monotonic_increasing
    assert part["weight"].mean() == pytest.approx(1.0, abs=1e-6)


# --- every experiment -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", SYNTHETIC, ids=lambda one: one.name)
def test_every_table_has_limis_beside_its_default_and_can_be_shown_drawn_and_read_back(experiment, tmp_path):
    pytest.importorskip("matplotlib")
    cache = Cache(tmp_path / "cache")
    cache.prepare()
    for run in experiment.runs(SMALL):
        found = made_up(run)
        del found["machine"]
        cache.store(run, found)
    table = finish(experiment, SMALL, tmp_path, cache)
    origin, again = read(tmp_path / f"{experiment.name}.json")
    assert origin["command"] == f"limis reproduce {experiment.name} --seeds 2 --tests 40 --quick"
    assert len(origin["machines"]) == 1
    pd.testing.assert_frame_equal(again, table, check_dtype=False)
    told = f"{experiment.show(again).to_csv()} {list(table)} {table.get('method', pd.Series()).unique()}"
    assert ("LIMIS (curves)" if experiment.name == "curve-slopes" else "LIMIS (paper)") in told
    assert "LIMIS (default)" in told
    assert len(pd.read_csv(tmp_path / f"{experiment.name}.csv")) == len(table)
    assert (tmp_path / f"{experiment.name}.png").read_bytes().startswith(b"\x89PNG")
    figure = experiment.draw(table)
    assert all(ax.has_data() for ax in figure.axes)


def test_full_experiments_share_the_runs_of_the_tables():
    scope = Scope()
    tables = ("synthetic-awd", "differentiable-baselines")
    known = {run.key for name in tables for run in EXPERIMENTS[name].runs(scope)}
    for name in ("syn4", "awd-distance", "awd-distance-lime", "awd-scatter", "weight-distribution", "weight-distance"):
        assert {run.key for run in EXPERIMENTS[name].runs(scope)} <= known
    assert {run.key for run in EXPERIMENTS["learning-curves"].runs(scope)} <= known
    # The paper's text variant is in the other table at 1,000 rows only.
    others = {run.key for run in EXPERIMENTS["selection-auc"].runs(scope) if run.method is not methods.PAPER_TEXT}
    assert others <= known


def test_quick_runs_are_never_taken_for_full_ones():
    for experiment in EXPERIMENTS.values():
        full = {run.key for run in experiment.runs(Scope(seeds=1, tests=200))}
        assert not full & {run.key for run in experiment.runs(Scope(seeds=1, tests=200, quick=True))}


def test_names_and_groups():
    assert [one.name for one in named(["all-synthetic", "syn4"])] == GROUPS["all-synthetic"]
    assert "adult-fidelity" not in GROUPS["all-synthetic"]
    assert len(named(["all"])) == len(EXPERIMENTS)
    with pytest.raises(InputError, match="no experiment 'nonsense'; there are: audit-skill"):
        named(["nonsense"])


@pytest.mark.parametrize("data", ["Syn1", "Adult"])
def test_trees_are_compared_on_one_black_box(monkeypatch, data):
    pytest.importorskip("xgboost")
    monkeypatch.setattr(tree_fidelity, "QUICK_ROWS", 250)
    run = tree_fidelity.TreeRun(data, 0, tests=5, quick=True)
    outcome = run.outcome(run.execute())
    assert outcome["method"].tolist()[0] == "LIMIS (tree)"
    assert len(outcome) == 5
    assert np.isfinite(outcome[list(tree_fidelity.MEASURES)].to_numpy()).all()
    table = tree_fidelity.TREES.tabulate([outcome])
    assert len(tree_fidelity.TREES.show(table)) == 5
    assert tree_fidelity.TREES.draw(table)


def test_adult_compares_all_methods_on_one_black_box(monkeypatch):
    pytest.importorskip("xgboost")
    monkeypatch.setattr(adult_fidelity, "QUICK_ROWS", 250)
    monkeypatch.setattr(black_boxes, "QUICK_TREES", 5)
    monkeypatch.setattr(adult_fidelity, "QUERIES", 20)
    experiment = EXPERIMENTS["adult-fidelity"]
    (run,) = experiment.runs(Scope(seeds=1, tests=30, quick=True))
    table = experiment.tabulate([run.outcome(run.execute())]).set_index("method")
    assert list(table.index) == [
        "LIMIS (default)",
        "LIMIS (default), moves not asked",
        "LIMIS (default, queries=20)",
        "LIMIS (default, queries=20), moves not asked",
        "LIMIS (no jumps)",
        "forest weighting, ridge",
        "local mean, no features",
        "global ridge",
        "global ridge with jumps",
    ]
    assert table.loc["local mean, no features", "skill"] == 0
    assert table["nse"].notna().all()
    assert experiment.seeds == 3


def test_what_is_unknown_is_null_in_json():
    text = as_json({"command": "limis"}, pd.DataFrame({"method": ["a", "b"], "awd": [0.1, np.nan]}))
    assert json.loads(text) == {
        "command": "limis",
        "results": [{"method": "a", "awd": 0.1}, {"method": "b", "awd": None}],
    }


def test_markdown_tables_hold_any_text():
    assert markdown(pd.DataFrame({"method": ["a|b"], "n": [3]})) == "| method | n |\n| --- | ---: |\n| a\\|b | 3 |"
