"""XGBoost and LightGBM models travel in the file and answer as before; other models are passed again."""

import hashlib
import json
import sys
import zipfile

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

import limis
from limis import BlackBoxError, LimisExplainer, MissingExtraError, StoreError

N = 240


def two_regimes(rows):
    return np.where(rows[:, 0] > 0, rows[:, 1], -2 * rows[:, 2])


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(0).normal(size=(N + 20, 4))


@pytest.fixture(scope="module")
def explainer(numbers):
    return LimisExplainer(two_regimes).fit(numbers[:N])


@pytest.fixture(scope="module")
def typed():
    """A table that XGBoost and LightGBM take as it is, its categories in an order of their own, one never used."""
    rng = np.random.default_rng(2)
    n = N + 20
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": pd.Categorical(rng.choice(["red", "blue", "green"], n), ["red", "none", "green", "blue"]),
            "new": rng.random(n) < 0.5,
        }
    )
    return frame, ((frame["size"] > 0) ^ (frame["colour"] == "red")).astype(int)


def assert_same_explanations(before, after):
    np.testing.assert_array_equal(after.outputs, before.outputs)
    for part in ("curves", "contributions", "fidelity"):
        pd.testing.assert_frame_equal(getattr(after, part), getattr(before, part), check_exact=True)


def round_trip(explainer, path):
    explainer.save(path)
    return limis.load(path)


def boosted(kind, frame, labels, stop=False):
    """A fitted model of one kind; with ``stop`` it knows more rounds than it uses, having seen them do harm."""
    rows, target, held_out, their_target = frame[:N], labels[:N], frame[N:], 1 - labels[N:]
    if kind == "xgboost booster":
        matrix = xgboost.DMatrix(rows, target, enable_categorical=True)
        return xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 10)
    if kind == "lightgbm booster":
        return lightgbm.train(
            {"objective": "binary", "verbose": -1, "num_threads": 1}, lightgbm.Dataset(rows, target), 10
        )
    if kind.startswith("xgboost"):
        options = {"early_stopping_rounds": 5} if stop else {}
        if "dart" in kind:
            options |= {"booster": "dart", "rate_drop": 0.3}
        cls = xgboost.XGBRegressor if "regressor" in kind else xgboost.XGBClassifier
        model = cls(n_estimators=20, max_depth=3, enable_categorical=True, n_jobs=1, **options)
        return model.fit(rows, target, eval_set=[(held_out, their_target)] if stop else None, verbose=False)
    cls = lightgbm.LGBMRegressor if "regressor" in kind else lightgbm.LGBMClassifier
    options = {"eval_X": held_out, "eval_y": their_target} if stop else {}
    if stop:
        options["callbacks"] = [lightgbm.early_stopping(5, verbose=False)]
    return cls(n_estimators=20, verbose=-1, n_jobs=1).fit(rows, target, **options)


KINDS = ["xgboost", "xgboost regressor", "xgboost dart", "xgboost booster"]
KINDS += ["lightgbm", "lightgbm regressor", "lightgbm booster"]


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        (kind, output)
        for kind in KINDS
        for output in ("auto", "probability")
        if output == "auto" or "regressor" not in kind
    ],
)
def test_boosted_trees_travel_with_their_categories(typed, tmp_path, kind, output, capfd):
    frame, labels = typed
    before = LimisExplainer(boosted(kind, frame, labels), output=output).fit(frame[:N])
    after = round_trip(before, tmp_path / "e.limis")
    assert isinstance(after.model, (xgboost.Booster, lightgbm.Booster))
    assert after.training_.black_box.to_dict() == before.training_.black_box.to_dict()
    assert_same_explanations(before.explain(frame[N:]), after.explain(frame[N:]))
    assert after.explain(frame[N:]).skill() == before.explain(frame[N:]).skill()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["xgboost booster", "lightgbm booster"])
