"""Explanations by tree: what they say, whether it is true of the tree, and how it reads."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limis import InputError, LimisExplainer
from limis.columns import roundest
from limis.datasets import make_synthetic
from limis.report.text import render
from limis.table import Table
from limis.trees.fits import TreeModel
from limis.trees.inputs import _round_borders
from limis.trees.view import Rule

N = 400


def said_of(rows):
    """A jump of a number, a category that matters, a number that may be missing."""
    job = rows["job"].astype(object).to_numpy()
    return (
        4.0 * (rows["gain"].to_numpy() > 50)
        + np.where(job == "boss", 2.0, np.where(job == "clerk", 0.0, 1.0))
        + 0.5 * np.nan_to_num(rows["age"].to_numpy(), nan=60.0) / 20
    )


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = N + 40
    age = rng.integers(18, 70, n).astype(float)
    age[::9] = np.nan
    return pd.DataFrame(
        {
            "gain": rng.integers(0, 100, n),
            "job": rng.choice(["boss", "clerk", "maker"], n),
            "age": age,
            "noise": rng.normal(size=n),
        }
    )


@pytest.fixture(scope="module")
def explainer(people):
    return LimisExplainer(said_of, surrogate="tree").fit(people[:N])


@pytest.fixture(scope="module")
def found(explainer, people):
    return explainer.explain(people[N:])


def test_trees_foresee_what_the_model_does(explainer):
    assert explainer.nse_ > 0.9
    assert explainer.skill_ > 0.5
    assert set(explainer.choices_["tree_on"].dropna()) == {"changes", "rows"}


def test_contributions_along_the_way_add_up(found):
    total = found.base_values + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.local_predictions, atol=1e-9)
    on_way = [{column for rule in one.rules() if rule.holds for column in _columns(rule)} for one in found]
    for one, columns in zip(found, on_way, strict=True):
        assert {name for name, part in one.contributions.items() if part} <= columns


def _columns(rule):
    return {word for condition in rule.conditions for word in condition.split() if word in _NAMES}


_NAMES = {"gain", "job", "age", "noise"}


def test_exactly_one_rule_holds_and_says_what_the_tree_says(found):
    for one in found:
        rules = one.rules()
        holding = [rule for rule in rules if rule.holds]
        assert len(holding) == 1
        assert holding[0].value == pytest.approx(one.local_prediction)
        assert sum(rule.share for rule in rules) == pytest.approx(1)
        assert str(holding[0]).startswith("→ ")


def test_every_rule_is_true_of_the_tree(found, people):
    """A row made to meet a rule's conditions is told that rule's value by the tree itself."""
    for one in list(found)[:10]:
        for rule in one.rules():
            row = people[N:].iloc[[one.row]].astype(object)
            for condition in rule.conditions:
                _meet(condition, row)
            row = row.astype({"gain": float, "age": float, "noise": float})
            assert one.predict(row)[0] == pytest.approx(rule.value), rule


def _meet(condition, row):
    """Change a row so that a condition in words holds."""
    text = condition.removesuffix(" or missing")
    words = text.split()
    if " is " in text:
        column, level = text.split(" is ")
        current = row[column].iloc[0]
        if level.startswith("not "):
            left_out = level.removeprefix("not ").split(" or ")
            left = [job for job in ("boss", "clerk", "maker") if job not in left_out]
            row[column] = left[0] if current in left_out else current
        elif level == "missing":
            row[column] = np.nan
        elif level == "known":
            row[column] = 40.0 if pd.isna(current) else current
        else:
            row[column] = level
        return
    numbers = [float(word.replace(",", "")) for word in words if word.replace(",", "").lstrip("-")[0].isdigit()]
    column = next(word for word in words if word in _NAMES)
    if len(numbers) == 2:
        row[column] = numbers[1]
    else:
        row[column] = numbers[0] if "≤" in text else numbers[0] + 1e-6


def test_rules_name_categories_and_units(found):
    told = " ".join(condition for one in found for rule in one.rules() for condition in rule.conditions)
    assert "job is boss" in told
    assert "gain > 50" in told
    assert "<= 0.5" not in told


def test_the_same_row_gives_the_same_tree_whatever_the_batch(explainer, people, found):
    alone = explainer.explain(people[N + 3 : N + 4])
    assert [str(rule) for rule in alone[0].rules()] == [str(rule) for rule in found[3].rules()]
    pd.testing.assert_frame_equal(alone.contributions, found.contributions.iloc[[3]], check_exact=True)
    part = found[3:5]
    pd.testing.assert_frame_equal(part.contributions, found.contributions.iloc[3:5], check_exact=True)


def test_what_a_tree_has_not_is_refused_with_what_it_has(found, explainer, people):
    for part in ("coefficients", "intercepts"):
        with pytest.raises(InputError, match=r"rules\(\)"):
            getattr(found, part)
    with pytest.raises(InputError, match='surrogate="ridge"'):
        explainer.explain(people[N:], queries=10)
    ridge = LimisExplainer(said_of, weighting="forest", surrogate="ridge").fit(people[:N]).explain(people[N : N + 1])
    with pytest.raises(InputError, match='surrogate="tree"'):
        ridge[0].rules()


def test_a_tree_is_told_in_every_form(found):
    html = found.to_html()
    assert html.count('class="limis-tree"') == len(found)
    assert "this row" in html
    assert "job is boss" in html
    text = render(found[0], "a row")
    assert "What holds for this row" in text
    data = found[0].to_dict()
    assert sum(rule["holds"] for rule in data["rules"]) == 1
    assert "coefficients" not in data
    assert found.to_json()


def test_rows_without_any_weight_get_the_global_models_word(people):
    few = people[:12].assign(job=list("abcdefghijkl"))
    explainer = LimisExplainer(lambda rows: rows["gain"], surrogate="tree", weighting="forest", candidates=2)
    found = explainer.fit(few).explain(few)
    assert np.isfinite(found.local_predictions).all()
    assert all(len(one.rules()) >= 1 for one in found)


def test_without_a_model_to_ask_trees_are_fitted_on_rows(people):
    outputs = said_of(people)
    explainer = LimisExplainer(surrogate="tree", weighting="forest").fit(people[:N], outputs=outputs[:N])
    model = explainer.local_model_
    assert isinstance(model, TreeModel)
    assert model.carried is None
    found = explainer.explain(people[N:], outputs=outputs[N:])
    assert found[0].rules()


@pytest.mark.parametrize("depth", [1, 5])
def test_rules_have_at_most_as_many_conditions_as_the_depth(people, depth):
    found = LimisExplainer(said_of, surrogate="tree", max_depth=depth).fit(people[:N]).explain(people[N:])
    assert max(len(rule.conditions) for one in found for rule in one.rules()) <= depth
    assert max(len(one.rules()) for one in found) <= 2**depth


@pytest.mark.parametrize("objective", ["auto", "reinforce"])
def test_an_estimator_can_be_trained_for_trees(objective):
    data = make_synthetic("Syn1", 150, random_state=0)
    explainer = LimisExplainer(
        data.black_box, surrogate="tree", weighting="towers", objective=objective, time_budget=2.0
    ).fit(data.features)
    assert explainer.choices_["trained_with"].tolist() == ["ridge", "tree"]
    assert explainer.choices_["chosen"].sum() == 1
    assert explainer.explain(data.features[:3])[0].rules()


def test_an_objective_that_needs_gradients_is_refused_for_trees():
    data = make_synthetic("Syn1", 150, random_state=0)
    explainer = LimisExplainer(data.black_box, surrogate="tree", weighting="towers", objective="gumbel", time_budget=1)
    with pytest.raises(InputError, match="rloo"):
        explainer.fit(data.features)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30, unique=True), st.sampled_from(["standard", "none"]))
@settings(max_examples=60)
def test_rounded_borders_divide_the_same_values(values, scaling):
    frame = pd.DataFrame({"x": values})
    table, _ = Table.learn(frame, scaling=scaling)
    column, numbers = table.columns[0], np.array(values)
    features = column.features(numbers)[:, 0]
    ordered = np.unique(features)
    middles = ordered[:-1] / 2 + ordered[1:] / 2
    between = (ordered[:-1] <= middles) & (middles < ordered[1:])
    borders = _round_borders(column, numbers, middles[between])
    for border, middle in zip(borders, middles[between], strict=True):
        np.testing.assert_array_equal((border - column.offset) / column.scale >= features, features <= middle)


def test_a_border_is_the_roundest_number_between_its_neighbours():
    assert roundest(6849, 7298) == 7000


def test_rules_are_true_of_rows_with_what_training_never_had(people):
    training = people[:N].assign(job=np.where(people["job"][:N] == "boss", "boss", "clerk"), age=40.0 + people["gain"])

    def said(rows):
        return 5.0 * (rows["job"].astype(object) == "boss") + (rows["age"] > 80)

    explainer = LimisExplainer(said, surrogate="tree", weighting="forest").fit(training)
    strange = training[:1].assign(job="pilot", age=np.nan)
    holding = [rule for rule in explainer.explain(strange)[0].rules() if rule.holds]
    told = " ".join(holding[0].conditions)
    assert "job is clerk" not in told
    assert "job is boss" not in told
    assert "age" not in told or "missing" in told


def test_conditions_with_or_stand_in_brackets_beside_others():
    rule = Rule(["age ≤ 40 or missing", "job is boss"], 1.0, 0.5, 3, holds=False)
    assert str(rule).strip() == "if (age ≤ 40 or missing) and job is boss: 1"
    assert str(Rule(["age ≤ 40 or missing"], 1.0, 0.5, 3, holds=False)).strip() == "if age ≤ 40 or missing: 1"


def test_few_probe_rows_leave_the_first_of_the_list(people):
    explainer = LimisExplainer(said_of, surrogate="tree", weighting="towers", time_budget=0.5)
    assert explainer.fit(people[:12]).explain(people[:2])[0].rules()
