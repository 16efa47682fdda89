"""The paper's stage 2: the estimators, the loop, its probes and rewards, and the choice of λ."""

import dataclasses
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from limis import InputError, LimisExplainer
from limis.blackbox import BlackBox, connect
from limis.datasets import make_synthetic
from limis.rows import TrainingRows
from limis.table import Table
from limis.training import ProbeRows, TrainingPlan
from limis.training.objectives import OBJECTIVES
from limis.training.plans import TOWERS_PLAN, paper_baseline
from limis.training.probe_set import NEAR_HELD_OUT, ProbeSet, nudge
from limis.training.terms import ChangeError, RowError, SelectedShare, Stability
from limis.training.trainer import SEEDS_APART, train
from limis.walk import GlobalFit
from limis.weighting.dense import FactoredWeighting
from limis.weighting.factored import FactoredEstimator
from limis.weighting.learned import estimator_inputs
from limis.weighting.pairwise import PairwiseEstimator
from limis.weighting.random import RandomWeighting
from limis.weighting.shared import SharedWeighting


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


def rows_of(frame, model, **options):
    table, frame = Table.learn(frame, scaling="none")
    black_box, outputs = connect(model, frame, from_array=False, output="auto", labels=table.source_labels)
    return TrainingRows(table, black_box, frame, table.values(frame), outputs, **options)


@pytest.fixture(scope="module")
def syn1():
    """Training rows and probe rows whose moves the black box was asked about."""
    rng = np.random.default_rng(0)
    data, held_out = (make_synthetic("Syn1", n, random_state=rng) for n in (300, 80))
    training = rows_of(data.features, data.black_box)
    return training, ProbeRows.ask(training, held_out.features, held_out.outputs, rng)


def run(syn1, **plan):
    training, probes = syn1
    options = {"steps": 20, "check_every": 5, "penalty": 0.0, **plan}
    return train(training, probes, GlobalFit.of(training), TrainingPlan(**options), 0)


def state_of(weighting):
    return torch.cat([value.ravel() for value in weighting.estimator.state_dict().values()])


FEW_STEPS = {"estimator": "towers", "probes": "all", "steps": 150, "check_every": 50, "batch_probes": 32}
FEW_STEPS |= {"learning_rate": 3e-3, "cooling": True}


# --- objectives on one trainer ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "share"), [("weighted", 0.3), ("gumbel", 0.3), ("straight-through", 0.3), ("rloo", 0.5)]
)
def test_low_variance_objectives_soon_leave_the_global_model_far_behind(syn1, objective, share):
    _, (log,) = run(syn1, objective=objective, **FEW_STEPS)
    assert log.error < share * log.global_error


@pytest.mark.parametrize(
    ("estimator", "steps", "share"), [("kernel", 100, 0.5), ("sum", 100, 0.4), ("pairwise", 50, 0.9)]
)
def test_every_estimator_learns(syn1, estimator, steps, share):
    _, (log,) = run(syn1, objective="weighted", **{**FEW_STEPS, "estimator": estimator, "steps": steps})
    assert log.error < share * log.global_error


def test_reinforce_learns_too_but_slowly(syn1):
    _, (log,) = run(syn1, objective="reinforce", **{**FEW_STEPS, "steps": 600, "batch_probes": 128, "patience": 0})
    assert log.error < 0.9 * log.global_error


def test_one_weighting_for_all_rows_is_little_better_than_the_global_model(syn1):
    weighting, (log,) = run(syn1, objective="l2r", learning_rate=0.05, steps=100, patience=0)
    assert isinstance(weighting, SharedWeighting)
    assert 0.8 * log.global_error < log.error < 1.1 * log.global_error


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_training_repeats_with_its_seed(syn1, objective):
    options = {"objective": objective, **FEW_STEPS, "steps": 4, "batch_rows": 100, "penalty": 0.1}
    first, second = (state_of(run(syn1, **options)[0]) for _ in range(2))
    assert torch.equal(first, second)
    other, _ = train(*syn1, GlobalFit.of(syn1[0]), TrainingPlan(**options), 1)
    assert not torch.equal(first, state_of(other))


def test_the_plan_that_does_best_finds_the_true_coefficients(syn1):
    training, probes = syn1
    plan = dataclasses.replace(TOWERS_PLAN, steps=300)
    weighting, (log,) = train(training, probes, GlobalFit.of(training), plan, 0)
    assert log.error < 0.3 * log.global_error
    found = weighting.neighbourhood(training, probes.values)
    same = np.sign(probes.values[:, 9])[:, None] == np.sign(training.values[:, 9])
    assert found.weights[same].mean() > 4 * found.weights[~same].mean()


def test_baseline_plans_are_of_the_papers_estimator():
    for objective in OBJECTIVES:
        plan = paper_baseline(objective)
        assert (plan.objective, plan.estimator, plan.probes) == (objective, "pairwise", "held-out")


