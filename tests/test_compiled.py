"""Compiled code and tensors give what plain numpy gives, whoever calls them."""

import os
import pickle
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import limis
from limis import LimisExplainer, changes, explainer, threads
from limis.changes import ColumnSystems, RecordedChanges, lines_of
from limis.errors import InputError, StoreError
from limis.retrieval.index import strongest
from limis.spans import Spans
from limis.store import explainers as store_explainers
from limis.table import QUANTILES, Table
from limis.training import fitting
from limis.trees.carried import CarriedChanges
from limis.trees.fits import TreeModel
from limis.trees.inputs import TreeInputs
from limis.walk import as_sparse


def said(rows):
    return rows["size"] * np.where(rows["colour"] == "red", 3.0, 1.0) + 2.0 * (rows["age"].fillna(0) > 1)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    drawn = pd.DataFrame(
        {
            "size": rng.normal(size=6000),
            "age": np.where(rng.random(6000) < 0.1, np.nan, rng.normal(size=6000)),
            "colour": rng.choice(["red", "green", "blue"], 6000),
        }
    )
    return pd.concat([drawn, drawn[:50]], ignore_index=True)  # some rows twice


@pytest.fixture(scope="module")
def fitted(frame):
    """With more rows than a kernel over all of them is learned on, so that a metric weighs the level's rows."""
    found = LimisExplainer(said, random_state=0, surrogate="ridge").fit(frame)
    assert found.local_model_.level_metric is not None
    return found


