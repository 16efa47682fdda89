import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression

import limis.plots
from limis import Explanation, Explanations, LimisExplainer
from limis.class_explanations import ClassExplanations
from limis.errors import InputError, MissingExtraError
from limis.plots import (
    plot_coefficients,
    plot_contributions,
    plot_fidelity,
    plot_global,
    plot_training_rows,
    plot_tree,
    plot_weights,
)
from limis.report.words import Numbers
from limis.trees.view import nodes

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402 - after the backend without a window was chosen


def explanation(names: list[str], labels: bool = False, surrogate: str = "ridge") -> Explanation:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, len(names))), columns=names)
    value = X[names[0]].to_numpy() * 2 - (X[names[1]].to_numpy() > 0)
    if labels:
        return (
            LimisExplainer(surrogate=surrogate, weighting="forest")
            .fit(X, np.where(value > 0, "$yes$", "$no"))
            .explain(X[:1])[0]
        )
    explainer = LimisExplainer(lambda rows: rows[names[0]] * 2 - (rows[names[1]] > 0), surrogate=surrogate)
    return explainer.fit(X).explain(X[:1])[0]


@pytest.fixture(scope="module")
def curves() -> Explanation:
    return explanation(["a", "b", "c"], surrogate="curves")


@pytest.fixture(scope="module")
def plain() -> Explanation:
    return explanation(["a", "b", "c"])


@pytest.fixture(autouse=True)
def _close_figures():
    plt.close("all")  # tests of other files, which come before in some orders, may have left theirs open
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


def test_the_waterfall_tells_no_number_of_a_column_whose_effect_was_not_seen():
    X = pd.DataFrame({"a": np.random.default_rng(0).normal(size=200), "planet": "Earth"})
    one = LimisExplainer(lambda rows: rows["a"] * 2, surrogate="ridge").fit(X).explain(X[:1])[0]
    ax = plot_contributions(one)
    line = [label.get_text() for label in ax.get_yticklabels()].index("planet = Earth (fixed here)")
    assert ax.texts[line].get_text() == ""
    assert all(text.get_text() for place, text in enumerate(ax.texts) if place != line)


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


SCRIPT, BREAKS, LONG, DOLLARS = "<script>alert(1)</script>", "line\nbreak", "n" * 200, "$\\frac{a$"


def awkward_table(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=[DOLLARS, BREAKS, LONG])
    table[SCRIPT] = rng.choice(["$low$", "<b>high</b>", "x" * 200, "a\nb"], n)
    return table


def awkward_model(rows: pd.DataFrame) -> np.ndarray:
    return (rows[DOLLARS] * 2 - (rows[BREAKS] > 0) + (rows[SCRIPT] == "$low$") * (rows[LONG] > 0)).to_numpy()


def fitted(X: pd.DataFrame, model: Any = awkward_model, **options: Any) -> LimisExplainer:
    return LimisExplainer(model, **{"surrogate": "ridge", "weighting": "forest", "candidates": 64, **options}).fit(X)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return awkward_table()


@pytest.fixture(scope="module")
def awkward(table) -> Explanations:
    return fitted(table).explain(awkward_table(300)[240:])


@pytest.fixture(scope="module")
def trees(table) -> Explanations:
    return fitted(table, surrogate="tree").explain(table[:5])


@pytest.fixture(scope="module")
def classes() -> ClassExplanations:
    X = pd.DataFrame(np.random.default_rng(2).normal(size=(200, 2)), columns=["a", "b"])
    labels = np.select([X["a"] > 0.5, X["b"] > 0], ["$one", "two"], "three")
    return fitted(X, LogisticRegression().fit(X, labels)).explain(X[:6])


ONE_ROW = [plot_contributions, plot_coefficients, plot_training_rows, plot_weights]
WEIGHTS_BY_DISTANCE = partial(plot_weights, against="distance")
MEAN = partial(plot_global, kind="mean")
MANY_ROWS = [plot_fidelity, plot_global, MEAN]


