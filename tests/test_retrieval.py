"""The forest is scikit-learn's, walked our way; its index gives the proximities that the definition gives."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.tree import DecisionTreeRegressor

from limis.blackbox import BlackBox
from limis.retrieval import Retriever
from limis.retrieval.forest import grow_forest
from limis.retrieval.index import LeafIndex, strongest
from limis.rows import TrainingRows
from limis.table import Table

OPTIONS = {"n_trees": 7, "min_leaf": 3, "feature_share": 0.7, "n_jobs": None, "seed": 3}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(300, 5)).astype(np.float32)
    outputs = inputs[:, 0] * inputs[:, 1] + rng.normal(size=300) * 0.1
    return inputs, outputs


def scikit_learns_trees(inputs, outputs, in_bag):
    """The same trees, grown and walked by scikit-learn."""
    seeds = np.random.default_rng(OPTIONS["seed"])
    seeds.integers(0, 300, size=(7, 300))  # the bootstrap draws come first
    return [
        DecisionTreeRegressor(min_samples_leaf=3, max_features=0.7, random_state=int(seed)).fit(
            inputs, outputs, sample_weight=in_bag[:, tree]
        )
        for tree, seed in enumerate(seeds.integers(2**31, size=7))
    ]


def test_leaves_are_those_of_scikit_learn(data):
    inputs, outputs = data
    forest, in_bag = grow_forest(inputs, [outputs], np.arange(300), **OPTIONS)
    rows = np.random.default_rng(1).normal(size=(100, 5)).astype(np.float32)
    ours = forest.leaves(rows)
    for tree, same in enumerate(scikit_learns_trees(inputs, outputs, in_bag)):
        theirs = same.apply(rows)
        # Same partition of the rows: leaf numbers map one to one.
        assert len(set(zip(ours[:, tree], theirs, strict=True))) == len(set(theirs)) == len(set(ours[:, tree]))
    assert in_bag.sum(axis=0).tolist() == [300] * 7


def test_proximity_weighs_outputs_into_the_forests_own_prediction(data):
    inputs, outputs = data
    forest, in_bag = grow_forest(inputs, [outputs], np.arange(300), **OPTIONS)
    index = LeafIndex.build(zip(forest.leaves_by_tree(inputs), in_bag.T, strict=True), forest.n_leaves, 300)
    rows = np.random.default_rng(1).normal(size=(50, 5)).astype(np.float32)
    near = index.proximity(forest.leaves(rows))
    np.testing.assert_allclose(near.sum(axis=1), 1)
    predicted = np.mean([tree.predict(rows) for tree in scikit_learns_trees(inputs, outputs, in_bag)], axis=0)
    np.testing.assert_allclose(near @ outputs, predicted, atol=1e-12)


def test_rows_of_a_group_are_in_a_trees_sample_together(data):
    inputs, outputs = data
    _, in_bag = grow_forest(inputs, [outputs], np.arange(300) // 3, **OPTIONS)
    assert in_bag.shape == (100, 7)


def test_out_of_bag_proximity_equals_brute_force(data):
    inputs, outputs = data
    forest, in_bag = grow_forest(inputs, [outputs], np.arange(300), **OPTIONS)
    leaves = forest.leaves(inputs)
    index = LeafIndex.build(zip(leaves.T, in_bag.T, strict=True), forest.n_leaves, 300)
    near = index.proximity(leaves, in_bag == 0).toarray()
    for row in range(20):
        used = [tree for tree in range(7) if in_bag[row, tree] == 0]
        expected = np.zeros(300)
        for tree in used:
            mates = (leaves[:, tree] == leaves[row, tree]) * in_bag[:, tree].astype(float)
            expected += mates / mates.sum() / len(used)
        np.testing.assert_allclose(near[row], expected, atol=1e-12)


def test_a_leaf_keeps_no_more_rows_than_asked_for_and_any_of_them():
    leaves = np.array([0] * 50 + [1] * 3)
    kept = [LeafIndex.build([(leaves, np.ones(53))] * 1, 2, 53, most=10).shares]
    first, second = kept[0][[0]], kept[0][[1]]
    assert first.nnz == 10
    assert second.indices.tolist() == [50, 51, 52]
    np.testing.assert_allclose(kept[0].sum(axis=1), 1)
    # 400 trees that all have this one leaf: each row is kept by a fifth of them, 80 with a deviation of 8.
    all_trees = LeafIndex.build([(np.full(50, tree), np.ones(50)) for tree in range(400)], 400, 50, most=10).shares
    times = np.bincount(all_trees.indices, minlength=50)
    assert times.min() > 80 - 5 * 8
    assert times.max() < 80 + 5 * 8


def test_strongest_keeps_the_largest_in_row_order_and_pads():
    near = sp.csr_array(np.array([[0.1, 0.4, 0.0, 0.4, 0.1], [0.0, 0.0, 1.0, 0.0, 0.0]]))
    rows, weights = strongest(near, 2)
    assert rows.tolist() == [[1, 3], [2, 0]]
    assert weights.tolist() == [[0.4, 0.4], [1.0, 0.0]]
    assert strongest(near, 3)[0].tolist()[0] == [0, 1, 3]  # of equals the lower row number stays


def training_rows(frame, outputs, **options):
    table, frame = Table.learn(frame)
    return TrainingRows(table, BlackBox("value", "values"), frame, table.values(frame), np.asarray(outputs), **options)


def test_categories_missing_values_and_unseen_levels_find_their_way():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.choice(["red", "green", "blue"], 200), "size": rng.normal(size=200)})
    frame.loc[:20, "size"] = np.nan
    frame["other"] = rng.normal(size=200)
    outputs = (frame["colour"] == "red") * 5.0 + frame["size"].fillna(-3)
    training = training_rows(frame, outputs)
    retriever = Retriever.fit(training, rng=rng, n_trees=20)

    def near(colour, size):
        row = training.table.values(pd.DataFrame({"colour": [colour], "size": [size], "other": [0.0]}))
        return retriever.proximity(training, row).toarray()[0]

    assert near("red", 0.01)[frame["colour"] == "red"].sum() > 0.75
    assert near("red", np.nan)[frame["size"].isna()].sum() > 0.5
    unseen = training.table.values(pd.DataFrame({"colour": ["mauve"], "size": [0.0], "other": [0.0]}))
    assert retriever.levels.inputs(training.table, unseen)[0, 0] == pytest.approx(0, abs=1e-6)  # the overall mean


@pytest.mark.parametrize("copies", [1, 8])
@pytest.mark.parametrize("levels", [3, 400])
def test_a_training_rows_own_output_does_not_find_its_way_back(copies, levels):
    # Outputs are noise: whatever the neighbourhood's mean knows of them leaked from the row itself or its equals.
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame({"id": rng.permutation(n) % levels, "x": rng.normal(size=n)}).astype({"id": str})
    outputs = rng.normal(size=n)
    training = training_rows(pd.concat([frame] * copies, ignore_index=True), np.tile(outputs, copies))
    near = Retriever.fit(training, rng=rng).proximity(training, training.values[:n])
    # A correlation over 400 rows has a deviation of .05; .15 is three of them.
    assert np.corrcoef(near @ training.outputs, outputs)[0, 1] < 0.15
    assert (near.sum(axis=1) > 0.99).all()


@pytest.mark.parametrize(("factor", "shift"), [(1e-9, 0.0), (1e30, 0.0), (1.0, 1e9)])
def test_the_unit_of_the_outputs_does_not_matter(factor, shift):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    outputs = frame["a"] * frame["b"]
    plain = Retriever.fit(training_rows(frame, outputs), rng=np.random.default_rng(1))
    other = Retriever.fit(training_rows(frame, outputs * factor + shift), rng=np.random.default_rng(1))
    assert abs(other.forest.n_leaves - plain.forest.n_leaves) <= 0.02 * plain.forest.n_leaves


def test_rows_without_weight_are_never_retrieved():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=list("ab"))
    weight = (np.arange(200) % 4 == 0).astype(float)
    training = training_rows(frame, frame["a"], sample_weight=weight)
    near = Retriever.fit(training, rng=rng).proximity(training, rng.normal(size=(20, 2)))
    assert near.toarray()[:, weight == 0].sum() == 0
    np.testing.assert_allclose(near.sum(axis=1), 1)


def test_every_second_tree_looks_beyond_the_trend_unless_nothing_is_left():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(600, 2)), columns=["a", "b"])
    a = frame["a"].to_numpy()

    def distance_along_a(outputs, **options):
        training = training_rows(frame, outputs.to_numpy())
        found = Retriever.fit(training, rng=np.random.default_rng(1), **options)
        near = found.proximity(training, training.values[:50]).toarray()
        return (near * np.abs(a[:50, None] - a[None])).sum(axis=1).mean()

    line, with_a_step = 10 * frame["a"], 10 * frame["a"] + np.sign(frame["b"] - 0.5) * (frame["b"] > 0)
    # Along the trend rows may be far: slopes make up for that.
    assert distance_along_a(with_a_step, beyond_trend=True) > 1.3 * distance_along_a(with_a_step)
    # Of a line nothing is left but what the ridge's penalty takes, which is a line too.
    assert distance_along_a(line, beyond_trend=True) < 1.1 * distance_along_a(line)
