"""Every weighting and objective, as an option of the explainer: fitted, explained with, saved and loaded."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import limis
from limis import InputError, LimisExplainer
from limis.datasets import make_synthetic
from limis.metrics import awd
from limis.retrieval import Retriever
from limis.training import PLANS, ChangeError, ProbeRows, RowError, Stability
from limis.training import retrieved as retrieved_training
from limis.training.objectives import OBJECTIVES
from limis.training.retrieved import train_retrieved


@pytest.fixture(scope="module")
def data():
    return make_synthetic("Syn1", 280, random_state=0)


@pytest.fixture(scope="module")
def rows():
    return make_synthetic("Syn1", 12, random_state=1).features


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Trained for long enough to be told from untrained, no longer."""
    monkeypatch.setattr(retrieved_training, "STEPS", 20)


@pytest.fixture
def steps(monkeypatch):
    """What is measured after training must not depend on how busy the machine is: steps are counted, not seconds."""

    def take(weighting, number):
        plan = replace(PLANS[weighting], steps=number, check_every=max(1, number // 4), restarts=1)
        monkeypatch.setitem(PLANS, weighting, plan)

    return take


def fitted(data, **options):
    return LimisExplainer(data.black_box, time_budget=0.5, **options, surrogate="ridge").fit(data.features)


EVERY = [
    *({"weighting": weighting} for weighting in ("retrieved", "random", *PLANS)),
    *({"weighting": "pairwise", "objective": objective} for objective in OBJECTIVES),
    *({"weighting": "kernel", "objective": objective} for objective in ("rloo", "straight-through")),
]


@pytest.mark.parametrize("options", EVERY, ids=lambda options: "-".join(options.values()))
def test_each_explains_alone_as_in_a_batch_and_as_after_loading(options, data, rows, tmp_path):
    explainer = fitted(data, **options)
    found = explainer.explain(rows)
    np.testing.assert_allclose(found.base_values + found.contributions.sum(axis=1), found.local_predictions)
    assert np.isfinite(explainer.nse_)
    assert np.isfinite(explainer.skill_)
    alone = explainer.explain(rows.iloc[[7]])
    np.testing.assert_array_equal(alone.coefficients.to_numpy()[0], found.coefficients.to_numpy()[7])
    explainer.save(tmp_path / "saved.limis")
    loaded = limis.load(tmp_path / "saved.limis", model=data.black_box)
    pd.testing.assert_frame_equal(loaded.explain(rows).coefficients, found.coefficients, check_exact=True)


def test_what_was_tried_is_reported(data):
    tried = fitted(data, weighting="pairwise").choices_
    assert tried["chosen"].sum() == 1
    assert len(tried) == 3
    given = LimisExplainer(surrogate="ridge").fit(data.features, outputs=data.outputs).choices_
    assert set(given["weighting"]) == {"forest", "retrieved"}
    assert given["chosen"].sum() == 1
    assert given.loc[given["chosen"], "merit"].item() == given["merit"].max()


def test_candidates_can_be_given(data):
    tried = fitted(data, weighting="retrieved", candidates=40)
    assert set(tried.choices_["n_candidates"]) == {40}
    assert (np.diff(tried.explain(data.features[:5]).weights.indptr) <= 40).all()
    assert set(fitted(data, candidates=40).choices_["n_candidates"]) == {40}


def test_the_reward_may_hold_functions_of_the_user(data, rows, steps):
    steps("kernel", 100)
    seen = []

    def small_coefficients(fits):
        seen.append(len(fits.features))
        return 100 * fits.models.coefficients.abs().sum(dim=1)

    plain, small = (
        LimisExplainer(data.black_box, weighting="kernel", reward=reward, surrogate="ridge").fit(data.features)
        for reward in ([RowError()], [RowError(), small_coefficients])
    )
    assert seen
    sizes = [np.abs(explainer.explain(rows).coefficients.to_numpy()).sum() for explainer in (plain, small)]
    assert sizes[1] < sizes[0] / 2


def test_terms_work_for_retrieved_rows_too(data):
    explainer = fitted(data, weighting="retrieved", reward=[RowError(), ChangeError(squared=True)])
    assert len(explainer.training_log_) == 1
    with pytest.raises(InputError, match="Stability"):
        fitted(data, weighting="retrieved", reward=[Stability()])


def test_learning_on_retrieved_rows_helps_and_never_does_worse_than_it_began(data):
    explainer = LimisExplainer(data.black_box, weighting="forest", surrogate="ridge").fit(data.features)
    training, rng = explainer.training_, np.random.default_rng(0)
    held_out = make_synthetic("Syn1", 60, random_state=2)
    probes = ProbeRows.ask(training, held_out.features, held_out.outputs, rng)
    retriever = Retriever.fit(training, rng=rng)
    _, log = train_retrieved(training, retriever, probes, [RowError(), ChangeError()], 128, 0)
    assert log.error < 0.97 * log.validation_error[0]
    assert log.error == min(log.validation_error)


@pytest.mark.slow
def test_towers_recover_the_truth_through_the_ridge(data, steps):
    # A part of the plan's steps on 210 rows: far below the global ridge's .75, with room for chance.
    steps("towers", 1000)
    test = make_synthetic("Syn1", 100, random_state=3)
    explainer = LimisExplainer(data.black_box, weighting="towers", surrogate="ridge").fit(data.features)
    assert awd(test.coefficients, explainer.explain(test.features).coefficients.to_numpy()) < 0.3


def test_random_selection_is_the_control(data, rows):
    found = fitted(data, weighting="random").explain(rows)
    share = np.diff(found.weights.indptr) / found.weights.shape[1]
    # Half of 210 rows: a standard deviation of 3.5%.
    np.testing.assert_allclose(share, 0.5, atol=0.16)


def test_a_device_that_is_not_there_is_named(data):
    with pytest.raises(InputError, match="no device 'nowhere'"):
        fitted(data, weighting="kernel", device="nowhere")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no device 'cuda'"):
            fitted(data, weighting="kernel", device="cuda")


@pytest.mark.parametrize("weighting", ["kernel", "towers"])
def test_what_is_measured_holds_for_fresh_rows(weighting, steps):
    steps(weighting, 200)

    # Too rough for 300 rows: the rows that train are followed closely, fresh ones are not, and it must be told so.
    def rough(rows):
        return np.sin(4 * rows[:, 0]) * np.cos(4 * rows[:, 1]) + np.sin(5 * rows[:, 2])

    rng = np.random.default_rng(0)
    explainer = LimisExplainer(rough, weighting=weighting, surrogate="ridge").fit(
        rng.normal(size=(300, 6)), probe_rows=rng.normal(size=(200, 6))
    )
    # 100 measuring rows: an NSE is sure to some .15.
    assert abs(explainer.nse_ - explainer.score(rng.normal(size=(500, 6)))) < 0.3


@pytest.mark.parametrize(
    ("reward", "words"),
    [([], "at least one"), ([3], "at least one"), ([lambda fits: fits.targets.sum()], "one loss a probe row")],
)
def test_a_reward_that_is_none_is_named(data, reward, words):
    with pytest.raises(InputError, match=words):
        fitted(data, weighting="kernel", reward=reward)


def test_options_that_would_do_nothing_are_refused(data):
    with pytest.raises(InputError, match="reward needs a weighting"):
        fitted(data, reward=[RowError()])
    with pytest.raises(InputError, match="objective='rloo' needs a weighting"):
        fitted(data, weighting="forest", objective="rloo")
