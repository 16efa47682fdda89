"""Why: reasons that lead from a reference of the reader's choice to the model's output, and add up."""

from itertools import combinations
from math import comb, factorial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limis import InputError, LimisExplainer
from limis.curves.games import draw_reasons, leaf_patterns
from limis.curves.taught import Size, TaughtModel
from limis.reference import FEW, MOST_STANDING, Reference
from limis.table import Table

OPTIONS = {"max_questions": 20_000, "n_jobs": 1}


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2, 15, n).round(1)),
            "sex": rng.choice(["Female", "Male"], n),
            "noise": rng.normal(size=n),
        }
    )


def score(rows):
    """Age and sex do something together, a missing income matters, noise does not."""
    together = (rows["age"] > 45).to_numpy() * (rows["sex"] == "Female").to_numpy()
    return (rows["age"] / 20 + rows["income"].isna()).to_numpy() + 2.0 * together


class Loan:
    """A classifier of two classes."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows):
        yes = 1 / (1 + np.exp(3.5 - score(rows)))
        return np.column_stack([1 - yes, yes])


@pytest.fixture(scope="module")
def found():
    return LimisExplainer(score, **OPTIONS).fit(people()).explain(people(40, seed=1))


@pytest.fixture(scope="module")
def loans():
    return LimisExplainer(Loan(), **OPTIONS).fit(people()).explain(people(40, seed=1))


# --- the taught model's own reasons, against all groups of units ------------------------------------------------------


def games(taught, row, others, unit_of):
    """What each group of units adds: others' values, but the row's own in the group."""
    n = int(unit_of.max()) + 1
    worth = {}
    for size in range(n + 1):
        for group in combinations(range(n), size):
            mixed = others.copy()
            own = np.isin(unit_of, group)
            mixed[:, own] = row[own]
            worth[group] = taught.predict(mixed).mean()
    return worth


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_shapley_values_pairs_and_single_removals_are_those_of_all_groups(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(300, 5)).round(1), columns=list("abcde"))
    frame.loc[rng.random(300) < 0.1, "c"] = np.nan
    table, _ = Table.learn(frame)
    values = table.values(frame)
    answers = frame["a"] * frame["b"] + np.where(frame["c"].fillna(0) > 0, frame["d"], 0) + frame["e"]
    taught = TaughtModel.teach(table, values, answers.to_numpy(), seed, Size(6, 12, 0.3))
    unit_of, others, n = np.array([0, 1, 2, 2, 3]), values[:30], 4
    patterns = leaf_patterns(taught.trees, taught.cells(others), unit_of)
    drawn = draw_reasons(taught.trees, patterns, taught.cells(values[100:150]), unit_of, n, 6)
    everyone = tuple(range(n))
    for place in range(2):
        worth = games(taught, values[100 + place], others, unit_of)
        for unit in range(n):
            without = [group for group in worth if unit not in group]
            share = {group: factorial(len(group)) * factorial(n - len(group) - 1) / factorial(n) for group in without}
            added = sum(share[group] * (worth[tuple(sorted((*group, unit)))] - worth[group]) for group in without)
            assert drawn.shapley[place, unit] == pytest.approx(added, abs=1e-9)
            lost = worth[everyone] - worth[tuple(other for other in everyone if other != unit)]
            assert drawn.alone[place, unit] == pytest.approx(lost, abs=1e-9)
        expected = by_least_squares(worth, n)
        for (first, second), value in zip(drawn.pairs[place].tolist(), drawn.together[place], strict=True):
            if first != second:
                assert value == pytest.approx(expected[tuple(sorted((first, second)))], abs=1e-6)


def by_least_squares(worth, n):
    """Singles and pairs nearest to all groups' worth, by the Shapley kernel; both ends are met."""
    terms = [(), *((unit,) for unit in range(n)), *combinations(range(n), 2)]
    inside = np.array([[set(term) <= set(group) for term in terms] for group in worth], dtype=float)
    weight = [
        1e7 if len(group) in (0, n) else (n - 1) / (comb(n, len(group)) * len(group) * (n - len(group)))
        for group in worth
    ]
    root = np.sqrt(weight)
    found = np.linalg.lstsq(inside * root[:, None], np.array(list(worth.values())) * root, rcond=None)[0]
    return dict(zip(terms, found, strict=True))


# --- what users see ---------------------------------------------------------------------------------------------------


def test_base_contributions_and_rest_are_the_models_output(found):
    total = found.base_values + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.model_outputs, rtol=0, atol=1e-12)
    assert list(found.contributions) == [*people(1), "rest"]
    assert found.base_values.to_numpy() == pytest.approx(found.training.overall_mean)


