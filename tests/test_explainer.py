"""What a user can rely on: explanations that add up, repeat, and say what they do not know."""

import json
import pickle

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from limis import InputError, LimisExplainer
from limis.peers import GlobalModel, LocalMean


def black_box(rows):
    """Two regimes by city, a switch at age 40, missing pay counts as -1."""
    pay = rows["pay"].fillna(-1).to_numpy()
    return np.where(rows["city"] == "Rome", 3 * pay, -pay) + (rows["age"] > 40).to_numpy() * 2.0


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 900
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "pay": rng.normal(size=n),
            "city": rng.choice(["Rome", "Oslo", "Bern"], n, p=[0.5, 0.4, 0.1]),
            "noise": rng.normal(size=n),
        },
        index=[f"p{i}" for i in range(n)],
    )
    frame.loc[frame.index[::11], "pay"] = np.nan
    return frame


@pytest.fixture(scope="module")
def explainer(people):
    return LimisExplainer(black_box, random_state=1).fit(people.iloc[:700])


@pytest.fixture(scope="module")
def found(explainer, people):
    return explainer.explain(people.iloc[700:])


@pytest.fixture(scope="module")
def ridges(people):
    return LimisExplainer(black_box, surrogate="ridge", random_state=1).fit(people.iloc[:700])


@pytest.fixture(scope="module")
def sloped(ridges, people):
    return ridges.explain(people.iloc[700:])


@pytest.mark.parametrize("kind", ["found", "sloped"])
def test_contributions_add_up_to_the_local_prediction(kind, request):
    found = request.getfixturevalue(kind)
    total = found.base_values + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.local_predictions, atol=1e-9)


def test_coefficients_and_intercepts_make_the_local_prediction(sloped):
    found = sloped
    by_coefficients = (
        found.intercepts
        + found.coefficients["age", ""] * found.frame["age"]
        + found.coefficients["pay", ""] * found.frame["pay"].fillna(explainer_mean(found, "pay"))
        + found.coefficients["pay", "missing"].fillna(0) * found.frame["pay"].isna()
        + found.coefficients["noise", ""] * found.frame["noise"]
    )
    for city in ("Rome", "Oslo", "Bern"):
        by_coefficients += found.coefficients["city", city].fillna(0) * (found.frame["city"] == city)
    np.testing.assert_allclose(by_coefficients, found.local_predictions, atol=1e-6)


def explainer_mean(found, name):
    return found.training.table.columns[found.training.table.names.index(name)].offset


def test_the_telling_has_two_steps(sloped, ridges):
    overall = ridges.training_.overall_mean
    np.testing.assert_allclose(overall + sloped.neighbourhood_shift, sloped.base_values)


def test_explanations_follow_the_black_box_and_its_changes(found, explainer):
    assert explainer.nse_ > 0.95
    assert explainer.skill_ > 0.9
    assert found.skill() > 0.9
    assert explainer.score(found.frame) > 0.95


def test_slopes_follow_the_black_box_and_its_changes(sloped, ridges):
    # The function is piecewise linear: a forest neighbourhood with a ridge must do far better than nothing (0).
    assert ridges.nse_ > 0.8
    assert ridges.skill_ > 0.4
    assert sloped.skill() > 0.4
    assert ridges.score(sloped.frame) > 0.8


def test_names_and_row_labels_are_never_lost(found, sloped, people):
    for table in (sloped.coefficients, found.contributions, found.fidelity, found.status, found.to_frame()):
        assert table.index.equals(people.index[700:])
    assert list(found.contributions.columns) == [*people.columns, "rest"]
    assert found[3].label == "p703"


@pytest.mark.parametrize("kind", ["explainer", "ridges"])
def test_a_row_gives_the_same_bits_alone_and_in_any_batch(kind, people, request):
    rows, explainer = people.iloc[700:], request.getfixturevalue(kind)
    found = explainer.explain(rows)
    for part in ([0], [5], [199, 3, 50], list(range(199, -1, -1))):
        again = explainer.explain(rows.iloc[part])
        np.testing.assert_array_equal(again.fits.coefficients, found.fits.coefficients[part])
        if found.fits.has_curves:
            pd.testing.assert_frame_equal(again[0].curve("age"), found[part[0]].curve("age"), check_exact=True)
        np.testing.assert_array_equal(again.local_predictions, found.local_predictions.iloc[part])
        np.testing.assert_array_equal(again.contributions, found.contributions.iloc[part])
        assert (again.weights != found.weights[part]).nnz == 0
        pd.testing.assert_frame_equal(again.fidelity, found.fidelity.iloc[part], check_exact=True)


