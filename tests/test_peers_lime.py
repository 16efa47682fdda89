"""LIME behind the explainer's interface says what the package says, about every kind of column."""

import sys

import numpy as np
import pandas as pd
import pytest
from lime.lime_tabular import LimeTabularExplainer

from limis import InputError, LimisExplainer
from limis.errors import MissingExtraError
from limis.peers import Lime
from limis.perturb import MovedRows


def black_box(rows):
    return np.where(rows[:, 2] > 0, rows[:, 0], -rows[:, 1]) + rows[:, 0] * rows[:, 3]


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1, 5, 1, 0.1] + [0, 20, 0, 3]
    return LimisExplainer(black_box, weighting="forest", surrogate="ridge").fit(X), X[:6] + 0.01


def mixed_box(asked, frame):
    """A black box for mixed tables that keeps a note of what it was asked about."""

    def box(rows):
        asked.append(rows)
        days = (rows["since"] - pd.Timestamp("2020-01-01")) / pd.Timedelta("1D")
        wait = rows["wait"] / pd.Timedelta("1D")
        colour = np.where(rows["red"] == 1, 2.0, np.where(rows["blue"] == 1, -1.0, 0.0))
        level = rows["city"].cat.codes.to_numpy() + rows["member"].to_numpy() * 1.0
        return level + colour + days.to_numpy() / 400 + wait.to_numpy() + rows["pay"].fillna(-2).to_numpy()

    return LimisExplainer(
        box, weighting="forest", categorical_features=["code"], groups={"colour": ["red", "blue"]}, surrogate="ridge"
    ).fit(frame)


def mixed_frame(n, seed=0):
    rng = np.random.default_rng(seed)
    red = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 800, n), unit="D"),
            "wait": pd.to_timedelta(rng.random(n), unit="D"),
            "pay": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "children": rng.integers(0, 4, n),
            "city": pd.Categorical(rng.choice(["Rome", "Oslo", "Bern"], n)),
            "code": rng.choice([7, 8, 9], n),
            "member": rng.random(n) < 0.5,
            "note": np.where(rng.random(n) < 0.2, None, "seen"),
            "red": red,
            "blue": (1 - red) * rng.integers(0, 2, n),
        }
    )


@pytest.mark.parametrize("discretise", [True, False])
@pytest.mark.parametrize("num_features", [None, 2])
def test_what_lime_says_is_what_the_package_says(numbers, discretise, num_features):
    explainer, rows = numbers
    found = Lime(explainer, discretise=discretise, num_samples=200, num_features=num_features).explain(rows)
    for row in range(len(rows)):
        package = LimeTabularExplainer(
            explainer.training_.values,
            mode="regression",
            discretize_continuous=discretise,
            feature_selection="none" if num_features is None else "auto",
            random_state=np.random.RandomState(0),
        )
        said = package.explain_instance(rows[row], black_box, num_features=num_features or 4, num_samples=200)
        assert found.local_predictions.iloc[row] == pytest.approx(said.local_pred[0])
        effects = np.zeros(4)
        for column, effect in said.local_exp[1]:
            effects[column] = effect
        slopes = effects if discretise else effects / package.scaler.scale_
        np.testing.assert_allclose(found.coefficients.iloc[row], slopes)


def test_slopes_answer_moves_as_lines_do(numbers):
    explainer, rows = numbers
    found = Lime(explainer, discretise=False, num_samples=200).explain(rows)
    table = explainer.training_.table
    moved = rows + np.array([0.5, -1, 0, 0.2])
    changes = found.fits.changes(np.arange(6), MovedRows(table, moved))
    np.testing.assert_allclose(changes, ((moved - rows) * found.coefficients).sum(axis=1))


def test_bins_answer_a_move_only_when_the_number_leaves_its_quartile():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 8, 400) / 10, "b": rng.normal(size=400)})
    explainer = LimisExplainer(lambda rows: rows["a"] * 3 + rows["b"], weighting="forest", surrogate="ridge").fit(frame)
    peer = Lime(explainer, num_samples=500)
    # Quartiles fall on values that rows have: these belong to the bin below.
    borders = np.percentile(explainer.training_.values[:, 0], [25, 50, 75])
    found = peer.explain(pd.DataFrame({"a": [borders[1]], "b": [0.0]}))
    for a in np.arange(8) / 10:
        moved = MovedRows(explainer.training_.table, np.array([[a, 0.0]]))
        same = borders[0] < a <= borders[1]
        expected = 0.0 if same else -found.coefficients["a", ""].iloc[0]
        assert found.fits.changes(np.array([0]), moved)[0] == pytest.approx(expected)


