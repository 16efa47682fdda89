"""Questions about the row itself."""

import numpy as np
import pandas as pd
import pytest

from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.metrics import skill_on_changes
from limis.queries import own_moves
from limis.training.measuring import MeasuringRows


def table(n, seed):
    rng = np.random.default_rng(seed)
    numbers = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return numbers.assign(kind=rng.choice(["x", "y", "z"], n))


def wavy(frame):
    """The slope of a differs from row to row in a way that no other row can tell."""
    return frame["a"] * np.sign(np.sin(40 * frame["b"])) + frame["c"] ** 2 + (frame["kind"] == "x")


@pytest.fixture(scope="module")
def explainer():
    return LimisExplainer(wavy, surrogate="ridge").fit(table(300, 0))


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

    explainer = LimisExplainer(counting, surrogate="ridge").fit(table(200, 0))
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
        LimisExplainer(surrogate="ridge").fit(rows, outputs=wavy(rows)).explain(rows[:2], outputs=[0, 0], queries=5)
    with pytest.raises(InputError, match='weighting="two-scales"'):
        LimisExplainer(wavy, surrogate="ridge", weighting="forest").fit(rows).explain(rows[:2], queries=5)


def test_nothing_is_asked_where_nothing_can_move():
    same = pd.DataFrame({"a": np.ones(60), "b": np.zeros(60)})
    found = (
        LimisExplainer(lambda rows: rows["a"] + rows["b"], surrogate="ridge").fit(same).explain(same[:3], queries=20)
    )
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

    explainer = LimisExplainer(model, surrogate="ridge", candidates=16).fit(frame)
    found = explainer.explain(frame.iloc[:30], queries=50).coefficients["kind", "rare"]
    assert found.notna().mean() >= explainer.explain(frame.iloc[:30]).coefficients["kind", "rare"].notna().mean()
    assert found.notna().mean() > 0.6


def stepping(frame):
    """Flat nearly everywhere, far from any slope, and unlike in each kind."""
    turned = np.where(frame["kind"] == "x", 1.0, -1.0)
    return turned * (np.floor(frame["a"]) + 3 * (frame["b"] > 1)) + np.minimum(frame["tail"], 2.0)


@pytest.mark.parametrize("model", [stepping, wavy])
def test_no_change_is_foreseen_worse_for_having_asked(model):
    def drawn(n, seed):
        return table(n, seed).assign(tail=np.random.default_rng(seed + 9).exponential(1.0, n) ** 3)

    explainer = LimisExplainer(model, surrogate="ridge").fit(drawn(600, 0))
    training, rows = explainer.training_, drawn(80, 1)
    outputs = training.black_box.outputs(rows)
    measuring = MeasuringRows.ask(training, rows, outputs, None, np.random.default_rng(2))

    def skills(queries):
        fits = explainer.explain(rows, queries=queries).fits
        probes = [part.asked for part in measuring.by_range.values()]
        moved = [(one, fits.changes(one.rows, one.moved(training.table))) for one in probes]
        return np.array([skill_on_changes(one.changes, foreseen) for one, foreseen in moved])

    without = skills(0)
    for queries in (5, 15, 50, 200):
        assert (skills(queries) > without - 0.03).all()
    assert skills(200).mean() > without.mean() + 0.1


def test_slopes_end_with_the_values_asked_about(explainer):
    rows = table(5, 6)
    for one in explainer.explain(rows, queries=100):
        far = pd.concat([rows.iloc[[one.row]]] * 2).assign(a=[1e3, 1e6])
        np.testing.assert_array_equal(*one.predict(far))


def test_a_level_asked_about_does_what_was_answered(explainer):
    rows = table(20, 7)
    found = explainer.explain(rows, queries=60)
    for one in found:
        there = rows.iloc[[one.row]].assign(kind="x")
        answered = (wavy(there) - wavy(rows.iloc[[one.row]])).item()
        assert one.predict(there)[0] - one.local_prediction == pytest.approx(answered, abs=0.01)


def test_questions_are_about_near_and_far_values(explainer):
    training = explainer.training_
    values = training.table.values(table(20, 8))
    moves = own_moves(training, values, 60)
    steps = training.values[moves.donors, 0] - values[moves.rows, 0]
    for row in range(20):
        own = np.abs(steps[(moves.rows == row) & moves.changed[:, 0]])
        assert own.max() > 2 * own.min()
