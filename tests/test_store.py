"""A saved explainer comes back whole and explains bit for bit as before."""

import subprocess
import sys

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limis
from limis import LimisExplainer

N = 240


def two_regimes(rows):
    return np.where(rows[:, 0] > 0, rows[:, 1], -2 * rows[:, 2])


def mixed_model(rows):
    """Reads columns of every kind, so that a lost type or value would show."""
    days = (rows["since"].dt.tz_convert("UTC").dt.tz_localize(None) - pd.Timestamp("2020-01-01")).dt.days
    grade = rows["grade"].cat.codes.to_numpy() if isinstance(rows["grade"].dtype, pd.CategoricalDtype) else 0
    return (
        np.where(rows["city"] == "Rome", rows["pay"].fillna(-1.0), 2.0)
        + rows["member"].to_numpy(dtype=float)
        + grade
        + days.fillna(0).to_numpy() / 500
    )


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(0).normal(size=(N + 20, 4))


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(1)
    n = N + 20
    since = pd.Series(pd.Timestamp("2020-01-01", tz="Europe/Rome") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"))
    return pd.DataFrame(
        {
            "pay": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "city": rng.choice(["Rome", "Oslo", "Bern"], n),
            "grade": pd.Categorical(
                rng.choice(["low", "high"], n), categories=["none", "low", "mid", "high"], ordered=True
            ),
            "member": rng.random(n) < 0.5,
            "since": since.where(rng.random(n) > 0.05),
            "wait": pd.to_timedelta(rng.integers(1, 90, n), unit="h"),
            "children": pd.array(np.where(rng.random(n) < 0.1, None, rng.integers(0, 4, n)), dtype="Int64"),
            "note": np.array([None, "x", 3, 2.5, True], dtype=object)[rng.integers(0, 5, n)],
        },
        index=[f"row {i}" for i in range(n)],
    )


@pytest.fixture(scope="module")
def typed():
    """A table that XGBoost and LightGBM take as it is, its categories in an order of their own, one never used."""
    rng = np.random.default_rng(2)
    n = N + 20
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": pd.Categorical(rng.choice(["red", "blue", "green"], n), ["red", "none", "green", "blue"]),
            "new": rng.random(n) < 0.5,
        }
    )
    return frame, ((frame["size"] > 0) ^ (frame["colour"] == "red")).astype(int)


def assert_same_explanations(before, after):
    slopes = before.fits.has_coefficients
    for part in ("contributions", "fidelity", "status", *(("coefficients",) if slopes else ())):
        pd.testing.assert_frame_equal(getattr(after, part), getattr(before, part), check_exact=True)
    if before.fits.has_curves:
        pd.testing.assert_frame_equal(after.curves, before.curves, check_exact=True)
    if before.fits.has_rules:
        assert [str(rule) for rule in after[0].rules()] == [str(rule) for rule in before[0].rules()]
    for part in ("base_values", "local_predictions", *(("intercepts",) if slopes else ())):
        pd.testing.assert_series_equal(getattr(after, part), getattr(before, part), check_exact=True)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(after.weights, part), getattr(before.weights, part))
    assert (after.outputs is None) == (before.outputs is None)
    if before.outputs is not None:
        np.testing.assert_array_equal(after.outputs, before.outputs)
    pd.testing.assert_frame_equal(after[0].training_rows(5), before[0].training_rows(5), check_exact=True)


def assert_same_explainer(before, after):
    """All that fit leaves behind, but the model itself."""
    assert {name for name in vars(after) if name.endswith("_")} == {name for name in vars(before) if name.endswith("_")}
    theirs, ours = before.get_params(deep=False), after.get_params(deep=False)
    assert {**ours, "model": None} == {**theirs, "model": None}
    assert after.training_.black_box.to_dict() == before.training_.black_box.to_dict()
    assert after.training_.table.to_dict() == before.training_.table.to_dict()
    pd.testing.assert_frame_equal(after.training_.frame, before.training_.frame, check_exact=True)
    pd.testing.assert_frame_equal(after.choices_, before.choices_, check_exact=True)
    np.testing.assert_equal([vars(log) for log in after.training_log_], [vars(log) for log in before.training_log_])
    for name in ("skill_", "nse_", "n_features_in_", "curve_facts_"):
        np.testing.assert_equal(getattr(after, name, None), getattr(before, name, None))


