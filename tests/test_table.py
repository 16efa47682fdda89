"""Mixed tables become numbers and keep their meaning."""

import json
from decimal import Decimal

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
    assert (features[["sex", "grade", "member"]] == 0).all(axis=None)


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


def test_level_words_of_a_column_are_unique():
    texts = ["missing", "1", "", "other levels", '"1"']
    frame = pd.DataFrame({"c": pd.Series([*texts, 1, None], dtype=object), "x": 1.0})
    table, values = learn(frame)
    named = dict(zip(frame["c"], np.array(table.columns[0].words)[values[:, 0].astype(int)], strict=True))
    assert named == {
        None: "missing", "missing": '"missing"', 1: "1", "1": '""1""', '"1"': '"1"', "": '""',
        "other levels": "other levels",
    }  # fmt: skip
    assert [table.columns[0].show(frame, row) for row in range(7)] == list(named.values())
    many = pd.DataFrame({"c": [f"c{i}" for i in range(80)] + ["other levels"] * 5})
    levels = [level for _, level in learn(many)[0].feature_names]
    assert (levels[0], levels[-1], len(set(levels))) == ('"other levels"', OTHER, 64)


def test_a_feature_is_a_number_by_its_place_and_not_by_an_empty_word():
    frame = pd.DataFrame({"c": ["", "a", "", "b"], "x": [5.0, np.nan, 7.0, 9.0]})
    table, values = learn(frame)
    assert table.feature_names == [("c", '""'), ("c", "a"), ("c", "b"), ("x", ""), ("x", MISSING)]
    assert table.is_level.tolist() == [True, True, True, False, True]
    assert table.feature_offset.tolist() == [0, 0, 0, 7, 0]
    assert table.feature_scale.tolist() == pytest.approx([1, 1, 1, np.std([5, 7, 9]), 1])
    assert table.features(values)[:, 0].tolist() == [1, 0, 1, 0]


def test_more_levels_than_features_leave_out_the_rarest_also_beside_missing():
    names = [f"c{i:02}" for i in range(64)]
    frame = pd.DataFrame({"c": pd.Series([*names, "c63", "c63", None])})
    table, _ = learn(frame)
    levels = table.columns[0].feature_levels
    assert len(levels) == 64
    assert levels[:2] == [MISSING, "c63"]
    assert levels[-1] == OTHER


def test_groups_keep_their_most_frequent_dummies():
    codes = np.concatenate([np.arange(80), np.repeat(np.arange(70, 80), 3)])
    dummies = pd.DataFrame(np.eye(80)[codes], columns=[f"c_{i}" for i in range(80)])
    table, values = learn(dummies, groups={"c": list(dummies.columns)})
    levels = table.columns[0].feature_levels
    assert len(levels) == 64
    assert levels[:10] == [str(i) for i in range(70, 80)]
    features = table.features(values)
    assert (features[codes == 75].argmax(axis=1) == levels.index("75")).all()
    assert (features[codes == 69].argmax(axis=1) == levels.index(OTHER)).all()


def test_missing_dummies_are_a_missing_level():
    frame = pd.DataFrame({"c_red": [1, 0, np.nan, 1, 0], "c_blue": [0, 1, np.nan, np.nan, 0]})
    table, values = learn(frame, groups={"c": ["c_red", "c_blue"]})
    column = table.columns[0]
    assert [column.words[int(code)] for code in values[:, 0]] == ["red", "blue", MISSING, "red", "none of these"]
    assert column.show(frame, 2) == MISSING
    whole, _ = learn(frame.iloc[:2], groups={"c": ["c_red", "c_blue"]})
    assert whole.values(frame.iloc[[2]])[0, 0] == UNKNOWN


@pytest.mark.parametrize("value", [0.5, 2, -1])
def test_dummies_that_are_no_dummies_are_refused_by_name(value):
    frame = pd.DataFrame({"c_red": [True, False], "c_blue": [0.0, value]})
    with pytest.raises(InputError, match=rf"column 'c_blue' is a dummy of group 'c', but row 1 has {value}"):
        Table.learn(frame, groups={"c": ["c_red", "c_blue"]})


def test_constant_duplicate_and_all_missing_columns_are_harmless():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0], "c": 7, "d": np.nan, "e": [None, None, None]})
    table, values = learn(frame)
    features = pd.DataFrame(table.features(values), columns=pd.MultiIndex.from_tuples(table.feature_names))
    assert features["a", ""].tolist() == features["b", ""].tolist() == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])
    assert (features["c", ""] == 0).all()
    assert (features["d", ""] == 0).all()
    assert (features[[("d", MISSING), ("e", MISSING)]] == 1).all(axis=None)
    ranks = table.ranks(values)
    assert (ranks[:, 2] == 0.5).all()
    assert np.isnan(ranks[:, 3]).all()


@pytest.mark.parametrize(("factor", "shift"), [(1e-13, 0), (1e200, 0), (-1e-300, 0), (1e-3, 1.7e9), (1.7e307, 0)])
def test_a_column_is_scaled_by_its_spread_whatever_its_magnitude(factor, shift):
    numbers = np.random.default_rng(0).normal(size=200)
    features, moved = standardised(numbers), standardised(numbers * factor + shift)
    # 1.7e9 leaves seconds a grid of 2.4e-7, a few ten-thousandths of this spread.
    np.testing.assert_allclose(moved * np.sign(factor), features, atol=1e-3 if shift else 1e-9)


def standardised(numbers):
    table, values = learn(pd.DataFrame({"x": numbers}))
    return table.features(values)[:, 0]


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3, 1e-200, 1e200])
def test_a_constant_column_has_no_spread_whatever_its_magnitude(value):
    assert np.abs(standardised(np.full(1001, value))).max() <= 1e-15 * max(1.0, abs(value))


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


