"""Peers answer the same questions as the explainer, and are what their papers and packages say they are."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from limis import InputError, LimisExplainer
from limis.blackbox import clipped_logit
from limis.metrics import awd, selection_auc
from limis.peers import (
    GlobalClassificationTree,
    GlobalLogistic,
    GlobalModel,
    GlobalTree,
    Lime,
    LocalMean,
    Maple,
    Silo,
)
from limis.perturb import MovedRows
from limis.training import ProbeRows
from limis.training.choose import judge

FEW = {"num_samples": 300}
PEERS = {
    "silo": Silo,
    "silo-tree": lambda explainer: Silo(explainer, local_model="tree"),
    "silo-gbdt": lambda explainer: Silo(explainer, ensemble="gbdt"),
    "maple": Maple,
    "maple-tree": lambda explainer: Maple(explainer, local_model="tree"),
    "lime": lambda explainer: Lime(explainer, **FEW),
    "lime-slopes": lambda explainer: Lime(explainer, discretise=False, **FEW),
    "lime-around": lambda explainer: Lime(explainer, discretise=False, sample_around_instance=True, **FEW),
    "lime-few-columns": lambda explainer: Lime(explainer, discretise=False, num_features=2, **FEW),
    "lime-tree": lambda explainer: Lime(explainer, local_model="tree", **FEW),
    "global-ridge": GlobalModel,
    "global-tree": GlobalTree,
    "local-mean": LocalMean,
}
CLASSIFIERS = {"logistic": GlobalLogistic, "classification-tree": GlobalClassificationTree}


def score(rows):
    """Two regimes by city; missing pay counts as -1."""
    pay = rows["pay"].fillna(-1).to_numpy()
    return np.where(rows["city"] == "Rome", 3 * pay, -pay) + rows["age"].to_numpy() / 40


def make_people(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "pay": rng.normal(size=n),
            "city": rng.choice(["Rome", "Oslo", "Bern"], n, p=[0.5, 0.4, 0.1]),
            "noise": rng.normal(size=n),
        },
        index=[f"p{i}" for i in range(n)],
    )
    frame.loc[frame.index[::11], "pay"] = np.nan
    return frame


class Classifier:
    """A black box that gives probabilities, from one score a row."""

    classes_ = ("no", "yes")

    def predict_proba(self, rows):
        second = 1 / (1 + np.exp(-score(rows)))
        return np.column_stack([1 - second, second])


@pytest.fixture(scope="module")
def people():
    return make_people(12, seed=1)


@pytest.fixture(scope="module")
def explainer():
    return LimisExplainer(score, weighting="forest", surrogate="ridge").fit(make_people(400, seed=0))


@pytest.fixture(scope="module", params=["logit", "probability"])
def classified(request):
    return LimisExplainer(Classifier(), weighting="forest", output=request.param, surrogate="ridge").fit(
        make_people(400, seed=0)
    )


@pytest.fixture(scope="module", params=PEERS)
def found(request, explainer, people):
    return PEERS[request.param](explainer).explain(people)


def check(found, people):
    """What every peer's explanations must hold."""
    assert len(found) == len(people)
    assert found.bound is None
    assert not found.fidelity["trusted"].any()
    np.testing.assert_allclose(found.base_values + found.contributions.sum(axis=1), found.local_predictions)
    asked = ProbeRows.ask(found.training, people, found.outputs, np.random.default_rng(0))
    assert np.isfinite(list(judge(found.training.table, found.fits, asked).values())).all()
    # What a model says of changes does not depend on which other rows are there, and staying is no change.
    np.testing.assert_array_equal(
        found.fits.changes(np.arange(len(people)), MovedRows(found.training.table, found.values)), 0
    )
    some = np.array([3, 0])
    part, moves = found[some], asked.part(some).asked
    moved = MovedRows(found.training.table, moves.values)
    np.testing.assert_array_equal(part.fits.changes(moves.rows, moved), found.fits.changes(some[moves.rows], moved))
    np.testing.assert_array_equal(part.local_predictions, found.local_predictions.iloc[some])


def test_every_peer_can_be_judged(found, people):
    check(found, people)
    assert found.weights.shape == (len(people), len(found.training))
    assert found.weights.min() >= 0
    again = pickle.loads(pickle.dumps(found.fits))
    np.testing.assert_array_equal(again.predictions(), found.fits.predictions())


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_global_classifiers_can_be_judged(classified, kind, people):
    check(CLASSIFIERS[kind](classified).explain(people), people)


@pytest.mark.parametrize("name", PEERS)
def test_a_row_alone_is_explained_as_in_company(name, explainer, people):
    peer = PEERS[name](explainer)
    together, alone = peer.explain(people), peer.explain(people.iloc[[5]])
    np.testing.assert_allclose(alone.fits.coefficients[0], together.fits.coefficients[5], atol=1e-9)
    np.testing.assert_allclose(alone.local_predictions, together.local_predictions.iloc[[5]])