# --- terms of the reward ------------------------------------------------------------------------------


def test_the_reward_is_the_sum_of_its_terms(syn1):
    def twice_the_error(fits):
        return 2 * (fits.models.predict(fits.features) - fits.targets).abs()

    options = {"objective": "weighted", "steps": 0}
    terms = [(RowError(),), (ChangeError(),), (RowError(), ChangeError(price=2.0), twice_the_error)]
    row, change, both = (run(syn1, terms=each, **options)[1][0] for each in terms)
    assert both.error == pytest.approx(3 * row.error + 2 * change.error, rel=1e-5)
    assert both.global_error == pytest.approx(3 * row.global_error + 2 * change.global_error, rel=1e-5)


def test_a_users_term_trains(syn1):
    def small_coefficients(fits):
        return fits.models.coefficients.abs().sum(dim=1)

    options = {"objective": "weighted", **FEW_STEPS, "steps": 50}
    _, (log,) = run(syn1, terms=(small_coefficients,), **options)
    assert log.error < log.validation_error[0]


def test_the_selected_share_is_a_term_like_any_other(syn1):
    options = {"objective": "weighted", "estimator": "sum", "steps": 8, "patience": 0, "learning_rate": 1e-3}
    by_term, _ = run(syn1, terms=(RowError(), SelectedShare(0.5)), **options)
    by_penalty, _ = run(syn1, **{**options, "penalty": 0.5 * syn1[0].unit})
    torch.testing.assert_close(state_of(by_term), state_of(by_penalty))


@pytest.mark.parametrize("objective", ["weighted", "rloo"])
def test_stability_can_be_bought(syn1, objective):
    def drift(terms):
        _, (log,) = run(syn1, objective=objective, terms=terms, **{**FEW_STEPS, "steps": 60, "patience": 0})
        return log

    alone = drift((Stability(),))
    assert alone.error < 0.5 * alone.validation_error[0]
    assert alone.global_error == 0


def test_without_a_black_box_to_ask_near_held_out_rows_stand_for_changes(syn1):
    training, probes = syn1
    mute = dataclasses.replace(training, black_box=BlackBox("value", "values"))
    silent = ProbeRows(probes.values, probes.outputs)
    see = partial(estimator_inputs, mute.table)
    chosen = ProbeSet.prepare(mute, silent, see, {"changes"}, silent, np.random.default_rng(0))
    changes = chosen.changes.of_probes(torch.tensor([3, 5]))
    assert changes.known.sum(dim=1).tolist() == [NEAR_HELD_OUT] * 2  # the row itself is none
    there = silent.values[3] + changes.steps[0, 0].double().numpy()
    place = np.abs(silent.values - there).sum(axis=1).argmin()
    gain = (silent.outputs[place] - silent.outputs[3]) / mute.unit
    assert float(changes.answers[0, 0]) == pytest.approx(gain, abs=1e-5)
    plan = TrainingPlan(objective="weighted", terms=(ChangeError(),), **{**FEW_STEPS, "steps": 50}, penalty=0.0)
    _, (log,) = train(mute, silent, GlobalFit.of(mute), plan, 0)
    assert log.error < log.global_error


def test_a_nudge_is_small_and_leaves_categories_and_missing_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(list("xyz"), 200), "c": [0.0] * 150 + [9.0] * 50})
    frame.loc[:10, "a"] = np.nan
    table, frame = Table.learn(frame)
    values = table.values(frame)
    moved = nudge(table, values, rng)
    np.testing.assert_array_equal(moved[:, 1:], values[:, 1:])  # a heap of equal values is one place
    assert np.isnan(moved[:11, 0]).all()
    apart = np.abs(table.ranks(moved) - table.ranks(values))[11:, 0]
    assert 0.005 < apart.mean() < apart.max() < 0.03


# --- probes ---------------------------------------------------------------------------------------------


def test_a_training_row_and_its_equals_do_not_speak_for_it():
    data = make_synthetic("Syn1", 40, random_state=0)
    frame = pd.concat([data.features, data.features.iloc[:2]], ignore_index=True)
    training = rows_of(frame, data.black_box, sample_weight=np.arange(1.0, 43.0))
    own = ProbeRows(training.values, training.outputs)
    see = partial(estimator_inputs, training.table)
    chosen = ProbeSet.prepare(training, own, see, set(), own, np.random.default_rng(0))
    allowed = chosen.allowed(torch.tensor([1, 7]), torch.arange(42))
    expected = np.tile(np.arange(1.0, 43.0) / 42, (2, 1))
    expected[0, [1, 41]] = expected[1, 7] = 0
    np.testing.assert_allclose(allowed, expected, rtol=1e-6)


