"""Objectives have the gradients they promise, and the terms of the reward say what they should."""

import itertools

import pytest
import torch

from limis.surrogate import solve_ridge
from limis.training import ridges
from limis.training.objectives import (
    OBJECTIVES,
    SAMPLES,
    TEMPERATURE,
    Loss,
    gumbel,
    l2r,
    reinforce,
    released,
    rloo,
    straight_through,
    weighted,
)
from limis.training.ridges import SharedRidge
from limis.training.terms import ChangeError, Changes, LinearModels, ProbeFits, RowError, SelectedShare, Stability

ROWS, FEATURES = 7, 2


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def ridge_of(rows=ROWS, features=FEATURES, dtype=torch.float64):
    draw = generator(1)
    x = torch.randn(rows, features, dtype=dtype, generator=draw)
    y = x[:, 0] - 2 * x[:, -1] * (x[:, 0] > 0) + 0.1
    otherwise = LinearModels(torch.full((1, features), 0.5, dtype=dtype), torch.tensor([0.3], dtype=dtype))
    return x, y, SharedRidge(x, y, 0.5, otherwise)


def ridge_loss(n_probes, penalty=0.7):
    """The loss of real surrogates: error at one point, the same for all probes."""
    _, _, ridge = ridge_of()
    point = torch.tensor([[0.4, -1.1]], dtype=torch.float64).expand(n_probes, -1)

    def errors(weights):
        return (ridge.solve(weights).predict(point) - 2.0).abs()

    return Loss(errors, torch.full((n_probes,), 1.4, dtype=torch.float64), penalty)


LOGITS = torch.tensor([[0.3, -0.5, 1.0, 0.0, -1.2, 0.8, -0.1]], dtype=torch.float64)


# --- ridges over shared rows -----------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("road", ["narrow", "wide"])
def test_ridges_over_shared_rows_equal_the_batched_ridge(monkeypatch, dtype, tolerance, road):
    if road == "wide":
        monkeypatch.setattr(ridges, "MAX_CELLS", 300)  # a probe at a time
    x, y, ridge = ridge_of(40, 5, dtype)
    assert (ridge.products is None) == (road == "wide")
    weights = torch.rand(6, 40, dtype=dtype, generator=generator()).requires_grad_()
    solved = solve_ridge(x.expand(6, -1, -1), y.expand(6, -1), weights, 0.5)
    found = ridge.solve(weights)
    points = torch.randn(6, 5, dtype=dtype, generator=generator(2))
    close = {"atol": tolerance, "rtol": tolerance}
    torch.testing.assert_close(found.coefficients, solved.coefficients[:, :5], **close)
    torch.testing.assert_close(found.predict(points), solved.predict(points), **close)
    ours, theirs = (torch.autograd.grad(s.predict(points).sum(), weights)[0] for s in (found, solved))
    torch.testing.assert_close(ours, theirs, **close)


def test_a_ridge_left_with_one_row_gives_way_to_the_global_model():
    _, _, ridge = ridge_of()
    weights = torch.zeros(3, ROWS, dtype=torch.float64)
    weights[1, 2] = 1.0
    weights[2, 2:4] = 1.0
    found = ridge.solve(weights)
    assert (found.coefficients[:2] == 0.5).all()
    assert (found.intercepts[:2] == 0.3).all()
    assert (found.coefficients[2] != 0.5).any()


# --- gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [weighted, gumbel])
def test_gradients_through_the_ridge_agree_with_finite_differences(objective):
    logits = torch.randn(3, ROWS, dtype=torch.float64, generator=generator(3)).requires_grad_()
    # The same seed at every call: the noise is fixed.
    assert torch.autograd.gradcheck(lambda at: objective(at, ridge_loss(3), generator()), logits)


def true_gradient(logits, loss):
    """The gradient of the expected loss, over all 2ⁿ selections."""
    logits = logits.clone().requires_grad_()
    every = torch.tensor(list(itertools.product([0.0, 1.0], repeat=logits.shape[1])), dtype=logits.dtype)
    probability = torch.sigmoid(logits)
    chances = torch.where(every > 0, probability, 1 - probability).prod(dim=1)
    (chances * loss(every)).sum().backward()
    return logits.grad[0]


def estimates(objective, draws, loss):
    """One estimate of the gradient a draw: each draw is a probe of its own."""
    many = LOGITS.repeat(draws, 1).requires_grad_()
    objective(many, loss, generator()).backward()
    return many.grad * draws


@pytest.mark.parametrize("objective", [reinforce, rloo])
def test_score_function_objectives_have_the_true_gradient_in_expectation(objective):
    draws = 60_000
    samples = estimates(objective, draws, ridge_loss(draws))
    mean, error = samples.mean(dim=0), samples.std(dim=0) / draws**0.5
    truth = true_gradient(LOGITS, ridge_loss(2**ROWS))
    assert truth.abs().max() > 15 * error.max()  # the tolerance means something
    # Four standard errors: a true implementation fails once in some 2,000 runs, and the seed is fixed.
    assert ((mean - truth).abs() < 4 * error).all()


def test_leave_one_out_baselines_gain_more_than_their_samples_cost():
    loss = ridge_loss(2000)
    one, several = (estimates(objective, 2000, loss).var(dim=0).sum() for objective in (reinforce, rloo))
    assert several * SAMPLES < one


