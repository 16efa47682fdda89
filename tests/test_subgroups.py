"""Groups of explanations: what weighs for whom, and what stands out."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from limis import InputError, LimisExplainer
from limis.subgroups import groups, measure, resampling, result, subgroups
from limis.subgroups.measure import RowNumbers
from limis.subgroups.result import summarise

N = 300


def two_sided(rows):
    """2a on the left, 2b on the right: never c."""
    return 2 * np.where(rows["side"] == "left", rows["a"], rows["b"])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    numbers = {name: rng.random(N) for name in "abc"}
    return pd.DataFrame({**numbers, "side": rng.choice(["left", "right"], N)}, index=np.arange(N) + 1000)


@pytest.fixture(scope="module")
def explained(table):
    return LimisExplainer(two_sided, random_state=0).fit(table[:200]).explain(table[200:])


@pytest.fixture(scope="module")
def by_side(explained):
    return subgroups(explained, "side")


def made_up(weight, groups_of, **known):
    """Groups of made-up rows."""
    frame = pd.DataFrame(weight)
    n = len(frame)
    usual = {"local": np.zeros(n), "trusted": np.ones(n, dtype=bool), "effective_rows": np.full(n, 30.0)}
    masks = {str(name): np.asarray(groups_of) == name for name in np.unique(groups_of)}
    return summarise(RowNumbers(frame, **usual | known), masks, "coefficients", 200, np.random.default_rng(0))


# --- weights ------------------------------------------------------------------------------------------


def test_heat_is_where_the_black_box_looks(by_side):
    left, right = by_side.values.loc["side = left"], by_side.values.loc["side = right"]
    # 200 training rows leave the other side's rows some weight, so the heat is not all on one column.
    assert by_side.low.loc["side = left", "a"] > by_side.high.loc["side = left", "b"]
    assert by_side.low.loc["side = right", "b"] > by_side.high.loc["side = right", "a"]
    assert max(left["c"], right["c"]) < 0.2 * min(left["a"], right["b"])


def test_a_coefficient_is_that_of_columns_from_0_to_1(table):
    X = table.assign(a=table["a"] * 50)
    ridges = LimisExplainer(lambda rows: 0.1 * rows["a"], surrogate="ridge", weighting="forest", random_state=0)
    values = subgroups(ridges.fit(X[:200]).explain(X[200:]), "side").values
    span = X["a"][:200].max() - X["a"][:200].min()
    np.testing.assert_allclose(values["a"], 0.1 * span, rtol=0.15)  # ridges shrink a little


def test_a_unit_of_measurement_does_not_weigh(table):
    grams = table.assign(a=table["a"] * 1000 + 5)

    def of_grams(rows):
        return two_sided(rows.assign(a=(rows["a"] - 5) / 1000))

    found = [
        subgroups(
            LimisExplainer(model, weighting="forest", random_state=0).fit(X[:200]).explain(X[200:]), "side"
        ).values
        for model, X in ((two_sided, table), (of_grams, grams))
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=0.01, atol=0.01)


def test_two_values_weigh_the_same_as_numbers_and_as_categories():
    known = np.ones((3, 2), dtype=bool)
    coefficients = np.array([[-1.0, 1.0], [0.0, 3.0], [2.0, 2.0]])
    found = measure._between_levels(coefficients, known, np.array([0.9, 0.1]))
    np.testing.assert_allclose(found, [2, 3, 0])


@given(
    st.lists(st.tuples(st.floats(-10, 10), st.floats(0.01, 1), st.booleans()), min_size=2, max_size=6).filter(
        lambda levels: sum(known for *_, known in levels) > 1
    )
)
def test_levels_weigh_their_mean_difference(levels):
    coefficients, shares, known = (np.array(part) for part in zip(*levels, strict=True))
    pairs = [(j, k) for j in range(len(levels)) for k in range(j) if known[j] and known[k]]
    weight = [shares[j] * shares[k] for j, k in pairs]
    expected = np.average([abs(coefficients[j] - coefficients[k]) for j, k in pairs], weights=weight)
    found = measure._between_levels(coefficients[None], known[None], shares)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_category_with_one_known_level_is_not_known():
    known = np.array([[True, False], [False, False]])
    assert np.isnan(measure._between_levels(np.ones((2, 2)), known, np.array([0.5, 0.5]))).all()
    found = made_up({"a": [np.nan] * 6, "b": [1.0] * 6}, [0] * 6)
    assert np.isnan(found.values.loc["0", "a"])
    assert found.values.loc["0", "b"] == 1
    assert found.flags(sensitive=["a"]) == []


def test_missing_numbers_and_jumps_count(table):
    X = table.assign(a=table["a"].where(table["a"] > 0.2))

    def model(rows):
        return 3.0 * rows["a"].isna() + 2.0 * (rows["b"] > 0.5)

    explained = LimisExplainer(model, surrogate="ridge", random_state=0).fit(X[:200]).explain(X[200:])
    values = subgroups(explained, "side").values
    assert (values["a"] > values["c"]).all()
    assert (values["b"] > 1).all()


def test_contributions_are_averaged_over_the_rows_of_a_group(explained):
    found = subgroups(explained, "side", measure="contributions")
    left = (explained.frame["side"] == "left").to_numpy()
    expected = explained.column_contributions[left].abs().mean()
    np.testing.assert_allclose(found.values.loc["side = left"], expected)
    assert set(found.to_frame().columns) >= {"rows", "contribution: a", "contribution: a low"}


def test_trees_have_contributions_alone(table):
    explained = LimisExplainer(two_sided, surrogate="tree", random_state=0).fit(table[:80]).explain(table[200:230])
    with pytest.raises(InputError, match='measure="contributions"'):
        subgroups(explained, "side", measure="coefficients")
    found = subgroups(explained, "side")
    pd.testing.assert_frame_equal(found.values, subgroups(explained, "side", measure="contributions").values)


def test_the_measure_is_that_of_the_paper_where_local_models_have_coefficients(table):
    ridges = LimisExplainer(two_sided, surrogate="ridge", weighting="forest").fit(table[:80]).explain(table[200:230])
    found = subgroups(ridges, "side")
    pd.testing.assert_frame_equal(found.values, subgroups(ridges, "side", measure="coefficients").values)
    assert repr(found).startswith("<2 groups by coefficients (side = left: ")


# --- groups -------------------------------------------------------------------------------------------


def test_sizes_add_up_and_every_row_is_in_one_group(explained, by_side):
    assert by_side.sizes.sum() == len(explained)
    for by, bins in (("a", None), ("a", [0.2, 0.7]), ("side", None), ("c", [0.5])):
        found = subgroups(explained, by, bins=bins, n_resamples=2)
        assert found.sizes.sum() == len(explained)
        mean = (found.values.mul(found.sizes, axis=0)).sum() / len(explained)
        np.testing.assert_allclose(mean, found.overall_values)


def test_groups_of_numbers_have_short_names_and_borders_between_what_was_seen(explained):
    found = subgroups(explained, "a", n_resamples=2)
    values = explained.frame["a"]
    edges = np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")
    assert found.sizes.tolist() == np.diff([0, *(int((values <= edge).sum()) for edge in edges), len(values)]).tolist()
    for name in found.sizes.index:
        assert all(len(word.strip("-").replace(".", "")) <= 4 for word in re.findall(r"-?\d[\d.]*", name)), name


def test_bins_are_closed_above(explained):
    edge = float(explained.frame["a"].sort_values().iloc[10])
    found = subgroups(explained, "a", bins=[edge], n_resamples=2)
    assert found.sizes.tolist() == [11, len(explained) - 11]
    assert found.sizes.index[0].startswith("a ≤ ")


def test_rules_may_overlap_and_see_columns_that_the_model_does_not(explained):
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"town": rng.choice(["north", "south"], len(explained))})
    rules = {
        "everybody": np.ones(len(explained), dtype=bool),
        "left": lambda rows: rows["side"] == "left",
        "left, north": lambda rows: (rows["side"] == "left") & (rows["town"] == "north"),
    }
    found = subgroups(explained, rules, data=data, n_resamples=2)
    assert found.sizes["everybody"] == len(explained)
    assert 0 < found.sizes["left, north"] < found.sizes["left"] < found.sizes["everybody"]
    assert subgroups(explained, "town", data=data).sizes.to_dict() == {
        f"town = {town}": n for town, n in data["town"].value_counts().sort_index().items()
    }


def test_a_series_of_labels_is_taken_by_its_row_labels(explained):
    labels = explained.frame["side"].rename(None)
    shuffled = labels.sample(frac=1, random_state=0)
    for given_labels in (labels, shuffled, labels.to_numpy(), labels.tolist(), labels.reset_index(drop=True)):
        found = subgroups(explained, given_labels)
        np.testing.assert_allclose(found.values, subgroups(explained, "side").values)
        assert found.values.index.tolist() == ["left", "right"]
    with pytest.raises(InputError, match="other row labels"):
        subgroups(explained, labels.set_axis([f"r{j}" for j in range(len(labels))]))


def masks_of(series, bins=None):
    series = pd.Series(series, name="x")
    column = groups.learn_column(series, "x", False, "none")
    return groups._cut(column, series.to_frame(), "x", bins)


@given(
    st.lists(st.one_of(st.floats(-1e6, 1e6), st.integers(-3, 3).map(float), st.just(np.nan)), min_size=2, max_size=60)
)
def test_numbers_are_divided_without_rest(values):
    masks = masks_of(np.array(values))
    counted = np.sum(list(masks.values()), axis=0)
    assert (counted == 1).all()
    assert all(mask.any() for mask in masks.values())
    assert len(masks) <= groups.FEW_VALUES + 1


@given(st.lists(st.sampled_from([f"level {j}" for j in range(30)]), min_size=2, max_size=200))
def test_levels_are_divided_without_rest(values):
    masks = masks_of(values)
    assert (np.sum(list(masks.values()), axis=0) == 1).all()
    assert len(masks) <= groups.MOST_LEVELS


def test_rare_levels_share_a_group():
    masks = masks_of(["x"] * 300 + ["y"] * 200 + ["p", "q", "r"])
    assert {name: int(mask.sum()) for name, mask in masks.items()} == {
        "x = x": 300,
        "x = y": 200,
        "x = 3 other levels": 3,
    }


# --- intervals ----------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=30), st.integers(0, 5))
def test_intervals_stay_among_the_rows(values, seed):
    rows = np.array(values)[:, None]
    low, high = resampling.interval(resampling.resampled_means(rows, 50, np.random.default_rng(seed)), len(rows))
    slack = 1e-9 * (1 + np.abs(rows).max())
    assert rows.min() - slack <= low[0] <= high[0] <= rows.max() + slack


@pytest.mark.parametrize("n", [8, 60])
def test_intervals_hold_the_true_mean_as_often_as_they_say(n):
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        rows = np.abs(rng.normal(size=(n, 1)))
        low, high = resampling.interval(resampling.resampled_means(rows, 200, rng), n)
        held += low[0] <= np.sqrt(2 / np.pi) <= high[0]
    # The standard error of a share of .95 of 400 is .011; skewed values and few resamples cost a little.
    assert 0.90 <= held / 400 <= 0.99


def test_intervals_are_seeded_and_need_rows(explained):
    first, again = (subgroups(explained, "side", random_state=3) for _ in range(2))
    pd.testing.assert_frame_equal(first.low, again.low)
    assert not first.low.equals(subgroups(explained, "side", random_state=4).low)
    assert (first.low <= first.values).all(axis=None)
    assert (first.values <= first.high).all(axis=None)
    few = subgroups(explained, {"four": np.arange(len(explained)) < 4})
    assert few.low.isna().all(axis=None)
    assert few.values.notna().all(axis=None)
    assert any("too few" in line for line in few.flags())


# --- fidelity and labels ------------------------------------------------------------------------------


def test_fidelity_is_that_of_the_rows_of_a_group(explained, by_side):
    left = (explained.frame["side"] == "left").to_numpy()
    line = by_side.fidelity.loc["side = left"]
    assert line["lmae"] == pytest.approx(explained.fidelity["error"][left].mean())
    assert line["lmae low"] <= line["lmae"] <= line["lmae high"]
    assert line["trusted"] == pytest.approx(explained.fidelity["trusted"][left].mean())
    assert line["nse"] <= 1
    silent = subgroups(dataclasses.replace(explained, outputs=None), "side")
    assert "lmae" not in silent.fidelity


def test_labels_tell_where_the_black_box_is_wrong(explained):
    truth = explained.model_outputs + np.where(explained.frame["side"] == "left", 0.0, 5.0)
    found = subgroups(explained, "side", y=truth)
    assert found.fidelity["error"].tolist() == pytest.approx([0, 5])
    (flag,) = [line for line in found.flags() if "black box itself" in line]
    assert '"side = right"' in flag


def test_classes_are_wrong_or_right(table):
    y = np.where(two_sided(table) > 1, "yes", "no")
    model = make_pipeline(FunctionTransformer(lambda rows: rows[["a", "b", "c"]]), LogisticRegression()).fit(table, y)
    explained = LimisExplainer(model, weighting="forest", random_state=0).fit(table[:200]).explain(table[200:])
    found = subgroups(explained, "side", y=y[200:])
    wrong = model.predict(table[200:]) != y[200:]
    left = (table["side"][200:] == "left").to_numpy()
    assert found.fidelity.loc["side = left", "error"] == pytest.approx(wrong[left].mean())
    with pytest.raises(InputError, match="'perhaps'"):
        subgroups(explained, "side", y=np.where(wrong, "perhaps", "no"))


# --- flags --------------------------------------------------------------------------------------------


def test_sensitive_columns_that_carry_weight_are_told(by_side):
    (flag,) = by_side.flags(sensitive=["a"])
    assert 'a carries weight in "side = left"' in flag
    assert not by_side.flags(sensitive=["c"])
    with pytest.raises(InputError, match="no column 'income'"):
        by_side.flags(sensitive=["income"])
    assert by_side.flags() == []


def test_groups_that_fare_worse_are_told():
    rng = np.random.default_rng(0)
    group = np.repeat(["good", "bad"], 100)
    outputs = rng.normal(size=200)
    miss = np.where(group == "bad", 1.0, 0.1) * rng.normal(size=200)
    near = np.where(group == "bad", 8.0, 60.0)
    found = made_up({"x": np.ones(200)}, group, outputs=outputs, local=outputs + miss, effective_rows=near)
    worse, lonely = found.flags()
    assert worse.startswith('local models follow the black box worse in "bad"')
    assert lonely.startswith('few training rows are near those of "bad"')
    alike = made_up({"x": np.ones(200)}, group, outputs=outputs, local=outputs + 0.1 * rng.normal(size=200))
    assert alike.flags() == []


@pytest.mark.parametrize(
    ("near", "rest", "lonely"), [(0, 0, 0), (8, 8, 0), (8, 9, 0), (8, 30, 1), (6, 12, 1), (14, 20, 0), (14, 50, 1)]
)
def test_few_rows_are_told_of_groups_that_rest_on_fewer_than_others(near, rest, lonely):
    group = np.repeat(["few", "rest"], [50, 150])
    found = made_up({"x": np.ones(200)}, group, effective_rows=np.where(group == "few", float(near), float(rest)))
    assert len(found.flags()) == lonely


# --- errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "options", "words"),
    [
        ("d", {}, "no column 'd' to group by; there are 'a', 'b'"),
        ("a", {"bins": [0.5, 7.0]}, "group 'a > 7' is empty"),
        ("a", {"bins": [0.5, 0.2]}, "rise"),
        ("side", {"bins": [1]}, "is a category"),
        ({"none": lambda rows: rows["a"] > 2}, {}, "group 'none' is empty"),
        ({"odd": lambda rows: rows["a"]}, {}, "true or false"),
        ({}, {}, "no rule"),
        ({"x": [True]}, {"bins": [1]}, "rules"),
        (["left", "right"], {}, "has 2 values, but 100 rows"),
        ("side", {"measure": "weights"}, "measure is"),
        ("side", {"n_resamples": 0}, "at least 1"),
        ("side", {"y": ["no"] * 100}, "y must hold numbers"),
    ],
)
def test_errors_name_what_is_wrong(explained, by, options, words):
    with pytest.raises(InputError, match=words):
        subgroups(explained, by, **options)


def test_one_row_makes_no_groups(explained):
    with pytest.raises(InputError, match="at least two"):
        subgroups(explained[:1], "side")


def test_several_classes_are_looked_at_one_by_one(table):
    y = np.select([table["a"] < 0.3, table["a"] < 0.6], ["low", "middle"], "high")
    explained = LimisExplainer(weighting="forest", random_state=0).fit(table[:200], y[:200]).explain(table[200:])
    with pytest.raises(InputError, match=r"for_class\('high'\)"):
        subgroups(explained, "side")
    found = subgroups(explained.for_class("low"), "side", n_resamples=5)
    assert (found.values["a"] > found.values["c"]).all()


# --- the drawing --------------------------------------------------------------------------------------


@pytest.fixture
def drawing():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    yield plt
    plt.close("all")


def test_the_heat_map_names_groups_with_their_sizes(by_side, drawing):
    _, ax = drawing.subplots(figsize=(8, 4))
    assert by_side.plot(ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        f"{group} ({n})" for group, n in by_side.sizes.items()
    ]
    shown = {text.get_text() for text in ax.texts}
    assert f"{by_side.values.loc['side = left', 'a']:.2f}" in shown
    _, small = drawing.subplots(figsize=(0.9, 0.6))
    assert not by_side.plot(small).texts


@pytest.mark.usefixtures("drawing")
def test_names_stand_as_they_are_and_many_columns_are_cut():
    rng = np.random.default_rng(0)
    found = made_up({f"$x_{j}$ {'long ' * 9}": rng.random(20) for j in range(30)}, ["$a$"] * 10 + ["b\x07"] * 10)
    ax = found.plot()
    ax.figure.canvas.draw()
    assert len(ax.get_xticklabels()) == 20
    assert "10 lighter columns" in ax.get_xlabel()
    for label in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        assert not label._preprocess_math(label.get_text())[1]


def test_a_frame_has_everything(by_side):
    frame = by_side.to_frame()
    assert frame.index.equals(by_side.values.index)
    assert {"rows", "nse", "lmae", "trusted", "effective_rows", "contribution: side high"} <= set(frame.columns)
    assert repr(by_side).startswith("<2 groups by contributions (side = left: ")
    assert result.EVERYBODY in by_side.overall.index
