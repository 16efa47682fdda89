"""Any model gives one finite output a row, on the right scale, or an error that names the rows."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

from limis.blackbox import clipped_logit, connect, sigmoid
from limis.errors import BlackBoxError


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    return frame, (frame["a"] + frame["b"] ** 2 + rng.normal(size=300) > 0.5).to_numpy(dtype=int)


def ask(model, frame, output="auto", from_array=False):
    return connect(model, frame, from_array=from_array, output=output)


def test_regressors_give_their_values(table):
    frame, labels = table
    model = LinearRegression().fit(frame, labels)
    box, outputs = ask(model, frame)
    assert box.scale == "value"
    np.testing.assert_allclose(outputs, model.predict(frame))


@pytest.mark.parametrize(
    "make",
    [
        LogisticRegression,
        lambda: xgboost.XGBClassifier(n_estimators=10),
        lambda: lightgbm.LGBMClassifier(n_estimators=10, verbose=-1),
        lambda: make_pipeline(make_column_transformer(("passthrough", ["a", "b"])), LogisticRegression()),
    ],
)
def test_margins_are_used_where_they_are_logits(table, make):
    frame, labels = table
    model = make().fit(frame, labels)
    box, outputs = ask(model, frame)
    assert (box.scale, box.reads) == ("logit", "margins")
    np.testing.assert_allclose(sigmoid(outputs), model.predict_proba(frame)[:, 1], atol=1e-4)


def test_native_boosters_are_told_apart_by_their_margins(table):
    frame, labels = table
    classifier = xgboost.XGBClassifier(n_estimators=10).fit(frame, labels)
    box, outputs = ask(classifier.get_booster(), frame)
    assert box.scale == "logit"
    np.testing.assert_allclose(sigmoid(outputs), classifier.predict_proba(frame)[:, 1], atol=1e-5)
    regressor = xgboost.XGBRegressor(n_estimators=10).fit(frame, labels)
    assert ask(regressor.get_booster(), frame)[0].scale == "value"
    light = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1).fit(frame, labels)
    box, outputs = ask(light.booster_, frame)
    assert box.scale == "logit"
    np.testing.assert_allclose(sigmoid(outputs), light.predict_proba(frame)[:, 1], atol=1e-5)


def test_too_many_certain_answers_turn_auto_to_probabilities(table):
    frame, labels = table
    forest = RandomForestClassifier(10, random_state=0).fit(frame, labels)
    box, outputs = ask(forest, frame)
    assert box.scale == "probability"
    np.testing.assert_allclose(outputs, forest.predict_proba(frame)[:, 1])
    box, outputs = ask(forest, frame, output="logit")
    assert box.clipped_share > 0.05
    np.testing.assert_allclose(outputs, clipped_logit(forest.predict_proba(frame)[:, 1]))
    assert abs(outputs).max() < 7


def test_functions_give_values_probabilities_or_logits(table):
    frame, _ = table
    assert ask(lambda rows: rows["a"], frame)[0].scale == "value"
    two = ask(lambda rows: np.column_stack([1 - sigmoid(rows["a"]), sigmoid(rows["a"])]), frame)
    assert two[0].scale == "logit"
    np.testing.assert_allclose(two[1], frame["a"], atol=1e-9)
    one = ask(lambda rows: sigmoid(rows["a"]), frame, output="logit")
    np.testing.assert_allclose(one[1], frame["a"], atol=1e-9)
    logits = ask(lambda rows: rows["a"], frame, output="probability")
    np.testing.assert_allclose(logits[1], sigmoid(frame["a"]))
    array = ask(lambda rows: rows[:, 0], frame, from_array=True)
    np.testing.assert_allclose(array[1], frame["a"])


def test_torch_modules_are_asked_in_eval_mode_and_left_as_they_were(table):
    frame, _ = table
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    model.train()
    first, second = (ask(model, frame)[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert model.training


def test_models_fitted_on_arrays_are_asked_with_arrays(table):
    frame, labels = table
    model = LogisticRegression().fit(frame.to_numpy(), labels)
    np.testing.assert_allclose(ask(model, frame)[1], model.decision_function(frame.to_numpy()))


def test_pipelines_that_take_raw_frames(table):
    frame, labels = table
    raw = frame.assign(c=np.where(frame["a"] > 0, "yes", "no"))
    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    model = make_pipeline(encode, xgboost.XGBClassifier(n_estimators=5)).fit(raw, labels)
    box, outputs = ask(model, raw)
    assert box.reads == "margins"
    np.testing.assert_allclose(sigmoid(outputs), model.predict_proba(raw)[:, 1], atol=1e-4)


def test_classifiers_without_probabilities_are_explained_by_their_score(table):
    frame, labels = table
    model = LinearSVC().fit(frame, labels)
    box, outputs = ask(model, frame)
    assert box.scale == "value"
    np.testing.assert_allclose(outputs, model.decision_function(frame))


def raising(rows):
    if (rows["a"] == rows["a"].max()).any() and rows["a"].max() > 2:
        raise RuntimeError("boom")
    return rows["a"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda rows: rows["a"].where(rows.index != 7), "NaN or infinity for row 7"),
        (lambda rows: rows["a"][:-1], r"asked about 300 rows and answered with shape \(299,\)"),
        (lambda rows: np.full(len(rows), "yes"), "not with numbers"),
        (lambda rows: np.ones((len(rows), 3)) / 3, "3 columns, one a class"),
        (lambda rows: np.column_stack([rows["a"] * 0, rows["a"] * 0 + 1.0]) * np.nan, "NaN or infinity"),
        (RandomForestRegressor(), "never fitted"),
        (xgboost.XGBClassifier(), "never fitted"),
        (42, "neither called nor asked"),
    ],
)
def test_bad_black_boxes_are_named(table, model, message):
    with pytest.raises(BlackBoxError, match=message):
        ask(model, table[0])


def test_a_black_box_that_raises_is_reported_with_its_row(table):
    frame, _ = table
    frame = frame.assign(a=frame["a"].clip(upper=1.9))
    frame.loc[123, "a"] = 5.0
    with pytest.raises(BlackBoxError, match=r"raised RuntimeError on row 123: boom"):
        ask(raising, frame)


def test_a_target_with_one_class(table):
    frame, _ = table
    model = RandomForestClassifier(3).fit(frame, np.ones(len(frame)))
    with pytest.raises(BlackBoxError, match="only one class"):
        ask(model, frame)


def test_a_regressor_has_no_logits(table):
    frame, labels = table
    with pytest.raises(BlackBoxError, match='output="logit" needs class probabilities'):
        ask(LinearRegression().fit(frame, labels), frame, output="logit")


def test_three_classes_are_refused_for_now(table):
    frame, labels = table
    model = LogisticRegression().fit(frame, labels + (frame["a"] > 1))
    with pytest.raises(BlackBoxError, match="3 columns, one a class"):
        ask(model, frame)


def test_boosters_are_asked_by_name_whatever_the_order_of_columns(table):
    frame, labels = table
    for booster in (
        lightgbm.LGBMClassifier(n_estimators=10, verbose=-1).fit(frame[["b", "a"]], labels).booster_,
        xgboost.XGBClassifier(n_estimators=10).fit(frame[["b", "a"]], labels).get_booster(),
    ):
        np.testing.assert_array_equal(ask(booster, frame)[1], ask(booster, frame[["b", "a"]])[1])


def test_boosters_with_names_are_asked_with_arrays_by_position(table):
    frame, labels = table
    booster = xgboost.XGBClassifier(n_estimators=10).fit(frame, labels).get_booster()
    unnamed = frame.set_axis(["x0", "x1"], axis=1)
    np.testing.assert_array_equal(ask(booster, unnamed, from_array=True)[1], ask(booster, frame)[1])
    linear = xgboost.XGBRegressor(booster="gblinear", n_estimators=10).fit(frame.to_numpy(), labels)
    np.testing.assert_allclose(ask(linear.get_booster(), frame)[1], linear.predict(frame.to_numpy()))
