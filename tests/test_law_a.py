"""Questions of law A: where their values come from."""

import numpy as np
import pandas as pd
import pytest

from limis.fidelity.ground import Ground, same
from limis.fidelity.law_a import joint_changes, single_changes
from limis.fidelity.units import find_units
from limis.perturb import gower_distance
from limis.table import Table


@pytest.fixture(scope="module")
def ground():
    rng = np.random.default_rng(0)
    n = 1200
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(1)),
            "count": rng.integers(0, 4, n),
            "team": np.array(["x", "y", "z"])[rng.integers(0, 3, n)],
        }
    )
    table, frame = Table.learn(frame)
    values = table.values(frame)
    return Ground.of(table, find_units(table, values), values[:40], values, rng)


def distances_from(ground, row):
    found = gower_distance(ground.ranks[[row]], ground.training_ranks, ground.table.is_category)[0]
    found[same(ground.training_values, ground.values[row]).all(axis=1)] = np.inf
    return found


def test_the_nearest_rows_come_in_order_and_never_an_equal_one(ground):
    for k in (1, 50, 10**6):
        for row, places in enumerate(ground.nearest(k)):
            distances = distances_from(ground, row)
            expected = np.argsort(distances, kind="stable")[: int(np.isfinite(distances).sum())][:k]
            np.testing.assert_array_equal(places, expected)


def test_rows_from_anywhere_are_all_others_each_once(ground):
    rng = np.random.default_rng(1)
    for row in range(10):
        others = np.flatnonzero(np.isfinite(distances_from(ground, row)))
        np.testing.assert_array_equal(np.sort(ground.any_others(row, 10**6, rng)), others)
        some = ground.any_others(row, 20, rng)
        assert len(np.unique(some)) == 20
        assert np.isin(some, others).all()


def test_rows_from_anywhere_are_as_likely_near_as_far(ground):
    rng = np.random.default_rng(2)
    order = np.argsort(distances_from(ground, 0), kind="stable")
    half = order[: len(order) // 2]
    drawn = np.concatenate([ground.any_others(0, 10, rng) for _ in range(400)])
    assert np.isin(drawn, half).mean() == pytest.approx(0.5, abs=0.04)  # five standard errors


def test_single_changes_stay_in_their_range_and_change_something(ground):
    drawn = single_changes(ground, 6, np.random.default_rng(3))
    place_of = {int(place): at for at, place in enumerate(ground.training_places)}
    assert list(drawn) == [str(k) for k in ground.ranges]
    for name, moves in drawn.items():
        assert np.bincount(moves.rows).max() <= 6
        for row, donor, changed in zip(moves.rows, moves.donors, moves.changed, strict=True):
            other = ground.training_values[place_of[int(donor)]]
            assert (~same(other, ground.values[row]))[changed].any()
            if name != "any":
                limit = np.sort(distances_from(ground, row))[int(name) - 1]
                assert distances_from(ground, row)[place_of[int(donor)]] <= limit


def test_joint_changes_differ_in_every_unit(ground):
    drawn = joint_changes(ground, 3, np.random.default_rng(4))
    place_of = {int(place): at for at, place in enumerate(ground.training_places)}
    for name in ("2, near", "2, any"):
        moves = drawn[name]
        assert len(moves) > 0
        assert (moves.changed.sum(axis=1) == 2).all()
        for row, donor, changed in zip(moves.rows, moves.donors, moves.changed, strict=True):
            assert (~same(ground.training_values[place_of[int(donor)]], ground.values[row]))[changed].all()