def test_straight_through_has_the_weighted_gradient_at_the_sampled_selection():
    logits = LOGITS.repeat(4, 1).requires_grad_()
    value = straight_through(logits, ridge_loss(4), generator())
    value.backward()
    selected = torch.bernoulli(torch.sigmoid(logits.detach()), generator=generator()).requires_grad_()
    fitted = ridge_loss(4)(selected).mean()
    (slope,) = torch.autograd.grad(fitted, selected)
    torch.testing.assert_close(value.detach(), fitted.detach())
    probability = torch.sigmoid(logits.detach())
    torch.testing.assert_close(logits.grad, slope * probability * (1 - probability))


def test_relaxed_selections_are_drawn_with_the_selection_probability():
    seen = []
    loss = Loss(lambda weights: seen.append(weights) or weights.sum(dim=1), torch.zeros(1))
    gumbel(torch.full((1, 20_000), 0.8), loss, generator())
    share = (seen[0] > 0.5).float().mean()
    # Four standard errors of a share of 20,000.
    assert abs(float(share) - float(torch.sigmoid(torch.tensor(0.8)))) < 4 * (0.25 / 20_000) ** 0.5
    logit, noise = torch.tensor(0.8), torch.logit(torch.rand(1, 20_000, generator=generator()))
    torch.testing.assert_close(seen[0], torch.sigmoid((logit + noise) / TEMPERATURE))


def test_the_released_loss_gives_rows_one_shared_credit_and_turns_the_sign():
    logits = torch.tensor([[2.0, -2.0, 0.5]], requires_grad=True)
    # Error below the global model's: probabilities are driven away from the selected share.
    released(logits, Loss(lambda _: torch.zeros(1), torch.ones(1)), generator()).backward()
    share = torch.bernoulli(torch.sigmoid(logits.detach()), generator=generator()).mean()
    expected = (share - torch.sigmoid(logits.detach())) / 3
    torch.testing.assert_close(logits.grad, expected)


def test_l2r_by_hand():
    # Two probes whose losses are linear in the weights: slopes −3, 1, −1.5 and 0 in the mean.
    slopes = torch.tensor([[-4.0, 2.0, 0.0, 1.0], [-2.0, 0.0, -3.0, -1.0]])
    loss = Loss(lambda weights: (weights * slopes).sum(dim=1), torch.zeros(2))
    row_logits = torch.zeros(4, requires_grad=True)
    l2r(row_logits.expand(2, -1), loss, generator()).backward()
    target = torch.tensor([1.0, 0.0, 0.5, 0.0])
    torch.testing.assert_close(row_logits.grad, (0.5 - target) * 0.25)


def test_l2r_leaves_the_weights_where_no_row_would_help():
    row_logits = torch.tensor([0.2, -1.0], requires_grad=True)
    l2r(row_logits.expand(3, -1), Loss(lambda weights: weights.sum(dim=1), torch.zeros(3)), generator()).backward()
    assert (row_logits.grad == 0).all()


def test_l2r_finds_the_rows_with_false_outputs():
    draw = generator(5)
    x = torch.randn(60, 3, generator=draw)
    truth = x @ torch.tensor([1.0, -2.0, 0.5])
    false = torch.arange(60) < 10
    otherwise = LinearModels(torch.zeros(1, 3), torch.zeros(1))
    ridge = SharedRidge(x[:40], torch.where(false, -truth, truth)[:40], 1.0, otherwise)
    loss = Loss(lambda weights: (ridge.solve(weights).predict(x[40:]) - truth[40:]).abs(), torch.zeros(20))
    row_logits = torch.zeros(40, requires_grad=True)
    optimiser = torch.optim.Adam([row_logits], lr=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        l2r(row_logits.expand(20, -1), loss, generator()).backward()
        optimiser.step()
    weights = torch.sigmoid(row_logits.detach())
    assert weights[false[:40]].mean() < 0.5 * weights[~false[:40]].mean()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_repeats_with_its_generator(name):
    values = []
    for _ in range(2):
        logits = LOGITS.repeat(2, 1).requires_grad_()
        OBJECTIVES[name](logits, ridge_loss(2), generator(7)).backward()
        values.append(logits.grad)
    assert torch.equal(*values)
    assert values[0].isfinite().all()


# --- terms of the reward ---------------------------------------------------------------------------


def two_probes():
    return ProbeFits(
        features=torch.tensor([[1.0, 0.0], [2.0, 1.0]]),
        targets=torch.tensor([3.0, 0.0]),
        weights=torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]]),
        models=LinearModels(torch.tensor([[1.0, 2.0], [-1.0, 1.0]]), torch.tensor([0.5, 1.0])),
        feature_deviation=torch.tensor([1.0, 10.0]),
        changes=Changes(
            steps=torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [9.0, 9.0]]]),
            answers=torch.tensor([[2.0, 5.0], [-1.0, 7.0]]),
            known=torch.tensor([[1.0, 1.0], [1.0, 0.0]]),
            unit=2.0,
        ),
        nudged=LinearModels(torch.tensor([[1.5, 2.0], [-1.0, 1.1]]), torch.tensor([0.0, 0.0])),
    )


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (RowError(), [1.5, 0.0]),
        (RowError(price=2.0, squared=True), [4.5, 0.0]),
        (ChangeError(), [(0.5 + 1.5) / 2, 0.5]),
        (ChangeError(squared=True), [(0.25 + 2.25) / 2, 0.25]),
        (SelectedShare(2.0), [1.0, 0.5]),
        (Stability(), [0.5, 1.0]),
    ],
)
def test_terms_by_hand(term, expected):
    torch.testing.assert_close(term(two_probes()), torch.tensor(expected))
