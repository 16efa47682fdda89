"""The forest is scikit-learn's, walked our way; its index gives the proximities that the definition gives."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestRegressor

from limis.retrieval import Retriever
from limis.retrieval.forest import grow_forest
from limis.retrieval.index import LeafIndex, strongest
from limis.retrieval.retriever import forest_inputs
from limis.table import Table

OPTIONS = {"n_trees": 7, "min_leaf": 3, "feature_share": 0.7, "n_jobs": None, "seed": 3}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(300, 5)).astype(np.float32)
    return inputs, inputs[:, 0] * inputs[:, 1] + rng.normal(size=300) * 0.1


def test_leaves_are_those_of_scikit_learn(data):
    inputs, outputs = data
    forest, in_bag = grow_forest(inputs, outputs, **OPTIONS)
    same = RandomForestRegressor(7, min_samples_leaf=3, max_features=0.7, random_state=3).fit(inputs, outputs)
    rows = np.random.default_rng(1).normal(size=(100, 5)).astype(np.float32)
    ours, theirs = forest.leaves(rows), same.apply(rows)
    for tree in range(7):
        # Same partition of the rows: leaf numbers map one to one.
        assert len(set(zip(ours[:, tree], theirs[:, tree], strict=True))) == len(set(theirs[:, tree]))
        assert len(set(ours[:, tree])) == len(set(theirs[:, tree]))
    assert in_bag.sum(axis=0).tolist() == [300] * 7


def test_proximity_weighs_outputs_into_the_forests_own_prediction(data):
    inputs, outputs = data
    forest, in_bag = grow_forest(inputs, outputs, **OPTIONS)
    index = LeafIndex.build(forest.leaves(inputs), in_bag, forest.n_leaves)
    same = RandomForestRegressor(7, min_samples_leaf=3, max_features=0.7, random_state=3).fit(inputs, outputs)
    rows = np.random.default_rng(1).normal(size=(50, 5)).astype(np.float32)
    near = index.proximity(forest.leaves(rows))
    np.testing.assert_allclose(near.sum(axis=1), 1)
    np.testing.assert_allclose(near @ outputs, same.predict(rows), atol=1e-12)


def test_out_of_bag_proximity_equals_brute_force(data):
    inputs, outputs = data
    forest, in_bag = grow_forest(inputs, outputs, **OPTIONS)
    leaves = forest.leaves(inputs)
    near = LeafIndex.build(leaves, in_bag, forest.n_leaves).proximity(leaves, in_bag == 0).toarray()
    for row in range(20):
        used = [tree for tree in range(7) if in_bag[row, tree] == 0] or range(7)
        expected = np.zeros(300)
        for tree in used:
            mates = (leaves[:, tree] == leaves[row, tree]) * in_bag[:, tree].astype(float)
            expected += mates / mates.sum() / len(used)
        np.testing.assert_allclose(near[row], expected, atol=1e-12)


def test_strongest_keeps_the_largest_in_row_order_and_pads():
    near = sp.csr_array(np.array([[0.1, 0.4, 0.0, 0.4, 0.1], [0.0, 0.0, 1.0, 0.0, 0.0]]))
    rows, weights = strongest(near, 2)
    assert rows.tolist() == [[1, 3], [2, 0]]
    assert weights.tolist() == [[0.4, 0.4], [1.0, 0.0]]
    assert strongest(near, 3)[0].tolist()[0] == [0, 1, 3]  # of equals the lower row number stays


def test_categories_missing_values_and_unseen_levels_find_their_way():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.choice(["red", "green", "blue"], 200), "size": rng.normal(size=200)})
    frame.loc[:20, "size"] = np.nan
    outputs = (frame["colour"] == "red") * 5.0 + frame["size"].fillna(-3)
    table, frame = Table.learn(frame)
    values = table.values(frame)
    retriever = Retriever.fit(table, values, outputs.to_numpy(), rng=rng, n_trees=20)
    red = retriever.proximity(table, table.values(pd.DataFrame({"colour": ["red"], "size": [0.0]}))).toarray()[0]
    assert red[frame["colour"] == "red"].sum() > 0.75
    missing = retriever.proximity(table, table.values(pd.DataFrame({"colour": ["red"], "size": [np.nan]}))).toarray()[0]
    assert missing[frame["size"].isna()].sum() > 0.75
    unseen = forest_inputs(
        table, table.values(pd.DataFrame({"colour": ["mauve"], "size": [0.0]})), retriever.level_codes
    )
    assert unseen[0, 0] == pytest.approx(outputs.mean())
