"""Any scikit-learn regressor as the local model: what it can tell, and what it says it cannot."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from limis import InputError, LimisExplainer
from limis.errors import StoreError
from limis.report.text import render

N = 200


def black_box(rows):
    return np.where(rows[:, 0] > 0, 2 * rows[:, 1], rows[:, 2])


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(N + 10, 3))


def explain(rows, regressor, **options):
    explainer = LimisExplainer(black_box, surrogate=regressor, weighting="forest", **options).fit(rows[:N])
    return explainer, explainer.explain(rows[N:])


@pytest.mark.parametrize("regressor", [LinearRegression(), DecisionTreeRegressor(max_depth=2)], ids=str)
def test_contributions_of_linear_models_and_trees_add_up(rows, regressor):
    explainer, found = explain(rows, regressor)
    total = found.base_values + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.local_predictions)
    assert np.isfinite(explainer.nse_)
    assert np.isfinite(explainer.skill_)
    assert found[:2].to_html()
    for one in found:
        assert one.predict(rows[[N + one.row]])[0] == pytest.approx(one.local_prediction)


def test_a_ridge_of_scikit_learn_is_the_ridge_of_limis(rows):
    ours = LimisExplainer(black_box, weighting="forest", candidates=64, surrogate="ridge").fit(rows[:N])
    scale = ours.local_model_.weighting.scale
    theirs = LimisExplainer(black_box, weighting="forest", candidates=64, surrogate=Ridge(alpha=1 / scale)).fit(
        rows[:N]
    )  # weights times a scale against a penalty of 1 are weights against a penalty of 1 / scale
    found, other = ours.explain(rows[N:]), theirs.explain(rows[N:])
    np.testing.assert_allclose(found.local_predictions, other.local_predictions, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.coefficients, other.coefficients, rtol=1e-2, atol=1e-3)


def test_what_has_no_meaning_is_refused_and_the_rest_works(rows):
    explainer, found = explain(rows, SVR())
    assert np.isfinite(found.local_predictions).all()
    assert found.fidelity["error"].notna().all()
    assert np.isfinite(explainer.skill_)
    with pytest.raises(InputError, match="SVR, which is neither linear nor a tree"):
        _ = found.contributions
    with pytest.raises(InputError, match="no coefficients"):
        _ = found.coefficients


@pytest.mark.parametrize(
    ("regressor", "readings"),
    [
        (LinearRegression(), {"contributions", "coefficients", "intercept"}),
        (DecisionTreeRegressor(max_depth=2), {"contributions"}),
        (SVR(), set()),
    ],
    ids=["linear", "tree", "neither"],
)
def test_every_form_tells_what_has_a_meaning(rows, regressor, readings):
    _, found = explain(rows, regressor)
    told = json.loads(found.to_json())
    assert all({"contributions", "coefficients", "intercept", "rules"} & set(one) == readings for one in told)
    assert any("contribution" in name for name in found.to_frame()) == ("contributions" in readings)
    assert ("neither linear nor a tree" in found.to_html()) == (not readings)
    assert "this row, as explained" in render(found[0], "Row 0")


def test_a_regressor_without_a_seed_explains_alike_each_time(rows):
    twins = np.column_stack([rows, rows[:, 0]])  # a tree takes one of equal columns at random
    explainer = LimisExplainer(black_box, surrogate=DecisionTreeRegressor(max_depth=2), weighting="forest")
    explainer.fit(twins[:N])
    once, again = explainer.explain(twins[N:]), explainer.explain(twins[N:])
    np.testing.assert_array_equal(once.contributions, again.contributions)


def test_rows_of_different_kinds_each_tell_what_they_can(rows):
    class Clipped(LinearRegression):
        def predict(self, X):
            return np.maximum(0, super().predict(X))

    explainer = LimisExplainer(
        lambda rows: np.maximum(0, 2 + rows @ [3, 1, 0]), surrogate=Clipped(), weighting="forest", candidates=20
    )
    found = explainer.fit(rows[:N]).explain(rows[:40])
    straight = found.fits.telling == "linear"
    assert 0 < straight.sum() < 40
    told = found[np.flatnonzero(straight)]
    np.testing.assert_allclose(told.base_values + told.contributions.sum(axis=1), told.local_predictions)
    with pytest.raises(InputError, match="Clipped, which is neither linear nor a tree"):
        _ = found.contributions


def test_processes_change_nothing(rows):
    _, one = explain(rows, DecisionTreeRegressor(max_depth=2, random_state=0))
    _, two = explain(rows, DecisionTreeRegressor(max_depth=2, random_state=0), n_jobs=2)
    np.testing.assert_array_equal(one.local_predictions, two.local_predictions)


@pytest.mark.parametrize(
    ("regressor", "why"),
    [
        (KNeighborsRegressor(), "sample_weight"),
        (LogisticRegression(), "classifier"),
        (RidgeClassifier(), "classifier"),
        (DecisionTreeRegressor, r"pass one of it: DecisionTreeRegressor\(\)"),
    ],
    ids=["no weights", "classifier", "no probabilities", "a class"],
)
def test_what_cannot_be_a_surrogate_is_refused(rows, regressor, why):
    with pytest.raises(InputError, match=why):
        LimisExplainer(black_box, surrogate=regressor).fit(rows[:N])


def test_it_cannot_be_saved_and_says_so(rows, tmp_path):
    explainer, _ = explain(rows, LinearRegression())
    with pytest.raises(StoreError, match="LinearRegression"):
        explainer.save(tmp_path / "e.limis")
    assert not list(tmp_path.iterdir())


def test_coefficients_behind_a_link_function_are_not_slopes(rows):
    def positive(rows):
        return np.exp(rows[:, 0])

    explainer = LimisExplainer(positive, surrogate=PoissonRegressor(), weighting="forest").fit(rows[:N])
    found = explainer.explain(rows[N:])
    assert (found.local_predictions > 0).all()
    with pytest.raises(InputError, match="PoissonRegressor, which is neither linear nor a tree"):
        _ = found.contributions
    with pytest.raises(InputError, match="surrogate=PoissonRegressor could not be fitted"):
        explain(rows, PoissonRegressor())