@pytest.fixture(scope="module")
def few_recorded(frame):
    """With recorded changes of few rows, which are then looked for alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "MAX_QUESTIONS", 3000)
        patch.setattr(fitting, "FEW_RECORDED", 0.25)
        found = LimisExplainer(said, random_state=0, surrogate="ridge").fit(frame)
    assert found.local_model_.retriever.marked_index is not None
    return found


def rows_of(frame):
    """Rows like training rows, rows that equal some, and one like none."""
    strange = pd.DataFrame({"size": [50.0], "age": [np.nan], "colour": ["grey"]})
    return pd.concat([frame[:40], frame[5990:6010] * 1, strange], ignore_index=True)


@pytest.mark.parametrize("name", ["fitted", "few_recorded"])
def test_the_nearest_rows_are_the_strongest_of_all(name, frame, request):
    found = request.getfixturevalue(name)
    training, retriever = found.training_, found.local_model_.retriever
    values = training.table.values(training.table.read(rows_of(frame)))
    near = retriever.proximity(training, values)
    for most in (3, 100, 2000):
        rows, weights = retriever.nearest(training, values, most)
        expected, expected_weights = strongest(near, most)
        np.testing.assert_allclose(weights, expected_weights, atol=1e-9)
        # Which of equally strong rows comes last is a matter of rounding there.
        differ = rows != expected
        np.testing.assert_allclose(near.toarray()[np.nonzero(differ)[0], rows[differ]], weights[differ], atol=1e-9)


def test_rows_with_recorded_changes_can_be_retrieved_alone(few_recorded):
    retriever = few_recorded.local_model_.retriever
    recorded = np.flatnonzero(np.diff(few_recorded.local_model_.systems.grams.indptr))
    assert len(recorded) < len(few_recorded.training_) / 4
    assert np.isin(retriever.origin[retriever.marked_index.shares.indices], recorded).all()
    assert not np.isin(retriever.origin[retriever.index.shares.indices], recorded).all()


@pytest.mark.parametrize("name", ["fitted", "few_recorded"])
def test_tensors_explain_as_compiled_code_does(name, frame, request):
    fit, rows = request.getfixturevalue(name), rows_of(frame)
    expected = fit.explain(rows)
    model = fit.local_model_
    model.device = "cpu:0"  # the way that an accelerator goes, on a device that is always there
    try:
        other = fit.explain(rows)
    finally:
        model.device = "cpu"
    for part, value in vars(expected.fits).items():
        pair = (getattr(other.fits, part), value)
        found, wanted = (
            one.toarray() if sp.issparse(one) else (one.lowest, one.highest) if isinstance(one, Spans) else one
            for one in pair
        )
        np.testing.assert_allclose(found, wanted, atol=1e-9, err_msg=part)
    pd.testing.assert_frame_equal(other.fidelity, expected.fidelity)


@pytest.fixture(scope="module")
def trees(few_recorded):
    """Trees of any depth on recorded changes, or on rows."""
    training = few_recorded.training_
    inputs = TreeInputs.learn(training)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "MAX_QUESTIONS", 6000)
        recorded = RecordedChanges.ask(training, np.random.default_rng(0))
    carried = CarriedChanges.of(training, inputs, recorded)
    return lambda depth, on: TreeModel(
        few_recorded.local_model_, inputs, carried if on == "changes" else None, depth=depth
    )


@pytest.mark.parametrize("on", ["changes", "rows"])
@pytest.mark.parametrize("depth", [1, 3, 4])
def test_tensors_grow_the_trees_that_compiled_code_grows(depth, on, trees, few_recorded, frame):
    model, training, rows = trees(depth, on), few_recorded.training_, rows_of(frame)
    values = training.table.values(training.table.read(rows))
    base = model.base.fit(training, few_recorded.global_fit_, values)
    expected = model.grow(training, base, values)
    # The way that an accelerator goes, on a device that is always there.
    other = replace(model, base=replace(model.base, device="cpu:0"))
    found = other.grow(training, base, values)
    assert (expected.trees.feature >= 0).sum() > len(rows) / 2
    alone = other.grow(training, base.part(np.array([7])), values[[7]])
    for part, wanted in vars(expected.trees).items():
        np.testing.assert_allclose(getattr(found.trees, part), wanted, rtol=1e-9, atol=1e-12, err_msg=part)
        np.testing.assert_array_equal(getattr(alone.trees, part), getattr(found.trees, part)[[7]], err_msg=part)
    for part in ("levels", "residual_mean_square", "spread_mean_square"):
        np.testing.assert_allclose(getattr(found, part), getattr(expected, part), rtol=1e-9, atol=1e-12, err_msg=part)


def test_tables_in_which_nothing_can_change_have_trees_without_splits():
    alike = pd.DataFrame({"size": np.ones(300)})
    fit = LimisExplainer(lambda rows: rows["size"] * 2, surrogate="tree", random_state=0).fit(alike)
    expected = fit.explain(alike[:3]).local_predictions
    base = fit.local_model_.base
    base.device = "cpu:0"
    pd.testing.assert_series_equal(fit.explain(alike[:3]).local_predictions, expected)


def test_copies_stand_for_their_origins_where_these_are_looked_for(few_recorded, frame):
    training, retriever = few_recorded.training_, few_recorded.local_model_.retriever
    values = training.table.values(training.table.read(rows_of(frame)))
    wanted = np.arange(len(training)) % 3 == 0
    index = retriever.index_of_recorded(np.concatenate([[0], np.cumsum(wanted)]))
    rows, weights = retriever.nearest(training, values, 2000, index)
    collecting = np.zeros((len(retriever.origin), len(training)))
    collecting[np.arange(len(retriever.origin)), retriever.origin] = 1.0
    expected = (retriever.proximity(training, values) @ collecting) * wanted
    np.testing.assert_allclose(as_sparse(rows, weights, len(training)).toarray(), expected, atol=1e-9)


def test_an_explainer_goes_to_devices_that_are_there(fitted, frame):
    before = fitted.explain(frame[:5]).contributions
    with pytest.raises(InputError, match="no device 'cuda:99'"):
        fitted.to("cuda:99")
    pd.testing.assert_frame_equal(fitted.to("cpu").explain(frame[:5]).contributions, before)


def test_small_systems_are_solved_as_numpy_solves_them():
    rng = np.random.default_rng(0)
    width = np.array([1, 3, 2])
    steps = [rng.normal(size=(20, size)) for size in width]
    answers = rng.normal(size=(20, 3))
    grams = np.concatenate([np.einsum("ri,rj->rij", own, own).reshape(20, -1) for own in steps], axis=1)
    moments = np.concatenate([own * answers[:, [j]] for j, own in enumerate(steps)], axis=1)
    systems = ColumnSystems(sp.csr_array(grams), sp.csr_array(moments), width, np.full(20, 1 / 20))
    weights = rng.random((4, 20)) * (rng.random((4, 20)) < 0.7)
    weights /= weights.sum(axis=1, keepdims=True)
    found, _ = systems.slopes(lines_of(sp.csr_array(weights)), prior=0.5, penalty=0.01)
    feature = cell = 0
    for j, size in enumerate(width):
        every = grams[:, cell : cell + size**2].mean(axis=0).reshape(size, size)
        for row in range(4):
            gram = (weights[row] @ grams[:, cell : cell + size**2]).reshape(size, size) + 0.5 * every
            gram += 0.01 * np.diag(every).mean() * np.eye(size)
            own = moments[:, feature : feature + size]
            expected = np.linalg.solve(gram, weights[row] @ own + 0.5 * own.mean(axis=0))
            np.testing.assert_allclose(found[row, feature : feature + size], expected, rtol=1e-9, err_msg=str(j))
        feature, cell = feature + size, cell + size**2


def test_a_column_that_never_changed_has_no_slope_and_no_error():
    nothing = ColumnSystems(sp.csr_array((5, 4)), sp.csr_array((5, 2)), np.array([2]), np.full(5, 0.2))
    slopes, touched = nothing.slopes(lines_of(sp.csr_array(np.full((1, 5), 0.2))), prior=0.0, penalty=0.001)
    assert (slopes.tolist(), touched.any()) == ([[0.0, 0.0]], False)


def test_ranks_are_the_middle_of_the_positions_that_equal_values_span():
    values = np.array([0.0] * 50 + list(range(1, 51)))
    table, _ = Table.learn(pd.DataFrame({"x": values}))
    grid = np.linspace(0, 1, QUANTILES)
    points, asked = table.quantiles[0], np.array([[-1.0], [0.0], [0.3], [17.2], [50.0], [80.0], [np.nan]])
    unique, first = np.unique(points, return_index=True)
    last = np.searchsorted(points, unique, side="right") - 1
    expected = (np.interp(asked[:, 0], unique, grid[first]) + np.interp(asked[:, 0], unique, grid[last])) / 2
    np.testing.assert_array_equal(table.ranks(asked)[:, 0], expected)


def test_of_many_rows_some_are_used_with_what_belongs_to_them(frame, monkeypatch):
    monkeypatch.setattr(explainer, "MAX_ROWS", 1000)
    outputs = said(frame)
    found = LimisExplainer(random_state=0, surrogate="ridge").fit(
        frame, outputs=outputs, probe_rows=frame[:50], probe_outputs=outputs[:50]
    )
    assert len(found.training_) == 1000
    np.testing.assert_array_equal(found.training_.outputs, outputs[found.training_.frame.index])


def test_threads_may_explain_at_once(fitted, frame):
    expected = fitted.explain(frame[:30]).contributions
    found = {}

    def explain(place):
        found[place] = [fitted.explain(frame[:30]).contributions for _ in range(3)]

    threads = [threading.Thread(target=explain, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for frames in found.values():
        for one in frames:
            pd.testing.assert_frame_equal(one, expected)


def test_threads_may_explain_at_once_where_there_is_no_openmp():
    program = """
