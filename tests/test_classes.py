"""More than two classes: one neighbourhood, an explanation a class, and everything else that users do with them."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import limis
from limis import InputError, LimisExplainer
from limis.blackbox import BlackBox, centred, connect, softmax
from limis.cli.main import main
from limis.columns import show_number
from limis.errors import BlackBoxError
from limis.report.text import render

NAMES = ["barolo", "grignolino", "barbera"]


@pytest.fixture(scope="module")
def wine():
    """178 wines of three growers, a real data set that scikit-learn brings along, in another order."""
    data = load_wine(as_frame=True)
    grower = data.target.map(dict(enumerate(NAMES)))
    order = np.random.default_rng(0).permutation(len(grower))
    return data.data.iloc[order].reset_index(drop=True), grower.iloc[order].reset_index(drop=True)


@pytest.fixture(scope="module")
def model(wine):
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(*wine)


@pytest.fixture(scope="module")
def explainer(wine, model):
    return LimisExplainer(model).fit(wine[0][:150])


@pytest.fixture(scope="module")
def found(explainer, wine):
    return explainer.explain(wine[0][150:])


@pytest.fixture(scope="module")
def ridges(wine, model):
    return LimisExplainer(model, surrogate="ridge").fit(wine[0][:150])


@pytest.fixture(scope="module")
def sloped(ridges, wine):
    return ridges.explain(wine[0][150:])


def test_outputs_are_centred_log_probabilities(model, explainer):
    every = explainer.training_.every
    np.testing.assert_allclose(every.sum(axis=1), 0, atol=1e-9)
    rows = explainer.training_.frame
    np.testing.assert_allclose(softmax(every), model.predict_proba(rows), atol=1e-4)
    assert explainer.training_.black_box.scale == "centred"


def test_a_linear_model_is_found_for_every_class(sloped, model, ridges):
    """A logistic regression is linear in its centred logits, so its own coefficients must come out."""
    scale, regression = model[0].scale_, model[1]
    true = (regression.coef_ - regression.coef_.mean(axis=0)) / scale
    for place, label in enumerate(regression.classes_):
        coefficients = sloped.for_class(label).coefficients.to_numpy()
        np.testing.assert_allclose(coefficients, np.tile(true[place], (len(sloped), 1)), rtol=0.02, atol=1e-3)
    assert ridges.nse_ > 0.99
    assert ridges.skill_ > 0.95
    # Beyond the values that they rest on, slopes end: of changes to any value they foresee a little less.
    assert all(part.nse > 0.99 and min(part.skills.values()) > 0.9 for part in ridges.by_class_.values())


def test_the_curves_of_every_class_follow_the_model(explainer):
    # Rows alone foresee changes of so smooth a model best; what it says of a row they do not know as well.
    assert explainer.nse_ > 0.8
    assert explainer.skill_ > 0.8
    assert all(part.nse > 0.7 and min(part.skills.values()) > 0.6 for part in explainer.by_class_.values())


def test_class_coefficients_sum_to_zero_for_a_model_that_is_not_linear(wine):
    forest = RandomForestClassifier(30, random_state=0).fit(*wine)
    found = LimisExplainer(forest, surrogate="ridge", output="logit").fit(wine[0][:150]).explain(wine[0][150:])
    slopes = np.stack([part.coefficients.to_numpy() for part in found.parts])
    np.testing.assert_allclose(slopes.sum(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(found.local_predictions.sum(axis=1), 0, atol=1e-8)
    for part in found.parts[1:]:
        assert (part.weights != found.parts[0].weights).nnz == 0


@pytest.mark.parametrize(("kind", "largest"), [("found", 3.0), ("sloped", 0.1)])
def test_each_class_has_the_usual_face(kind, largest, request):
    found = request.getfixturevalue(kind)
    for label in found.classes:
        part = found.for_class(label)
        np.testing.assert_allclose(part.base_values + part.contributions.sum(axis=1), part.local_predictions)
        assert part.fidelity["error"].max() < largest
    assert found.for_class("barolo") is found.parts[found.classes.index("barolo")]
    with pytest.raises(InputError, match="no class 'merlot'; the classes are 'barbera'"):
        found.for_class("merlot")


def test_the_predicted_class_comes_first(found, model, wine):
    rows = wine[0][150:]
    assert found.predicted.tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(found.probabilities, model.predict_proba(rows), atol=1e-4)
    one = found[3]
    assert one.all.training.black_box.classes[1] == found.predicted.iloc[3]
    assert len(list(found)) == len(found) == 28
    assert [one.label for one in found[2:4]] == found.index[2:4].tolist()
    with pytest.raises(IndexError):
        found[99]


def test_tables_have_the_classes_side_by_side(found, sloped):
    assert found.contributions.columns.names[0] == "class"
    assert sloped.coefficients.shape == (28, 39)
    assert set(found.fidelity.columns.get_level_values(0)) == set(NAMES)
    flat = found.to_frame()
    assert len(flat) == 84
    assert flat["predicted"].sum() == 28
    assert flat["class"].tolist()[:3] == found.classes
    assert flat.index.tolist()[:3] == [150] * 3


def test_it_reads_well_in_every_form(found):
    html = found[:4].to_html()
    for label in found.predicted.iloc[:4]:
        assert f"towards {label}" in html
    assert "log-probabilities" in html
    assert found._repr_html_()
    told = json.loads(found[:2].to_json())
    assert [len(case["classes"]) for case in told] == [3, 3]
    assert f"for {found.predicted.iloc[0]}" in render(found[0], "a wine")


def assert_same_columns(one, other):
    """What columns add is equal to the last digit; the rest leads to the model's output, which may be unknown."""
    own, its = (found.contributions.drop(columns="rest", level=1, errors="ignore") for found in (one, other))
    pd.testing.assert_frame_equal(own, its, check_exact=True)


