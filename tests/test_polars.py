"""Polars frames go in, and flat results come back as polars frames."""

import datetime as dt
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from limis import InputError, LimisExplainer
from limis.polars_frames import from_polars, is_polars
from limis.subgroups import subgroups

pl = pytest.importorskip("polars")


def make_rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 900, n)]
    return pl.DataFrame(
        {
            "size": rng.normal(size=n),
            "count": pl.Series([None, *rng.integers(0, 9, n - 1).tolist()], dtype=pl.Int32),
            "colour": pl.Series(rng.choice(["red", "green"], n).tolist(), dtype=pl.Categorical),
            "city": [None, *rng.choice(["Oslo", "Bergen"], n - 1).tolist()],
            "since": days,
            "ok": rng.random(n) > 0.5,
        }
    )


def price(rows):
    return (10 * rows["size"] + (rows["colour"] == "red")).to_numpy(dtype=float)


@pytest.fixture(scope="module")
def explainer():
    return LimisExplainer(price, random_state=0).fit(make_rows())


def test_a_polars_frame_is_explained_as_the_same_pandas_frame(explainer):
    rows = make_rows(20, seed=1)
    found, same = explainer.explain(rows), explainer.explain(rows.to_pandas())
    pd.testing.assert_frame_equal(found.contributions, same.contributions)
    assert found.training.table.names == rows.columns
    assert list(explainer.feature_names_in_) == rows.columns
    assert same.to_frame().equals(found.flat())


def test_flat_results_come_back_as_polars_frames_when_polars_came_in(explainer):
    rows = make_rows(20, seed=1)
    found = explainer.explain(rows)
    flat = found[5:].to_frame()
    assert isinstance(flat, pl.DataFrame)
    assert flat["row"].to_list() == list(range(5, 20))
    assert flat["local_prediction"].to_list() == pytest.approx(found.local_predictions[5:].tolist())
    assert flat["trusted"].dtype == pl.Boolean
    assert isinstance(explainer.explain(rows.to_pandas()).to_frame(), pd.DataFrame)


def test_suggestions_come_back_as_polars_frames_too(explainer):
    rows = make_rows(4, seed=2)
    found = explainer.suggest(rows, "up", n=1, max_queries=50)
    assert isinstance(found[:2].to_frame(), pl.DataFrame)
    assert found.to_frame()["row"].to_list() == [0, 1, 2, 3]
    assert isinstance(explainer.suggest(rows.to_pandas(), "up", n=1, max_queries=50).to_frame(), pd.DataFrame)


def test_several_classes_have_a_line_a_row_and_class():
    rows = make_rows().select("size", "ok").with_columns(pl.col("ok").cast(pl.Int8))
    labels = np.digitize(rows["size"].to_numpy(), [-0.5, 0.5])
    model = LogisticRegression().fit(rows.to_pandas(), labels)
    flat = LimisExplainer(model, random_state=0).fit(rows).explain(rows[:3]).to_frame()
    assert isinstance(flat, pl.DataFrame)
    assert flat["row"].to_list() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_model_fitted_on_a_polars_frame_is_asked_in_pandas():
    rows = make_rows().select("size", "ok").with_columns(pl.col("ok").cast(pl.Int8))
    model = LogisticRegression().fit(rows, rows["size"].to_numpy() > 0)
    found = LimisExplainer(model, random_state=0).fit(rows).explain(rows[:3])
    assert found.outputs == pytest.approx(model.decision_function(rows[:3]))


def test_labels_outputs_and_weights_may_be_polars_series():
    rows = make_rows()
    y = pl.Series(np.where(rows["size"].to_numpy() > 0, "yes", "no").tolist())
    labels = LimisExplainer(surrogate="ridge").fit(rows, y, sample_weight=pl.Series(np.arange(1, 201)))
    assert len(labels.explain(rows[:2])) == 2
    outputs = rows["size"] * 2
    given_outputs = LimisExplainer(random_state=0).fit(rows, outputs=outputs).explain(rows[:2], outputs=outputs[:2])
    assert given_outputs.outputs == pytest.approx(outputs[:2].to_numpy())


def test_groups_may_come_from_polars(explainer):
    rows = make_rows(30, seed=3)
    found = explainer.explain(rows)
    data = pl.DataFrame({"half": ["first"] * 15 + ["second"] * 15})
    assert subgroups(found, "half", data=data).sizes.tolist() == [15, 15]
    assert subgroups(found, data["half"]).sizes.tolist() == [15, 15]


def test_a_saved_explainer_takes_polars_frames(explainer, tmp_path):
    from limis import load

    explainer.save(tmp_path / "price.limis")
    rows = make_rows(3, seed=4)
    again = load(tmp_path / "price.limis", price).explain(rows)
    assert again.to_frame().equals(explainer.explain(rows).to_frame())


def test_a_lazy_frame_is_refused_with_a_cure(explainer):
    with pytest.raises(InputError, match=r"collect\(\)"):
        explainer.explain(make_rows(3).lazy())


@settings(max_examples=30)
@given(
    numbers=st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    word=st.none() | st.text(max_size=5),
)
def test_values_and_missing_ones_survive_the_way_in(numbers, word):
    frame = pl.DataFrame(
        {"number": pl.Series(numbers, dtype=pl.Float64), "word": pl.Series([word] * len(numbers), dtype=pl.String)}
    )
    back = from_polars(frame)
    assert back["number"].isna().tolist() == [number is None for number in numbers]
    assert back["number"].dropna().tolist() == [number for number in numbers if number is not None]
    assert [None if pd.isna(value) else value for value in back["word"]] == [word] * len(numbers)


def test_only_frames_of_polars_are_taken_for_such():
    assert is_polars(make_rows(3))
    assert not is_polars(make_rows(3).to_pandas())
    assert from_polars([[1, 2]]) == [[1, 2]]


def test_limis_never_imports_polars_by_itself():
    code = """
import sys
import pandas as pd
from limis import LimisExplainer
X = pd.DataFrame({"a": range(60), "b": [1.0, 2.0, 3.0] * 20})
LimisExplainer(lambda rows: rows["a"] * 1.0).fit(X).explain(X[:2]).to_frame()
assert "polars" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