def test_two_fits_with_one_seed_agree_and_another_seed_differs(people, found):
    again = LimisExplainer(black_box, random_state=1).fit(people.iloc[:700]).explain(people.iloc[700:])
    np.testing.assert_array_equal(again.contributions, found.contributions)
    other = LimisExplainer(black_box, random_state=2).fit(people.iloc[:700]).explain(people.iloc[700:])
    assert not np.array_equal(other.contributions, found.contributions)


@pytest.mark.parametrize("kind", ["explainer", "ridges"])
def test_the_memory_limit_does_not_change_results(kind, people, request):
    explainer = request.getfixturevalue(kind)
    small = clone(explainer).set_params(memory_limit=0.001).fit(people.iloc[:700])
    found, again = (one.explain(people.iloc[700:]) for one in (explainer, small))
    np.testing.assert_array_equal(again.fits.coefficients, found.fits.coefficients)
    np.testing.assert_array_equal(again.contributions, found.contributions)


def test_a_training_row_is_not_explained_by_itself_or_its_equals(people):
    doubled = pd.concat([people.iloc[:300], people.iloc[:300]])
    explainer = LimisExplainer(black_box, weighting="forest").fit(doubled, probe_rows=people.iloc[300:400])
    weights = explainer.explain(people.iloc[:50]).weights.toarray()
    for row in range(50):
        assert weights[row, [row, row + 300]].tolist() == [0, 0]
        assert weights[row].sum() > 0


def test_fixed_and_unknown_are_said(people):
    frame = people.assign(country="here")
    explainer = LimisExplainer(black_box, surrogate="ridge").fit(frame.iloc[:700])
    rows = frame.iloc[700:703].assign(city="Atlantis")
    found = explainer.explain(rows)
    assert (found.status["country"] == "fixed here").all()
    assert (found.status["city"] == "unknown here").all()


def test_what_was_never_seen_is_not_trusted(explainer, people):
    found = explainer.explain(people.iloc[700:703].assign(city="Atlantis"))
    assert all("city has a value never seen in training" in reasons for reasons in found.fidelity["doubts"])
    assert not found.fidelity["trusted"].any()


def test_levels_without_any_weighted_row_have_no_coefficient(people):
    found = (
        LimisExplainer(black_box, weighting="forest", surrogate="ridge")
        .fit(people.iloc[:700])
        .explain(people.iloc[700:])
    )
    slopes = found.coefficients["city"]
    here = found.weights @ pd.get_dummies(found.training.frame["city"])[slopes.columns].to_numpy(dtype=float)
    np.testing.assert_array_equal(slopes.isna(), here == 0)


def test_level_effects_of_a_category_sum_to_zero(sloped):
    np.testing.assert_allclose(sloped.coefficients["city"].sum(axis=1), 0, atol=1e-4)  # float32


def test_rows_out_of_range_are_not_trusted(explainer, people):
    rows = people.iloc[700:701].assign(age=200)
    assert "age is above all training rows (up to 79)" in explainer.explain(rows).fidelity["doubts"].iloc[0]


@pytest.mark.parametrize(("factor", "shift"), [(1e-12, 0.0), (1e25, 0.0), (1.0, 1e6)])
def test_explanations_do_not_depend_on_the_unit_of_the_outputs(people, found, factor, shift):
    def fitted(model, weighting):
        explainer = LimisExplainer(model, weighting=weighting, random_state=1)
        return explainer.fit(people.iloc[:700]).explain(people.iloc[700:])

    def other(rows):
        return black_box(rows) * factor + shift

    plain, again = (fitted(model, "forest") for model in (black_box, other))
    # Rounding decides some ties in the forest otherwise, so a few rows may differ.
    same = np.isclose(again.contributions / factor, plain.contributions, atol=0.01).all(axis=1)
    assert same.mean() > 0.9
    # Training multiplies rounding, so only the quality is the same.
    assert fitted(other, "auto").skill() == pytest.approx(found.skill(), abs=0.05)


def test_explanations_do_not_depend_on_the_unit_of_a_column(people, found):
    scaled = people.assign(pay=people["pay"] * 1e-13)
    explainer = LimisExplainer(lambda rows: black_box(rows.assign(pay=rows["pay"] * 1e13)), random_state=1)
    again = explainer.fit(scaled.iloc[:700]).explain(scaled.iloc[700:])
    assert again.skill() == pytest.approx(found.skill(), abs=0.02)