@pytest.mark.parametrize(
    "options",
    [{}, {"surrogate": "ridge"}, {"surrogate": "tree"}, {"surrogate": "ridge", "weighting": "forest"}],
    ids=str,
)
def test_saved_and_loaded_it_explains_as_before(wine, model, tmp_path, options):
    before = LimisExplainer(model, **options).fit(wine[0][:150])
    before.save(tmp_path / "wine.limis")
    after = limis.load(tmp_path / "wine.limis", model=model)
    rows = wine[0][145:]
    old, new = before.explain(rows), after.explain(rows)
    pd.testing.assert_frame_equal(new.contributions, old.contributions, check_exact=True)
    pd.testing.assert_frame_equal(new.fidelity, old.fidelity, check_exact=True)
    assert new.predicted.tolist() == old.predicted.tolist()
    assert (after.nse_, after.skill_) == (before.nse_, before.skill_)
    alone = limis.load(tmp_path / "wine.limis").explain(rows)
    assert alone.probabilities is None
    assert_same_columns(alone, old)


def test_trees_explain_every_class(wine, model):
    found = LimisExplainer(model, surrogate="tree").fit(wine[0][:150]).explain(wine[0][150:])
    for label in found.classes:
        part = found.for_class(label)
        assert sum(rule.holds for rule in part[0].rules()) == 1
        np.testing.assert_allclose(part.base_values + part.contributions.sum(axis=1), part.local_predictions)


def test_a_row_gets_the_same_explanation_whatever_the_batch(explainer, found, wine):
    alone = explainer.explain(wine[0][153:154])
    assert_same_columns(alone, found[3:4])
    pd.testing.assert_frame_equal(alone.contributions, found[3:4].contributions)


def test_labels_of_several_classes_explain_themselves(wine):
    explainer = LimisExplainer().fit(wine[0][:150], wine[1][:150])
    found = explainer.explain(wine[0][150:])
    right = found.predicted.to_numpy() == wine[1][150:].to_numpy()
    assert right.mean() > 0.8
    assert explainer.score(wine[0][150:], wine[1][150:]) > 0.5
    assert found.to_html()


def test_a_suggestion_leads_to_the_class_that_is_wished(explainer, model, wine):
    rows = wine[0][150:][model.predict(wine[0][150:]) == "barbera"]
    told = explainer.suggest(rows, target="barolo", max_queries=300)
    assert np.mean([bool(row.confirmed) for row in told]) > 0.7
    changed = told.changed_rows()
    confirmed = told.to_frame().query("confirmed")
    assert len(confirmed) > 0
    assert (model.predict(changed)[: len(changed)] == "barolo").sum() >= len(confirmed)
    first = told[0]
    chances = model.predict_proba(rows.iloc[:1])[0]
    wished = list(model.classes_).index("barolo")
    times = chances[wished] / np.delete(chances, wished).max()
    np.testing.assert_allclose(np.exp(first.output), times, rtol=1e-3)
    assert f"the model gives class barolo, which is wished, {show_number(times)} times the likeliest other class" in (
        repr(first)
    )
    with pytest.raises(InputError, match="3 classes, so a target is needed"):
        explainer.suggest(rows)
    with pytest.raises(InputError, match="no class 'merlot'"):
        explainer.suggest(rows, target="merlot")


