"""Shapley values by few questions: right where nothing is left to chance, near where little is."""

from typing import get_args

import numpy as np
import pandas as pd
import pytest

from limis import LimisExplainer
from limis.peers.shapley_games import Estimator, games, pair_values, shapley_values

pytest.importorskip("shapiq")


def additive(rows):
    return (2.0 * rows["a"] - rows["b"] ** 2 + 3.0 * (rows["kind"] == "x")).to_numpy()


def in_pairs(rows):
    return additive(rows) + (4.0 * rows["c"] * rows["a"]).to_numpy()


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    numbers = {name: rng.normal(size=n) for name in "abc"}
    return pd.DataFrame({**numbers, "kind": rng.choice(["x", "y"], n)})


def played(model, reference, **options):
    training = LimisExplainer(model, surrogate="ridge", weighting="forest", n_jobs=1).fit(table(120)).training_
    rows = table(3, seed=1)
    return rows, games(training, rows, model(rows), reference, **options)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of shap, as it is imported
@pytest.mark.parametrize("estimator", get_args(Estimator))
def test_of_an_additive_model_against_one_row_little_is_left_to_chance(estimator):
    reference = table(1, seed=2)
    rows, made = played(additive, reference)
    parts = pd.DataFrame(
        {
            "a": 2.0 * (rows["a"] - reference["a"][0]),
            "b": -(rows["b"] ** 2) + reference["b"][0] ** 2,
            "c": 0.0 * rows["c"],
            "kind": 3.0 * ((rows["kind"] == "x").astype(float) - float(reference["kind"][0] == "x")),
        }
    )
    found = np.array([shapley_values(game, 400, estimator) for game in made])
    # Trees see twelve of the fourteen groups of an additive game nearly as they are.
    np.testing.assert_allclose(found, parts, atol=0.25 if estimator == "proxy" else 1e-6)
    assert np.abs(found.sum(axis=1) - parts.sum(axis=1)).max() < 0.05


@pytest.mark.parametrize("index", ["FSII", "k-SII"])
def test_pairs_are_found(index):
    reference = table(5, seed=2)
    rows, made = played(in_pairs, reference, averaged=True)
    place = {name: number for number, name in enumerate(rows)}
    for row, game in enumerate(made):
        found = pair_values(game, 200, index)
        together = (4.0 * (rows["a"][row] - reference["a"]) * (rows["c"][row] - reference["c"])).mean()
        assert found[(place["a"], place["c"])] == pytest.approx(together, abs=1e-3)
        assert found[(place["b"], place["kind"])] == pytest.approx(0.0, abs=1e-3)