def round_trip(explainer, path, **options):
    explainer.save(path)
    return limis.load(path, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scaling": "minmax", "inference": "sample", "tolerance": 0.1, "random_state": 3},
        {"weighting": "pairwise", "time_budget": 0.2},
        {"weighting": "pairwise", "selection_penalty": 0.5, "time_budget": 0.1},
        {"weighting": "pairwise-released", "selection_penalty": 1.0, "time_budget": 0.1},
        {"categorical_features": [3], "memory_limit": 0.001},
        {"surrogate": "tree", "max_depth": 2},
        {"surrogate": "tree", "weighting": "forest"},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_weighting_explains_arrays_as_before(numbers, tmp_path, options, weighted):
    rows = np.column_stack([numbers[:, :3], np.round(numbers[:, 3])])
    weight = np.random.default_rng(3).random(N) if weighted else None
    before = LimisExplainer(two_regimes, **{"surrogate": "ridge", **options}).fit(rows[:N], sample_weight=weight)
    assert_it_comes_back(before, tmp_path / "e.limis", rows)


def assert_it_comes_back(before, path, rows):
    after = round_trip(before, path, model=two_regimes)
    assert_same_explainer(before, after)
    assert_same_explanations(before.explain(rows[N - 10 :]), after.explain(rows[N - 10 :]))
    assert after.score(rows[N:]) == before.score(rows[N:])
    assert after.explain(rows[N:]).skill() == before.explain(rows[N:]).skill()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weighting": "learned", "objective": "rloo", "candidates": 20, "random_state": 3},
        {"weighting": "random", "tolerance": 0.1},
        {"categorical_features": [3], "memory_limit": 0.001, "max_questions": 2000},
    ],
    ids=str,
)
def test_curves_explain_arrays_as_before(numbers, tmp_path, options):
    rows = np.column_stack([numbers[:, :3], np.round(numbers[:, 3])])
    assert_it_comes_back(LimisExplainer(two_regimes, **options).fit(rows[:N]), tmp_path / "e.limis", rows)


@pytest.mark.parametrize(
    "options",
    [{}, {"surrogate": "ridge", "weighting": "forest"}, {"surrogate": "ridge", "weighting": "pairwise"}],
    ids=str,
)
def test_mixed_tables_come_back_with_their_types(mixed, tmp_path, options):
    if options.get("weighting") == "pairwise":
        options = {**options, "time_budget": 0.2}
    before = LimisExplainer(mixed_model, **options).fit(mixed[:N])
    after = round_trip(before, tmp_path / "e.limis", model=mixed_model)
    assert_same_explainer(before, after)
    rows = mixed[N - 10 :].assign(city=lambda rows: rows["city"].where(rows.index != "row 245", "Lima"))
    assert_same_explanations(before.explain(rows), after.explain(rows))
    assert after.explain(rows).skill() == before.explain(rows).skill()
    assert list(after.feature_names_in_) == list(mixed.columns)


def test_groups_and_categories_by_name_are_kept(tmp_path):
    rng = np.random.default_rng(4)
    colour = rng.integers(0, 3, N)
    frame = pd.DataFrame({"a": rng.normal(size=N), "code": rng.integers(0, 4, N)})
    frame[["$_red", "$_blue"]] = np.column_stack([colour == 0, colour == 1])
    options = {"groups": {"$": ("$_red", "$_blue")}, "categorical_features": ("code",)}
    before = LimisExplainer(lambda rows: rows["a"] * rows["code"], **options).fit(frame)
    after = round_trip(before, tmp_path / "e.limis", model=before.model)
    assert after.groups == {"$": ["$_red", "$_blue"]}
    assert after.categorical_features == ["code"]
    assert_same_explanations(before.explain(frame[:10]), after.explain(frame[:10]))


