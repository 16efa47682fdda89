"""The batched tree is scikit-learn's tree, whatever the bins, weights and limits; bins and thresholds agree."""

from dataclasses import fields

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.tree import DecisionTreeRegressor

from limis.errors import InputError
from limis.surrogate import Bins, fit_local_trees

# Far above rounding, far below what sets two splits of random targets apart.
SAME_GAIN = 1e-9


def random_problem(rng, n_queries=3, n_rows=40, n_features=5, n_outputs=1):
    kinds = rng.choice([1, 2, 3, 20, 250], size=n_features)
    bins = (rng.integers(0, kinds, (60, n_features)) + rng.integers(0, 6, n_features)).astype(np.uint8)
    targets = rng.normal(size=(60, n_outputs)) + 10
    rows = np.array([rng.choice(60, n_rows, replace=False) for _ in range(n_queries)])
    weights = rng.random((n_queries, n_rows)) + 0.01
    return bins, targets, rows, weights


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 3)), draw(st.integers(2, 60)), draw(st.integers(1, 8)), draw(st.integers(1, 3))
    bins, targets, rows, weights = random_problem(rng, *shape)
    if draw(st.booleans()):
        weights[:] = 1
    weights[rng.random(weights.shape) < draw(st.sampled_from([0.0, 0.3, 0.9]))] = 0
    weights[:, 0] += 0.1  # scikit-learn wants a row
    options = {
        "depth": draw(st.integers(1, 5)),
        "min_samples_leaf": draw(st.sampled_from([1, 1, 2, 5])),
        "min_weight_leaf": draw(st.sampled_from([0.0, 0.0, 0.05, 0.3])),
    }
    return bins, targets, rows, weights * draw(st.sampled_from([1e-3, 1.0, 1e3])), options


def rows_of_query(problem, query):
    bins, targets, rows, weights = problem[:4]
    kept = rows[query][weights[query] > 0]
    return bins[kept], targets[kept], weights[query][weights[query] > 0]


def same_partition(one, other):
    return len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


@given(problem=problems())
def test_equals_scikit_learn(problem):
    *data, options = problem
    trees = fit_local_trees(*data, **options)
    for query in range(len(trees.feature)):
        bins, targets, weights = rows_of_query(problem, query)
        reference = DecisionTreeRegressor(
            max_depth=options["depth"],
            min_samples_leaf=options["min_samples_leaf"],
            min_weight_fraction_leaf=options["min_weight_leaf"],
            random_state=0,
        ).fit(bins.astype(np.float32), targets, sample_weight=weights)
        own = np.full(len(bins), query)
        np.testing.assert_allclose(
            trees.predict(bins, own), reference.predict(bins).reshape(targets.shape), rtol=1e-9, atol=1e-12
        )
        assert same_partition(trees.apply(bins, own), reference.apply(bins))
        assert trees.impurity[query, 0] / targets.shape[1] == pytest.approx(reference.tree_.impurity[0], abs=1e-9)


def gains(bins, targets, weights, options, least_weight):
    """What every allowed split lowers the squared error by, in the order of features and bins."""

    def squared_error(rows):
        mean = np.average(targets[rows], axis=0, weights=weights[rows])
        return (weights[rows] @ np.square(targets[rows] - mean)).sum()

    found = {}
    for feature in range(bins.shape[1]):
        for cut in np.unique(bins[:, feature])[:-1]:
            halves = bins[:, feature] <= cut, bins[:, feature] > cut
            if all(h.sum() >= options["min_samples_leaf"] and weights[h].sum() >= least_weight for h in halves):
                found[feature, cut] = squared_error(slice(None)) - sum(map(squared_error, halves))
    return found