def test_outputs_may_be_given(explainer, people):
    outputs = np.arange(len(people))
    np.testing.assert_array_equal(Silo(explainer).explain(people, outputs=outputs).model_outputs, outputs)


# --- SILO and MAPLE ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers():
    """An explainer of numbers, half of them without effect, and rows to validate and explain with."""
    rng = np.random.default_rng(2)

    def black_box(rows):
        return np.where(rows[:, 5] > 0, rows[:, 0] + 2 * rows[:, 1], 3 * rows[:, 2]) + rows[:, 0] ** 2

    explainer = LimisExplainer(black_box, weighting="forest", surrogate="ridge").fit(rng.normal(size=(400, 9)))
    return explainer, rng.normal(size=(30, 9)), rng.normal(size=(10, 9))


def shap_maple(peer, validation, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of shap's own imports
        from shap.explainers.other._maple import MAPLE
    training = peer.training
    features = training.table.features(training.table.values(training.table.read(validation)))
    reference = MAPLE(
        peer.features_,
        training.outputs,
        features,
        training.black_box.outputs(training.table.read(validation)),
        fe=peer.ensemble,
        fe_type=kind,
        regularization=peer.alpha,
    )
    return reference, np.array([reference.explain(row)["coefs"] for row in features])


@pytest.mark.parametrize("alpha", [0.001, 1.0])
@pytest.mark.parametrize("kind", ["rf", "gbrt"])
def test_maple_equals_the_published_one(numbers, kind, alpha):
    explainer, validation, rows = numbers
    training = explainer.training_
    family = RandomForestRegressor if kind == "rf" else GradientBoostingRegressor
    trees = family(n_estimators=30, min_samples_leaf=10, max_features=0.5, random_state=0)
    trees.fit(training.table.features(training.values), training.outputs)
    peer = Maple(explainer, ensemble=trees, validation=validation, alpha=alpha)
    reference, coefficients = shap_maple(peer, validation, kind)

    np.testing.assert_array_equal(peer.kept_, np.sort(np.argsort(-reference.feature_scores)[: reference.retain]))
    assert len(peer.kept_) < 9
    found = peer.explain(validation)
    np.testing.assert_allclose(found.fits.coefficients, coefficients[:, 1:], atol=1e-8)
    features = training.table.features(training.table.values(training.table.read(rows)))
    np.testing.assert_allclose(peer.explain(rows).local_predictions, reference.predict(features), atol=1e-8)
    silo = Silo(explainer, ensemble=trees, alpha=alpha)
    np.testing.assert_allclose(silo.explain(rows).local_predictions, reference.predict_silo(features), atol=1e-8)
    for row, weights in enumerate(peer.explain(rows).weights.toarray()):
        leaves = trees.apply(features)[row]
        np.testing.assert_allclose(weights * 30, reference.training_point_weights(leaves), atol=1e-12)


def test_the_number_of_features_has_the_lowest_error_of_ridges_fitted_one_by_one(numbers):
    explainer, validation, _ = numbers
    peer = Maple(explainer, validation=validation)
    training = explainer.training_
    features = training.table.features(training.table.values(training.table.read(validation)))
    weights = peer.weigh(features).toarray() * 200
    for k in (1, 4, 9):
        best = peer.order_[:k]
        missed = []
        for own, weight, row in zip(features, weights, validation, strict=True):
            ridge = Ridge(alpha=0.001).fit(peer.features_[:, best], training.outputs, weight)
            missed.append(ridge.predict(own[None, best])[0] - training.black_box.model(row[None])[0])
        assert peer.errors_[k - 1] == pytest.approx(np.sqrt(np.mean(np.square(missed))), abs=1e-9)


def test_rows_that_choose_the_features_cannot_be_selected(explainer, people):
    weights = Maple(explainer).explain(people).weights
    reached = np.unique(Silo(explainer).weigh(Silo(explainer).features_).indices)
    assert len(reached) == len(explainer.training_)
    held_out = np.random.default_rng(0).permutation(len(explainer.training_))[: len(explainer.training_) // 5]
    assert not np.isin(weights.indices, held_out).any()
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_a_local_tree_is_the_one_of_scikit_learn_on_the_weighted_rows(numbers):
    explainer, _, rows = numbers
    peer = Silo(explainer, local_model="tree")
    found = peer.explain(rows)
    after = MovedRows(found.training.table, found.values + 0.5)
    changes, moved = found.fits.changes(np.arange(10), after), after.features
    for row, weight in enumerate(found.weights.toarray()):
        tree = DecisionTreeRegressor(max_depth=3, random_state=0)
        tree.fit(peer.features_, explainer.training_.outputs, sample_weight=weight)
        here, there = tree.predict([found.fits.features[row], moved[row]])
        assert found.local_predictions.iloc[row] == pytest.approx(here)
        assert changes[row] == pytest.approx(there - here)


def test_neighbourhood_errors_are_those_of_rows_left_out(numbers):
    explainer, _, rows = numbers
    peer = Silo(explainer, alpha=1.0)
    found = peer.explain(rows[:1])
    weight = found.weights.toarray()[0]
    outputs, features = explainer.training_.outputs, peer.features_
    missed = []
    for out in np.flatnonzero(weight):
        others = np.delete(np.arange(len(weight)), out)
        ridge = Ridge(alpha=1.0 / 200).fit(features[others], outputs[others], weight[others])
        missed.append(ridge.predict(features[[out]])[0] - outputs[out])
    expected = np.sqrt(np.average(np.square(missed), weights=weight[weight > 0]))
    assert found.fidelity["neighbourhood_error"].iloc[0] == pytest.approx(expected, rel=1e-6)


def test_without_any_weighted_row_all_rows_count_alike(numbers):
    explainer, _, rows = numbers
    peer = Silo(explainer)
    peer.index_.shares *= 0
    peer.index_.shares.eliminate_zeros()
    found = peer.explain(rows[:2])
    assert found.fits.empty.all()
    ridge = Ridge(alpha=peer.alpha / 200).fit(peer.features_, explainer.training_.outputs)
    np.testing.assert_allclose(found.local_predictions, ridge.predict(found.fits.features), rtol=1e-6)


def test_a_forest_finds_some_of_a_hidden_regime():
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(600, 4)), rng.normal(size=(60, 4))

    def black_box(x):
        return np.where(x[:, 3] > 0, 2 * x[:, 0], -2 * x[:, 0])

    explainer = LimisExplainer(black_box, weighting="forest", surrogate="ridge").fit(
        X, probe_rows=rng.normal(size=(50, 4))
    )
    truth = np.zeros((60, 4))
    truth[:, 0] = np.where(rows[:, 3] > 0, 2, -2)
    silo, everywhere = Silo(explainer).explain(rows), GlobalModel(explainer).explain(rows)
    assert awd(truth, silo.coefficients.to_numpy()) < 0.5 * awd(truth, everywhere.coefficients.to_numpy())
    assert selection_auc(silo.weights, X[:, 3] > 0, rows[:, 3] > 0) > 0.6
    assert selection_auc(everywhere.weights, X[:, 3] > 0, rows[:, 3] > 0) == 0.5


def test_options_that_make_no_sense_are_refused(explainer):
    with pytest.raises(InputError, match="forest"):
        Silo(explainer, local_model="forest")
    with pytest.raises(InputError, match="above zero"):
        Silo(explainer, alpha=0)
    with pytest.raises(InputError, match="bagging"):
        Silo(explainer, ensemble="bagging")


# --- global models ----------------------------------------------------------------------------------


def test_the_global_tree_is_the_one_of_scikit_learn(explainer, people):
    training = explainer.training_
    tree = DecisionTreeRegressor(max_depth=3).fit(training.features.numpy(), training.outputs)
    found = GlobalTree(explainer).explain(people)
    np.testing.assert_allclose(found.local_predictions, tree.predict(found.fits.features))
    assert (found.base_values == found.base_values.iloc[0]).all()
    assert found.base_values.iloc[0] == pytest.approx(training.overall_mean)
    flat = GlobalTree(explainer, labels=np.ones(len(training))).explain(people)
    assert (flat.local_predictions == 1).all()


@pytest.mark.parametrize("given", [False, True])
def test_global_classifiers_are_those_of_scikit_learn(classified, given, people):
    training = classified.training_
    second = training.black_box.to_probability(training.outputs)
    drawn = np.random.default_rng(0).random(len(training)) < second
    labels = np.where(drawn, "yes", "no") if given else None
    features = training.features.double().numpy()
    copies = 1 if given else 2
    fitting = (
        np.tile(features, (copies, 1)),
        drawn if given else np.repeat([False, True], len(training)),
        None if given else np.concatenate([1 - second, second]),
    )
    logits = training.black_box.scale == "logit"
    for peer, model in (
        (GlobalLogistic, LogisticRegression(C=np.inf, max_iter=5000)),
        (GlobalClassificationTree, DecisionTreeClassifier(max_depth=3, random_state=0)),
    ):
        found = peer(classified, labels=labels).explain(people)
        expected = model.fit(*fitting).predict_proba(found.fits.features)[:, 1]
        if logits:
            exact = hasattr(model, "decision_function")
            expected = model.decision_function(found.fits.features) if exact else clipped_logit(expected)
        np.testing.assert_allclose(
            found.local_predictions, expected, rtol=1e-3
        )  # where lbfgs stops depends on the order


def test_global_classifiers_need_two_classes(explainer, classified):
    with pytest.raises(InputError, match="probabilities"):
        GlobalLogistic(explainer)
    with pytest.raises(InputError, match="one class"):
        GlobalClassificationTree(classified, labels=["no"] * len(classified.training_))
