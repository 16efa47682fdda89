"""Suggestions read off the local tree: the nearest leaf with the other outcome, and the change that leads there."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limis import LimisExplainer
from limis.suggest.climb import _edges

N = 300


class Loans:
    """Granted when income is above 50, or the applicant owns a house."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows):
        score = 3.0 * ((rows["income"] > 50) | (rows["home"].astype(object) == "owner")).to_numpy() - 1.5
        score = score + 0.01 * rows["age"].to_numpy()
        chance = 1 / (1 + np.exp(-score))
        return np.column_stack([1 - chance, chance])


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "income": rng.integers(10, 100, N + 30),
            "home": rng.choice(["owner", "tenant", "guest"], N + 30),
            "age": rng.integers(20, 60, N + 30),
        }
    )


@pytest.fixture(scope="module")
def explainer(people):
    return LimisExplainer(Loans(), surrogate="tree").fit(people[:N])


@pytest.fixture(scope="module")
def refused(people):
    rows = people[N:]
    return rows[(rows["income"] <= 50) & (rows["home"] != "owner")]


def test_the_climb_alone_finds_what_the_model_needs(explainer, refused):
    found = explainer.suggest(refused, target="yes")
    by_climb = [row.proposed["tree"] for row in found]
    assert all(asked > 0 for asked, _ in by_climb)
    assert np.mean([confirmed > 0 for _, confirmed in by_climb]) > 0.9
    assert {suggestion.source for row in found for suggestion in row} <= {"tree", "search"}
    assert "slopes" not in {source for row in found for source, counts in row.proposed.items() if counts[0]}


def test_what_must_not_change_is_not_climbed_to(explainer, refused):
    for row in explainer.suggest(refused, target="yes", immutable=["home", "age"]):
        assert all(set(suggestion.changes) == {"income"} for suggestion in row)
        assert row.confirmed
    (none,) = explainer.suggest(refused[:1], target="yes", immutable=["home", "income"])
    assert not none.confirmed
    assert none.reason


def test_a_change_goes_just_far_enough(explainer, refused):
    for row in explainer.suggest(refused, target="yes", immutable=["home"], n=1):
        (_, after), *more = row[0].changes.values()
        assert not more
        assert 50 < after <= 53  # the lowest incomes above 50 that training rows have


def test_where_no_leaf_has_the_wished_outcome_the_best_leaves_stand_in(people):
    def rent(rows):
        return 3.0 * (rows["income"] > 50) + 2.0 * (rows["home"].astype(object) == "owner")

    poor = people[N:][(people[N:]["income"] <= 50) & (people[N:]["home"] != "owner")]
    explainer = LimisExplainer(rent, surrogate="tree", max_depth=1).fit(people[:N])
    for row in explainer.suggest(poor, target="> 4"):  # a single split cannot tell of 5, which takes both
        asked, confirmed = row.proposed["tree"]
        assert asked > 0
        assert confirmed == 0
        assert row.confirmed
        assert set(row[0].changes) == {"income", "home"}


def parents(place):
    return [] if place == 0 else [(place - 1) // 2, *parents((place - 1) // 2)]


@given(st.integers(0, 62), st.integers(0, 62))
def test_edges_are_counted_over_the_node_where_the_ways_part(one, other):
    first, second = [one, *parents(one)], [other, *parents(other)]
    parting = next(place for place in first if place in second)
    assert _edges(one, other) == first.index(parting) + second.index(parting)