@pytest.mark.parametrize("discretise", [True, False])
def test_weights_are_limes_kernel_of_the_training_rows(numbers, discretise):
    explainer, rows = numbers
    weights = Lime(explainer, discretise=discretise, num_samples=10).explain(rows).weights.toarray()
    training = explainer.training_.values
    quartiles = np.percentile(training, [25, 50, 75], axis=0)
    for row, own in enumerate(rows):
        if discretise:
            bins = (training[:, :, None] > quartiles.T).sum(axis=2)
            square = (bins != (own[:, None] > quartiles.T).sum(axis=1)).sum(axis=1)
        else:
            square = (((training - own) / training.std(axis=0)) ** 2).sum(axis=1)
        np.testing.assert_allclose(weights[row], np.exp(-square / (2 * 0.75**2 * 4)))


@pytest.mark.parametrize("options", [{}, {"discretise": False}, {"local_model": "tree"}])
def test_the_black_box_is_asked_with_columns_as_it_knows_them(options):
    asked = []
    frame, rows = mixed_frame(200), mixed_frame(4, seed=1)
    rows.loc[0, "pay"] = np.nan
    explainer = mixed_box(asked, frame)
    asked.clear()
    found = Lime(explainer, num_samples=50, **options).explain(rows)
    assert [len(part) for part in asked] == [4, 49, 49, 49, 49]
    for part in asked[1:]:
        fractional = {"children": "float64"}
        pd.testing.assert_series_equal(part.dtypes, frame.astype(fractional).dtypes)
        for name in ("city", "code", "member", "note", "red", "blue"):
            assert set(part[name].dropna()) <= set(frame[name].dropna())
        assert (part["red"] + part["blue"] <= 1).all()
        assert part["note"].isna().any()
    np.testing.assert_allclose(found.base_values + found.contributions.sum(axis=1), found.local_predictions)
    moved = MovedRows(explainer.training_.table, explainer.training_.values[:4])
    assert np.isfinite(found.fits.changes(np.arange(4), moved)).all()


def test_slopes_of_levels_and_gaps_say_what_the_regression_says():
    asked = []
    explainer = mixed_box(asked, mixed_frame(200))
    table = explainer.training_.table
    rows = mixed_frame(2, seed=1).assign(pay=[0.5, 0.25])
    found = Lime(explainer, discretise=False, num_samples=400).explain(rows)
    other = rows.assign(pay=np.nan, city=pd.Categorical(["Rome", "Oslo"]))
    changes = found.fits.changes(np.arange(2), MovedRows(table, table.values(other)))
    pay = table.names.index("pay")
    mean = np.nanmean(explainer.training_.values[:, pay])
    for row in range(2):
        slopes = found[row].coefficients
        expected = slopes["pay", ""] * (mean - rows["pay"][row])
        if rows["city"][row] != other["city"][row]:
            expected -= slopes["city", rows["city"][row]]
        assert changes[row] == pytest.approx(expected)


@pytest.mark.parametrize("discretise", [True, False])
def test_a_level_never_seen_is_left_by_any_other(discretise):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "kind": rng.choice(["a", "b"], 200)})
    explainer = LimisExplainer(lambda rows: rows["x"], weighting="forest", surrogate="ridge").fit(frame)
    found = Lime(explainer, discretise=discretise, num_samples=100).explain(frame.iloc[:1].assign(kind="c"))
    table = explainer.training_.table
    changes = [
        found.fits.changes(np.array([0]), MovedRows(table, table.values(frame.iloc[:1].assign(kind=kind))))[0]
        for kind in ("c", "a", "b")
    ]
    assert changes[0] == 0
    assert changes[1] == changes[2] != 0


def test_lime_needs_a_model_to_ask():
    X = np.random.default_rng(0).normal(size=(60, 2))
    explainer = LimisExplainer(weighting="forest", surrogate="ridge").fit(X, X[:, 0])
    with pytest.raises(InputError, match="no model"):
        Lime(explainer)


def test_without_the_package_the_extra_is_named(numbers, monkeypatch):
    monkeypatch.delitem(sys.modules, "lime.lime_tabular")
    monkeypatch.setitem(sys.modules, "lime", None)
    with pytest.raises(MissingExtraError, match=r"limis-xai\[peers\]"):
        Lime(numbers[0])
