import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import sparse
from sklearn.metrics import average_precision_score, r2_score, roc_auc_score

from limis import metrics
from limis.errors import InputError

TWO_ARRAYS = [
    metrics.nse,
    metrics.lmae,
    metrics.mae,
    metrics.awd_nonzero,
    metrics.awd_positive,
    metrics.awd_norm,
    metrics.neighbourhood_lmae,
    metrics.skill_on_changes,
]

numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@st.composite
def pairs(draw, dimensions=1):
    shape = draw(npst.array_shapes(min_dims=dimensions, max_dims=dimensions, max_side=20))
    arrays = npst.arrays(np.float64, shape, elements=numbers)
    return draw(arrays), draw(arrays)


def varies(f):
    return not (f == f[0]).all()


@given(pairs().filter(lambda pair: varies(pair[0])))
def test_nse_is_the_coefficient_of_determination(pair):
    f, g = pair
    assert metrics.nse(f, g) == pytest.approx(r2_score(f, g), rel=1e-6, abs=1e-6)
    assert metrics.nse(f, f) == 1
    assert metrics.nse(f, np.full_like(f, f.mean())) == pytest.approx(0, abs=1e-9)
    assert metrics.nse(f, g) <= 1


@given(pairs().filter(lambda pair: varies(pair[0])), st.randoms(use_true_random=False))
def test_nse_and_lmae_do_not_depend_on_the_order_of_rows(pair, random):
    order = list(range(pair[0].size))
    random.shuffle(order)
    f, g = pair
    assert metrics.nse(f[order], g[order]) == pytest.approx(metrics.nse(f, g))
    assert metrics.lmae(f[order], g[order]) == pytest.approx(metrics.lmae(f, g))


def test_nse_of_tiny_outputs_does_not_underflow():
    assert metrics.nse([1e-200, 2e-200, 3e-200], [1e-200, 2e-200, 3.5e-200]) == pytest.approx(0.875)


@given(pairs())
def test_lmae_is_a_distance(pair):
    f, g = pair
    assert metrics.lmae(f, f) == 0
    assert metrics.lmae(f, g) == metrics.lmae(g, f) >= 0
    assert metrics.mae(f, g) == metrics.lmae(f, g)


@given(pairs().filter(lambda pair: pair[0].any()))
def test_skill_is_one_when_foreseen_and_zero_without_coefficients(pair):
    f, g = pair
    assert metrics.skill_on_changes(f, f) == 1
    assert metrics.skill_on_changes(f, np.zeros_like(f)) == 0
    assert metrics.skill_on_changes(f, g) <= 1


@given(pairs().filter(lambda pair: pair[0].any()), st.floats(1e-3, 1e3))
def test_skill_does_not_depend_on_the_unit_of_the_output(pair, unit):
    f, g = pair
    assert metrics.skill_on_changes(f * unit, g * unit) == pytest.approx(
        metrics.skill_on_changes(f, g), rel=1e-6, abs=1e-6
    )


@given(pairs(dimensions=2).filter(lambda pair: pair[0].any()))
def test_the_three_weight_differences(pair):
    w, estimated = pair
    assert metrics.awd is metrics.awd_nonzero
    assert metrics.awd(w, w) == metrics.awd_norm(w, w) == 0
    positive = np.abs(w)
    assert metrics.awd_positive(positive, estimated) == metrics.awd(positive, estimated)
    # Weight on a column that does not matter is seen by the norm alone.
    elsewhere = np.where(w == 0, estimated, w)
    assert metrics.awd(w, elsewhere) == 0
    assert (metrics.awd_norm(w, elsewhere) > 0) == np.any(elsewhere != w)


def test_weight_differences_by_hand():
    w = [[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, -1.0, 2.0]]
    estimated = [[0.0, 2.0, 5.0, 0.0], [0.0, 0.0, -4.0, 2.0]]
    assert metrics.awd_nonzero(w, estimated) == 1.0  # (1 + 0 + 3 + 0) / 4
    assert metrics.awd_positive(w, estimated) == pytest.approx(1 / 3)  # (1 + 0 + 0) / 3
    assert metrics.awd_norm(w, estimated) == pytest.approx((np.sqrt(26) + 3) / 2)


def test_one_row_of_coefficients_needs_no_brackets():
    assert metrics.awd_norm([3.0, 0.0], [0.0, 4.0]) == 5.0


@given(
    npst.arrays(np.bool_, 12).filter(np.any),
    npst.arrays(np.float64, 12, elements=numbers),
)
def test_apr_is_scikit_learns(labels, scores):
    expected = average_precision_score(labels, scores)
    assert metrics.apr(labels, scores) == expected
    assert metrics.apr(labels.astype(int), pd.Series(scores)) == expected