def all_text(ax) -> list[str]:
    """Everything that is written, as matplotlib draws it; a formula among it would be an error."""
    legend = ax.get_legend()
    parts = [*ax.get_xticklabels(), *ax.get_yticklabels(), *ax.texts, ax.xaxis.label, ax.yaxis.label]
    parts += [ax.title, ax._left_title, *(legend.get_texts() if legend else [])]
    ax.figure.canvas.draw()
    own_ticks = [text for text in parts if not text.get_text().startswith("$\\mathdefault")]  # powers of ten
    assert not any(text._preprocess_math(text.get_text())[1] for text in own_ticks)
    return [text._preprocess_math(text.get_text())[0] for text in own_ticks]


def without_weights(found: Explanations) -> Explanations:
    """The same rows, as if no training row had had weight."""
    empty = sp.csr_array(found.weights.shape)
    fits = dataclasses.replace(found.fits, weights=empty, slope_weights=empty, empty=np.ones(len(found), dtype=bool))
    return dataclasses.replace(found, fits=fits)


@pytest.mark.parametrize("draw", [*ONE_ROW, WEIGHTS_BY_DISTANCE])
def test_plots_of_one_row_draw_on_the_axes_given_whatever_the_names(awkward, draw, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("a plot must not show itself"))
    _, ax = plt.subplots()
    assert draw(awkward[0], ax=ax) is ax
    assert plt.get_fignums() == [ax.figure.number]
    words = all_text(ax)
    assert any(text.startswith("Row 240") for text in words)
    assert max(len(line) for text in words for line in text.split("\n")) < 130
    all_text(draw(awkward[0]))


@pytest.mark.parametrize("draw", MANY_ROWS)
def test_plots_of_many_rows_draw_on_the_axes_given_whatever_the_names(awkward, trees, classes, draw, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("a plot must not show itself"))
    _, ax = plt.subplots()
    assert draw(awkward, ax=ax) is ax
    assert plt.get_fignums() == [ax.figure.number]
    all_text(ax)
    for found in (awkward, awkward[:1], trees, classes.for_class("$one"), without_weights(awkward)):
        all_text(draw(found))


@pytest.mark.parametrize("draw", [*ONE_ROW, WEIGHTS_BY_DISTANCE])
def test_rows_without_weights_are_drawn(awkward, draw):
    all_text(draw(without_weights(awkward)[0]))


@pytest.mark.parametrize("draw", [plot_contributions, plot_coefficients, plot_training_rows])
def test_of_several_classes_the_one_that_is_drawn_is_named(classes, draw):
    assert any("centred log-probability of $one" in text for text in all_text(draw(classes.for_class("$one")[0])))
    predicted = classes.predicted.iloc[0]
    assert any(f"log-probability of {predicted}" in text for text in all_text(draw(classes[0])))


def test_one_column_and_constant_outputs_are_drawn():
    X = pd.DataFrame({"only": np.linspace(0, 1, 60)})
    for model in (lambda rows: rows["only"].to_numpy(), lambda rows: np.full(len(rows), 3.0)):
        found = fitted(X, model).explain(X[:4])
        for draw in MANY_ROWS:
            all_text(draw(found))
        for draw in (*ONE_ROW, WEIGHTS_BY_DISTANCE):
            all_text(draw(found[0]))
    tree = fitted(X, lambda rows: np.full(len(rows), 3.0), surrogate="tree").explain(X[:1])[0]
    assert "3.00 · this row" in all_text(plot_tree(tree))


def test_coefficients_stand_beside_their_names_in_original_units(plain):
    words = all_text(plot_coefficients(plain))
    assert any(text.startswith("a, per ") for text in words)
    slope = plain.coefficients["a", ""]
    assert f"+{slope:#.3g}" in words
    ax = plot_coefficients(plain)
    points = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert points == sorted(points, key=lambda effect: -abs(effect))
    deviation = plain.all.training.frame["a"].std(ddof=0)
    assert points[0] == pytest.approx(slope * deviation, rel=1e-4)


def test_fixed_and_unknown_columns_are_said_to_be(table):
    X = table.assign(same=1.0)
    row = X[:1].assign(**{SCRIPT: "never seen"})
    one = fitted(X).explain(row)[0]
    words = all_text(plot_coefficients(one))
    assert f"{SCRIPT} = never seen" in words
    assert "unknown here" in words
    assert "same (fixed here)" in words
    assert "effect not seen" in words


def test_many_coefficients_are_counted():
    many = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 30))).rename(columns=str)
    one = fitted(many, lambda rows: rows["0"].to_numpy()).explain(many[:1])[0]
    assert "bold: what this row has; not drawn: 18 smaller coefficients" in "\n".join(all_text(plot_coefficients(one)))