@given(problem=problems(), coarse=st.booleans())
def test_every_split_is_the_first_of_the_best_and_every_node_is_described(problem, coarse):
    bins, targets, rows, weights, options = problem
    if coarse:  # many splits are equally good
        targets, weights = np.round(targets), np.ceil(weights / weights.max() * 2)
        problem = bins, targets, rows, weights, options
    trees = fit_local_trees(bins, targets, rows, weights, **options)
    for query in range(len(rows)):
        own_bins, own_targets, own_weights = rows_of_query(problem, query)
        paths = trees.paths(own_bins, np.full(len(own_bins), query))
        for node in range(trees.weight.shape[1]):
            here = (paths == node).any(axis=1)
            assert trees.count[query, node] == here.sum()
            assert trees.weight[query, node] == pytest.approx(own_weights[here].sum())
            if not here.any():
                continue
            mean = np.average(own_targets[here], axis=0, weights=own_weights[here])
            impurity = np.average(np.square(own_targets[here] - mean).sum(axis=1), weights=own_weights[here])
            np.testing.assert_allclose(trees.value[query, node], mean)
            assert trees.impurity[query, node] == pytest.approx(impurity, abs=1e-12)
            if node >= trees.feature.shape[1]:
                continue
            least = options["min_weight_leaf"] * own_weights.sum()
            allowed = gains(own_bins[here], own_targets[here], own_weights[here], options, least)
            slack = SAME_GAIN * impurity * own_weights[here].sum()
            first = next((cut for cut, gain in allowed.items() if gain >= max(allowed.values()) - slack), None)
            if first is None or impurity < 1e-15:
                assert trees.feature[query, node] == -1
            else:
                assert (trees.feature[query, node], trees.bin[query, node]) == first


def test_a_split_that_gains_nothing_is_taken_as_in_scikit_learn():
    bins, targets = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.uint8), np.array([0.0, 1.0, 1.0, 0.0])
    trees = fit_local_trees(bins, targets, np.arange(4)[None], np.ones((1, 4)), depth=2)
    assert trees.feature.tolist() == [[0, 1, 1]]
    np.testing.assert_array_equal(trees.predict(bins, np.zeros(4, dtype=int))[:, 0], targets)
    np.testing.assert_array_equal(DecisionTreeRegressor(max_depth=2).fit(bins, targets).predict(bins), targets)


def assert_same_bits(one, other):
    for field in fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), strict=True)


@pytest.mark.parametrize("options", [{}, {"min_samples_leaf": 3, "min_weight_leaf": 0.1}])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_query_gives_the_same_bits_alone_in_any_batch_and_on_any_number_of_threads(n_outputs, options):
    bins, targets, rows, weights = random_problem(np.random.default_rng(0), 30, 50, 20, n_outputs)
    together = fit_local_trees(bins, targets, rows, weights, **options)
    for batch in (1, 7):
        for start in range(0, 30, batch):
            part = slice(start, start + batch)
            apart = fit_local_trees(bins, targets, rows[part], weights[part], **options)
            expected = type(together)(**{field.name: getattr(together, field.name)[part] for field in fields(together)})
            assert_same_bits(apart, expected)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert_same_bits(fit_local_trees(bins, targets, rows, weights, **options), together)
    finally:
        numba.set_num_threads(before)


def test_rows_without_weight_are_not_there():
    bins, targets, rows, weights = random_problem(np.random.default_rng(1))
    padded_rows = np.insert(rows, [0, 3, 40], -1, axis=1)
    padded_weights = np.insert(weights, [0, 3, 40], 0, axis=1)
    assert_same_bits(
        fit_local_trees(bins, targets, padded_rows, padded_weights), fit_local_trees(bins, targets, rows, weights)
    )


def test_fewer_than_two_rows_are_said_and_stay_finite():
    bins, targets = np.array([[0], [1], [2]], dtype=np.uint8), np.array([5.0, 6.0, 7.0])
    weights = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [1.0, 1.0, 0.0]])
    trees = fit_local_trees(bins, targets, np.tile([0, 1, 2], (3, 1)), weights)
    assert trees.empty.tolist() == [True, True, False]
    assert trees.predict(bins, np.array([0, 1, 2]))[:, 0].tolist() == [0.0, 6.0, 6.0]
    assert trees.feature[:, 0].tolist() == [-1, -1, 0]
    assert np.isfinite(trees.impurity).all()


@pytest.mark.parametrize("constant", [0.1, 1e9 + 0.1])
def test_constant_targets_make_a_single_leaf(constant):
    bins, targets, rows, weights = random_problem(np.random.default_rng(2), n_outputs=2)
    trees = fit_local_trees(bins, np.full_like(targets, constant), rows, weights)
    assert (trees.feature == -1).all()
    assert (trees.value[:, 0] == constant).all()
    assert (trees.impurity == 0).all()


