import lightgbm
import numpy as np
import pandas as pd
import pytest

from limis import InputError, LimisExplainer
from limis.askers import asker_for
from limis.blackbox import connect
from limis.default_model import read_target, train_default_model


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 400
    return pd.DataFrame(
        {
            "size": rng.normal(size=n).round(3),
            "colour": rng.choice(["red", "green", "blue"], n),
            "flag": rng.random(n) > 0.5,
            "rooms": rng.integers(1, 6, n),
        }
    )


@pytest.fixture(scope="module")
def price(frame):
    return (2 * frame["size"] + frame["colour"].map({"red": 3, "green": 0, "blue": -3})).rename("price")


def test_numbers_are_predicted_well(frame, price):
    model = train_default_model(frame, price)
    predicted = asker_for(model, from_array=False).answer(frame)
    assert np.corrcoef(predicted, price)[0, 1] > 0.98
    assert 0 < model.best_score["held_out"]["rmse"] < price.std()


@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (9, 10), (0.0, 1.0)])
def test_two_values_are_classes_and_the_second_counts(frame, price, labels):
    target = pd.Series(np.where(price > 0, labels[1], labels[0]), name="dear")
    assert read_target(target).classes == list(labels)
    model = train_default_model(frame, target)
    box, outputs = connect(model, frame, from_array=False, output="auto")
    assert (box.scale, box.reads) == ("logit", "margins")
    assert np.mean((outputs > 0) == (price > 0)) > 0.95


def test_missing_values_and_unseen_categories_are_answered(frame, price):
    model = train_default_model(frame.mask(frame == "green"), price)
    rows = pd.DataFrame(
        {"size": [np.nan, 0.0], "colour": ["violet", None], "flag": [True, False], "rooms": [1, 99]},
    )
    assert np.isfinite(asker_for(model, from_array=False).answer(rows)).all()


def test_it_survives_its_native_format_bit_for_bit(frame, price):
    model = train_default_model(frame, price)
    again = lightgbm.Booster(model_str=model.model_to_string())
    assert again.pandas_categorical == model.pandas_categorical == [["blue", "green", "red"]]
    few = frame.iloc[:3]  # fewer categories than in training: they keep their meaning
    expected = asker_for(model, from_array=False).answer(frame)[:3]
    np.testing.assert_array_equal(asker_for(again, from_array=False).answer(few), expected)


def test_one_seed_gives_one_model(frame, price):
    first, again, other = (train_default_model(frame, price, seed, 1).model_to_string() for seed in (3, 3, 4))
    assert first == again != other


def test_column_names_that_lightgbm_does_not_take(frame, price):
    odd = frame.set_axis(["a:b", "a,b", "a b", '{"a"}'], axis=1)
    predicted = asker_for(train_default_model(odd, price), from_array=False).answer(odd)
    np.testing.assert_array_equal(
        predicted, asker_for(train_default_model(frame, price), from_array=False).answer(frame)
    )


def test_a_small_table_still_gives_a_model_that_tells_rows_apart(frame, price):
    model = train_default_model(frame.iloc[:30], price.iloc[:30])
    assert "held_out" not in model.best_score
    assert np.ptp(asker_for(model, from_array=False).answer(frame)) > 1


def test_the_explainer_takes_it(frame, price):
    explainer = LimisExplainer(train_default_model(frame, price > 0)).fit(frame)
    assert explainer.nse_ > 0.5


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["yes"] * 400, "'dear' has one class only, 'yes'"),
        ([7] * 400, "one class only"),
        ([f"{place}" for place in range(400)], "'dear' has 400 classes; at most 100"),
        (["a", None] * 200, r"'dear' is missing in row 1 \(200 in all\)"),
        ([*range(399), np.nan], r"missing in row 399 \(1 in all\)"),
        ([*range(399), np.inf], "infinite in row 399"),
    ],
)
def test_targets_that_cannot_be_learned(frame, target, message):
    with pytest.raises(InputError, match=message):
        train_default_model(frame, pd.Series(target, name="dear"))


def test_dates_are_refused_by_name(frame, price):
    with pytest.raises(InputError, match="'sold' holds dates"):
        train_default_model(frame.assign(sold=pd.Timestamp("2024-01-01")), price)


def test_no_columns_at_all(frame, price):
    with pytest.raises(InputError, match="no column"):
        train_default_model(frame[[]], price)