def test_trees_are_drawn_with_all_leaves_and_the_way_of_the_row(trees):
    for one in trees:
        ax = plot_tree(one)
        words = all_text(ax)
        numbers = Numbers.of(one.all.training)
        for rule in one.rules():
            assert numbers.show(rule.value) + (" · this row" if rule.holds else "") in words
        bold = [text.get_text() for text in ax.texts if text.get_fontweight() == "bold"]
        depth = len([node for node in nodes(one).values() if node.on_path]) - 1
        assert len(bold) == depth + 1  # its conditions, and its leaf
        assert sum(line.get_linewidth() > 2 for line in ax.lines) == depth
        assert max(map(len, words)) < 60
        # However long a name is, the border that a side ends at is never cut off.
        borders = [text for text in words if " ≤ " in text or " > " in text]
        assert all(text.split()[-1].lstrip("-").replace(".", "").isdigit() for text in borders)
        assert len([text for text in borders if " ≤ " in text]) == len(borders) / 2


def test_the_table_has_the_training_rows_and_marks_what_differs(plain, awkward):
    ax = plot_training_rows(plain, k=3)
    words = [text.get_text() for text in ax.texts]
    assert words[:3] == ["row", "weight", "output"]
    top = plain.training_rows(3)
    assert [words[6 * line] for line in range(5)] == ["row", "this row", *map(str, top.index)]
    assert words[6 * 2 + 1] == f"{top['weight'].iloc[0]:.1%}"
    assert all(text.startswith("≠ ") for text in words[6 * 2 + 3 : 6 * 3])  # numbers drawn at random never agree
    narrow = plot_training_rows(awkward[0], ax=plt.subplots(figsize=(3, 3))[1])
    assert "not shown: 2 other columns" in narrow.get_xlabel()
    with pytest.raises(InputError, match="k is how many training rows"):
        plot_training_rows(plain, k=0)


def test_weights_name_the_rows_and_how_many_they_are_worth(awkward, plain):
    one = awkward[0]
    label = plot_weights(one).get_legend().get_texts()[0].get_text()
    effective = one.fidelity["effective_rows"]
    assert label == f"weight: {len(one.weights)} rows, effectively {effective:,.{1 if effective < 10 else 0}f}"
    assert [text.get_text().split(":")[0] for text in plot_weights(plain).get_legend().get_texts()] == [
        "level",
        "slopes",
    ]
    by_distance = plot_weights(one, against="distance").get_legend().get_texts()
    assert by_distance[0].get_text() == f"no weight: {len(one.all.training) - len(one.weights)} rows"
    assert any("no training row has weight" in text for text in all_text(plot_weights(without_weights(awkward)[0])))
    with pytest.raises(InputError, match="against is None or 'distance', not 'rank'"):
        plot_weights(one, against="rank")


def test_fidelity_counts_the_trusted_and_draws_others_as_crosses(awkward):
    class EveryThird:
        def bound(self, fits, effective):
            assert len(effective) == len(fits.levels)
            return np.where(np.arange(len(fits.levels)) % 3, 9.0, 0.0)

    some = dataclasses.replace(awkward, bound=EveryThird(), tolerance=1.0)
    none = dataclasses.replace(awkward, bound=None)
    for found, trusted in ((some, int(some.fidelity["trusted"].sum())), (none, 0)):
        ax = plot_fidelity(found)
        assert (trusted > 0) == (found is some)
        words = [text.get_text() for text in ax.get_legend().get_texts()]
        others = len(found) - trusted
        assert words == ["both say the same", f"not trusted: {others} rows", f"trusted: {trusted} rows"]
        crosses = next(line for line in ax.lines if line.get_marker() == "x")
        assert len(crosses.get_xdata()) == others
    with pytest.raises(InputError, match=r"explain\(X, outputs=\.\.\.\)"):
        plot_fidelity(dataclasses.replace(awkward, outputs=None))