def test_reasons_of_one_row_are_those_among_many(found):
    for row in (0, 7):
        pd.testing.assert_series_equal(found[row].contributions, found.contributions.iloc[row], check_exact=True)
        assert found[[row]][0].rest == found[row].rest
    alone = found[3]
    assert sum(value for _, value in alone.as_list()) + alone.base_value == pytest.approx(alone.model_output)


def test_reasons_are_what_the_columns_do(found):
    """A hundred rows stand for all: what they hold otherwise moves a mean by a tenth of its deviation or so."""
    rows, training = found.frame, found.training.frame
    late = (training["age"] > 45).mean()
    women = (training["sex"] == "Female").mean()
    is_late, is_woman = rows["age"] > 45, rows["sex"] == "Female"
    age = (rows["age"] - training["age"].mean()) / 20 + (is_late - late) * (is_woman + women)
    sex = (is_woman - women) * (is_late + late)
    income = rows["income"].isna() - training["income"].isna().mean()
    for name, truth in (("age", age), ("sex", sex), ("income", income.astype(float))):
        np.testing.assert_allclose(found.contributions[name], truth, atol=0.35)
    assert found.contributions["noise"].abs().max() < 0.1
    assert found.contributions["rest"].abs().mean() < 0.15


def test_pairs_that_do_something_together_are_told(found):
    strongest = found.interactions.groupby("row").first()
    both = (strongest["first"] == "age") & (strongest["second"] == "sex")
    assert both.mean() > 0.9
    row = found.frame.index[(found.frame["age"] > 50) & (found.frame["sex"] == "Female")][0]
    # (1 − P(late)) · (1 − P(woman)) · 2, by some hundred rows
    assert strongest.loc[row, "value"] == pytest.approx(0.5, abs=0.3)
    assert list(found[0].interactions) == ["first", "second", "value"]


def test_what_a_group_takes_away_ends_with_everything(found):
    reasons, n = found.all_reasons, len(found)
    everything = np.ones((n, 4), dtype=bool)
    lost = found.model_outputs - found.base_values
    np.testing.assert_allclose(reasons.removed(np.arange(n), everything), lost, atol=1e-9)
    np.testing.assert_allclose(reasons.without_pairs().removed(np.arange(n), everything), lost, atol=1e-9)
    assert not reasons.removed(np.arange(n), ~everything).any()


def test_the_text_adds_up_before_the_readers_eyes(found):
    told = str(found[0])
    assert "Why " in told
    assert "all training rows, on average" in told
    assert "this row" in told


def test_what_columns_take_away_is_told_row_by_row(found):
    both = found.removed(["age", "sex"])
    assert both.index.equals(found.index)
    others = people()[["age", "sex"]].iloc[:200].itertuples(index=False)
    truth = score(found.frame) - np.mean([score(found.frame.assign(age=age, sex=sex)) for age, sex in others], axis=0)
    assert np.abs(both - truth).mean() < 0.2 * np.abs(truth).mean()  # by 200 of 600 reference rows
    for wrong in ("age", ["nothing"]):
        with pytest.raises(InputError):
            found.removed(wrong)


# --- references -------------------------------------------------------------------------------------------------------


def test_a_reference_may_be_a_condition_a_group_rows_or_one_row(found):
    training = found.training.frame
    women = training["sex"] == "Female"
    by_condition, by_group = found.against("sex == 'Female'"), found.against({"sex": "Female"})
    assert by_condition.base_values.iloc[0] == pytest.approx(score(training[women]).mean())
    pd.testing.assert_frame_equal(by_condition.contributions, by_group.contributions)
    assert "sex = Female" in by_group[0].reference.name
    mine = people(80, seed=5)
    assert found.against(mine).base_values.iloc[0] == pytest.approx(score(mine).mean())
    her, him = found.frame.iloc[[2]], found[5]
    against = him.against(her)
    assert against.base_value == pytest.approx(score(her)[0])
    assert against.base_value + against.contributions.sum() == pytest.approx(him.model_output)
    same = him.against(found.frame.iloc[5])  # a Series, of the very row
    assert same.contributions.abs().max() < 1e-9


def test_a_group_may_be_those_whose_value_is_missing(found):
    for missing in (None, float("nan")):
        reference = found.against({"income": missing})[0].reference
        assert reference.n_rows == found.training.frame["income"].isna().sum()


def test_columns_that_two_rows_share_are_no_reason(found):
    first = found.frame.iloc[[0]]
    other = first.assign(age=79 if first["age"].iloc[0] < 45 else 19)
    explained = found.against(other)[0].contributions
    assert abs(explained["age"]) > 0.5
    assert explained[["income", "sex", "noise"]].abs().max() < 1e-9


