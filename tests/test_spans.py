"""Slopes end where the values that they rest on do."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import limis
from limis import LimisExplainer
from limis.errors import StoreError
from limis.perturb import MovedRows


def table(n, seed):
    """Heavy tails, a column that is missing at times, and one that is no number."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"call": rng.exponential(100.0, n), "age": rng.normal(40, 10, n)})
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    return frame.assign(kind=rng.choice(["x", "y"], n))


def flat_from_200(frame):
    return np.minimum(frame["call"], 200.0) / 50 + frame["age"].fillna(60) / 10 + (frame["kind"] == "x")


@pytest.fixture(scope="module", params=["two-scales", "forest"])
def explainer(request):
    made = LimisExplainer(flat_from_200, surrogate="ridge", weighting=request.param, jumps="none")
    return made.fit(table(600, 0))


@pytest.fixture(scope="module")
def rows():
    return table(30, 1)


@pytest.fixture(scope="module")
def found(explainer, rows):
    return explainer.explain(rows)


def led_on(one, moved):
    """What the slopes would say without an end."""
    fits = one.all.fits
    endless = dataclasses.replace(one.all, fits=dataclasses.replace(fits, spans=None))
    return endless[one.row].predict(moved)


def with_calls(row, calls):
    return pd.concat([row] * len(calls), ignore_index=True).assign(call=calls)


def test_far_beyond_the_training_rows_nothing_changes_any_more(found, rows):
    for one in found[:10]:
        said = one.predict(with_calls(rows.iloc[[one.row]], [2e3, 2e6, 2e9]))
        np.testing.assert_array_equal(said, said[0])
        low = one.predict(with_calls(rows.iloc[[one.row]], [-1.0, -1e6]))
        np.testing.assert_array_equal(low, low[0])


def test_between_the_ends_the_slope_is_the_coefficient(found, rows):
    spans = found.fits.spans
    call = found.training.table.columns[0]
    for one in found[:10]:
        ends = np.array([spans.lowest[one.row, 0], spans.highest[one.row, 0]]) * call.scale + call.offset
        assert ends[0] <= rows["call"].iloc[one.row] + 1e-4
        assert ends[1] >= rows["call"].iloc[one.row] - 1e-4
        inside = with_calls(rows.iloc[[one.row]], np.linspace(*ends, 5)[1:-1])
        steps = inside["call"].to_numpy() - rows["call"].iloc[one.row]
        expected = one.local_prediction + steps * one.coefficients["call", ""]
        np.testing.assert_allclose(one.predict(inside), expected, rtol=1e-9)


def test_where_the_model_is_flat_it_is_foreseen_better(found, rows):
    far = rows.assign(call=1000.0)
    truth = (flat_from_200(far) - flat_from_200(rows)).to_numpy()
    moved = MovedRows(found.training.table, found.training.table.values(far))
    each = np.arange(len(rows))
    error, endless = (
        np.abs(truth - fits.changes(each, moved)).mean()
        for fits in (found.fits, dataclasses.replace(found.fits, spans=None))
    )
    assert error < 0.5 * endless


def test_what_is_missing_or_no_number_changes_as_ever(found, rows):
    for change in ({"age": np.nan}, {"kind": "x"}, {"kind": "y"}):
        moved = rows.assign(**change)
        for one in found[:10]:
            own = moved.iloc[[one.row]]
            np.testing.assert_array_equal(one.predict(own), led_on(one, own))


def test_a_row_is_where_it_was(found, rows):
    said = np.concatenate([one.predict(rows.iloc[[one.row]]) for one in found])
    np.testing.assert_allclose(said, found.local_predictions)


def test_ends_do_not_depend_on_the_batch(explainer, found, rows):
    alone = explainer.explain(rows.iloc[[7]]).fits.spans
    for part in ("lowest", "highest"):
        np.testing.assert_array_equal(getattr(alone, part)[0], getattr(found.fits.spans, part)[7])
        np.testing.assert_array_equal(getattr(found[[7, 3]].fits.spans, part), getattr(found.fits.spans, part)[[7, 3]])


def test_ends_come_back_from_a_file(explainer, found, rows, tmp_path):
    explainer.save(tmp_path / "kept.limis")
    after = limis.load(tmp_path / "kept.limis", model=flat_from_200).explain(rows).fits.spans
    np.testing.assert_array_equal(after.lowest, found.fits.spans.lowest)
    np.testing.assert_array_equal(after.highest, found.fits.spans.highest)


def test_a_row_like_no_other_leads_towards_the_training_rows(explainer, rows):
    strange = rows.iloc[[0]].assign(call=5000.0)
    one = explainer.explain(strange)[0]
    outwards, inwards = one.predict(with_calls(strange, [9000.0, 1500.0])) - one.local_prediction
    assert outwards == 0.0
    assert inwards == pytest.approx(-3500 * one.coefficients["call", ""])


def test_alone_it_is_the_global_model_which_ends_with_the_training_rows():
    alike = pd.DataFrame({"call": [3.0] * 60 + [90.0]})
    explainer = LimisExplainer(lambda rows: rows["call"] * 2, surrogate="ridge").fit(alike, probe_rows=alike[:20])
    one = explainer.explain(alike[:1])[0]
    assert one.all.fits.empty[0]
    near, last, beyond = one.predict(pd.DataFrame({"call": [80.0, 90.0, 500.0]}))
    assert near < last == beyond


def test_cells_that_are_not_there_are_refused(tmp_path):
    explainer = LimisExplainer(flat_from_200, surrogate="ridge", weighting="two-scales").fit(table(200, 0))
    values = explainer.local_model_.recorded_values
    values.rows[-1] = 10**6
    explainer.save(tmp_path / "kept.limis")
    with pytest.raises(StoreError, match="damaged"):
        limis.load(tmp_path / "kept.limis", model=flat_from_200)
