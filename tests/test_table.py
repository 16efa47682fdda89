"""Mixed tables become numbers and keep their meaning."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limis.errors import InputError
from limis.table import MISSING, OTHER, UNKNOWN, Table


def learn(frame, **options):
    table, frame = Table.learn(frame, **options)
    return table, table.values(frame)


@pytest.fixture
def mixed():
    return pd.DataFrame(
        {
            "age": [20, 30, 40, 50],
            "pay": [1.5, np.nan, 2.5, 3.5],
            "sex": ["f", "m", None, "f"],
            "grade": pd.Categorical(["b", "a", "a", "b"], categories=["a", "b", "c"], ordered=True),
            "member": [True, False, True, True],
            "since": pd.to_datetime(["2020-01-01", "2020-01-03", None, "2020-01-05"]),
            "wait": pd.to_timedelta([1, 2, 3, 4], unit="h"),
            "count": pd.array([1, None, 3, 4], dtype="Int64"),
        }
    )


def test_every_kind_of_column_is_recognised(mixed):
    table, values = learn(mixed)
    kinds = {column.name: column.kind for column in table.columns}
    assert kinds == {
        "age": "number", "pay": "number", "sex": "category", "grade": "category", "member": "category",
        "since": "date", "wait": "duration", "count": "number",
    }  # fmt: skip
    assert values[1, 5] - values[0, 5] == 2  # days
    assert values[:, 6].tolist() == pytest.approx([1 / 24, 2 / 24, 3 / 24, 4 / 24])
    assert np.isnan(values[1, 7])


def test_missing_is_information_a_level_or_an_indicator(mixed):
    table, values = learn(mixed)
    features = pd.DataFrame(table.features(values), columns=pd.MultiIndex.from_tuples(table.feature_names))
    assert features["pay", MISSING].tolist() == [0, 1, 0, 0]
    assert features["pay", ""][1] == 0  # the mean stands in, so that the indicator alone speaks
    assert features["sex", MISSING].tolist() == [0, 0, 1, 0]
    assert features["sex"].sum(axis=1).tolist() == [1, 1, 1, 1]


def test_levels_never_seen_are_unknown_and_have_no_feature(mixed):
    table, _ = learn(mixed)
    new = mixed.assign(sex="x", grade=pd.Categorical(["c"] * 4, categories=["a", "b", "c"]), member=None)
    values = table.values(table.read(new))
    named = dict(zip(table.names, values.T, strict=True))
    for name in ("sex", "grade", "member"):
        assert (named[name] == UNKNOWN).all()
    features = pd.DataFrame(table.features(values), columns=pd.MultiIndex.from_tuples(table.feature_names))
    assert (features["sex"] == 0).all(axis=None)


def test_thousands_of_categories_share_the_last_feature():
    frame = pd.DataFrame({"id": [f"c{i % 3000}" for i in range(6000)], "x": 1.0})
    frame.loc[:999, "id"] = "often"
    table, values = learn(frame)
    levels = [level for column, level in table.feature_names if column == "id"]
    assert len(levels) == 64
    assert levels[0] == "often"
    assert levels[-1] == OTHER
    assert (table.features(values)[:, :64].sum(axis=1) == 1).all()


def test_integer_codes_become_categories_when_named():
    frame = pd.DataFrame({"code": [3, 1, 3, 2], "x": [0.0, 1.0, 2.0, 3.0]})
    for wanted in (["code"], [0], [True, False]):
        table, values = learn(frame, categorical_features=wanted)
        assert table.feature_names == [("code", "1"), ("code", "2"), ("code", "3"), ("x", "")]
        assert values[:, 0].tolist() == [2, 0, 2, 1]


def test_dummies_that_belong_together_are_one_column():
    frame = pd.DataFrame({"colour_red": [1, 0, 0], "x": [1.0, 2.0, 3.0], "colour_rose": [0, 1, 0]})
    table, values = learn(frame, groups={"colour": ["colour_red", "colour_rose"]})
    assert table.names == ["colour", "x"]
    assert table.feature_names[:3] == [("colour", "red"), ("colour", "rose"), ("colour", "none of these")]
    assert values[:, 0].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"row 1 has more than one of the dummies of group 'colour'"):
        table.values(frame.assign(colour_red=[0, 1, 0]))


def test_constant_duplicate_and_all_missing_columns_are_harmless():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0], "c": 7, "d": np.nan, "e": [None, None, None]})
    table, values = learn(frame)
    assert np.isfinite(table.features(values)).all()
    assert np.isfinite(table.ranks(values)[:, :3]).all()


def test_object_columns_of_numbers_are_numbers():
    table, values = learn(pd.DataFrame({"a": np.array([1, 2.5, None], dtype=object)}))
    assert table.columns[0].kind == "number"
    assert values[1, 0] == 2.5


def test_arrays_keep_their_numbers_and_object_arrays_their_kinds():
    table, values = learn(np.array([[1, "x"], [2, "y"]], dtype=object))
    assert [column.kind for column in table.columns] == ["number", "category"]
    assert values.tolist() == [[1, 0], [2, 1]]


def test_reordered_columns_are_accepted_and_extra_ones_ignored_with_a_warning(mixed):
    table, values = learn(mixed)
    shuffled = mixed[mixed.columns[::-1]]
    np.testing.assert_array_equal(table.values(table.read(shuffled)), values)
    with pytest.warns(UserWarning, match="'extra'"):
        table.read(mixed.assign(extra=1))


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=60))
def test_ranks_keep_the_order_and_lie_between_0_and_1(numbers):
    table, values = learn(pd.DataFrame({"x": numbers}))
    ranks = table.ranks(values)[:, 0]
    assert ((ranks >= 0) & (ranks <= 1)).all()
    order = np.argsort(numbers)
    assert (np.diff(ranks[order]) >= -1e-12).all()


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
def test_features_go_back_to_original_units(mixed, scaling):
    table, values = learn(mixed, scaling=scaling)
    features = table.features(values)
    back = features * table.feature_scale + table.feature_offset
    at = table.feature_names.index(("age", ""))
    assert back[:, at].tolist() == pytest.approx([20, 30, 40, 50])
    if scaling == "minmax":
        assert features[:, at].min() == 0
        assert features[:, at].max() == 1


def test_the_table_survives_as_plain_data(mixed):
    table, values = learn(mixed)
    again = Table.from_dict(table.to_dict(), table.quantiles)
    np.testing.assert_array_equal(again.features(again.values(mixed)), table.features(values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(age=[1, 2, np.inf, 4]), r"column 'age' has an infinite value in row 2"),
        (lambda f: f.assign(age=["1", "x", "3", "4"]), r"column 'age' holds numbers at fit, but row 0 has '1'"),
        (lambda f: f.drop(columns=["age", "sex"]), r"missing from the table: 'age', 'sex'"),
        (lambda f: f.rename(columns=lambda name: name + "!"), r"none of the columns seen at fit: expected 'age'"),
        (lambda f: f.iloc[:0], r"no rows to explain"),
        (lambda f: pd.concat([f, f], axis=1), r"more than once: 'age'"),
        (lambda f: f.assign(since="2020-01-01"), r"column 'since' held dates at fit"),
        (lambda f: f.to_numpy()[:, :3], r"X has 3 features, but LimisExplainer is expecting 8 features"),
        (lambda _: np.arange(3), r"Expected 2D array"),
    ],
)
def test_bad_tables_are_refused_by_name(mixed, change, message):
    table, _ = learn(mixed)
    with pytest.raises(InputError, match=message):
        table.values(table.read(change(mixed)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categorical_features": ["nope"]}, "'nope', which is not a column"),
        ({"categorical_features": "all"}, '"auto" or a list'),
        ({"groups": {"g": ["age"]}}, "at least two"),
        ({"groups": {"g": ["age", "nope"]}}, "'nope', which is not a column"),
        ({"groups": {"g": ["age", "pay"], "h": ["pay", "member"]}}, "'pay' is in two groups"),
        ({"groups": {"sex": ["age", "pay"]}}, "the name of another column"),
    ],
)
def test_bad_options_are_refused_by_name(mixed, options, message):
    with pytest.raises(InputError, match=message):
        Table.learn(mixed, **options)


def test_columns_that_cannot_be_read_are_refused_by_name():
    with pytest.raises(InputError, match="column 'z' holds complex"):
        Table.learn(pd.DataFrame({"z": [1j, 2j]}))
    with pytest.raises(InputError, match="'z' holds values that cannot be categories"):
        Table.learn(pd.DataFrame({"z": [[1], [2]]}))