def test_the_other_outcome_differs_between_rows(loans):
    against = loans.against("other outcome")
    said_yes = loans.model_outputs > 0
    assert (against.base_values[said_yes] < 0).all()
    assert (against.base_values[~said_yes] > 0).all()
    total = against.base_values + against.contributions.sum(axis=1)
    np.testing.assert_allclose(total, loans.model_outputs, atol=1e-12)
    yes = int(np.flatnonzero(said_yes)[0])
    assert against[yes].reference.name == "training rows predicted no"
    near = loans.against("near threshold")
    assert abs(near.base_values.iloc[0]) < abs(loans.base_values.iloc[0])


def test_the_reference_can_be_named_when_rows_are_explained():
    explainer = LimisExplainer(Loan(), **OPTIONS).fit(people(300))
    rows = people(5, seed=2)
    named = explainer.explain(rows, reference="age > 60")
    assert "age > 60" in named[0].reference.name
    pd.testing.assert_frame_equal(named.contributions, explainer.explain(rows).against("age > 60").contributions)


def test_few_rows_have_an_uncertain_mean(found):
    few = found.training.frame.index[:12].tolist()
    reference = found.against(found.training.frame.loc[few])[0].reference
    assert reference.error > 0
    assert "may be off by" in str(found.against(found.training.frame.loc[few])[0])
    assert found[0].reference.error is None


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("height > 3", "no condition"),
        ("age >", "no condition"),
        ("age > 1000", "there are no training rows where age > 1000"),
        ("age", "neither true nor false"),
        ("5", "neither true nor false"),
        ({"sex": ["Female", "Male"]}, "one value of the column"),
        ({}, "names no column"),
        (5, "a condition, a group, rows or one row"),
        ({"height": 3}, "'height', which is not a column"),
        ({"sex": "Fish"}, "sex = Fish"),
        ("other outcome", "classifiers"),
        ("near threshold", "two classes"),
        (people(0), "no rows"),
        (pd.DataFrame({"age": [3]}), "income"),
    ],
)
def test_a_reference_that_cannot_be_is_refused(found, reference, told):
    with pytest.raises(InputError, match=told):
        found.against(reference)


def test_only_curves_have_a_reference():
    explainer = LimisExplainer(score, surrogate="ridge", n_jobs=1).fit(people(200))
    with pytest.raises(InputError, match="for curves"):
        explainer.explain(people(3), reference="age > 40")
    with pytest.raises(InputError, match="only curves"):
        explainer.explain(people(3)).against("age > 40")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400))
def test_rows_that_stand_for_all_have_nearly_their_mean(outputs):
    outputs = np.array(outputs)
    made = Reference.of("rows", np.arange(len(outputs))[:, None].astype(float), outputs)
    assert len(made.outputs) == min(len(outputs), MOST_STANDING)
    assert made.mean == pytest.approx(outputs.mean())
    assert (made.error is None) == (len(outputs) == 1 or len(outputs) >= FEW)
    assert abs(made.outputs.mean() - made.mean) <= np.ptp(outputs) / len(made.outputs) * 2 + 1e-9


def test_shaps_numbers_are_numbers(found):
    shap = pytest.importorskip("shap")
    told = found.to_shap()
    assert isinstance(told, shap.Explanation)
    np.testing.assert_allclose(told.base_values + told.values.sum(axis=1), found.model_outputs)
    assert told.data.dtype == float
    np.testing.assert_array_equal(told.data[:, 0], found.frame["age"])
    assert told.display_data[0, 2] in ("Female", "Male")
    assert told.feature_names[-1] == "rest"


def test_each_class_has_reasons_that_add_up():
    class Classes:
        classes_ = np.array(["low", "mid", "high"])

        def predict_proba(self, rows):
            logits = np.column_stack([np.full(len(rows), 3.0), score(rows), 1.5 * score(rows) - 2])
            raised = np.exp(logits - logits.max(axis=1, keepdims=True))
            return raised / raised.sum(axis=1, keepdims=True)

    found = LimisExplainer(Classes(), **OPTIONS).fit(people(300)).explain(people(6, seed=3))
    for against in (found, found.against({"sex": "Male"}), found.against("other outcome")):
        for label in found.classes:
            part = against.for_class(label)
            total = part.base_values + part.contributions.sum(axis=1)
            np.testing.assert_allclose(total, part.model_outputs, atol=1e-9)
    assert len({one.reference.name for one in found.against("other outcome").for_class("low")}) > 1


def test_without_a_model_reasons_lead_to_what_the_stand_in_says():
    rows = people(200)
    found = LimisExplainer(**OPTIONS).fit(rows, outputs=score(rows)).explain(people(4, seed=4))
    np.testing.assert_allclose(found.base_values + found.contributions.sum(axis=1), found.local_predictions)
    with pytest.raises(InputError, match="name training rows by a condition"):
        found.against(people(3))
    assert found.against("age > 40").base_values.iloc[0] > found.base_values.iloc[0] - 1
