"""The bound on the error on changes holds as often as it says."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor

from limis import LimisExplainer
from limis.check import errors_on_changes
from limis.metrics.conformal import conformal_quantile
from limis.training import ProbeRows
from limis.training.measuring import MeasuringRows


@given(st.integers(19, 400), st.integers(0, 2**32 - 1))
def test_the_conformal_quantile_leaves_at_most_one_in_twenty_above(n, seed):
    scores = np.random.default_rng(seed).random(n)
    above = (scores > conformal_quantile(scores, 0.95)).sum()
    assert above <= 0.05 * (n + 1)


def test_too_few_scores_bound_nothing():
    assert conformal_quantile(np.ones(18), 0.95) == np.inf


def curved(rows):
    return np.sin(3 * rows["a"]) + rows["b"] * rows["c"]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(2500, 3)), columns=list("abc"))
    # With rows that speak: where the taught model stands alone, all explanations have one bound.
    explainer = LimisExplainer(curved, weighting="learned")
    return explainer.fit(frame.iloc[:1000], probe_rows=frame.iloc[1000:1800]), frame.iloc[1800:]


@pytest.fixture(scope="module")
def sloped():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(1500, 3)), columns=list("abc"))
    explainer = LimisExplainer(curved, surrogate="ridge")
    return explainer.fit(frame.iloc[:600], probe_rows=frame.iloc[600:1000]), frame.iloc[1000:]


@pytest.mark.slow
def test_the_bound_covers_new_rows(fitted):
    explainer, rows = fitted
    found = explainer.explain(rows)
    probes = ProbeRows.ask(
        explainer.training_, rows.reset_index(drop=True), found.model_outputs.to_numpy(), np.random.default_rng(9)
    )
    errors, asked = errors_on_changes(found.training.table, found.fits, probes)
    covered = (errors[asked] <= found.fidelity["change_error_bound"].to_numpy()[asked]).mean()
    # 95% is promised on average over calibration sets of 200 rows (deviation .015); 700 test rows add .008.
    assert covered > 0.95 - 4 * 0.017


def test_the_bound_tells_good_explanations_from_bad(fitted):
    explainer, rows = fitted
    found = explainer.explain(rows)
    probes = ProbeRows.ask(
        explainer.training_, rows.reset_index(drop=True), found.model_outputs.to_numpy(), np.random.default_rng(9)
    )
    errors, _ = errors_on_changes(found.training.table, found.fits, probes)
    bound = found.fidelity["change_error_bound"].to_numpy()
    low = bound < np.median(bound)
    assert errors[low].mean() < errors[~low].mean()


def test_trust_in_ridges_follows_the_tolerance(sloped):
    explainer, rows = sloped
    assert explainer.explain(rows.clip(-2, 2)).fidelity["trusted"].sum() < len(rows)
    explainer.tolerance = 1e6
    found = explainer.explain(rows.clip(-2, 2))
    explainer.tolerance = 0.25
    assert found.fidelity["trusted"].all()
    assert all(doubts == [] for doubts in found.fidelity["doubts"])


def test_trusted_curves_foresee_and_those_not_trusted_foresee_less(fitted):
    explainer, rows = fitted
    found = explainer.explain(rows.clip(-2, 2))
    assert not found.fidelity[["foresight", "why_error"]].isna().any(axis=None)
    assert ((found.fidelity["doubts"].str.len() == 0) == found.fidelity["trusted"]).all()
    asked = MeasuringRows.ask(
        found.training, found.frame, found.model_outputs.to_numpy(), None, np.random.default_rng(5)
    ).promised.asked
    left = asked.changes - found.fits.changes(asked.rows, asked.moved(found.training.table))
    missed, moved = (np.bincount(asked.rows, held**2, len(rows)) for held in (left, asked.changes))
    least = np.bincount(asked.rows, minlength=len(rows)) * (0.05 * found.training.output_deviation) ** 2
    foresight = 1 - missed / np.maximum(np.maximum(moved, least), 1e-12)
    trusted = found.fidelity["trusted"].to_numpy()
    assert trusted.any()
    # At most 5% may break either promise, by a limit that holds with 90%; six changes a row tell of it roughly.
    assert (foresight[trusted & (moved >= least)] >= 0.5).mean() > 0.9
    assert np.corrcoef(foresight, found.fidelity["foresight"])[0, 1] > 0


def test_a_linear_black_box_is_trusted():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(2000, 3)), columns=list("abc"))
    explainer = LimisExplainer(lambda rows: rows["a"] + 2 * rows["b"]).fit(frame)
    assert explainer.explain(frame.iloc[:200].clip(-2, 2)).fidelity["trusted"].mean() > 0.9
    assert explainer.skill_ > 0.9


def test_few_probe_rows_bound_nothing_and_say_so():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=list("ab"))
    found = LimisExplainer(lambda rows: rows["a"]).fit(frame).explain(frame)
    assert np.isinf(found.fidelity["change_error_bound"]).all()
    assert all("give more probe_rows" in doubts[0] for doubts in found.fidelity["doubts"])


def test_trust_is_withheld_where_the_model_remembers_the_rows_it_was_measured_on():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1600, 3)), columns=list("abc"))
    noisy = frame["a"] + rng.normal(size=1600)
    forest = RandomForestRegressor(30, random_state=0).fit(frame[:800], noisy[:800])
    found = LimisExplainer(forest, n_jobs=1, max_questions=50_000).fit(frame[:800]).explain(frame[1500:])
    assert found.trust.remembers
    assert not found.fidelity["trusted"].any()
    assert all("was not fitted to" in doubts[0] for doubts in found.fidelity["doubts"])
    assert "remembers" in found.trust.promise
    new = LimisExplainer(forest, n_jobs=1, max_questions=50_000).fit(frame[:800], probe_rows=frame[800:1500])
    assert not new.trust_.remembers
