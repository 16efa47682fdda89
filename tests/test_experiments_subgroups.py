"""``limis reproduce subgroups-adult`` and the like: what the paper observes of its groups, judged."""

import numpy as np
import pandas as pd
import pytest

from limis.datasets import Dataset
from limis.experiments import EXPERIMENTS, GROUPS, Cache, Scope, black_boxes, make_missing, real_problem
from limis.experiments.page import markdown
from limis.experiments.results import finish
from limis.experiments.subgroup_claims import ADULT, FAILS, HOLDS, LOOKS, UNTOLD, Claim, Group, cut, judge_sensitive
from limis.experiments.subgroup_runs import BY, GroupsRun
from limis.experiments.subgroups import GROUPS_OF_ROWS
from limis.subgroups.measure import RowNumbers
from limis.subgroups.result import summarise

N = 400
SMALL = Scope(seeds=1, tests=30, quick=True)


def weather():
    """Few days, of which some are wet, windy and cold."""
    rng = np.random.default_rng(0)
    storm = rng.random(N) < 0.2
    frame = pd.DataFrame(
        {
            "Rainfall": np.where(storm, 20.0, rng.choice([0.0, 2.0, 8.0], N)),
            "WindGustSpeed": rng.uniform(10, 90, N),
            "WindSpeed3pm": np.where(storm, 30.0, rng.uniform(0, 30, N)),
            "Humidity9am": rng.uniform(0, 100, N),
            "Humidity3pm": rng.uniform(0, 100, N),
            "Pressure3pm": rng.uniform(990, 1030, N),
            "Temp3pm": np.where(storm, 5.0, rng.uniform(0, 40, N)),
            "RainToday": rng.choice(["No", "Yes"], N),
        }
    )
    target = pd.Series(np.where(frame["Humidity3pm"] + 5 * frame["Rainfall"] > 70, "Yes", "No"))
    return Dataset("small", frame, target, "classification", "", "", "")