def test_training_on_mixed_columns_with_missing_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=160), "b": rng.choice(["x", "y"], 160), "c": rng.exponential(size=160)})
    frame.loc[frame.index % 7 == 0, "c"] = np.nan

    def model(rows):
        return np.where(rows["b"] == "x", 2 * rows["a"], -rows["a"]) + rows["c"].fillna(5.0)

    training = rows_of(frame.iloc[:120], model)
    probes = ProbeRows.ask(training, frame.iloc[120:], np.asarray(model(frame.iloc[120:])), rng)
    plan = dataclasses.replace(TOWERS_PLAN, steps=60, terms=(RowError(), ChangeError(), Stability(0.1)))
    weighting, (log,) = train(training, probes, GlobalFit.of(training), plan, 0)
    assert log.error < log.global_error
    assert np.isfinite(weighting.neighbourhood(training, probes.values).weights).all()


# --- weightings over all rows ------------------------------------------------------------------------------


def test_factored_weights_of_a_row_do_not_depend_on_its_batch(syn1):
    training, probes = syn1
    torch.manual_seed(0)
    weighting = FactoredWeighting(FactoredEstimator(11, "sum"))
    together = weighting.neighbourhood(training, probes.values).weights
    for place in (0, 17, 70):
        alone = weighting.neighbourhood(training, probes.values[place : place + 1]).weights
        np.testing.assert_array_equal(alone[0], together[place])


def test_random_selection_is_random_and_repeats(syn1):
    training, probes = syn1
    chosen = RandomWeighting(share=0.2, seed=3)
    found = chosen.neighbourhood(training, probes.values).weights
    assert set(np.unique(found)) == {0.0, 1.0}
    # Four standard errors of a share of 80 × 300.
    assert abs(found.mean() - 0.2) < 4 * (0.16 / found.size) ** 0.5
    assert (found[0] != found[1]).any()
    np.testing.assert_array_equal(chosen.neighbourhood(training, probes.values[5:6]).weights[0], found[5])
    assert (RandomWeighting(0.2, seed=4).neighbourhood(training, probes.values).weights != found).any()
    own = RandomWeighting(1.0).neighbourhood(training, training.values[:3]).weights
    assert own[0, 0] == own[1, 1] == 0
    assert own[0, 1:].all()


# --- the loop ------------------------------------------------------------------------------------------------


def test_training_stops_when_nothing_improves(syn1):
    _, (log,) = run(syn1, steps=60, patience=2, learning_rate=0.0)
    assert log.steps == [0, 5, 10]  # two checks without improvement


def test_training_keeps_the_best_state(syn1):
    # So large a rate makes the estimator worse, and the state before it is kept.
    weighting, (log,) = run(syn1, steps=40, patience=8, learning_rate=3.0)
    assert log.kept == log.best < len(log.steps) - 1
    start, _ = run(syn1, steps=40, patience=8, learning_rate=0.0)
    if log.best == 0:
        assert torch.equal(state_of(weighting), state_of(start))


def test_the_time_budget_is_honoured(syn1):
    _, (log,) = run(syn1, steps=100_000, time_budget=0.2, patience=0)
    assert log.steps[-1] < 100_000


def test_lambda_is_chosen_by_validation_fidelity(syn1):
    weighting, logs = run(syn1, penalty=None)
    assert [log.penalty / syn1[0].unit for log in logs] == pytest.approx([0.0, 0.1, 1.0])
    best = min(logs, key=lambda log: log.error)
    alone, _ = run(syn1, penalty=best.penalty)
    assert torch.equal(state_of(weighting), state_of(alone))


@pytest.mark.parametrize("objective", ["rloo", "weighted"])
def test_a_large_penalty_selects_fewer_rows(syn1, objective):
    options = {"objective": objective, "estimator": "towers", "steps": 60, "patience": 0, "learning_rate": 1e-3}
    shares = [run(syn1, penalty=penalty, **options)[1][0].selected_share[-1] for penalty in (0.0, 30.0)]
    assert shares[1] < 0.9 * shares[0]


def test_the_papers_estimator_has_a_door_of_its_own(syn1):
    training, probes = syn1
    plan = TrainingPlan(steps=3, penalty=0.0)
    weighting, logs = train(training, probes, GlobalFit.of(training), plan, 0)
    assert isinstance(weighting.estimator, PairwiseEstimator)
    assert len(logs) == 1


def test_of_several_runs_the_best_on_validation_rows_is_kept(syn1):
    options = {"objective": "released", "inputs": "released", "steps": 40, "patience": 0, "penalty": 0.0}
    once = run(syn1, **options)[1]
    weighting, logs = run(syn1, restarts=3, **options)
    assert len(logs) == 3
    assert logs[0].validation_error == once[0].validation_error
    errors = [log.error for log in logs]
    assert len(set(errors)) == 3
    best = int(np.argmin(errors))
    training, probes = syn1
    alone, _ = train(training, probes, GlobalFit.of(training), TrainingPlan(**options), SEEDS_APART * best)
    for kept, again in zip(weighting.estimator.parameters(), alone.estimator.parameters(), strict=True):
        torch.testing.assert_close(kept, again)


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
