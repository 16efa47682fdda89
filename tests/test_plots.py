import dataclasses

import numpy as np
import pandas as pd
import pytest

from limis import Explanation, LimisExplainer
from limis.errors import MissingExtraError
from limis.plots import plot_contributions
from limis.report.words import Numbers

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402 - after the backend without a window was chosen


def explanation(names: list[str], labels: bool = False) -> Explanation:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, len(names))), columns=names)
    value = X[names[0]].to_numpy() * 2 - (X[names[1]].to_numpy() > 0)
    if labels:
        return LimisExplainer().fit(X, np.where(value > 0, "$yes$", "$no")).explain(X[:1])[0]
    return LimisExplainer(lambda rows: rows[names[0]] * 2 - (rows[names[1]] > 0)).fit(X).explain(X[:1])[0]


@pytest.fixture(scope="module")
def plain() -> Explanation:
    return explanation(["a", "b", "c"])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def drawn_words(ax) -> list[str]:
    return [text.get_text() for text in (*ax.get_yticklabels(), *ax.texts)]


def test_the_axes_given_are_drawn_on_and_returned(plain, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("a plot must not show itself"))
    _, ax = plt.subplots()
    n_figures = len(plt.get_fignums())
    assert plot_contributions(plain, ax) is ax
    assert len(plt.get_fignums()) == n_figures
    assert plain.plot(ax=None) is not ax
    assert len(plt.get_fignums()) == n_figures + 1


def test_the_waterfall_leads_from_the_overall_mean_to_the_local_prediction(plain):
    ax = plot_contributions(plain)
    words = drawn_words(ax)
    numbers = Numbers.of(plain.all.training)
    assert words[0] == "all training rows"
    assert words[1] == "rows like this one"
    assert "local prediction" in words
    for reason in plain.reasons():
        assert reason.words in words
        assert numbers.signed(reason.contribution) in words
    widths = [bar.get_width() for bar in ax.patches]
    overall = plain.all.training.overall_mean
    assert overall + sum(widths) == pytest.approx(plain.local_prediction)
    starts = [bar.get_x() for bar in ax.patches]
    assert starts[0] == pytest.approx(overall)
    assert starts[1] == pytest.approx(plain.base_value)


def test_the_black_box_is_a_line_where_it_is_known(plain):
    line = next(line for line in plot_contributions(plain).lines if line.get_label() == "black box")
    assert line.get_xdata()[0] == plain.model_output
    without = dataclasses.replace(plain.all, outputs=None)[0]
    ax = plot_contributions(without)
    assert all(line.get_label() != "black box" for line in ax.lines)
    assert not any("black box" in text.get_text() for text in ax.texts)


def test_lowering_steps_are_hollow(plain):
    for bar in plot_contributions(plain).patches:
        assert (bar.get_facecolor()[3] == 0) == (bar.get_width() < 0)


def test_dollars_in_names_are_no_formulas():
    one = explanation(["$\\frac{a$", "price $ and $_^$", "c\x07\\$"], labels=True)
    ax = plot_contributions(one)
    ax.figure.canvas.draw()  # a formula that cannot be read would raise here
    for label in (*ax.get_yticklabels(), ax.xaxis.label, ax.title):
        assert not label._preprocess_math(label.get_text())[1]
    shown = [label._preprocess_math(label.get_text())[0] for label in ax.get_yticklabels()]
    assert any(text.startswith("price $ and $_^$ = ") for text in shown)
    assert ax.xaxis.label._preprocess_math(ax.get_xlabel())[0] == "probability of $yes$"


def test_many_and_long_names_stay_readable():
    names = [f"column {j} " + "long " * 30 for j in range(80)]
    ax = plot_contributions(explanation(names))
    ax.figure.canvas.draw()
    words = [text.get_text() for text in ax.get_yticklabels()]
    assert len(words) == 2 + 8 + 1
    assert max(len(text) for text in words) < 70
    assert any(text.endswith("other columns") for text in words)


def test_a_missing_matplotlib_is_asked_for(plain, monkeypatch):
    def absent(name: str):
        raise ModuleNotFoundError(name, name="matplotlib")

    monkeypatch.setattr("limis.errors.importlib.import_module", absent)
    with pytest.raises(MissingExtraError, match=r"limis-xai\[plots\]"):
        plot_contributions(plain)