def test_a_constant_sample_weight_changes_nothing(people, sloped):
    weight = np.full(700, 1e-6)
    again = LimisExplainer(black_box, random_state=1, surrogate="ridge").fit(people.iloc[:700], sample_weight=weight)
    np.testing.assert_allclose(again.explain(people.iloc[700:]).contributions, sloped.contributions, atol=1e-5)


def test_a_row_without_neighbours_gets_the_global_model_and_its_error(people):
    explainer = LimisExplainer(black_box, surrogate="ridge").fit(people.iloc[:300])
    alone = pd.concat([people.iloc[:1]] * 40, ignore_index=True)
    lonely = LimisExplainer(black_box, surrogate="ridge").fit(alone, probe_rows=people.iloc[300:310])
    found = lonely.explain(alone.iloc[:2])
    assert found.fits.empty.all()
    assert all("global model" in reasons[0] for reasons in found.fidelity["doubts"])
    assert not explainer.explain(people.iloc[300:310]).fits.empty.any()


def test_one_explanation_reads_like_the_batch(found, people):
    one = found[4]
    assert one.local_prediction == found.local_predictions.iloc[4]
    assert one.model_output == pytest.approx(black_box(people.iloc[[704]])[0])
    np.testing.assert_allclose(one.predict(people.iloc[[704]]), one.local_prediction)
    rows = one.training_rows(5)
    assert set(rows.index) <= set(people.index)  # the user's own labels
    assert list(rows["weight"]) == sorted(rows["weight"], reverse=True)
    assert rows["weight"].sum() <= 1
    np.testing.assert_allclose(rows["model_output"], black_box(rows))
    assert sum(value for _, value in one.as_list()) == pytest.approx(one.contributions.sum())
    assert found[-1].label == "p899"
    assert [case.label for case in found[[3, 1]]] == ["p703", "p701"]
    with pytest.raises(IndexError, match="200 explanations"):
        found[200]


def test_columns_that_go_together_are_one_reason():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=400), "c": rng.normal(size=400)})
    frame["b"] = frame["a"] * 2 + 1
    explainer = LimisExplainer(lambda rows: rows["a"] + rows["b"] + rows["c"], surrogate="ridge").fit(frame)
    reasons = explainer.explain(frame.iloc[:5])[0].reasons()
    assert sorted(sorted(reason.columns) for reason in reasons) == [["a", "b"], ["c"]]


def test_columns_that_determine_one_another_are_one_reason(people):
    codes = people["city"].map({"Rome": 1, "Oslo": 2, "Bern": 3})
    explainer = LimisExplainer(black_box, max_questions=5000).fit(people.assign(code=codes))
    one = explainer.explain(people.assign(code=codes).iloc[:1])[0]
    together = next(reason for reason in one.reasons() if "city" in reason.columns)
    assert together.columns == ["city", "code"]
    assert together.contribution == pytest.approx(one.contributions["city"] + one.contributions["code"])


def test_slices_are_explanations_of_their_rows(found):
    part = found[10:13]
    assert len(part) == 3
    np.testing.assert_array_equal(part.contributions, found.contributions.iloc[10:13])
    np.testing.assert_array_equal(part.fidelity["error"], found.fidelity["error"].iloc[10:13])


def test_json_holds_every_case(found):
    cases = json.loads(found[:3].to_json())
    assert [case["row"] for case in cases] == ["p700", "p701", "p702"]
    assert cases[0]["contributions"].keys() == {"age", "pay", "city", "noise", "rest"}
    first, second = ({told["column"]: told["values"] for told in case["curves"]} for case in cases[:2])
    assert {point["value"] for point in first["city"]} == {"Rome", "Oslo", "Bern"}
    assert None in [point["value"] for point in first["pay"]]  # where it is missing
    curve = found[1].curve("age")
    assert [point["value"] for point in second["age"]] == curve["value"].tolist()
    np.testing.assert_array_equal([point["output"] for point in second["age"]], curve["output"])


def test_labels_alone_are_explained_and_what_needs_a_model_is_absent(people):
    labels = np.where(black_box(people) > 0, "yes", "no")
    explainer = LimisExplainer().fit(people.iloc[:700], labels[:700])
    found = explainer.explain(people.iloc[700:])
    assert found.training.black_box.classes == ["no", "yes"]
    assert "error" not in found.fidelity
    assert "change_error_bound" not in found.fidelity
    assert not hasattr(found, "model_outputs")
    assert not hasattr(explainer, "skill_")
    assert "model_output" not in found.to_frame()
    assert not found.to_frame().isna().any(axis=None)
    assert explainer.score(people.iloc[700:], labels[700:]) > 0.3
    with pytest.raises(InputError, match="no model to ask about changes"):
        found.skill()