@pytest.fixture
def few_rows(monkeypatch, tmp_path):
    pytest.importorskip("xgboost")
    monkeypatch.setenv("LIMIS_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(real_problem, "LOADERS", {"Weather": weather})
    monkeypatch.setattr(real_problem, "QUICK_ROWS", 150)
    monkeypatch.setattr(black_boxes, "QUICK_TREES", 5)


@pytest.mark.usefixtures("few_rows")
def test_both_tables_of_weather_rest_on_one_run(tmp_path):
    pytest.importorskip("matplotlib")
    usual, extreme = (EXPERIMENTS[name] for name in ("subgroups-weather", "subgroups-weather-extremes"))
    runs = [*usual.runs(SMALL), *extreme.runs(SMALL)]
    cache = Cache(tmp_path / "cache")
    assert make_missing(runs, cache) == 1
    found = runs[0].outcome(cache.load(runs[0]))
    assert found.sampled.sum() == SMALL.tests
    storm = LOOKS["Weather"][1].families["extremes"][1]
    assert storm.mask(found.frame)[~found.sampled].sum() > 0  # rare days are looked for among all test rows
    table = finish(usual, SMALL, tmp_path, cache)
    weights = table[table["kind"] == "weight"]
    by_family = weights.drop_duplicates("group").groupby("family")["rows"].sum()
    assert (by_family == SMALL.tests).all()  # every row is in one group of each family
    shown = usual.show(table)
    assert set(shown["verdict"]) <= {HOLDS, FAILS, UNTOLD}
    assert shown.shape == (16, 6)
    assert "| observation | rows |" in markdown(shown)
    assert len(extreme.show(finish(extreme, SMALL, tmp_path, cache))) == 2
    assert (tmp_path / "subgroups-weather.png").exists()
    assert (tmp_path / "subgroups-weather-extremes.png").exists()


def test_groups_are_those_of_columns_that_are_kept_and_named_once():
    for data, looks in LOOKS.items():
        frame = pd.DataFrame({name: ["?"] if name == "RainToday" else [0.0] for name in BY[data]})
        for look in looks:
            names = [group.name for groups in look.families.values() for group in groups]
            assert len(set(names)) == len(names)
            for groups in look.families.values():
                assert all(len(group.mask(frame)) == 1 for group in groups)


def test_the_paper_s_real_experiments_hold_them():
    assert {one.name for one in GROUPS_OF_ROWS} <= set(GROUPS["all-real"])
    runs = [run for one in GROUPS_OF_ROWS for run in one.runs(Scope(seeds=3, rows=50))]
    assert all(isinstance(run, GroupsRun) for run in runs)
    assert len({run.key for run in runs}) == 2
    assert all(run.problem.rows == 50 for run in runs)


FIRST, SECOND = Group("first", lambda rows: rows["group"] == 1), Group("second", lambda rows: rows["group"] == 2)


def judged(first, second, *, differs=False):
    weight = pd.DataFrame({"x": np.concatenate([first, second])})
    frame = pd.DataFrame({"group": np.repeat([1, 2], [len(first), len(second)])})
    return Claim("x", FIRST, SECOND, differs).judge(weight, frame, np.random.default_rng(0))


def test_a_claim_holds_beyond_the_interval():
    rng = np.random.default_rng(0)
    low, high = rng.uniform(0, 1, 60), rng.uniform(1, 2, 60)
    assert judged(high, low)["verdict"] == HOLDS
    assert judged(low, high)["verdict"] == FAILS
    assert judged(low, rng.permutation(low))["verdict"] == UNTOLD
    assert judged(high[:4], low)["verdict"] == UNTOLD
    found = judged(high, low)
    assert found["low"] < found["value"] - found["value against"] < found["high"]
    assert np.isnan(judged(high, [])["value against"])


def test_a_difference_fails_where_both_are_nearly_the_same():
    rng = np.random.default_rng(0)
    near, far = rng.uniform(1, 1.1, 60), rng.uniform(2, 2.1, 60)
    assert judged(near, far, differs=True)["verdict"] == HOLDS
    assert judged(far, near, differs=True)["verdict"] == HOLDS
    assert judged(near, rng.permutation(near), differs=True)["verdict"] == FAILS
    assert judged(rng.uniform(0, 9, 6), rng.uniform(0, 9, 6), differs=True)["verdict"] == UNTOLD


@pytest.mark.parametrize(("weight", "verdict"), [(0.1, HOLDS), (9.0, FAILS), (1.0, UNTOLD)])
def test_a_sensitive_column_is_held_against_the_median_column(weight, verdict):
    n = 60
    rng = np.random.default_rng(0)
    columns = {"sex": weight * np.ones(n), "a": rng.uniform(0.5, 1.5, n), "b": np.ones(n) * 5, "c": np.ones(n) * 0.3}
    columns["d"] = np.ones(n)
    rows = RowNumbers(pd.DataFrame(columns), np.zeros(n), np.ones(n, dtype=bool), np.ones(n))
    masks = {"one": np.arange(n) < 30, "two": np.arange(n) >= 30, "few": np.arange(n) < 2}
    found = judge_sensitive("sex", summarise(rows, masks, "coefficients", 100, rng))
    assert (found["rows"], found["verdict"]) == (2, verdict)


def test_cuts_name_their_ends():
    closed_above = cut("age", [25, 45])
    assert [group.name for group in closed_above] == ["age ≤ 25", "25 < age ≤ 45", "age > 45"]
    frame = pd.DataFrame({"age": [25, 26, 45, 46]})
    assert [group.mask(frame).sum() for group in closed_above] == [1, 2, 1]
    closed_below = cut("age", [25, 45], closed="left")
    assert [group.name for group in closed_below] == ["age < 25", "25 ≤ age < 45", "age ≥ 45"]
    assert [group.mask(frame).sum() for group in closed_below] == [0, 2, 2]
    assert ADULT.claims[0].group.mask(frame).tolist() == [False, True, True, True]