def test_fidelity_of_curves_is_that_of_what_is_expected_without_asking(curves):
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(20, 3)), columns=["a", "b", "c"])
    explainer = LimisExplainer(lambda rows: rows["a"] * 2 - (rows["b"] > 0), max_questions=5000).fit(
        curves.all.training.frame
    )
    found = explainer.explain(X)
    ax = plot_fidelity(found)
    assert ax.get_ylabel() == "expected without asking: output"
    drawn = np.concatenate([line.get_ydata() for line in ax.lines if line.get_marker() in ("x", "o")])
    np.testing.assert_allclose(np.sort(drawn), np.sort(found.fits.predictions()))
    assert not np.allclose(drawn, np.sort(found.outputs))


def test_the_overview_ranks_columns_and_sums_the_rest(awkward):
    sizes = awkward.contributions.abs().mean().sort_values(ascending=False)
    ax = plot_global(awkward, kind="mean")
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(sizes.tolist())
    many = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 20))).rename(columns=str)
    found = fitted(many, lambda rows: rows["0"].to_numpy()).explain(many[:9])
    ax = plot_global(found)
    assert [text.get_text() for text in ax.get_yticklabels()][-1] == "5 other columns, together"
    points = [np.asarray(part.get_offsets())[:, 0] for part in ax.collections if len(part.get_offsets())]
    assert sum(map(np.sum, points)) == pytest.approx(found.contributions.to_numpy().sum())
    assert len(ax.get_yticklabels()) == 16


def test_categories_are_grey_squares_and_numbers_coloured_by_their_rank(awkward):
    ax = plot_global(awkward)
    rows = {round(float(part.get_offsets()[:, 1].mean())): part for part in ax.collections if len(part.get_offsets())}
    order = awkward.contributions.abs().mean().sort_values(ascending=False, kind="stable").index.tolist()
    assert len(np.unique(rows[order.index(SCRIPT)].get_facecolor(), axis=0)) == 1
    assert len(np.unique(rows[order.index(DOLLARS)].get_facecolor(), axis=0)) > 10


def test_explanations_draw_themselves_by_the_names_of_plots(awkward, trees, classes):
    _, ax = plt.subplots()
    assert awkward[0].plot(ax) is ax
    assert awkward[0].plot("training_rows", k=2, ax=plt.subplots()[1]).get_title(loc="left").startswith("Row 240 and")
    assert "coefficients" in awkward[0].plot("coefficients").get_title(loc="left")
    assert awkward[0].plot("weights", against="distance").get_xlabel() == "Gower distance from this row"
    assert "tree" in trees[0].plot("tree").get_title(loc="left")
    assert awkward.plot().get_xlabel() == "contribution to the output"
    assert awkward.plot("mean").get_xlabel().startswith("mean size")
    assert awkward.plot(kind="fidelity").get_xlabel() == "black box: output"
    for call, told in (
        (lambda: awkward[0].plot("beeswarm2"), "there is no plot 'beeswarm2' of one explanation; there are 'contrib"),
        (lambda: awkward.plot("pie"), "there is no plot 'pie' of many explanations; there are 'beeswarm', 'mean'"),
        (lambda: awkward.plot("tree"), r"choose one: found\[0\].plot\('tree'\)"),
        (classes.plot, r"one class at a time; choose one: plot_global\(found.for_class\('\$one'\)\)"),
        (lambda: plot_tree(awkward[0]), 'this local model is no tree; fit the explainer with surrogate="tree"'),
        (lambda: plot_coefficients(trees[0]), "no coefficients; draw its tree: plot_tree"),
        (lambda: plot_coefficients(awkward), r"one row; choose one: plot_coefficients\(found\[0\]\)"),
        (lambda: plot_fidelity(awkward[0]), "the explanations of many rows"),
        (lambda: plot_fidelity(3), "not a int"),
        (lambda: plot_weights("x"), "not a str"),
        (lambda: plot_global(awkward[:0]), "no explanations"),
        (lambda: plot_global(awkward, kind="pie"), "kind is 'beeswarm' or 'mean', not 'pie'"),
    ):
        with pytest.raises(InputError, match=told):
            call()


def test_any_regressor_shows_its_rows_but_no_contributions(table):
    found = fitted(table[:80], surrogate=ExtraTreesRegressor(2)).explain(table[:2])
    all_text(plot_training_rows(found[0]))
    all_text(plot_fidelity(found))
    with pytest.raises(InputError, match="plot_fidelity"):
        plot_global(found)


def test_every_plot_is_listed():
    for name in limis.plots.__all__:
        assert callable(getattr(limis.plots, name))
