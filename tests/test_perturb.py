"""Moves go to values that exist nearby, in the user's own columns and types."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from limis import perturb
from limis.perturb import (
    MAX_SINGLE,
    NEAR_ROWS,
    Moves,
    draw_moves,
    gower_distance,
    moved_frame,
    moved_values,
    near_rows,
)
from limis.table import Table


@pytest.fixture
def mixed():
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10, 1, n),
            "city": pd.Categorical(rng.choice(["Rome", "Oslo", "Bern"], n)),
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "red": 0,
            "blue": 0,
        }
    )
    frame.loc[::3, "red"] = 1
    frame.loc[1::3, "blue"] = 1
    frame.loc[::7, "income"] = np.nan
    table, frame = Table.learn(frame, groups={"colour": ["red", "blue"]})
    return table, frame, table.values(frame)


def test_gower_distance_by_hand():
    is_category = np.array([False, True])
    rows = np.array([[0.0, 1.0], [0.5, 1.0], [0.5, 2.0], [np.nan, 1.0]])
    expected = [0, 0.25, 0.75, 0.5]
    np.testing.assert_allclose(gower_distance(rows[:1], rows, is_category)[0], expected, atol=1e-6)


def test_near_rows_are_the_nearest_and_ties_go_to_the_lower_row():
    pool = np.array([[0.9], [0.1], [0.2], [0.1]])
    assert near_rows(np.array([[0.1]]), pool, np.array([False]), k=3).tolist() == [[1, 3, 2]]


def test_ties_at_the_cut_go_to_the_lower_row_too():
    pool = np.random.default_rng(0).integers(0, 3, (400, 2)).astype(float)
    queries = pool[:50]
    distance = gower_distance(queries, pool, np.array([True, True]))
    for k in (1, 10, 100):
        expected = np.argsort(distance, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(near_rows(queries, pool, np.array([True, True]), k=k), expected)


def test_every_move_changes_what_it_says_and_nothing_else(mixed):
    table, _, values = mixed
    moves = draw_moves(table, values[:20], values, np.random.default_rng(1))
    after = moved_values(values[:20], values, moves)
    before = values[:20][moves.rows]
    same = (after == before) | (np.isnan(after) & np.isnan(before))
    np.testing.assert_array_equal(~same, moves.changed)
    assert set(moves.changed.sum(axis=1)) == {1, 2}


def test_the_frame_that_the_black_box_sees_says_the_same_in_the_same_types(mixed):
    table, frame, values = mixed
    moves = draw_moves(table, values[:20], values, np.random.default_rng(1))
    asked = moved_frame(table, frame.iloc[:20], frame, moves)
    assert asked.dtypes.equals(frame.dtypes)
    np.testing.assert_array_equal(table.values(asked), moved_values(values[:20], values, moves))
    assert (asked["red"] + asked["blue"] <= 1).all()  # dummies of a group move together


def test_donors_are_the_nearest_of_the_different_rows(mixed):
    table, _, values = mixed
    values = np.concatenate([values, values[:40], values[:40]])  # with twins, that would fill the places
    moves = draw_moves(table, values[:20], values, np.random.default_rng(1))
    distance = gower_distance(table.ranks(values[:20]), table.ranks(values[:120]), table.is_category)
    np.fill_diagonal(distance, np.inf)
    cut = np.sort(distance, axis=1)[:, NEAR_ROWS - 1]
    assert (distance[moves.rows, moves.donors] <= cut[moves.rows]).all()
    used = {(row, donor) for row, donor in zip(moves.rows.tolist(), moves.donors.tolist(), strict=True)}
    assert len(used) > 40  # and not always the same one


def test_tables_of_few_binary_columns_have_moves():
    rows = np.random.default_rng(0).integers(0, 2, (2000, 3)).astype(bool)
    table, frame = Table.learn(pd.DataFrame(rows, columns=["a", "b", "c"]))
    values = table.values(frame)
    moves = draw_moves(table, values[:50], values, np.random.default_rng(0))
    one = moves.changed.sum(axis=1) == 1
    np.testing.assert_array_equal(np.bincount(moves.rows[one], minlength=50), 3)  # every column of every row
    np.testing.assert_array_equal(np.bincount(moves.rows[~one], minlength=50), 1)


def test_wide_tables_have_a_bounded_number_of_moves_over_all_their_columns():
    values = np.random.default_rng(0).normal(size=(200, 100))
    table, _ = Table.learn(values)
    moves = draw_moves(table, values[:30], values, np.random.default_rng(0))
    one = moves.changed.sum(axis=1) == 1
    np.testing.assert_array_equal(np.bincount(moves.rows[one]), MAX_SINGLE)
    np.testing.assert_array_equal(np.bincount(moves.rows[~one]), MAX_SINGLE // 2)
    for row in range(30):  # none twice
        assert moves.changed[one & (moves.rows == row)].sum(axis=0).max() == 1
    assert moves.changed[one].any(axis=0).all()
    assert moves.changed[~one].sum(axis=1).tolist() == [2] * (30 * MAX_SINGLE // 2)


def test_moves_do_not_depend_on_the_blocks_they_are_drawn_in(mixed, monkeypatch):
    table, _, values = mixed
    whole = draw_moves(table, values[:25], values, np.random.default_rng(2))
    monkeypatch.setattr(perturb, "_BLOCK_CELLS", 1000)
    parts = draw_moves(table, values[:25], values, np.random.default_rng(2))
    assert (np.diff(whole.rows) >= 0).all()
    for name in ("rows", "donors", "changed"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_no_array_of_all_rows_near_rows_and_columns_exists_at_once():
    values = np.random.default_rng(0).normal(size=(1500, 300))
    table, _ = Table.learn(values)
    tracemalloc.start()
    moves = draw_moves(table, values, values, np.random.default_rng(0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    all_at_once = 1500 * NEAR_ROWS * 300 * 8
    # What is kept, the ranks and some blocks; a single float a row, near row and column would be 108 MB.
    assert peak - 2 * moves.changed.nbytes < all_at_once


def test_moved_rows_have_the_labels_of_the_rows_they_come_from(mixed):
    table, frame, values = mixed
    explained = frame.iloc[:20].set_axis([f"p{i}" for i in range(20)])
    moves = draw_moves(table, values[:20], values, np.random.default_rng(1))
    asked = moved_frame(table, explained, frame, moves)
    assert asked.index.tolist() == [f"p{row}" for row in moves.rows]
    np.testing.assert_array_equal(table.values(asked), moved_values(values[:20], values, moves))


def test_types_that_differ_between_tables_are_brought_to_those_of_training(mixed):
    table, frame, values = mixed
    as_text = frame.iloc[:5].assign(city=frame["city"].iloc[:5].astype(str), age=frame["age"].iloc[:5] * 1.0)
    moves = draw_moves(table, values[:5], values, np.random.default_rng(1))
    asked = moved_frame(table, as_text, frame, moves)
    assert asked.dtypes.equals(frame.dtypes)
    np.testing.assert_array_equal(table.values(asked), moved_values(values[:5], values, moves))


MIXES = {
    "fractions where training had integers": (pd.Series([1, 2, 3]), pd.Series([1.7, 2.0]), "float64"),
    "missing where training had integers": (pd.Series([1, 2, 3]), pd.Series([np.nan, 2.0]), "float64"),
    "missing in a nullable type": (pd.Series([1, 2, 3]), pd.Series([None, 2], dtype="Int64"), "Int64"),
    "past the type's end": (pd.Series([1, 2, 3], dtype="int8"), pd.Series([300, 2]), "int64"),
    "past a float's digits": (pd.Series([1.5, 2, 3.5]), pd.Series([2**60 + 1, 2]), "object"),
    "a level never seen": (pd.Series(["a", "b", "c"], dtype="category"), pd.Series(["z", "b"]), "category"),
    "a level never seen, as a category": (
        pd.Series(["a", "b", "c"], dtype="category"),
        pd.Series(["z", "b"], dtype="category"),
        "category",
    ),
    "a category where training had text": (
        pd.Series(["a", "b", "c"], dtype="str"),
        pd.Series(["z", None], dtype="category"),
        "str",
    ),
    "numbers where training had text": (pd.Series(["a", "b", "c"]), pd.Series([5, 6]), "object"),
    "seconds where training had days": (
        pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"])).astype("datetime64[s]"),
        pd.Series(pd.to_datetime(["2020-01-01 10:00:00.25", None])).astype("datetime64[ms]"),
        "datetime64[ms]",
    ),
}


@pytest.mark.parametrize("name", MIXES)
def test_the_users_own_values_are_never_changed_by_another_type(name):
    training, explained, dtype = MIXES[name]
    table, frame = Table.learn(pd.DataFrame({"x": training, "y": [0.0, 1.0, 2.0]}))
    rows = pd.DataFrame({"x": explained, "y": [0.0, 1.0]})
    moves = Moves(np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([[False, True], [False, True], [True, False]]))
    moved = moved_frame(table, rows, frame, moves)["x"]
    expected = [explained[0], explained[1], training[2]]
    assert moved.isna().tolist() == [pd.isna(value) for value in expected]
    assert [a for a in moved.astype(object) if not pd.isna(a)] == [b for b in expected if not pd.isna(b)]
    assert str(moved.dtype) == dtype
    if dtype == "category":
        assert moved.cat.categories.tolist() == ["a", "b", "c", "z"]


def test_a_table_of_equal_rows_has_no_moves():
    table, frame = Table.learn(pd.DataFrame({"a": [1.0] * 30, "b": ["x"] * 30}))
    values = table.values(frame)
    assert len(draw_moves(table, values[:3], values, np.random.default_rng(0))) == 0


def test_the_same_seed_draws_the_same_moves_and_another_seed_others(mixed):
    table, _, values = mixed
    first, second, third = (draw_moves(table, values[:9], values, np.random.default_rng(seed)) for seed in (5, 5, 6))
    for name in ("rows", "donors", "changed"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert not np.array_equal(first.donors, third.donors)


def test_numbers_move_to_the_nearest_of_the_values_held_nearby():
    rng = np.random.default_rng(0)
    table, frame = Table.learn(pd.DataFrame(rng.normal(size=(400, 6)), columns=list("abcdef")))
    values = table.values(frame)
    moves = draw_moves(table, values[:50], values, np.random.default_rng(1))
    ranks = table.ranks(values)
    apart = np.abs(ranks[moves.donors] - ranks[:50][moves.rows])[moves.changed]
    # Any of 30 near rows would lie about .3 away on average, the nearest five of them a fifth of that.
    assert apart.mean() < 0.12
