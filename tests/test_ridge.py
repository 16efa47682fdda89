"""The batched ridge is scikit-learn's ridge, whatever the shapes, weights and degeneracies."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from limis.surrogate import fit_local_ridge, solve_ridge

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


def reference(features, targets, weights, alpha):
    ridge = Ridge(alpha=alpha).fit(features, targets, sample_weight=weights)
    return ridge.coef_, ridge.intercept_


@st.composite
def problems(draw, scales):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    queries, rows, width = draw(st.integers(1, 4)), draw(st.integers(2, 40)), draw(st.integers(1, 20))
    features = rng.normal(size=(queries, rows, width))
    degenerate = draw(st.sampled_from(["none", "constant", "duplicate", "one-hot", "few rows"]))
    if degenerate == "constant":
        features[:, :, 0] = 3.0
    elif degenerate == "duplicate":
        features[:, :, -1] = features[:, :, 0]
    elif degenerate == "one-hot":
        features = np.eye(width)[rng.integers(width, size=(queries, rows))]
    weights = rng.random((queries, rows))
    weights[rng.random(weights.shape) < draw(st.sampled_from([0.0, 0.5, 0.9]))] = 0
    if degenerate == "few rows":
        weights[:, 2:] = 0
    weights[:, 0] += 0.1  # at least one row counts
    scale = draw(st.sampled_from(scales))
    targets = rng.normal(size=(queries, rows))
    return features, targets, weights * scale, draw(st.sampled_from([0.1, 1.0, 10.0]))


# In float32 the Gram matrix of weights 10,000 times the penalty leaves no digits for the penalty itself.
@pytest.mark.parametrize(("dtype", "scales"), [(torch.float64, (0.01, 1.0, 1000.0)), (torch.float32, (0.01, 1.0))])
@given(data=st.data())
def test_equals_scikit_learn(dtype, scales, data):
    features, targets, weights, alpha = data.draw(problems(scales))
    fit = fit_local_ridge(*(torch.as_tensor(part, dtype=dtype) for part in (features, targets, weights)), alpha)
    for query in range(len(features)):
        slopes, intercept = reference(features[query], targets[query], weights[query], alpha)
        np.testing.assert_allclose(fit.coefficients[query], slopes, atol=TOLERANCE[dtype] * max(1, abs(slopes).max()))
        np.testing.assert_allclose(fit.intercepts[query], intercept, atol=TOLERANCE[dtype] * max(1, abs(intercept)))


def test_leave_one_out_errors_are_those_of_refitting():
    rng = np.random.default_rng(0)
    features, targets, weights = rng.normal(size=(12, 3)), rng.normal(size=12), rng.random(12)
    fit = fit_local_ridge(*(torch.as_tensor(part)[None] for part in (features, targets, weights)), 1.0)
    missed, spread = [], []
    for row in range(12):
        rest = np.arange(12) != row
        slopes, intercept = reference(features[rest], targets[rest], weights[rest], 1.0)
        missed.append(targets[row] - features[row] @ slopes - intercept)
        spread.append(targets[row] - np.average(targets[rest], weights=weights[rest]))
    share = weights / weights.sum()
    assert float(fit.residual_mean_square[0]) == pytest.approx(share @ np.square(missed), rel=1e-9)
    assert float(fit.spread_mean_square[0]) == pytest.approx(share @ np.square(spread), rel=1e-9)


@pytest.mark.parametrize("width", [1, 5, 11, 16, 61])
def test_a_query_gives_the_same_bits_alone_and_in_any_batch(width):
    rng = torch.Generator().manual_seed(0)
    features = torch.randn(50, 200, width, generator=rng)
    targets, weights = torch.randn(50, 200, generator=rng), torch.rand(50, 200, generator=rng)
    together = fit_local_ridge(features, targets, weights)
    for batch in (1, 3, 7, 32):
        for start in range(0, 50, batch):
            part = slice(start, start + batch)
            apart = fit_local_ridge(features[part], targets[part], weights[part])
            assert torch.equal(apart.coefficients, together.coefficients[part])
            assert torch.equal(apart.intercepts, together.intercepts[part])
            assert torch.equal(apart.residual_mean_square, together.residual_mean_square[part])


def test_no_weight_at_all_is_said_and_stays_finite():
    features, targets = torch.randn(2, 5, 3), torch.randn(2, 5)
    fit = fit_local_ridge(features, targets, torch.tensor([[0.0] * 5, [1.0] * 5]))
    assert fit.empty.tolist() == [True, False]
    assert torch.isfinite(fit.coefficients).all()
    assert torch.isfinite(fit.residual_mean_square).all()


def test_without_penalty_a_singular_system_still_has_an_answer_and_leaves_the_others_alone():
    rng = torch.Generator().manual_seed(0)
    features = torch.randn(2, 30, 4, dtype=torch.float64, generator=rng)
    features[0, :, 3] = features[0, :, 2]
    targets, weights = torch.randn(2, 30, dtype=torch.float64, generator=rng), torch.ones(2, 30, dtype=torch.float64)
    both = fit_local_ridge(features, targets, weights, alpha=0.0)
    alone = fit_local_ridge(features[1:], targets[1:], weights[1:], alpha=0.0)
    assert torch.isfinite(both.coefficients).all()
    np.testing.assert_allclose(both.coefficients[1], alone.coefficients[0], rtol=1e-9)


def test_gradients_pass_through_the_weights():
    rng = torch.Generator().manual_seed(1)
    features = torch.randn(1, 8, 2, dtype=torch.float64, generator=rng)
    targets = torch.randn(1, 8, dtype=torch.float64, generator=rng)
    weights = torch.rand(1, 8, dtype=torch.float64, generator=rng).requires_grad_()
    row = torch.randn(1, 2, dtype=torch.float64, generator=rng)
    assert torch.autograd.gradcheck(lambda w: solve_ridge(features, targets, w).predict(row), weights)