def test_two_ways_to_split_the_same_rows_take_the_first_feature_even_where_rounding_prefers_another():
    rng = np.random.default_rng(3)
    halves = rng.integers(0, 2, (200, 1))
    # The same halves as two bins, turned around, and with many bins to each half.
    bins = np.hstack([halves, 1 - halves, halves * 100 + rng.integers(0, 100, halves.shape)]).astype(np.uint8)
    rows, weights = np.tile(np.arange(200), (50, 1)), rng.random((50, 200))
    targets = np.where(halves, 100, 0) + rng.normal(size=halves.shape)
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        trees = fit_local_trees(np.ascontiguousarray(bins[:, order]), targets, rows, weights, depth=1)
        assert (trees.feature == 0).all()


def test_rounding_never_makes_a_split_with_all_rows_on_one_side():
    rng = np.random.default_rng(6)
    bins, targets = rng.integers(0, 2, (101, 1)).astype(np.uint8), rng.normal(size=101)
    trees = fit_local_trees(bins, targets, np.tile(np.arange(101), (100, 1)), rng.random((100, 101)), depth=2)
    assert (trees.feature == [0, -1, -1]).all()


def test_weight_on_a_row_that_is_not_there_is_refused():
    bins, targets, rows, weights = random_problem(np.random.default_rng(4))
    rows[1, 2] = 60
    with pytest.raises(InputError, match="only 60 rows"):
        fit_local_trees(bins, targets, rows, weights)


def test_paths_lead_from_the_root_to_the_leaf():
    bins, targets, rows, weights = random_problem(np.random.default_rng(5), n_queries=4)
    trees = fit_local_trees(bins, targets, rows, weights, depth=4, min_samples_leaf=5)
    queries = np.arange(60) % 4
    paths = trees.paths(bins, queries)
    assert paths.shape == (60, 5)
    assert (paths[:, 0] == 0).all()
    for before, after in zip(paths.T[:-1], paths.T[1:], strict=True):
        assert ((after == before) | ((after - 1) // 2 == before)).all()
    np.testing.assert_array_equal(paths[:, -1], trees.apply(bins, queries))
    np.testing.assert_array_equal(trees.predict(bins, queries), trees.value[queries, paths[:, -1]])


columns = arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e300, 1e300) | st.integers(-3, 3).map(float))


@given(seen=columns, unseen=columns, most=st.sampled_from([2, 5, 255]))
def test_a_value_is_up_to_a_threshold_where_its_bin_is(seen, unseen, most):
    bins = Bins.learn(seen[:, None], most)
    thresholds = bins.thresholds[0]
    assert bins.count[0] == len(thresholds) + 1 <= most
    assert (np.diff(thresholds) > 0).all()
    for values in (seen, unseen, thresholds, np.nextafter(thresholds, np.inf)):
        found = bins.transform(values[:, None])
        assert found.dtype == np.uint8
        for b, threshold in enumerate(thresholds):
            np.testing.assert_array_equal(values <= threshold, found[:, 0] <= b)


@given(seen=columns)
def test_few_distinct_values_have_a_bin_each_with_thresholds_midway(seen):
    bins = Bins.learn(seen[:, None])
    values, expected = np.unique(seen, return_inverse=True)
    np.testing.assert_array_equal(bins.transform(seen[:, None])[:, 0], expected)
    np.testing.assert_allclose(bins.thresholds[0], values[:-1] / 2 + values[1:] / 2, rtol=1e-15, atol=5e-324)


def test_many_distinct_values_are_spread_over_all_bins_and_a_common_one_has_its_own():
    rng = np.random.default_rng(0)
    spread, common = rng.normal(size=10_000), rng.normal(size=10_000)
    common[:3000] = 0.5
    features = np.column_stack([spread, common, rng.integers(0, 2, 10_000)])
    bins = Bins.learn(features)
    found = bins.transform(features)
    assert bins.count[0] == 255
    assert bins.count[2] == 2
    assert np.bincount(found[:, 0]).max() <= 2 * 10_000 / 255
    assert (found[:, 1] == found[0, 1]).sum() == 3000
    np.testing.assert_array_equal(found[:, 2], features[:, 2])


def test_neighbouring_numbers_are_kept_apart():
    values = np.array([[1.0], [np.nextafter(1.0, 2.0)], [np.nextafter(np.nextafter(1.0, 2.0), 2.0)]])
    assert Bins.learn(values).transform(values)[:, 0].tolist() == [0, 1, 2]


def test_bins_keep_what_single_precision_says():
    values = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    bins = Bins.learn(values)
    np.testing.assert_array_equal(bins.transform(values), bins.transform(values.astype(np.float64)))
