"""The paper's stage 2: the estimator, the gradient of its reward, the loop and the choice of λ."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from limis import InputError, LimisExplainer
from limis.datasets import make_synthetic
from limis.training.objectives import reinforce_loss, released_loss
from limis.training.trainer import TrainingPlan, train_pairwise
from limis.weighting.pairwise import PairwiseEstimator


@pytest.mark.parametrize("inputs", ["text", "released"])
def test_the_factored_first_layer_equals_one_layer_on_concatenated_inputs(inputs):
    torch.manual_seed(0)
    estimator = PairwiseEstimator(3, inputs)
    queries, rows, outputs = torch.randn(2, 3), torch.randn(5, 3), torch.randn(5)
    q, r = queries[:, None].expand(2, 5, 3), rows[None].expand(2, 5, 3)
    if inputs == "text":
        parts = [q, r, outputs[None, :, None].expand(2, 5, 1)]
        layers = [estimator.from_query, estimator.from_row, estimator.from_output]
    else:
        parts = [q, r, q * r, r - q]
        layers = [estimator.from_query, estimator.from_row, estimator.from_product, estimator.from_difference]
    weight = torch.cat([layer.weight for layer in layers], dim=1)
    first = torch.cat(parts, dim=2) @ weight.T + estimator.from_query.bias
    torch.testing.assert_close(estimator(queries, rows, outputs), estimator.rest(first)[:, :, 0])


def test_the_network_is_the_papers():
    estimator = PairwiseEstimator(11)
    hidden = [m for m in estimator.rest if isinstance(m, torch.nn.Linear)]
    assert len(hidden) + 1 == 5  # the factored first layer is one
    assert {m.in_features for m in hidden} == {100}
    assert sum(isinstance(m, torch.nn.Tanh) for m in estimator.rest) == 4


def true_gradient(logits, score, penalty):
    """The gradient of the expected loss, over all 2ⁿ selections."""
    logits = logits.clone().requires_grad_()
    probability = torch.sigmoid(logits)
    expected = torch.zeros((), dtype=logits.dtype)
    for selection in itertools.product([0.0, 1.0], repeat=logits.shape[1]):
        chosen = torch.tensor([selection], dtype=logits.dtype)
        chance = torch.where(chosen > 0, probability, 1 - probability).prod()
        expected = expected + chance * (score(chosen)[0] + penalty * chosen.mean())
    expected.backward()
    return logits.grad


def test_reinforce_has_the_true_gradient_in_expectation():
    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor([[0.3, -0.5, 1.0, 0.0]], dtype=torch.float64)
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)

    def score(selected):
        return (selected @ weights - 1).abs()

    draws = 4000
    many = logits.repeat(draws, 1).requires_grad_()
    reinforce_loss(many, score, torch.full((draws,), 1.2, dtype=torch.float64), 0.7, generator).backward()
    samples = many.grad * draws  # one estimate a row
    mean, error = samples.mean(dim=0), samples.std(dim=0) / draws**0.5
    # Four standard errors: a true implementation fails once in some 4,000 runs, and the seed is fixed.
    assert ((mean - true_gradient(logits, score, 0.7)[0]).abs() < 4 * error).all()


def test_the_released_loss_gives_rows_one_shared_credit_and_turns_the_sign():
    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor([[2.0, -2.0, 0.5]], requires_grad=True)
    # Error below the global model's: probabilities are driven away from the selected share.
    released_loss(logits, lambda _: torch.zeros(1), torch.ones(1), 0.0, generator).backward()
    share = torch.bernoulli(torch.sigmoid(logits.detach()), generator=torch.Generator().manual_seed(0)).mean()
    expected = (share - torch.sigmoid(logits.detach())) / 3
    torch.testing.assert_close(logits.grad, expected)


@pytest.fixture(scope="module")
def syn1():
    data = make_synthetic("Syn1", 400, random_state=0)
    probes = make_synthetic("Syn1", 80, random_state=1)
    explainer = LimisExplainer(data.black_box, scaling="none").fit(data.features, probe_rows=probes.features)
    return explainer, data, probes


def run(syn1, **plan):
    from limis.training import ProbeRows

    explainer, _, probes = syn1
    values = explainer.training_.table.values(probes.features)
    rows = ProbeRows(values, probes.outputs)
    options = {"steps": 20, "check_every": 5, "penalty": 0.0, **plan}
    return train_pairwise(explainer.training_, rows, explainer.global_fit_, TrainingPlan(**options), 0)


def test_training_repeats_with_its_seed(syn1):
    first, second = (run(syn1)[0].estimator.state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_training_stops_when_nothing_improves(syn1):
    _, (log,) = run(syn1, steps=60, patience=2, learning_rate=0.0)
    assert log.steps == [0, 5, 10]  # two checks without improvement


def test_training_keeps_the_best_state(syn1):
    # So large a rate makes the estimator worse, and the state before it is kept.
    weighting, (log,) = run(syn1, steps=40, patience=8, learning_rate=3.0)
    assert log.kept == log.best < len(log.steps) - 1
    start, _ = run(syn1, steps=40, patience=8, learning_rate=0.0)
    if log.best == 0:
        state = start.estimator.state_dict()
        assert all(torch.equal(value, state[key]) for key, value in weighting.estimator.state_dict().items())


def test_the_time_budget_is_honoured(syn1):
    _, (log,) = run(syn1, steps=100_000, time_budget=0.2, patience=0)
    assert log.steps[-1] < 100_000


def test_lambda_is_chosen_by_validation_fidelity(syn1):
    weighting, logs = run(syn1, penalty=None)
    assert [log.penalty for log in logs] == [0.0, 0.1, 1.0]
    best = min(logs, key=lambda log: log.error)
    alone, _ = run(syn1, penalty=best.penalty)
    state = alone.estimator.state_dict()
    assert all(torch.equal(value, state[key]) for key, value in weighting.estimator.state_dict().items())


def test_a_large_penalty_selects_fewer_rows(syn1):
    shares = [
        run(syn1, steps=60, patience=0, penalty=p, learning_rate=1e-3)[1][0].selected_share[-1] for p in (0.0, 30.0)
    ]
    assert shares[1] < shares[0]


@pytest.mark.parametrize("variant", ["text", "released"])
def test_the_papers_configuration_explains_end_to_end(variant):
    data = make_synthetic("Syn1", 150, random_state=0)
    explainer = LimisExplainer.paper(data.black_box, variant=variant, synthetic=True, time_budget=1.0)
    found = explainer.fit(data.features).explain(data.features.iloc[:5])
    np.testing.assert_allclose(found.base_values + found.contributions.sum(axis=1), found.local_predictions)
    alone = explainer.explain(data.features.iloc[[3]])
    np.testing.assert_array_equal(alone.contributions, found.contributions.iloc[[3]])
    weights = found.weights.toarray()
    assert ((weights >= 0) & (weights <= 1)).all()


def test_the_papers_configuration_scales_real_data_between_0_and_1():
    explainer = LimisExplainer.paper()
    assert (explainer.scaling, explainer.weighting) == ("minmax", "pairwise")
    assert LimisExplainer.paper(synthetic=True).scaling == "none"
    released = LimisExplainer.paper(variant="released")
    assert (released.weighting, released.selection_penalty) == ("pairwise-released", 1.0)
    with pytest.raises(InputError, match='"text" or "released"'):
        LimisExplainer.paper(variant="other")


def test_too_few_rows_for_probes_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="needs probe rows"):
        LimisExplainer.paper(lambda rows: rows["a"]).fit(frame)
