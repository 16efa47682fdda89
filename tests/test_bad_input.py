"""What bad input gets: a message that names the culprit and the cure, and an explainer left as it was."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

from limis import BlackBoxError, InputError, LimisExplainer


def black_box(rows):
    return rows["a"].to_numpy() * 2


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=80), "b": rng.choice(["x", "y"], 80)})


@pytest.fixture
def explainer(frame):
    return LimisExplainer(black_box).fit(frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.iloc[:0], "the training table has no rows"),
        (lambda f: f.iloc[:1], "a single row"),
        (lambda f: pd.concat([f, f[["a"]]], axis=1), "more than once: 'a'"),
        (lambda f: f.assign(a=np.where(f.index == 5, np.inf, 1.0)), "column 'a' has an infinite value in row 5"),
        (lambda f: f["a"].to_numpy(), "Expected 2D array"),
        (lambda f: f.iloc[:, :0], "at least one column|minimum of 1"),
    ],
)
def test_tables_that_cannot_be_fitted(frame, change, message):
    with pytest.raises(InputError, match=message):
        LimisExplainer(black_box).fit(change(frame))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.iloc[:0], "no rows to explain"),
        (
            lambda f: f.rename(columns={"a": "c", "b": "d"}),
            "none of the columns seen at fit: expected 'a', 'b', got 'c'",
        ),
        (lambda f: f.drop(columns="b"), "missing from the table: 'b'"),
        (lambda f: f.assign(a="many"), "column 'a' holds numbers at fit, but row 0 has 'many'"),
        (lambda f: f.assign(a=-np.inf), "column 'a' has an infinite value in row 0"),
    ],
)
def test_tables_that_cannot_be_explained(explainer, frame, change, message):
    with pytest.raises(InputError, match=message):
        explainer.explain(change(frame))


def test_one_row_reordered_columns_and_extra_columns_are_fine(explainer, frame):
    whole = explainer.explain(frame)
    one = explainer.explain(frame.iloc[[3]][["b", "a"]])
    assert one.local_predictions.iloc[0] == whole.local_predictions.iloc[3]
    with pytest.warns(UserWarning, match="ignored: 'c'"):
        extra = explainer.explain(frame.assign(c=1))
    np.testing.assert_array_equal(extra.contributions, whole.contributions)


def test_an_all_missing_column_is_fitted_and_explained(frame):
    with_nothing = frame.assign(c=np.nan, d=None)
    found = LimisExplainer(black_box).fit(with_nothing).explain(with_nothing)
    assert np.isfinite(found.contributions).all(axis=None)
    np.testing.assert_allclose(found.contributions[["c", "d"]], 0, atol=1e-12)


def test_a_constant_black_box_is_explained_by_its_constant(frame):
    found = LimisExplainer(lambda rows: np.full(len(rows), 3.0)).fit(frame).explain(frame)
    np.testing.assert_allclose(found.local_predictions, 3.0)


def test_labels_need_two_classes(frame):
    with pytest.raises(InputError, match=r"y has only one class \(yes\)"):
        LimisExplainer().fit(frame, ["yes"] * len(frame))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing to explain"),
        ({"y": [1, 2, 3]}, "y has 3 labels, but X has 80 rows"),
        ({"y": [np.nan] * 80}, r"y is missing \(NaN\) in row 0"),
        ({"outputs": np.arange(3)}, "give one number a row"),
        ({"outputs": ["x"] * 80}, "must be numbers"),
        ({"outputs": [np.nan] * 80}, "NaN or infinity in row 0"),
        ({"y": np.arange(80), "sample_weight": np.ones(80)}, 'not used by curves; use surrogate="ridge" or "tree"'),
        ({"y": np.arange(80), "probe_outputs": [1.0]}, "without probe_rows"),
    ],
)
def test_arguments_of_fit(frame, arguments, message):
    with pytest.raises(InputError, match=message):
        LimisExplainer().fit(frame, **arguments)


def test_sample_weights_are_not_negative(frame):
    with pytest.raises(InputError, match="must not be negative"):
        LimisExplainer(surrogate="ridge").fit(frame, np.arange(80), sample_weight=-np.ones(80))


def test_probe_rows_without_a_model_need_their_outputs(frame):
    with pytest.raises(InputError, match="pass probe_outputs"):
        LimisExplainer().fit(frame, np.arange(80), probe_rows=frame.iloc[:5])
    text = np.where(frame["a"] > 0, "yes", "no")
    with pytest.raises(InputError, match="'perhaps' was not among the classes"):
        LimisExplainer().fit(frame, text, probe_rows=frame.iloc[:2], probe_outputs=["yes", "perhaps"])


def test_a_model_that_was_never_fitted(frame):
    with pytest.raises(BlackBoxError, match="never fitted"):
        LimisExplainer(RandomForestClassifier()).fit(frame[["a"]])


def test_explaining_before_fitting(frame):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        LimisExplainer(black_box).explain(frame)


@pytest.mark.parametrize(
    "options", [{"surrogate": "forest"}, {"tolerance": -1}, {"output": "odds"}, {"random_state": "x"}]
)
def test_options_are_checked_by_name(frame, options):
    with pytest.raises(ValueError, match=f"The '{next(iter(options))}' parameter"):
        LimisExplainer(black_box, **options).fit(frame)


def test_a_failed_fit_leaves_the_fitted_explainer_as_it_was(explainer, frame):
    before = explainer.explain(frame).contributions
    for fails_from in (0, 1):  # at the first question, or when asked about changes
        calls = iter(range(100))
        explainer.model = lambda rows, calls=calls, bad=fails_from: rows["a"] * (np.nan if next(calls) >= bad else 1)
        with pytest.raises(BlackBoxError, match="NaN"):
            explainer.fit(frame.iloc[::-1].iloc[:70])
    explainer.model = black_box
    np.testing.assert_array_equal(explainer.explain(frame).contributions, before)


def test_inputs_are_never_changed(frame):
    copy = frame.copy()
    LimisExplainer(black_box).fit(frame).explain(frame)
    pd.testing.assert_frame_equal(frame, copy)
