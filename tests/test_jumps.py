"""Jumps: where the black box steps along a number, and what the explainer makes of it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limis
from limis.changes import RecordedChanges
from limis.columns import roundest
from limis.explainer import LimisExplainer
from limis.jumps import MAX_JUMPS, find_jumps
from limis.table import Table


def people(n=400, seed=0):
    """A column in which most are zero and the rest far away, one that is spread out, one with missing values."""
    rng = np.random.default_rng(seed)
    gain = np.where(rng.random(n) < 0.6, 0, rng.choice([500, 2000, 4000, 8000, 9000, 40000], n))
    debt = rng.normal(size=n)
    debt[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"gain": gain, "age": rng.uniform(20, 70, n), "debt": debt})


def stepping(frame):
    return 5.0 * (frame["gain"] > 5000) + 0.02 * frame["age"] + frame["debt"].fillna(0)


def jumps_of(model, frame):
    explainer = LimisExplainer(model, jumps="none", surrogate="ridge").fit(frame)
    training = explainer.training_
    recorded = RecordedChanges.ask(training, np.random.default_rng(0))
    found = find_jumps(training, recorded, np.random.default_rng(0))
    return dict(zip(training.table.names, found, strict=True))


def test_a_step_is_found_between_the_values_around_it_and_nowhere_else():
    found = jumps_of(stepping, people())
    assert len(found["gain"]) == 1
    assert 4000 <= found["gain"][0] < 8000
    assert found["age"] == found["debt"] == []


@pytest.mark.parametrize(
    "smooth",
    [
        lambda frame: 0.1 * frame["age"] + 1e-4 * frame["gain"],
        lambda frame: (frame["age"] / 10 - 4.5) ** 2,
        lambda frame: np.exp(frame["age"] / 15),
        # It jumps where age passes 45, up as often as down: no feature of age alone could tell which.
        lambda frame: np.where(frame["age"] > 45, 1, -1) * frame["debt"].fillna(0),
    ],
    ids=["linear", "square", "exponential", "switch"],
)
def test_what_slopes_can_tell_needs_no_jump(smooth):
    assert not any(jumps_of(smooth, people()).values())


def test_a_stairway_gets_no_more_jumps_than_a_reader_can_follow():
    heights = np.array([0, 5, 1, 8, 2, 9, 0, 7, 3, 6.0])
    frame = pd.DataFrame({"x": np.random.default_rng(0).integers(10, size=400), "y": np.arange(400.0)})
    found = jumps_of(lambda rows: heights[rows["x"]], frame)["x"]
    assert 1 < len(found) <= MAX_JUMPS
    assert found == sorted(found)


numbers = st.floats(-1e12, 1e12, allow_nan=False)


@given(numbers, numbers)
def test_the_roundest_number_separates_its_neighbours(a, b):
    low, high = sorted((a, b))
    if low < high:
        assert low <= roundest(low, high) < high


@pytest.fixture(scope="module")
def explained():
    frame = people()
    explainer = LimisExplainer(stepping, surrogate="ridge").fit(frame.iloc[:300])
    return explainer, frame.iloc[300:]


def test_a_jump_is_a_feature_of_its_column_with_a_name_to_read(explained):
    explainer, rows = explained
    found = explainer.explain(rows)
    levels = [level for column, level in found.coefficients.columns if column == "gain"]
    assert levels[0] == ""
    assert levels[1:] == ["> 5,000"]
    assert [level for column, level in found.coefficients.columns if column == "debt"] == ["", "missing"]
    effect = found.coefficients["gain", "> 5,000"]
    np.testing.assert_allclose(effect.median(), 5.0, atol=0.2)
    np.testing.assert_allclose(found.base_values + found.contributions.sum(axis=1), found.local_predictions)


def test_jumps_foresee_what_slopes_cannot(explained):
    explainer, rows = explained
    plain = LimisExplainer(stepping, jumps="none", surrogate="ridge").fit(people().iloc[:300])
    assert explainer.explain(rows).skill() > 0.9
    assert plain.explain(rows).skill() < 0.6
    assert all(not column.jumps for column in plain.training_.table.columns)


def test_the_coefficients_and_the_intercept_are_the_local_model(explained):
    explainer, rows = explained
    found = explainer.explain(rows.dropna())
    features = explainer.training_.table.features(found.values)
    own = features * explainer.training_.table.feature_scale + explainer.training_.table.feature_offset
    expected = found.intercepts + (found.coefficients.fillna(0).to_numpy() * own).sum(axis=1)
    np.testing.assert_allclose(found.local_predictions, expected)


def test_saving_keeps_the_jumps(explained, tmp_path):
    explainer, rows = explained
    explainer.save(tmp_path / "stepping.limis")
    again = limis.load(tmp_path / "stepping.limis", model=stepping).explain(rows)
    pd.testing.assert_frame_equal(again.coefficients, explainer.explain(rows).coefficients)


def test_a_model_that_was_never_asked_has_no_jumps():
    frame = people()
    explainer = LimisExplainer(surrogate="ridge").fit(frame, outputs=stepping(frame))
    assert all(not column.jumps for column in explainer.training_.table.columns)


def test_a_number_that_is_one_value_or_missing_is_no_reason_to_fail():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": np.where(rng.random(120) < 0.5, 5.0, np.nan), "b": rng.normal(size=120)})

    def model(rows):
        return 3.0 * rows["a"].isna() + 0.1 * rows["b"]

    explainer = LimisExplainer(model, surrogate="ridge").fit(frame)
    assert all(not column.jumps for column in explainer.training_.table.columns)
    # Being missing is a value like any other: it is moved to, and its effect is seen.
    effect = explainer.explain(frame.iloc[:20]).coefficients["a", "missing"]
    np.testing.assert_allclose(effect, 3.0, atol=0.2)


def test_rows_without_weight_show_no_jumps():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(0, 4, 300), "b": rng.normal(size=300)})
    weight = (frame["a"] < 2).to_numpy(dtype=float)
    explainer = LimisExplainer(lambda rows: 5.0 * (rows["a"] > 2.5) + rows["b"], surrogate="ridge").fit(
        frame, sample_weight=weight
    )
    assert not any(jump - 2.1 > 0 for jump in explainer.training_.table.columns[0].jumps)


def test_jumps_of_dates_and_durations_read_as_such():
    days = np.arange(30)
    frame = pd.DataFrame(
        {"since": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, "D"), "lasted": pd.to_timedelta(days, "h")}
    )
    table, _ = Table.learn(frame)
    table = table.with_jumps([[19730.0], [0.5]])
    assert table.feature_names == [
        ("since", ""),
        ("since", "> 2024-01-08"),
        ("lasted", ""),
        ("lasted", "> 0 days 12:00:00"),
    ]
    features = table.features(table.values(frame))
    np.testing.assert_array_equal(features[:, 1], frame["since"] > "2024-01-08")
    np.testing.assert_array_equal(features[:, 3], frame["lasted"] > pd.Timedelta(hours=12))
    assert table.is_jump.tolist() == [False, True, False, True]