@pytest.mark.parametrize("surrogate", ["curves", "ridge"])
def test_given_outputs_need_no_model_before_or_after(numbers, tmp_path, surrogate):
    # Every second output of a longer array: what lies apart in memory must come back in order.
    outputs = np.repeat(two_regimes(numbers), 2)[::2]
    given = {"outputs": outputs[:N], "probe_rows": numbers[N:], "probe_outputs": outputs[N:]}
    if surrogate == "ridge":
        given["sample_weight"] = outputs[:N] ** 2
    before = LimisExplainer(surrogate=surrogate).fit(numbers[:N], **given)
    after = round_trip(before, tmp_path / "e.limis")
    assert_same_explainer(before, after)
    assert after.model is None
    assert not hasattr(after, "skill_")
    assert_same_explanations(before.explain(numbers[N:]), after.explain(numbers[N:]))
    given = {"outputs": outputs[N:]}
    assert_same_explanations(before.explain(numbers[N:], **given), after.explain(numbers[N:], **given))
    assert after.score(numbers[N:], outputs[N:]) == before.score(numbers[N:], outputs[N:])


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [1.5, 4.0]], ids=str)
def test_explained_labels_come_back(mixed, tmp_path, names):
    labels = np.array(names)[(mixed["pay"].fillna(0) > 0).astype(int)]
    before = LimisExplainer().fit(mixed[:N], labels[:N])
    after = round_trip(before, tmp_path / "e.limis")
    assert_same_explainer(before, after)
    assert_same_explanations(before.explain(mixed[N:]), after.explain(mixed[N:]))
    assert after.score(mixed[N:], labels[N:]) == before.score(mixed[N:], labels[N:])


def test_tables_too_small_to_choose_or_measure(tmp_path):
    rows = np.arange(12.0).reshape(4, 3)
    before = LimisExplainer(lambda rows: rows[:, 0]).fit(rows)
    after = round_trip(before, tmp_path / "e.limis", model=before.model)
    assert_same_explainer(before, after)
    assert_same_explanations(before.explain(rows), after.explain(rows))


def test_a_model_that_is_not_in_the_file_is_passed_again_or_done_without(typed, tmp_path):
    frame, labels = typed
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame[["size", "new"]], labels)
    before = LimisExplainer(model).fit(frame.loc[: N - 1, ["size", "new"]])
    before.save(tmp_path / "e.limis")
    rows = frame.loc[N:, ["size", "new"]]
    with_model = limis.load(tmp_path / "e.limis", model=model)
    assert with_model.model is model
    assert_same_explanations(before.explain(rows), with_model.explain(rows))

    without = limis.load(tmp_path / "e.limis")
    assert without.model is None
    found = without.explain(rows)
    assert found.outputs is None
    outputs = before.training_.black_box.outputs(rows)
    assert_same_explanations(before.explain(rows), without.explain(rows, outputs=outputs))
    assert found.skill(model) == before.explain(rows).skill()


def test_loading_in_another_process_gives_the_same_bits(typed, tmp_path):
    frame, labels = typed
    before = LimisExplainer(lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(frame, labels)).fit(
        frame[:N]
    )
    before.save(tmp_path / "e.limis")
    frame[N:].to_pickle(tmp_path / "rows.pkl")
    script = (
        "import sys, pandas as pd, limis\n"
        "found = limis.load(sys.argv[1]).explain(pd.read_pickle(sys.argv[2]))\n"
        "pd.to_pickle((found.to_frame(), found.curves), sys.argv[3])\n"
    )
    files = [tmp_path / name for name in ("e.limis", "rows.pkl", "found.pkl")]
    subprocess.run([sys.executable, "-W", "error", "-c", script, *files], check=True)  # noqa: S603 - our own script
    found = before.explain(frame[N:])
    flat, curves = pd.read_pickle(tmp_path / "found.pkl")
    pd.testing.assert_frame_equal(flat, found.to_frame(), check_exact=True)
    pd.testing.assert_frame_equal(curves, found.curves, check_exact=True)


def test_saving_twice_gives_equal_files_and_loading_leaves_the_users_random_numbers_alone(numbers, tmp_path):
    before = LimisExplainer(two_regimes, surrogate="ridge", weighting="pairwise", time_budget=0.1).fit(numbers[:N])
    before.save(tmp_path / "a.limis")
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    limis.load(tmp_path / "a.limis").save(tmp_path / "b.limis")
    assert torch.rand(1) == expected
    assert (tmp_path / "a.limis").read_bytes() == (tmp_path / "b.limis").read_bytes()
