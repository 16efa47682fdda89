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
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from limis import askers
from limis.blackbox import BlackBox, clipped_logit, connect, sigmoid
from limis.errors import BlackBoxError, InputError
from limis.labels import read_labels


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    return frame, (frame["a"] + frame["b"] ** 2 + rng.normal(size=300) > 0.5).to_numpy(dtype=int)


def ask(model, frame, output="auto", from_array=False, labels=None):
    return connect(model, frame, from_array=from_array, output=output, labels=labels)


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
        lambda: make_pipeline(LogisticRegression()),
        lambda: make_pipeline(make_pipeline(StandardScaler(), LogisticRegression())),
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


def test_two_columns_of_a_function_are_logits_only_when_that_is_said(table):
    frame, _ = table

    def two(rows):
        return np.column_stack([rows["b"], rows["a"]])

    with pytest.raises(BlackBoxError, match=r'2 outputs a row, which do not sum to one.*output="logit"'):
        ask(two, frame)
    np.testing.assert_allclose(ask(two, frame, output="logit")[1], frame["a"] - frame["b"])
    np.testing.assert_allclose(ask(two, frame, output="probability")[1], sigmoid(frame["a"] - frame["b"]))


@pytest.mark.parametrize("targets", [2, 3])
@pytest.mark.parametrize("output", ["auto", "logit"])
def test_regressors_of_several_outputs_are_refused(table, targets, output):
    frame, labels = table
    model = LinearRegression().fit(frame, np.column_stack([labels] * targets))
    with pytest.raises(BlackBoxError, match=f"{targets} outputs a row; pass a function that gives one"):
        ask(model, frame, output=output)


class Network:
    """Looks like a model of keras: predict, no tags, a column of probabilities."""

    def predict(self, rows):
        return sigmoid(rows[["a"]].to_numpy())


def test_what_only_looks_like_an_estimator_is_no_regressor(table):
    frame, _ = table
    np.testing.assert_allclose(ask(Network(), frame)[1], sigmoid(frame["a"]))
    box, outputs = ask(Network(), frame, output="logit")
    assert (box.scale, box.reads) == ("logit", "probabilities")
    np.testing.assert_allclose(outputs, frame["a"], atol=1e-9)


def linear(width, dtype=torch.float32):
    torch.manual_seed(0)
    return torch.nn.Linear(2, width, dtype=dtype)