def test_apr_refuses_labels_that_are_words():
    with pytest.raises(InputError, match='labels == "yes"'):
        metrics.apr(["yes", "no"], [1.0, 0.0])


def test_apr_without_positives_is_undefined():
    with pytest.raises(InputError, match="no label is positive"):
        metrics.apr([0, 0], [1.0, 0.0])


@given(pairs(dimensions=2))
def test_neighbourhood_errors_reduce_to_errors_at_the_row(pair):
    f, g = pair
    assert metrics.neighbourhood_lmae(f, g) == metrics.lmae(f, g)
    assert metrics.neighbourhood_mae(f[:, 0], g[:, :1]) == metrics.mae(f[:, 0], g[:, 0])


def test_neighbourhood_mae_holds_neighbours_against_the_target_of_their_row():
    assert metrics.neighbourhood_mae([0.0, 10.0], [[1.0, -1.0], [10.0, 12.0]]) == 1.0


def test_neighbourhood_errors_need_neighbours():
    with pytest.raises(InputError, match=r"\(n, neighbours\)"):
        metrics.neighbourhood_lmae([1.0], [1.0])
    with pytest.raises(InputError, match=r"\(n, neighbours\)"):
        metrics.neighbourhood_mae([1.0], [1.0])
    with pytest.raises(InputError, match="each of the 2 rows"):
        metrics.neighbourhood_mae([1.0], [[1.0], [2.0]])


@given(npst.arrays(np.float64, (4, 9), elements=st.sampled_from([0.0, 0.1, 0.5, 1.0])))
def test_selection_auc_is_the_mean_of_scikit_learns(weights):
    training, queries = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2]), np.array([0, 1, 2, 0])
    expected = np.mean([roc_auc_score(training == regime, row) for regime, row in zip(queries, weights, strict=True)])
    found = metrics.selection_auc(weights, training, queries)
    assert found == pytest.approx(expected)
    assert metrics.selection_auc(sparse.csr_array(weights), training, queries) == found
    assert metrics.selection_auc(sparse.csr_matrix(weights), training, queries) == found
    # Only the order of the weights counts, and turning it round mirrors the area.
    assert metrics.selection_auc(np.exp(weights), training, queries) == found
    assert metrics.selection_auc(-weights, training, queries) == pytest.approx(1 - found)


def test_selection_auc_says_what_is_wrong():
    with pytest.raises(InputError, match=r"query 1: 0 of 2 training rows"):
        metrics.selection_auc(np.ones((2, 2)), [0, 1], [0, 5])
    with pytest.raises(InputError, match=r"= \(1, 2\), not \(2, 2\)"):
        metrics.selection_auc(np.ones((2, 2)), [0, 1], [0])
    with pytest.raises(InputError, match="no queries"):
        metrics.selection_auc(np.ones((0, 2)), [0, 1], [])
    with pytest.raises(InputError, match="weights of query 0 holds nan"):
        metrics.selection_auc([[np.nan, 1.0]], [0, 1], [0])


@pytest.mark.parametrize("metric", TWO_ARRAYS)
def test_empty_input_is_refused(metric):
    with pytest.raises(InputError, match="empty"):
        metric(np.empty((0, 2)), np.empty((0, 2)))


@pytest.mark.parametrize("metric", TWO_ARRAYS)
def test_shapes_that_would_broadcast_are_refused(metric):
    with pytest.raises(InputError, match=r"\(3, 1\).*\(1, 3\)"):
        metric(np.ones((3, 1)), np.ones((1, 3)))


@pytest.mark.parametrize("metric", TWO_ARRAYS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_numbers_are_refused_with_their_row(metric, bad):
    with pytest.raises(InputError, match=f"holds {bad} in row 1"):
        metric([[1.0], [2.0]], [[1.0], [bad]])


@pytest.mark.parametrize("metric", TWO_ARRAYS)
def test_words_are_refused(metric):
    with pytest.raises(InputError, match="must hold numbers"):
        metric(["one"], ["two"])


@pytest.mark.parametrize(
    ("metric", "truth"),
    [
        (metrics.nse, [0.1, 0.1, 0.1]),
        (metrics.nse, [7.0]),
        (metrics.skill_on_changes, [0.0, 0.0]),
        (metrics.awd_nonzero, [[0.0, 0.0]]),
        (metrics.awd_positive, [[0.0, -1.0]]),
    ],
)
def test_what_is_undefined_says_so(metric, truth):
    with pytest.raises(InputError, match="undefined"):
        metric(truth, np.zeros_like(truth))
