"""Suggestions: what could change in a row for the black box to say something else."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.suggest import suggesting
from limis.suggest.questions import at_once
from limis.suggest.target import read_target
from limis.suggest.together import find_together

POINTS = {"A": 4, "B": 3, "C": 2, "D": 1}
COLOURS = ["colour_red", "colour_blue", "colour_green"]
COLUMNS = ["hours", "rate", "grade", "points", "team", "mood", "joined", "colour"]


def people(n, seed):
    """Numbers, categories, a date, dummies, missing values, and points that belong to grades."""
    rng = np.random.default_rng(seed)
    grade, colour = rng.choice(list(POINTS), n), rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "hours": rng.integers(10, 61, n),
            "rate": np.where(rng.random(n) < 0.1, np.nan, rng.normal(10, 3, n).round(2)),
            "grade": pd.Categorical(grade, categories=list(POINTS)),
            "points": [POINTS[letter] for letter in grade],
            "team": rng.choice(["north", "south", "west"], n),
            "mood": np.where(rng.random(n) < 0.2, None, rng.choice(["good", "bad"], n)),
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    return frame.assign(**{name: (colour == code).astype(int) for code, name in enumerate(COLOURS)})


class Hiring:
    """A classifier of people that counts what it is asked."""

    classes_ = np.array(["no", "yes"])

    def __init__(self):
        self.asked = 0

    def predict_proba(self, frame):
        self.asked += len(frame)
        logit = (frame["hours"] - 45) / 6 + frame["points"] - 2.5 + 2 * (frame["team"] == "west")
        logit += (
            frame["rate"].fillna(8) / 10
            + frame["colour_blue"]
            + (frame["joined"] > "2021-06-01")
            - (frame["mood"] == "bad")
        )
        second = 1 / (1 + np.exp(2 - logit.to_numpy(dtype=float)))
        return np.column_stack([1 - second, second])


def price(frame):
    """A regression: one step, one interaction."""
    return 20.0 * (frame["hours"] > 45) + frame["points"] * (1 + (frame["team"] == "west"))


TRAIN, ROWS = people(300, 0), people(40, 1)
GROUPS = {"colour": COLOURS}


@pytest.fixture(scope="module")
def hiring():
    return LimisExplainer(Hiring(), groups=GROUPS).fit(TRAIN)


@pytest.fixture(scope="module")
def pricing():
    return LimisExplainer(price, groups=GROUPS).fit(TRAIN)


@pytest.fixture(scope="module")
def refused():
    """Rows that the model says no to."""
    return ROWS[Hiring().predict_proba(ROWS)[:, 1] < 0.5].reset_index(drop=True)


def held(frame, columns):
    """The distinct tuples of some columns."""
    return set(frame[list(columns)].astype(object).where(frame[list(columns)].notna(), None).itertuples(index=False))


# --- what every suggestion keeps to ---------------------------------------------------------------------------


@st.composite
def constraints(draw):
    low = draw(st.integers(5, 55))
    return {
        "immutable": draw(st.sets(st.sampled_from(COLUMNS), max_size=4)),
        "ranges": draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "hours": st.just((low, low + 10)),
                    "team": st.lists(st.sampled_from(["north", "south", "west"]), min_size=1, unique=True),
                    "joined": st.just((None, "2021-12-31")),
                    "grade": st.just(["A", "B"]),
                },
            )
        ),
        "directions": draw(
            st.fixed_dictionaries(
                {}, optional={name: st.sampled_from(["up", "down"]) for name in ("hours", "rate", "points", "joined")}
            )
        ),
        "n": draw(st.integers(1, 4)),
        "max_queries": draw(st.sampled_from([1, 7, 60, 400])),
    }


@settings(max_examples=40)
@given(given=constraints(), row=st.integers(0, len(ROWS) - 1))
def test_suggestions_keep_to_every_constraint_and_say_what_the_model_answers(hiring, given, row):
    own = ROWS.iloc[[row]]
    hiring.model.asked = 0
    found = hiring.suggest(own, **given)[0]
    assert hiring.model.asked <= 1 + given["max_queries"]
    assert found.queries <= given["max_queries"]
    assert len(found) <= given["n"]
    after = found.changed_rows()
    assert list(after.columns) == list(own.columns)
    assert (after.dtypes == own.dtypes).all()
    before = pd.concat([own] * len(found)) if len(found) else own.iloc[:0]
    changed = (after != before) & ~(after.isna() & before.isna())
    fixed = {"grade", "points"} if given["immutable"] & {"grade", "points"} else set()
    fixed |= given["immutable"] - {"colour"} | (set(COLOURS) if "colour" in given["immutable"] else set())
    assert not changed[list(fixed)].any(axis=None)
    assert not (after.isna() & before.notna()).any(axis=None)
    for columns in (["hours"], ["rate"], ["team"], ["mood"], ["joined"], ["grade", "points"], COLOURS):
        moved = after[changed[columns].any(axis=1)]
        assert held(moved, columns) <= held(hiring.training_.frame, columns)
    for name, allowed in given["ranges"].items():
        moved = after.loc[changed[name].to_numpy(), name]
        if name in ("team", "grade"):
            assert moved.isin(allowed).all()
        else:
            low, high = (pd.Timestamp(end) if isinstance(end, str) else end for end in allowed)
            assert low is None or (moved >= low).all()
            assert (moved <= high).all()
    for name, way in given["directions"].items():
        moved = changed[name].to_numpy()
        further = after.loc[moved, name].to_numpy() > before.loc[moved, name].to_numpy()
        assert (further == (way == "up")).all()
    if len(found):
        says = Hiring().predict_proba(after)[:, 1] > 0.5
        was = Hiring().predict_proba(own)[0, 1] > 0.5
        assert [one.confirmed for one in found] == (says != was).tolist()
    assert (found.reason == "") == found.confirmed
    ranks = [(not one.confirmed, one.n_changes, one.distance) for one in found]
    assert ranks == sorted(ranks)
    for one in found:
        for other in found:
            assert not set(one.changes) < set(other.changes)
            assert set(one.changes) != set(other.changes) or one.distance == pytest.approx(other.distance)


def test_a_row_gets_the_same_suggestions_whatever_rows_are_beside_it(hiring, refused, monkeypatch):
    together = hiring.suggest(refused, immutable=["joined"])
    for place in (0, 3, 7):
        alone = hiring.suggest(refused.iloc[[place]], immutable=["joined"])[0]
        assert alone.to_dict() == together[place].to_dict()
    monkeypatch.setattr(suggesting, "MOST_ROWS", 5)
    monkeypatch.setattr(suggesting, "MOST_CELLS", 5000)
    in_blocks = hiring.suggest(refused, immutable=["joined"])
    assert in_blocks.to_json() == together.to_json()
    pd.testing.assert_frame_equal(in_blocks.changed_rows(), together.changed_rows())
    assert in_blocks[-1].changed_rows().equals(together[-1].changed_rows())


def test_changes_are_no_larger_than_needed(hiring, pricing, refused):
    # All that a row with few hours lacks for 20 is more than 45 of them: the next that a training row has.
    rows = ROWS[ROWS["hours"] < 40].head(5)
    least = TRAIN["hours"][TRAIN["hours"] > 45].min()
    for row in pricing.suggest(rows, "> 20"):
        assert row[0].changes == {"hours": (rows.loc[row.label, "hours"], least)}
    for row, own in zip(hiring.suggest(refused), refused.itertuples(), strict=True):
        for one in row:
            number = next((name for name in one.changes if name in ("hours", "rate")), None)
            if one.confirmed and number is not None:
                # Halfway back to the row's own value the model says no again.
                back = row.changed_rows().iloc[[list(row).index(one)]].copy()
                back[number] = back[number].astype(float)
                back[number] = 0.25 * back[number] + 0.75 * getattr(own, number)
                assert Hiring().predict_proba(back)[0, 1] <= 0.5


def test_most_refused_rows_get_a_confirmed_suggestion_of_few_columns(hiring, refused):
    found = hiring.suggest(refused, "yes", immutable="joined")
    assert all(row.confirmed and row[0].n_changes <= 3 for row in found)
    assert np.mean([len({tuple(one.changes) for one in row}) for row in found]) > 2
    sources = {one.source for row in found for one in row}
    assert sources == {"curves", "search"}
    asked, confirmed = np.array([row.proposed["curves"] for row in found]).T
    assert (confirmed <= asked).all()
    assert confirmed.sum() > 0


# --- the target -----------------------------------------------------------------------------------------------


def test_the_target_is_by_default_the_other_class(hiring):
    was = Hiring().predict_proba(ROWS)[:, 1] > 0.5
    found = hiring.suggest(ROWS)
    assert [row.goal for row in found] == ["class no" if yes else "class yes" for yes in was]
    best = [row[0] for row in found if row.confirmed]
    assert all(one.probability_before <= 0.5 <= one.probability_after for one in best)


@pytest.mark.parametrize(
    ("target", "reached"),
    [
        ("> 20", lambda after, *_: after > 20),
        (">=24", lambda after, *_: after >= 24),
        ("< 3", lambda after, *_: after < 3),
        (" <= 1.5e0 ", lambda after, *_: after <= 1.5),
        ("up", lambda after, before, step: after > before + step),
        ("down", lambda after, before, step: after < before - step),
    ],
)
def test_a_level_or_a_direction_of_values(pricing, target, reached):
    found = pricing.suggest(ROWS, target)
    step = pricing.tolerance * pricing.training_.output_deviation
    for row in found:
        assert row.probability is None
        for one in row:
            assert one.output_after == pytest.approx(price(row.changed_rows()).iloc[list(row).index(one)])
            assert one.confirmed == bool(reached(one.output_after, one.output_before, step))
    assert sum(row.confirmed or row.has_goal for row in found) > len(found) / 2


@given(
    outputs=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5),
    target=st.sampled_from(["> 0", ">= 0", "< 12.5", "<= 12.5", "up", "down"]),
    new=st.floats(-1e6, 1e6),
)
def test_a_target_is_reached_where_the_gap_is_closed(pricing, outputs, target, new):
    outputs = np.array(outputs)
    wish = read_target(target, pricing.training_.black_box, outputs, step=1.0)
    rows = np.arange(len(outputs))
    gap, reached = wish.gap(np.full(len(outputs), new), rows), wish.reached(np.full(len(outputs), new), rows)
    assert (reached == ((gap < 0) | ((gap == 0) & ("=" in target)))).all()
    if target in ("up", "down"):
        assert not wish.reached(outputs, rows).any()


def test_rows_that_have_the_target_are_left_alone(hiring, refused):
    accepted = ROWS[Hiring().predict_proba(ROWS)[:, 1] > 0.5].head(2)
    found = hiring.suggest(pd.concat([accepted, refused.head(2)]), "yes")
    assert [len(row) > 0 for row in found] == [False, False, True, True]
    assert found[0].reason == "it has class yes as it is"
    assert found[0].queries == 0
    assert "left alone: it has class yes" in repr(found[0])
    with pytest.raises(InputError, match="all 2 rows have the target already, class yes"):
        hiring.suggest(accepted, "yes")
    with pytest.raises(InputError, match="row 0 has the target already"):
        hiring.suggest(accepted.head(1).set_axis([0]), "yes")


# --- what may change --------------------------------------------------------------------------------------------


def test_columns_of_which_one_determines_the_other_are_found():
    rng = np.random.default_rng(0)
    city = rng.integers(0, 12, 400)
    values = np.column_stack([city, city // 3, rng.integers(0, 4, 400), rng.normal(size=400), np.ones(400)])
    assert find_together(values) == [[0, 1]]
    values[5, 1] = np.nan  # missing is a value like others, and this city has two now
    assert find_together(values) == []
    same = np.column_stack([values[:, 3], 2 * values[:, 3]])  # names of their rows, rather than kinds
    assert find_together(same) == []


@given(n=st.integers(2, 60), levels=st.integers(1, 12), seed=st.integers(0, 1000))
def test_columns_that_only_happen_to_agree_are_not_taken_for_related(n, levels, seed):
    rng = np.random.default_rng(seed)
    rare = (rng.random(n) < 0.05).astype(float)
    assert find_together(np.column_stack([rng.integers(0, levels, n), rng.integers(0, 3, n), rare])) == []


def test_columns_together_can_be_named_and_turned_off(hiring, refused):
    apart = hiring.suggest(refused, together=())
    assert any("points" in one.changes and "grade" not in one.changes for row in apart for one in row)
    named = hiring.suggest(refused, together=[("team", "points", "hours")])
    tuples = held(hiring.training_.frame, ["team", "points", "hours"])
    for row in named:
        moved = [one for one in row if {"team", "points", "hours"} & set(one.changes)]
        after = row.changed_rows().iloc[[list(row).index(one) for one in moved]]
        assert held(after, ["team", "points", "hours"]) <= tuples
    fixed = hiring.suggest(refused, together=[("team", "points", "hours")], immutable=["team"])
    assert not any({"team", "points", "hours"} & set(one.changes) for row in fixed for one in row)


def test_a_level_that_training_never_had_may_only_be_left(hiring, refused):
    row = refused.head(1).assign(team="east", rate=np.nan)
    found = hiring.suggest(row)[0]
    assert all(after != "east" for one in found for _, after in [one.changes.get("team", (None, "west"))])
    assert hiring.suggest(row, immutable=set(COLUMNS) - {"team"})[0][0].words["team"] == ("east", "west")


def test_arrays_are_changed_as_arrays():
    X = np.random.default_rng(0).normal(size=(200, 3)).round(2)
    explainer = LimisExplainer(lambda rows: rows[:, 0] + 2 * rows[:, 1]).fit(X)
    found = explainer.suggest(X[:2], "> 2.5", immutable=["x2"])
    for row in found:
        after = row.changed_rows().to_numpy()
        assert row.confirmed
        assert (after[:, 0] + 2 * after[:, 1] > 2.5).all()
        assert (after[:, 2] == X[row.label, 2]).all()


# --- honest answers -----------------------------------------------------------------------------------------------


def test_what_cannot_be_reached_is_said_with_the_nearest(pricing):
    rows = ROWS[ROWS["hours"] < 40].head(2)
    for row in pricing.suggest(rows, "> 1000"):
        assert not row.confirmed
        assert row.reason.startswith(f"none of {row.queries:,} changes asked about reached an output > 1,000; the near")
        assert row.reason.endswith("got to 28")
        assert row.evidence is None
        assert "not found: none of" in repr(row)
    only = [name for name in COLUMNS if name != "joined"]
    row = pricing.suggest(rows.head(1), "> 1000", immutable=only)[0]
    assert row.reason.endswith("none came nearer to it than the row as it is")
    row = pricing.suggest(rows.head(1), "> 1000", immutable=COLUMNS)[0]
    assert (row.reason, row.queries, len(row)) == ("no column may change", 0, 0)


def test_proposals_that_failed_are_listed_as_not_confirmed():
    def ridge(rows):
        """Rising, but never beyond 1."""
        return np.minimum(rows["a"], 1.0) + 0.01 * rows["b"]

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    row = (
        LimisExplainer(ridge, surrogate=LinearRegression())  # whose slopes have no ends
        .fit(X)
        .suggest(X[X["a"].between(-1, -0.5)].head(1), "> 1.5")[0]
    )
    assert not row.confirmed
    assert len(row) > 0
    assert {one.source for one in row} == {"slopes"}
    assert "not confirmed: " in str(row[0])


def test_the_evidence_is_the_nearest_training_row_with_the_outcome(hiring, refused):
    found = hiring.suggest(refused, "yes")
    training = hiring.training_
    outputs = Hiring().predict_proba(training.frame)[:, 1]
    for row in found:
        theirs = training.frame.iloc[row.evidence.position]
        assert row.evidence.label == theirs.name
        assert outputs[row.evidence.position] > 0.5
        assert "hours" not in row.evidence.differences or theirs["hours"] != refused.loc[row.label, "hours"]
        assert 0 < row.evidence.distance <= len(row.evidence.differences)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"immutable": ["hour"]}, "immutable names 'hour', which is not a column; did you mean 'hours'"),
        ({"immutable": ["colour_red"]}, "a dummy of the group 'colour'; name the group"),
        ({"ranges": {"age": (1, 2)}}, "ranges names 'age', which is not a column; there are 'hours', 'rate'"),
        ({"ranges": [("hours", 1, 2)]}, "ranges goes from columns to what they may do"),
        ({"ranges": {"hours": (60, 20)}}, "is empty: it begins at 60 and ends at 20"),
        ({"ranges": {"hours": (100, 200)}}, "no training row has a value there; they go from 10 to 60"),
        ({"ranges": {"hours": (1, 2, 3)}}, r"is a \(low, high\) pair, as the column holds numbers"),
        ({"ranges": {"hours": ("some", 3)}}, "has an end 'some', which is not a number"),
        ({"ranges": {"joined": ("some", None)}}, "has an end 'some', which is not a date"),
        ({"ranges": {"joined": ("2031-01-01", None)}}, "they go from 2020-01-0. to 2022"),
        ({"ranges": {"hours": ("nan", 60)}}, "has an end 'nan', which is not a number"),
        ({"ranges": {"team": []}}, "is empty: list at least one level"),
        ({"together": [5]}, "together is a list of tuples of columns"),
        ({"ranges": {"team": [None]}}, "no column is ever moved to missing"),
        ({"ranges": {"team": "west"}}, "is a list of levels"),
        ({"ranges": {"team": ["wst"]}}, "'wst', which no training row has; did you mean 'west'"),
        ({"directions": {"houres": "up"}}, "directions names 'houres'"),
        ({"directions": {"hours": "sideways"}}, 'is "up" or "down", not \'sideways\''),
        ({"directions": {"team": "up"}}, "holds categories, which have no direction"),
        ({"together": [("grade", "point")]}, "together names 'point'"),
        ({"together": ["grade", "points"]}, "a list of tuples"),
        ({"together": [("grade",)]}, "at least two columns"),
        ({"together": [("grade", "points"), ("points", "hours")]}, "'points' in two tuples"),
        ({"together": "always"}, 'together is "auto" or a list'),
        ({"target": "maybe"}, "target 'maybe' is not a class of the model; its classes are no, yes"),
        ({"n": 0}, "n is a number of suggestions a row, 1 or more, not 0"),
        ({"n": True}, "not True"),
        ({"max_queries": 0}, "max_queries is a number of questions"),
    ],
)
def test_what_cannot_be_meant_is_refused(hiring, refused, options, message):
    with pytest.raises(InputError, match=message):
        hiring.suggest(refused.head(1), **options)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "a target is needed"),
        (100, "target 100 cannot be read"),
        ("about 3", "cannot be read"),
        ("> many", "has no number after >"),
        ("< inf", "has no number after <"),
    ],
)
def test_values_need_a_level_or_a_direction(pricing, target, message):
    with pytest.raises(InputError, match=message):
        pricing.suggest(ROWS, target)


def test_without_a_model_nothing_can_be_confirmed():
    explainer = LimisExplainer(weighting="forest", groups=GROUPS).fit(TRAIN, price(TRAIN))
    with pytest.raises(InputError, match="there is none to ask"):
        explainer.suggest(ROWS, "> 3")


# --- other forms ----------------------------------------------------------------------------------------------------


def test_results_as_words_table_and_json(hiring, refused):
    found = hiring.suggest(refused.set_axis([f"p{i}" for i in range(len(refused))]), n=2, immutable=["rate"])
    assert len(found) == len(refused) == len(list(found))
    one = found[0][0]
    before, after = one.words["hours"] if "hours" in one.words else next(iter(one.words.values()))
    assert f"{before} -> {after}" in str(one)
    assert repr(found[0]).startswith("row p0: the model gives class yes, which is wished, ")
    assert "the nearest training row that has it" in repr(found[0])
    assert repr(found).startswith(f"suggestions for {len(found)} rows, {len(found)} with a confirmed one\nrow p0")

    table = found.to_frame()
    assert list(table.index) == [row.label for row in found for _ in row]
    assert list(table["n_changes"]) == [one.n_changes for row in found for one in row]
    assert table["confirmed"].dtype == bool
    changed = found.changed_rows()
    assert list(changed.index) == list(table.index)
    np.testing.assert_allclose(Hiring().predict_proba(changed)[:, 1], table["probability_after"])

    fewer = found[[2, 0]]
    assert [row.label for row in fewer] == ["p2", "p0"]
    pd.testing.assert_frame_equal(fewer.changed_rows().loc[["p0"]], found[0].changed_rows())
    with pytest.raises(IndexError, match="there is no number 99"):
        found[99]

    written = json.loads(found.to_json())
    assert [row["row"] for row in written] == list(changed.index.unique())
    assert all(row["suggestions"][0]["confirmed"] for row in written)
    assert {"column", "from", "to", "words"} == set(written[0]["suggestions"][0]["changes"][0])


def test_a_row_without_suggestions_still_has_a_line(pricing):
    table = pricing.suggest(ROWS.head(2), "> 1000", immutable=COLUMNS).to_frame()
    assert list(table["rank"]) == [0, 0]
    assert list(table["reason"]) == ["no column may change"] * 2
    assert not table["confirmed"].any()
    assert "probability_before" not in table


def test_searches_at_once_ask_together():
    def count(last):
        for number in range(last):
            yield [((0, number),)]
        return last

    asked = []

    def listening():
        asked.append((yield from at_once([count(1), count(3), count(0)])))

    steps = [[change[0][1] for change in wanted] for wanted in listening()]
    assert steps == [[0, 0], [1], [2]]
    assert asked == [[1, 3, 0]]
