"""Questions about the row itself."""

import numpy as np
import pandas as pd
import pytest

from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.queries import own_moves


def table(n, seed):
    rng = np.random.default_rng(seed)
    numbers = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return numbers.assign(kind=rng.choice(["x", "y", "z"], n))


def wavy(frame):
    """The slope of a differs from row to row in a way that no other row can tell."""
    return frame["a"] * np.sign(np.sin(40 * frame["b"])) + frame["c"] ** 2 + (frame["kind"] == "x")


@pytest.fixture(scope="module")
def explainer():
    return LimisExplainer(wavy).fit(table(300, 0))


def test_answers_about_the_row_itself_give_its_own_slope(explainer):
    rows = table(60, 1)
    without, asked = explainer.explain(rows), explainer.explain(rows, queries=60)
    truth = np.sign(np.sin(40 * rows["b"]))
    # The true slope of a is 1 or −1.
    error, error_asked = ((found.coefficients["a", ""] - truth).abs().mean() for found in (without, asked))
    assert error_asked < 0.5 * error
    # The prediction still comes from other rows: the error at the row stays a check.
    np.testing.assert_allclose(asked.local_predictions, without.local_predictions)


def test_the_black_box_is_asked_no_more_than_allowed():
    asked = []

    def counting(frame):
        asked.append(len(frame))
        return wavy(frame)

    explainer = LimisExplainer(counting).fit(table(200, 0))
    asked.clear()
    explainer.explain(table(10, 1), queries=7)
    assert 10 < sum(asked) <= 10 + 10 * 7
    asked.clear()
    explainer.explain(table(10, 1))
    assert sum(asked) == 10


def test_moves_take_one_column_to_a_value_of_a_training_row_and_every_column_in_turn(explainer):
    training = explainer.training_
    values = training.table.values(table(5, 2))
    moves = own_moves(training, values, 8)
    assert (moves.changed.sum(axis=1) == 1).all()
    columns = moves.changed.argmax(axis=1)
    assert (training.values[moves.donors, columns] != values[moves.rows, columns]).all()
    for row in range(5):
        # Two questions about each of the four columns: fair shares.
        assert np.bincount(columns[moves.rows == row], minlength=4).tolist() == [2, 2, 2, 2]
    asked = pd.DataFrame({"row": moves.rows, "column": columns, "to": training.values[moves.donors, columns]})
    assert not asked.duplicated().any()


def test_a_row_is_explained_the_same_alone_and_in_a_batch(explainer):
    rows = table(6, 3)
    together = explainer.explain(rows, queries=20)
    alone = explainer.explain(rows.iloc[[4]], queries=20)
    np.testing.assert_array_equal(alone.coefficients.to_numpy()[0], together.coefficients.to_numpy()[4])
    np.testing.assert_array_equal(alone.local_predictions.iloc[0], together.local_predictions.iloc[4])


@pytest.mark.parametrize("queries", [-1, 1.5, "many"])
def test_a_number_of_questions_is_expected(explainer, queries):
    with pytest.raises(InputError, match="queries is a number"):
        explainer.explain(table(2, 4), queries=queries)


def test_questions_need_somebody_to_ask_and_two_scales():
    rows = table(200, 0)
    with pytest.raises(InputError, match="need a model"):
        LimisExplainer().fit(rows, outputs=wavy(rows)).explain(rows[:2], outputs=[0, 0], queries=5)
    with pytest.raises(InputError, match='weighting="two-scales"'):
        LimisExplainer(wavy, weighting="forest").fit(rows).explain(rows[:2], queries=5)


def test_nothing_is_asked_where_nothing_can_move():
    same = pd.DataFrame({"a": np.ones(60), "b": np.zeros(60)})
    found = LimisExplainer(lambda rows: rows["a"] + rows["b"]).fit(same).explain(same[:3], queries=20)
    np.testing.assert_allclose(found.local_predictions, 1.0)


def test_the_bound_is_that_of_the_explanation_without_questions(explainer):
    rows = table(8, 5)
    without, asked = explainer.explain(rows), explainer.explain(rows, queries=20)
    pd.testing.assert_series_equal(without.fidelity["change_error_bound"], asked.fidelity["change_error_bound"])
    assert asked[3:5].fidelity["change_error_bound"].tolist() == without.fidelity["change_error_bound"].tolist()[3:5]


def test_a_level_that_was_asked_about_is_not_unknown():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "kind": rng.choice(["x", "y", "rare"], 300, p=[0.5, 0.47, 0.03])})

    def model(rows):
        return rows["a"] + 2.0 * (rows["kind"] == "rare")

    explainer = LimisExplainer(model, candidates=16).fit(frame)
    found = explainer.explain(frame.iloc[:30], queries=50).coefficients["kind", "rare"]
    assert found.notna().mean() >= explainer.explain(frame.iloc[:30]).coefficients["kind", "rare"].notna().mean()
    assert found.notna().mean() > 0.6