def test_given_outputs_stand_in_for_a_model(people):
    outputs = black_box(people)
    explainer = LimisExplainer(random_state=1).fit(people.iloc[:700], outputs=outputs[:700])
    again = explainer.explain(people.iloc[700:], outputs=outputs[700:])
    # Curves stand at the outputs given; their error is that of what is expected without them.
    expected = explainer.explain(people.iloc[700:]).local_predictions
    np.testing.assert_allclose(again.fidelity["error"], abs(expected - outputs[700:]))
    np.testing.assert_allclose(again.local_predictions, outputs[700:])
    assert again.skill(black_box) > 0.4
    assert explainer.nse_ > 0.8


def test_outputs_that_disagree_with_the_model_are_refused(people):
    with pytest.raises(InputError, match="outputs disagree with the model"):
        LimisExplainer(black_box).fit(people, outputs=np.arange(len(people)))


def test_classifiers_are_explained_on_logits_and_arrays_work():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X[:, 0] + X[:, 1] > 0)
    found = LimisExplainer(model).fit(X).explain(X[:5])
    np.testing.assert_allclose(found.model_outputs, model.decision_function(X[:5]))
    assert found.training.black_box.scale == "logit"


def test_sample_weights_of_zero_remove_rows(people):
    weight = (people["city"] != "Rome").to_numpy(dtype=float)
    explainer = LimisExplainer(black_box, surrogate="ridge").fit(people, sample_weight=weight)
    found = explainer.explain(people.iloc[:20])
    rome = (found.training.frame["city"] == "Rome").to_numpy()
    assert found.weights.toarray()[:, rome].sum() == 0


def test_sampling_at_inference_is_an_ablation_that_repeats(people):
    explainer = LimisExplainer(
        black_box, weighting="forest", inference="sample", random_state=3, surrogate="ridge"
    ).fit(people.iloc[:300])
    first, second = (explainer.explain(people.iloc[300:320]).fits.coefficients for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert set(np.unique(explainer.explain(people.iloc[300:320]).weights.data)) <= {1.0}


def test_clone_keeps_the_model_fitted(explainer):
    copy = clone(explainer)
    assert copy.model is explainer.model
    assert copy.get_params() == explainer.get_params()
    assert not hasattr(copy, "training_")


def test_explainers_of_picklable_models_pickle(explainer, people, found):
    again = pickle.loads(pickle.dumps(explainer)).explain(people.iloc[700:])
    np.testing.assert_array_equal(again.contributions, found.contributions)


def test_the_two_that_must_be_beaten(ridges, people, sloped):
    rows, explainer, found = people.iloc[700:], ridges, sloped
    mean, everywhere = LocalMean(explainer).explain(rows), GlobalModel(explainer).explain(rows)
    assert mean.skill() == 0
    assert (mean.fidelity["gain"] == 0).all()
    assert everywhere.fidelity["effective_rows"].iloc[0] == pytest.approx(len(explainer.training_))
    by_hand = found.weights @ explainer.training_.outputs / found.weights.sum(axis=1)
    np.testing.assert_allclose(mean.local_predictions, by_hand)
    assert found.skill() > everywhere.skill()
    np.testing.assert_allclose(
        everywhere.contributions.sum(axis=1) + everywhere.base_values, everywhere.local_predictions
    )


def test_the_local_mean_of_curves_foresees_nothing(explainer, people, found):
    mean = LocalMean(explainer).explain(people.iloc[700:])
    assert mean.skill() == 0
    total = found.weights.sum(axis=1)
    by_hand = np.where(total > 0, found.weights @ explainer.training_.outputs / np.maximum(total, 1e-300), np.nan)
    by_hand = np.where(total > 0, by_hand, explainer.training_.overall_mean)
    np.testing.assert_allclose(mean.local_predictions, by_hand)


def test_calling_is_explaining(explainer, people, found):
    np.testing.assert_array_equal(explainer(people.iloc[700:]).contributions, found.contributions)


def test_text_and_missing_values_reach_a_categorical_model_in_the_types_of_training(people):
    frame = people.astype({"city": "category"})
    model = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1).fit(frame, black_box(frame))
    explainer = LimisExplainer(model).fit(frame.iloc[:700])
    rows = people.iloc[700:705]  # text where training had categories
    np.testing.assert_allclose(explainer.explain(rows).model_outputs, model.predict(frame.iloc[700:705]))
    nowhere = explainer.explain(rows.assign(city=np.nan))
    assert all("city has a value never seen in training" in reasons for reasons in nowhere.fidelity["doubts"])