def test_a_booster_asked_about_text_travels_too(typed, tmp_path, kind):
    frame, labels = typed
    model = boosted(kind, frame, labels)
    text = frame.astype({"colour": "str"})
    before = LimisExplainer(model).fit(text[:N])
    after = round_trip(before, tmp_path / "e.limis")
    assert after.model is not None
    assert_same_explanations(before.explain(text[N:]), after.explain(text[N:]))
    np.testing.assert_array_equal(
        after.explain(text[N:]).outputs, LimisExplainer(model).fit(frame[:N]).explain(frame[N:]).outputs
    )


@pytest.mark.parametrize("kind", ["xgboost", "xgboost dart", "lightgbm"])
def test_after_early_stopping_the_best_rounds_answer(typed, tmp_path, kind):
    frame, labels = typed
    model = boosted(kind, frame, labels, stop=True)
    if isinstance(model, xgboost.XGBModel):
        assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    before = LimisExplainer(model).fit(frame[:N])
    after = round_trip(before, tmp_path / "e.limis")
    assert_same_explanations(before.explain(frame[N:]), after.explain(frame[N:]))
    # The same values, numbered in another way: the model must still know its categories by name.
    renumbered = frame[N:].assign(colour=frame.loc[N:, "colour"].astype(str).astype("category"))
    np.testing.assert_array_equal(after.explain(renumbered).outputs, before.explain(frame[N:]).outputs)


@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("kind", ["xgboost", "xgboost with names", "lightgbm"])
def test_boosted_trees_on_arrays(numbers, tmp_path, kind, stop):
    target = two_regimes(numbers)
    # XGBoost takes an array in place of the frame it was fitted on, and so it must after loading.
    rows = pd.DataFrame(numbers, columns=list("abcd")) if kind == "xgboost with names" else numbers
    if kind == "lightgbm":
        callbacks = [lightgbm.early_stopping(2, verbose=False)] if stop else None
        held_out = {"eval_X": rows[N:], "eval_y": -target[N:]} if stop else {}
        model = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1)
        model.fit(rows[:N], target[:N], callbacks=callbacks, **held_out)
    else:
        model = xgboost.XGBRegressor(n_estimators=20, early_stopping_rounds=2 if stop else None, n_jobs=1)
        model.fit(rows[:N], target[:N], eval_set=[(rows[N:], -target[N:])] if stop else None, verbose=False)
    before = LimisExplainer(model).fit(numbers[:N])
    after = round_trip(before, tmp_path / "e.limis")
    assert after.model is not None
    assert_same_explanations(before.explain(numbers[N:]), after.explain(numbers[N:]))


def test_a_linear_booster_after_early_stopping(numbers, tmp_path):
    frame = pd.DataFrame(numbers, columns=list("abcd"))
    target = two_regimes(numbers)
    model = xgboost.XGBRegressor(n_estimators=20, booster="gblinear", updater="coord_descent", early_stopping_rounds=2)
    model.fit(frame[:N], target[:N], eval_set=[(frame[N:], -target[N:])], verbose=False)
    before = LimisExplainer(model).fit(frame[:N])
    after = round_trip(before, tmp_path / "e.limis")
    assert_same_explanations(before.explain(frame[N:]), after.explain(frame[N:]))


def test_a_model_that_its_native_format_would_change_is_left_out_and_said_so(numbers, tmp_path):
    rows = np.round(numbers, 1)
    model = xgboost.XGBRegressor(n_estimators=10, missing=0.0, n_jobs=1).fit(rows[:N], two_regimes(rows[:N]))
    before = LimisExplainer(model).fit(rows[:N])
    with pytest.warns(UserWarning, match="does not answer as it does here; it is left out: pass it again"):
        before.save(tmp_path / "e.limis")
    assert limis.load(tmp_path / "e.limis").model is None
    assert_same_explanations(before.explain(rows[N:]), limis.load(tmp_path / "e.limis", model).explain(rows[N:]))
    with pytest.raises(StoreError, match="include_model=False"):
        before.save(tmp_path / "e.limis", include_model=True)


