"""DiCE beside suggestions: its changed rows under the same constraints, the same every time."""

import random
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from limis import InputError
from limis.errors import MissingExtraError
from limis.peers import Dice

METHODS = ["random", "genetic"]


@pytest.fixture(scope="module")
def loans():
    """Training rows and a model that grants loans by income, hours and kind of job."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.integers(10, 100, 300),
            "hours": rng.normal(40, 8, 300).round(1),
            "job": rng.choice(["clerk", "sales", "none"], 300),
            "age": rng.integers(18, 70, 300),
        }
    )
    granted = np.where(frame["income"] + frame["hours"] + 20 * (frame["job"] == "sales") > 110, "yes", "no")
    encoding = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    model = make_pipeline(encoding, LogisticRegression()).fit(frame, granted)
    return frame, model


@pytest.fixture
def refused(loans):
    frame, model = loans
    return frame[model.predict(frame) == "no"][:4]


def dice(loans, method="random", **options):
    pytest.importorskip("dice_ml")
    frame, model = loans
    return Dice(model, frame, method, **{"target": "yes", "immutable": ["age"], **options})


@pytest.mark.parametrize("method", METHODS)
def test_changed_rows_have_the_wished_class_and_keep_what_may_not_change(loans, refused, method):
    found = dice(loans, method).find(refused)
    assert found.found.all()
    assert found.confirmed.tolist() == (loans[1].predict(found.changed) == "yes").tolist()
    assert found.changed.index.equals(refused.index)
    assert found.changed.dtypes.equals(refused.dtypes)
    assert (found.changed["age"] == refused["age"]).all()
    assert set(found.changed["job"]) <= {"clerk", "sales", "none"}
    assert found.n_changes.tolist() == [
        sum(a != b for a, b in zip(one, other, strict=True))
        for one, other in zip(refused.to_numpy(), found.changed.to_numpy(), strict=True)
    ]
    assert (found.n_changes > 0).all()
    assert (found.seconds > 0).all()
    assert (found.questions > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_row_gets_the_same_answer_whatever_was_drawn_before_and_is_beside_it(loans, refused, method):
    search = dice(loans, method)
    all_rows = search.find(refused).changed
    random.seed(99)
    before = random.getstate()
    alone = search.find(refused[2:3]).changed
    assert random.getstate() == before
    pd.testing.assert_frame_equal(alone, all_rows[2:3])


def test_ranges_hold(loans, refused):
    found = dice(loans, ranges={"income": [80, 90], "job": ["clerk", "none"]}).find(refused)
    moved = found.changed["income"] != refused["income"]
    assert found.changed["income"][moved].between(80, 90).all()
    assert not ((found.changed["job"] == "sales") & (refused["job"] != "sales")).any()


def test_where_nothing_is_found_the_row_stays_as_it_is(loans, refused):
    found = dice(loans, immutable=["income", "hours", "job"]).find(refused)
    assert not found.found.any()
    assert not found.confirmed.any()
    pd.testing.assert_frame_equal(found.changed, refused)
    assert (found.n_changes == 0).all()


def test_a_search_ends_when_it_has_asked_too_often(loans, refused):
    found = dice(loans, "genetic", max_calls=3).find(refused[:1])
    assert not found.found.any()


def test_a_level_that_dice_does_not_know_is_not_found(loans, refused):
    rows = refused.assign(job=["pilot", *refused["job"][1:]])
    frame, model = loans
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder=StandardScaler()),
        LogisticRegression(),
    ).fit(frame, model.predict(frame))
    found = dice((frame, model)).find(rows)
    assert found.found.tolist() == [False, True, True, True]
    assert found.questions[0] == 0


def test_rows_of_numbers_alone(loans):
    numbers = loans[0][["income", "hours"]]
    model = LogisticRegression().fit(numbers, numbers["income"] > 60)
    found = dice((numbers, model), target=True, immutable=[]).find(numbers[numbers["income"] < 40][:2])
    assert found.confirmed.all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "kdtree"}, 'method is "random" or "genetic", not \'kdtree\''),
        ({"immutable": ["height"]}, "immutable has 'height'"),
        ({"target": "perhaps"}, "target is 'perhaps', but the classes are"),
    ],
)
def test_what_cannot_be_done_is_refused(loans, options, message):
    with pytest.raises(InputError, match=message):
        dice(loans, **options)


def test_without_the_package_the_extra_is_named(loans, monkeypatch):
    monkeypatch.setitem(sys.modules, "dice_ml", None)
    frame, model = loans
    with pytest.raises(MissingExtraError, match=r"limis-xai\[peers\]"):
        Dice(model, frame, target="yes")
