"""Rows in other types than training had: the model is asked about what the user gave, alone as in a batch."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limis import LimisExplainer
from limis.cell_types import in_type_of

N = 120


def alone_as_in_a_batch(explainer, rows):
    together = explainer.explain(rows).model_outputs.tolist()
    assert [explainer.explain(rows.iloc[[row]]).model_outputs.iloc[0] for row in range(len(rows))] == together
    return together


def test_a_missing_boolean_stays_missing():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"b": rng.random(N) < 0.5, "x": rng.normal(size=N)})

    def model(rows):
        return np.array([9.0 if pd.isna(b) else 3.0 if b else 0.0 for b in rows["b"]]) + rows["x"].to_numpy()

    explainer = LimisExplainer(model, weighting="forest").fit(rows)
    asked = pd.DataFrame({"b": [np.nan, 1.0], "x": [0.0, 0.0]})
    assert alone_as_in_a_batch(explainer, asked) == [9, 3]


def test_a_level_not_seen_in_training_is_asked_about():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"c": pd.Categorical(rng.choice(["a", "b"], N)), "x": rng.normal(size=N)})

    def model(rows):
        return rows["c"].astype(object).map({"a": 0.0, "b": 3.0, "new": 9.0}).fillna(-50).to_numpy(float)

    explainer = LimisExplainer(model, weighting="forest").fit(rows)
    asked = pd.DataFrame({"c": ["new", "b", None], "x": 0.0})
    assert alone_as_in_a_batch(explainer, asked) == [9, 3, -50]


def test_a_column_that_cannot_have_its_type_leaves_the_others_theirs():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"n": rng.integers(0, 20, N), "c": pd.Categorical(rng.choice(list("abc"), N))})

    def model(rows):
        return rows["n"].fillna(7).to_numpy(float) + 5 * (rows["c"].cat.codes == 1).to_numpy(float)

    explainer = LimisExplainer(model, weighting="forest").fit(rows)
    assert alone_as_in_a_batch(explainer, pd.DataFrame({"n": [3, np.nan], "c": ["a", "b"]})) == [3, 12]


def test_text_stands_for_the_category_that_reads_so():
    seen = pd.Series(pd.cut([0.5, 1.5, 2.5], [0, 1, 2, 3]))
    read = in_type_of(seen.astype(str), seen)
    assert read.dtype == seen.dtype
    assert read.tolist() == seen.tolist()


CELLS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-2, 2), st.sampled_from(["a", "b", "True"]))


@given(
    st.lists(CELLS, min_size=1, max_size=5),
    st.sampled_from(["int64", "float64", "bool", "boolean", "Int64", "object", "category", "string"]),
)
def test_no_cell_ever_says_something_else(cells, dtype):
    seen = pd.Series([1, 0, 1], dtype="int64").astype(dtype)
    given_cells = pd.Series(cells, dtype=object)
    read = in_type_of(given_cells, seen)
    assert read.isna().tolist() == given_cells.isna().tolist()
    known = ~given_cells.isna()
    for before, after in zip(given_cells[known], read[known].astype(object), strict=True):
        assert after == before or str(after) == str(before)


@pytest.mark.parametrize("scale", ["auto", "probability"])
def test_a_tie_of_classes_goes_to_the_first(scale):
    class Tied:
        classes_ = np.array(["a", "b", "c"])

        def predict_proba(self, rows):
            chances = np.exp(np.column_stack([rows["x"] * 1.0, 2.0 * rows["y"], np.full(len(rows), 2.0)]))
            return chances / chances.sum(axis=1, keepdims=True)

    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.integers(-3, 2, N), "y": rng.integers(0, 2, N)})
    explainer = LimisExplainer(Tied(), output=scale).fit(rows)
    tied = rows[rows["y"] == 1].iloc[:1]
    assert explainer.explain(tied).predicted.tolist() == ["b"]
    other = rows[rows["y"] == 0].iloc[:1]
    told = explainer.suggest(pd.concat([tied, other]), "b")
    assert "it has class b as it is" in repr(told[0])
    assert told[1].confirmed
    if scale == "probability":
        assert "points less than the likeliest other class" in repr(told[1])


def test_dummies_of_a_suggestion_are_never_missing():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, N)
    dummies = {f"c_{level}": (kind == place).astype(float) for place, level in enumerate("abc")}
    rows = pd.DataFrame({"x": rng.normal(size=N), **dummies})
    rows.loc[np.flatnonzero(kind == 1)[:-20], "c_a"] = np.nan  # not recorded where another one is set
    explainer = LimisExplainer(lambda rows: 3 * (rows["c_b"] == 1), groups={"c": list(dummies)}).fit(rows)
    told = explainer.suggest(rows[kind == 0].iloc[:2], "> 2.5")
    assert told[0].confirmed
    assert told.changed_rows().notna().all(axis=None)


def test_columns_without_any_value_are_drawn():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"z": rng.normal(size=N), "t": pd.Series([pd.NaT] * N), "n": np.nan})
    found = LimisExplainer(lambda rows: rows["z"].to_numpy(), weighting="forest").fit(rows).explain(rows[:2])
    assert found.to_html()
    lines = found[0].neighbourhood().set_index("column")
    assert lines.loc["t", "apart"] == lines.loc["n", "apart"] == 0