def test_include_model_is_obeyed(typed, explainer, tmp_path):
    frame, labels = typed
    before = LimisExplainer(boosted("lightgbm", frame, labels)).fit(frame[:N])
    before.save(tmp_path / "with.limis", include_model=True)
    before.save(tmp_path / "without.limis", include_model=False)
    assert limis.load(tmp_path / "with.limis").model is not None
    assert limis.load(tmp_path / "without.limis").model is None
    with pytest.raises(StoreError, match=r"the model is a function; save with include_model=False and pass .*load"):
        explainer.save(tmp_path / "no.limis", include_model=True)
    with pytest.raises(StoreError, match="not 'yes'"):
        explainer.save(tmp_path / "no.limis", include_model="yes")
    assert not (tmp_path / "no.limis").exists()


def test_another_model_than_the_explained_one_is_refused(typed, explainer, tmp_path):
    explainer.save(tmp_path / "e.limis")
    with pytest.raises(StoreError, match=r"not the model .* of training row 0 it says .* pass the same model"):
        limis.load(tmp_path / "e.limis", model=lambda rows: two_regimes(rows) + 1)
    frame, labels = typed
    LimisExplainer(boosted("xgboost", frame, labels)).fit(frame[:N]).save(tmp_path / "e.limis")
    with pytest.raises(BlackBoxError, match="margins"):
        limis.load(tmp_path / "e.limis", model=lambda rows: np.zeros(len(rows)))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_missing_extra_is_named_unless_the_model_is_given(typed, tmp_path, library, monkeypatch):
    frame, labels = typed
    model = boosted(library, frame, labels)
    LimisExplainer(model, output="probability").fit(frame[:N]).save(tmp_path / "e.limis")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=library):
        limis.load(tmp_path / "e.limis")
    assert limis.load(tmp_path / "e.limis", model=lambda rows: model.predict_proba(rows)[:, 1]) is not None


def test_the_file_holds_only_open_formats_and_its_own_checksums(typed, tmp_path):
    frame, labels = typed
    LimisExplainer(boosted("xgboost", frame, labels)).fit(frame[:N]).save(tmp_path / "e.limis")
    with zipfile.ZipFile(tmp_path / "e.limis") as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read("manifest.json"))
        digests = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in names if name != "manifest.json"}
    assert names == ["manifest.json", "arrays.safetensors", "training.parquet", "labels.parquet", "model.ubj"]
    assert manifest["members"] == digests
    assert (manifest["format"], manifest["version"], manifest["limis"]) == ("limis explainer", 4, limis.__version__)


def test_another_model_that_remembers_the_same_rows_is_refused(tmp_path):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)).round(6), columns=list("abc"))
    known = {tuple(row): value for row, value in zip(rows.to_numpy(), rows["a"] ** 2, strict=True)}

    def remembering(otherwise):
        return lambda asked: np.array([known.get(tuple(row), otherwise) for row in np.asarray(asked)])

    LimisExplainer(remembering(0.0), max_questions=5_000, n_jobs=1).fit(rows).save(tmp_path / "e.limis")
    limis.load(tmp_path / "e.limis", model=remembering(0.0))
    with pytest.raises(StoreError, match=r"not the model .* with some columns of the next one"):
        limis.load(tmp_path / "e.limis", model=remembering(5.0))


def test_a_file_is_not_lost_with_a_model_that_fails(tmp_path):
    down = []

    def served(asked):
        if down:
            raise ConnectionError("the server is down")
        return np.asarray(asked)[:, 0]

    X = np.random.default_rng(0).normal(size=(200, 2))
    explainer = LimisExplainer(served, max_questions=5_000, n_jobs=1).fit(X)
    down.append(True)
    explainer.save(tmp_path / "e.limis")
    down.clear()
    assert limis.load(tmp_path / "e.limis", model=served).explain(X[:2]).outputs is not None