import threading, numpy as np
from limis.around import carry
def work():
    for _ in range(300):
        carry(np.ones((9, 2)), np.zeros((5, 3), dtype=np.int64), np.ones((5, 2)), np.ones((5, 2)), np.empty((5, 3)))
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
import numba
print(numba.threading_layer())
"""
    environment = {"NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"workqueue\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_explains_too(fitted, frame):
    expected = fitted.explain(frame[:3]).contributions
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            same = fitted.explain(frame[:3]).contributions.equals(expected)
            os.write(writing, b"same" if same else b"other")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        assert told.read() == b"same"
    os.waitpid(child, 0)


def test_limis_can_be_imported_where_nothing_can_be_written(monkeypatch):
    def refuse(work, **options):
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return work

    monkeypatch.setattr(threads.numba, "njit", lambda **options: lambda work: refuse(work, **options))
    assert threads.compiled(lambda number: number + 1)(1) == 2


def test_rows_that_many_others_equal_are_one_group():
    """Equal rows are one group: nothing is as long as all pairs of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["x", "y"], 3000), "b": rng.choice([1.0, 2.0], 3000)})
    found = LimisExplainer(
        lambda rows: rows["b"] * (rows["a"] == "x"), weighting="forest", random_state=0, surrogate="ridge"
    ).fit(frame)
    training = found.training_
    inputs, used, own = found.local_model_.weighting.retriever.asked(training, training.values)
    assert (inputs.shape, used.shape, own.shape) == ((len(training), 2), (len(training), 100), (len(training),))
    assert set(own) == {0, 1, 2, 3}
    rows, weights = found.local_model_.weighting.retriever.nearest(training, training.values[:1], 50)
    assert not np.array_equal(
        training.values[rows[weights > 0]], np.repeat(training.values[:1], (weights > 0).sum(), 0)
    )
    assert (training.group[rows[weights > 0]] != own[0]).all()