def test_labels_that_are_no_text_are_kept_for_the_model():
    frame = pd.DataFrame([[1.0, "a"], [2.0, "b"]], columns=[7, "c"])
    table, read = Table.learn(frame)
    assert table.names == list(read.columns) == ["7", "c"]
    again = Table.from_dict(json.loads(json.dumps(table.to_dict())), table.quantiles)
    assert table.source_labels == again.source_labels == [7, "c"]
    odd = Table.learn(frame.set_axis([1.5, 2.5], axis=1))[0]
    assert odd.source_labels == [1.5, 2.5]
    assert odd.to_dict()["source_labels"] == ["1.5", "2.5"]
    assert Table.learn(frame.to_numpy())[0].source_labels == ["x0", "x1"]


def test_names_that_read_the_same_are_refused():
    with pytest.raises(InputError, match="more than once: '1'"):
        Table.learn(pd.DataFrame([[1, 2]], columns=[1, "1"]))


def test_columns_of_several_levels_are_refused_with_the_cure():
    frame = pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))
    with pytest.raises(InputError, match=r"names have 2 levels.*join them") as error:
        Table.learn(frame)
    names = {"X": frame}
    exec(str(error.value).partition("first: ")[2], names)  # noqa: S102 - the cure works as it stands
    assert Table.learn(names["X"])[0].names == ["a_1", "a_2"]


@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=60))
def test_ranks_keep_the_order_and_lie_between_0_and_1(numbers):
    table, values = learn(pd.DataFrame({"x": numbers}))
    ranks = table.ranks(values)[:, 0]
    assert ((ranks >= 0) & (ranks <= 1)).all()
    order = np.argsort(numbers)
    assert (np.diff(ranks[order]) >= -1e-12).all()
    if max(numbers) > min(numbers):
        assert ranks[order[-1]] > ranks[order[0]]


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
def test_features_go_back_to_original_units(mixed, scaling):
    table, values = learn(mixed, scaling=scaling)
    features = table.features(values)
    back = features * table.feature_scale + table.feature_offset
    for name in ("age", "since", "wait"):
        at, column = table.feature_names.index((name, "")), table.names.index(name)
        known = ~np.isnan(values[:, column])
        assert back[known, at].tolist() == pytest.approx(values[known, column])
    one_hot = table.is_level
    np.testing.assert_array_equal(back[:, one_hot], features[:, one_hot])
    at = table.feature_names.index(("age", ""))
    if scaling == "standard":
        assert features[:, at].mean() == pytest.approx(0)
        assert features[:, at].std() == pytest.approx(1)
    if scaling == "minmax":
        assert features[:, at].min() == 0
        assert features[:, at].max() == 1


def test_the_table_survives_as_plain_data(mixed):
    table, values = learn(mixed)
    again = Table.from_dict(json.loads(json.dumps(table.to_dict())), table.quantiles.copy())
    assert again.feature_names == table.feature_names
    np.testing.assert_array_equal(again.ranks(values), table.ranks(values))
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


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(),
    st.sampled_from(["f", "m", "", "1", np.float32(0.5), np.int8(1), np.bool_(True), np.str_("f"), Decimal("1.5")]),
    st.sampled_from([pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), 1, 0, 1.0, 2**53 + 1]),
)


@given(cells=st.lists(CELLS, min_size=6, max_size=6), numbers=st.lists(st.floats(), min_size=6, max_size=6))
def test_few_rows_are_read_as_many_are(cells, numbers):
    levels = pd.Series([None, True, 0, 1, "f", 2**53, 0.5, "2020-01-01 00:00:00"], dtype=object)
    table, _ = Table.learn(pd.DataFrame({"level": levels, "number": np.arange(8.0)}), categorical_features=["level"])
    for frame in (
        pd.DataFrame({"level": pd.Series(cells, dtype=object), "number": numbers}),
        pd.DataFrame({"level": pd.Series(["f"] * 6, dtype=object), "number": pd.Series(cells, dtype=object)}),
    ):
        together = read_or_refused(table, frame)
        alone = [read_or_refused(table, frame.iloc[[row]]) for row in range(6)]
        refused = [one for one in alone if isinstance(one, str)]
        assert bool(refused) == isinstance(together, str)
        if not refused:
            np.testing.assert_array_equal(np.concatenate(alone), together)


def read_or_refused(table, frame):
    try:
        return table.values(frame)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("dtype", ["category", "str", object, "string[pyarrow]"])
def test_few_rows_of_every_type_are_read_as_many_are(dtype):
    text = pd.Series(["a", "b", None, "a", "c", "b"], dtype=object)
    frame = pd.DataFrame({"text": text.astype(dtype), "count": [1, 2, 3, 4, 5, 6], "flag": [True, False] * 3})
    frame["whole"] = pd.array([1, None, 3, 4, 5, 6], dtype="Int64")
    table, values = learn(frame)
    for row in range(6):
        np.testing.assert_array_equal(table.values(frame.iloc[[row]]), values[[row]])
    table, _ = learn(pd.DataFrame({"count": [1, 2, 3]}))
    for cells in (pd.to_datetime(["2020-01-01"]), pd.to_timedelta([1], unit="h"), pd.Series([10**400], dtype=object)):
        with pytest.raises(InputError, match="count"):
            table.values(pd.DataFrame({"count": cells}))
    wide = pd.DataFrame({"code": [2**53 + 1, 2**53 + 3] * 3, "size": np.arange(6.0)})
    table, values = learn(wide, categorical_features=["code"])
    np.testing.assert_array_equal(table.values(wide.iloc[[0]]), values[[0]])
