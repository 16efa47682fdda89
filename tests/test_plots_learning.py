import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from limis import LimisExplainer
from limis.errors import InputError
from limis.plots import plot_learning, plot_penalties

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402 - after the backend without a window was chosen


def model(rows: pd.DataFrame) -> np.ndarray:
    return rows["a"].to_numpy() * (rows["b"].to_numpy() > 0)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])


@pytest.fixture(scope="module")
def trained(table) -> LimisExplainer:
    return LimisExplainer(model, weighting="pairwise", time_budget=0.3, surrogate="ridge").fit(table)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_learning_curves_end_where_training_did(trained):
    _, given = plt.subplots()
    ax = plot_learning(trained, given)
    assert ax is given
    curves = [line for line in ax.lines if line.get_label().startswith("λ")]
    assert [list(line.get_ydata()) for line in curves] == [log.validation_error for log in trained.training_log_]
    assert sum("(best)" in text.get_text() for text in ax.get_legend().get_texts()) == 1
    ax.figure.canvas.draw()


def test_the_price_that_was_chosen_is_marked(trained):
    by_penalty = plot_penalties(trained)
    assert len(by_penalty.get_xticks()) == len(trained.choices_)
    chosen = next(line for line in by_penalty.lines if line.get_label() == "chosen")
    error = trained.choices_.query("chosen")["error"].iloc[0] / trained.training_.unit
    assert chosen.get_ydata()[0] == pytest.approx(error)
    by_penalty.figure.canvas.draw()
    _, given = plt.subplots()
    assert plot_penalties(trained, given) is given


def test_restarts_and_trees_have_many_runs_at_one_price(trained):
    again = copy.copy(trained)
    again.training_log_ = [copy.copy(log) for log in trained.training_log_ * 4]
    assert len(plot_penalties(again).get_xticks()) == 3
    ax = plot_learning(again)
    assert len(ax.get_legend().get_texts()) <= 10
    assert "12 runs" in ax.get_xlabel()
    ax.figure.canvas.draw()


def test_what_was_not_trained_has_no_learning_curves(table, trained):
    forest = LimisExplainer(model, weighting="forest", candidates=64, surrogate="ridge").fit(table)
    for draw in (plot_learning, plot_penalties):
        with pytest.raises(InputError, match="weighting was not trained"):
            draw(forest)
        with pytest.raises(NotFittedError):
            draw(LimisExplainer(model, surrogate="ridge"))
        with pytest.raises(InputError, match="a fitted LimisExplainer, not a DataFrame"):
            draw(table)
    one_penalty = copy.copy(trained)
    one_penalty.training_log_ = trained.training_log_[:1]
    with pytest.raises(InputError, match=r"only one λ was tried \(0\)"):
        plot_penalties(one_penalty)