def test_what_is_kept_on_a_device_follows_the_explainer(fitted, frame):
    model = fitted.local_model_
    fitted.to("cpu:0").explain(frame[:3])
    assert {device for _, device, _ in model._on_device.values()} == {"cpu:0"}
    copied = pickle.loads(pickle.dumps(model))
    assert (copied._on_device, "_nodes" in vars(copied.retriever.forest)) == ({}, False)
    fitted.to("cpu")
    assert model._on_device == {}
    with pytest.raises(InputError, match="device is a name"):
        fitted.to(None)


DAMAGES = {
    "leaves without entries": {"leaves.data": lambda a: a[:0], "leaves.indices": lambda a: a[:0]},
    "copies cut short": {"copies.values": lambda a: a[:1]},
    "levels of other columns": {"levels.sums": lambda a: a[:1], "levels.counts": lambda a: a[:1]},
    "no quantiles": {"quantiles": lambda a: a[:, :0]},
    "directions of other columns": {"level.directions": lambda a: a[:1]},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_arrays_that_compiled_code_would_read_beyond_are_refused(damage, fitted, tmp_path, monkeypatch):
    saved = store_explainers.safetensors.numpy.save

    def damaged(arrays, *args, **options):
        changed = {name: np.ascontiguousarray(DAMAGES[damage].get(name, lambda a: a)(a)) for name, a in arrays.items()}
        if damage == "leaves without entries":
            changed["leaves.indptr"] = np.where(np.arange(len(changed["leaves.indptr"])) % 2, 50, 0)
        return saved(changed, *args, **options)

    monkeypatch.setattr(store_explainers.safetensors.numpy, "save", damaged)
    fitted.save(tmp_path / "damaged.limis")
    with pytest.raises(StoreError, match="do not fit together"):
        limis.load(tmp_path / "damaged.limis", said)


def test_a_forest_that_leads_astray_is_refused(fitted, tmp_path):
    forest = fitted.local_model_.retriever.forest
    for name, place, wrong in (("left", 0, 10**6), ("right", 0, 0), ("feature", 0, 77), ("roots", 1, -5)):
        array = getattr(forest, name)
        before = array[place]
        array[place] = wrong
        try:
            fitted.save(tmp_path / "astray.limis")
        finally:
            array[place] = before
        with pytest.raises(StoreError, match="not whole"):
            limis.load(tmp_path / "astray.limis", said)


def test_the_features_of_all_columns_are_those_of_each(fitted, frame):
    table = fitted.training_.table.with_jumps([[-0.5, 0.25], [0.1], []])
    values = table.values(table.read(rows_of(frame)))
    each = [column.features(values[:, j]) for j, column in enumerate(table.columns)]
    np.testing.assert_array_equal(table.features(values), np.concatenate(each, axis=1))