def test_what_several_classes_answer_is_checked(wine, explainer):
    rows = wine[0]
    with pytest.raises(BlackBoxError, match="do not sum to one"):
        connect(lambda frame: np.ones((len(frame), 3)), rows, from_array=False, output="auto")
    box, outputs = connect(
        lambda frame: np.tile([3.0, 1.0, 2.0], (len(frame), 1)), rows, from_array=False, output="logit"
    )
    np.testing.assert_allclose(outputs[0], [1, -1, 0])
    assert (box.scale, box.n_classes, box.classes) == ("centred", 3, [0, 1, 2])
    wrong = BlackBox("centred", "probabilities", ["a", "b", "c"], model=lambda frame: np.ones(len(frame)), n_classes=3)
    with pytest.raises(BlackBoxError, match="3 numbers a row are expected"):
        wrong.outputs(rows)
    np.testing.assert_allclose(centred(np.array([[1.0, 3.0]])), [[-1.0, 1.0]])
    with pytest.raises(InputError, match="queries are for one output"):
        explainer.explain(rows[:2], queries=3)


def test_the_command_line_fits_and_explains_several_classes(wine, tmp_path, capsys):
    pytest.importorskip("lightgbm")
    table = wine[0].assign(grower=wine[1])
    table[:150].to_csv(tmp_path / "train.csv", index=False)
    table[150:].drop(columns="grower").to_csv(tmp_path / "rows.csv", index=False)
    kept = str(tmp_path / "wine.limis")
    assert main(["fit", str(tmp_path / "train.csv"), "--target", "grower", "-o", kept]) == 0
    assert "each of 3 classes" in capsys.readouterr().out
    out = tmp_path / "out.csv"
    assert main(["explain", kept, str(tmp_path / "rows.csv"), "-o", str(out)]) == 0
    lines = pd.read_csv(out)
    assert len(lines) == 84
    assert set(lines["class"]) == set(NAMES)
    assert main(["explain", kept, str(tmp_path / "rows.csv"), "--class", "barbera"]) == 0
    assert "for barbera" in capsys.readouterr().out
    assert main(["suggest", kept, str(tmp_path / "rows.csv"), "--target", "barolo", "--max-queries", "50"]) == 0


def test_classes_have_names_of_their_own(wine):
    def counted(rows):
        return (
            LogisticRegression(C=0.1).fit(np.eye(3)[:, :2], [0, 1, 2]).predict_proba(rows.iloc[:, :2].to_numpy() / 10)
        )

    explainer = LimisExplainer(counted).fit(wine[0][:60])
    assert list(explainer.by_class_) == [0, 1, 2]
    assert explainer.name_classes(["a", "b", "c"]).explain(wine[0][:2]).classes == ["a", "b", "c"]
    with pytest.raises(InputError, match="class 'a' is named twice"):
        explainer.name_classes(["a", "a", "b"])
    with pytest.raises(InputError, match="does not have 2 classes"):
        explainer.name_classes(["a", "b"])


def test_a_booster_that_only_counts_classes_is_refused(wine):
    xgboost = pytest.importorskip("xgboost")
    codes = wine[1].map(NAMES.index)
    booster = xgboost.train(
        {"objective": "multi:softmax", "num_class": 3, "nthread": 1}, xgboost.DMatrix(wine[0], codes), 3
    )
    with pytest.raises(BlackBoxError, match="multi:softprob"):
        LimisExplainer(booster).fit(wine[0])


def test_rows_with_a_column_of_the_output_are_refused(wine, tmp_path, capsys):
    pytest.importorskip("lightgbm")
    table = wine[0].iloc[:, :3].assign(**{"class": wine[1]})
    table.to_csv(tmp_path / "train.csv", index=False)
    kept = str(tmp_path / "wine.limis")
    assert main(["fit", str(tmp_path / "train.csv"), "--target", "class", "-o", kept, "--quiet"]) == 0
    assert main(["explain", kept, str(tmp_path / "train.csv"), "-o", str(tmp_path / "out.parquet")]) == 1
    assert "has a column 'class'" in capsys.readouterr().err