def test_torch_modules_are_asked_in_eval_mode_and_left_as_they_were(table):
    frame, _ = table
    model = torch.nn.Sequential(linear(4), torch.nn.Dropout(0.5), torch.nn.Sequential(torch.nn.Linear(4, 1)))
    model.train()
    model[2].eval()  # frozen by the user, inside a model in training
    first, second = (ask(model, frame)[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert [part.training for part in model.modules()] == [True, True, True, False, False]


def test_torch_modules_are_asked_in_their_own_precision(table):
    frame, _ = table
    model = linear(1, torch.float64)
    with torch.no_grad():
        exact = model(torch.tensor(frame.to_numpy())).numpy()[:, 0]
        coarse = model.bfloat16()(torch.tensor(frame.to_numpy()).bfloat16()).double().numpy()[:, 0]
    _, outputs = ask(model.bfloat16(), frame)
    assert outputs.dtype == np.float64
    np.testing.assert_array_equal(outputs, coarse)
    np.testing.assert_allclose(ask(linear(1, torch.float64), frame)[1], exact, rtol=0, atol=1e-14)


def test_two_columns_of_a_torch_module_are_logits_unless_they_sum_to_one(table):
    frame, _ = table
    model = linear(2, torch.float64)
    with torch.no_grad():
        logits = model(torch.tensor(frame.to_numpy())).numpy()
    box, outputs = ask(model, frame)
    assert (box.scale, box.reads) == ("logit", "logits")
    np.testing.assert_allclose(outputs, logits[:, 1] - logits[:, 0])
    box, outputs = ask(torch.nn.Sequential(model, torch.nn.Softmax(dim=1)), frame)
    assert box.reads == "probabilities"
    np.testing.assert_allclose(outputs, logits[:, 1] - logits[:, 0])


def test_answers_that_are_tensors_are_read_with_their_gradients_left_behind(table):
    frame, _ = table
    model = linear(1, torch.float64)
    np.testing.assert_array_equal(
        ask(lambda rows: model(torch.tensor(rows)), frame, from_array=True)[1], ask(model, frame)[1]
    )


class BrokenScore:
    """Probabilities, and margins that raise or are no single numbers."""

    def __init__(self, margins):
        self.margins = margins

    def predict_proba(self, rows):
        return np.column_stack([1 - sigmoid(rows["a"]), sigmoid(rows["a"])])

    def decision_function(self, rows):
        return self.margins(rows)


@pytest.mark.parametrize(
    "margins",
    [lambda rows: rows["no such column"], lambda rows: rows * 1.0, lambda rows: rows["a"] * np.nan],
    ids=["raise", "two a row", "NaN"],
)
def test_margins_that_cannot_be_had_are_done_without(table, margins):
    frame, _ = table
    box, outputs = ask(BrokenScore(margins), frame)
    assert (box.scale, box.reads) == ("logit", "probabilities")
    np.testing.assert_allclose(outputs, frame["a"], atol=1e-9)


def overwriting(rows):
    if isinstance(rows, np.ndarray):
        rows[:, 0] = 7.0
    else:
        rows["a"] = 7.0
        rows.iloc[:, 1] = 7.0
        rows.index = range(len(rows))
    return np.zeros(len(rows))


@pytest.mark.parametrize("from_array", [False, True])
@pytest.mark.parametrize("copy_on_write", [False, True])
def test_a_model_that_writes_into_its_rows_changes_nobody_elses(table, monkeypatch, from_array, copy_on_write):
    if copy_on_write and not askers._COPY_ON_WRITE:
        pytest.skip("this pandas has no copy-on-write")
    monkeypatch.setattr(askers, "_COPY_ON_WRITE", copy_on_write)
    array = table[0].to_numpy(copy=True)
    frame = pd.DataFrame(array, columns=["a", "b"], copy=False)
    before, index = array.copy(), frame.index
    box, _ = ask(overwriting, frame, from_array=from_array)
    box.outputs(frame)
    np.testing.assert_array_equal(array, before)
    np.testing.assert_array_equal(frame, before)
    assert frame.index is index


def test_models_are_asked_under_the_labels_they_were_fitted_with(table):
    frame, labels = table
    original = frame.set_axis([0, 1], axis=1)
    two = make_pipeline(FunctionTransformer(lambda rows: rows[[1, 0]]), LogisticRegression()).fit(original, labels)
    light = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(original, labels)
    boosted = xgboost.XGBClassifier(n_estimators=5).fit(original, labels)
    named = frame.set_axis(["0", "1"], axis=1)
    for model in (two, light, boosted):
        box, outputs = ask(model, named, labels=[0, 1])
        np.testing.assert_allclose(sigmoid(outputs), model.predict_proba(original)[:, 1], atol=1e-5)
        np.testing.assert_array_equal(box.outputs(named), outputs)
        np.testing.assert_array_equal(BlackBox.from_dict(box.to_dict(), model, False, [0, 1]).outputs(named), outputs)
    for booster, model in ((light.booster_, light), (boosted.get_booster(), boosted)):
        np.testing.assert_allclose(
            sigmoid(ask(booster, named, labels=[0, 1])[1]), model.predict_proba(original)[:, 1], atol=1e-5
        )
    np.testing.assert_array_equal(ask(lambda rows: rows[0], named, labels=[0, 1])[1], frame["a"])


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
        (lambda rows: rows["a"].where(rows.index < 290), "NaN or infinity for rows 290, 291, 292, 293, 294 and 5 more"),
        (lambda rows: rows["a"][:-1], r"asked about 300 rows and answered with shape \(299,\)"),
        (lambda rows: np.full(len(rows), "yes"), "'yes', not with numbers"),
        (lambda rows: np.full((len(rows), 2), "yes"), "'yes', not with numbers"),
        (lambda rows: np.ones((2, len(rows), 2)), r"answered with shape \(2, 300, 2\)"),
        (lambda rows: [[1.0] * (1 + i % 2) for i in range(len(rows))], "raised ValueError on these 2 rows together"),
        (lambda rows: np.ones((len(rows), 3)), "gives 3 outputs a row, which do not sum to one"),
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
    halves = frame.set_axis(frame.index / 2)  # slices of such an index would go by its values
    with pytest.raises(BlackBoxError, match=r"raised RuntimeError on row 61\.5: boom"):
        ask(raising, halves)


def test_rows_that_share_a_label_are_named_once(table):
    frame = table[0].set_axis([f"p{i // 100}" for i in range(300)])
    with pytest.raises(BlackBoxError, match=r"infinity for rows 'p0', 'p1', 'p2'$"):
        ask(lambda rows: rows["a"] * np.nan, frame)


def test_a_target_with_one_class(table):
    frame, _ = table
    model = RandomForestClassifier(3).fit(frame, np.ones(len(frame)))
    with pytest.raises(BlackBoxError, match="only one class"):
        ask(model, frame)


def test_a_regressor_has_no_logits(table):
    frame, labels = table
    with pytest.raises(BlackBoxError, match='output="logit" needs class probabilities'):
        ask(LinearRegression().fit(frame, labels), frame, output="logit")


def test_three_classes_have_an_output_each(table):
    frame, labels = table
    model = LogisticRegression().fit(frame, labels + (frame["a"] > 1))
    box, outputs = connect(model, frame, from_array=False, output="auto")
    assert (box.scale, box.reads, box.n_classes) == ("centred", "margins", 3)
    np.testing.assert_allclose(outputs.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(box.to_probabilities(outputs), model.predict_proba(frame), atol=1e-9)
    second = box.of_class(1)
    np.testing.assert_array_equal(second.outputs(frame), outputs[:, 1])
    assert second.classes == ["other classes", 1]


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


@pytest.mark.parametrize("kind", ["bool", "boolean", "bool[pyarrow]", "category", "object"])
def test_labels_that_are_true_or_false_are_two_classes_in_every_type(kind):
    labels = pd.Series([True, False, True]).astype(kind)
    numbers, classes = read_labels(labels, 3)
    assert classes == [False, True]
    assert numbers.tolist() == [1, 0, 1]
    assert read_labels(labels.iloc[:1], 1, classes)[0].tolist() == [1]


def test_missing_among_labels_that_are_true_or_false_is_named():
    with pytest.raises(InputError, match=r"y is missing \(NaN\) in row 1"):
        read_labels(pd.array([True, None], dtype="boolean"), 2)
