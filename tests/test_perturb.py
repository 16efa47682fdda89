"""Moves go to values that exist nearby, in the user's own columns and types."""

import numpy as np
import pandas as pd
import pytest

from limis.perturb import draw_moves, gower_distance, moved_frame, moved_values, near_rows
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


def test_types_that_differ_between_tables_are_brought_to_those_of_training(mixed):
    table, frame, values = mixed
    as_text = frame.iloc[:5].assign(city=frame["city"].iloc[:5].astype(str))
    moves = draw_moves(table, values[:5], values, np.random.default_rng(1))
    assert moved_frame(table, as_text, frame, moves)["city"].dtype == frame["city"].dtype


def test_a_table_of_equal_rows_has_no_moves():
    table, frame = Table.learn(pd.DataFrame({"a": [1.0] * 30, "b": ["x"] * 30}))
    values = table.values(frame)
    assert len(draw_moves(table, values[:3], values, np.random.default_rng(0))) == 0


def test_the_same_seed_draws_the_same_moves(mixed):
    table, _, values = mixed
    first, second = (draw_moves(table, values[:9], values, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.donors, second.donors)
    np.testing.assert_array_equal(first.changed, second.changed)
