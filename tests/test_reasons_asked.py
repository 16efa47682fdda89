"""Reasons by the black box's own answers, in groups, over the whole model, and in letters; rows asked until trusted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from by_groups import shapley_values

from limis import InputError, LimisExplainer, load
from limis.until_trusted import fewest_until_trusted

OPTIONS = {"max_questions": 30_000, "n_jobs": 1}
NAMES = ["age", "income", "sex", "noise"]


def people(n=900, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2, 15, n).round(1)),
            "sex": rng.choice(["Female", "Male"], n),
            "noise": rng.normal(size=n),
        }
    )


def score(rows):
    """Waves that few questions at fit do not show, and what age and sex do together."""
    together = (rows["age"] > 45).to_numpy() * (rows["sex"] == "Female").to_numpy()
    return (np.sin(rows["age"]) + rows["income"].isna()).to_numpy() + 2.0 * together


class Counted:
    """A black box that counts its questions."""

    def __init__(self):
        self.asked = 0

    def __call__(self, rows):
        self.asked += len(rows)
        return score(rows)


@pytest.fixture(scope="module")
def box():
    return Counted()


@pytest.fixture(scope="module")
def explainer(box):
    return LimisExplainer(box, **OPTIONS).fit(people())


@pytest.fixture(scope="module")
def found(explainer):
    return explainer.explain(people(20, seed=1))


# --- asked ------------------------------------------------------------------------------------------------------------


def test_asked_reasons_are_unbiased_and_know_their_errors(found):
    asked = found.against("all", queries=400)
    reference = asked.references.kinds[0].frame
    truth = np.array([shapley_values(score, found.frame.iloc[row], reference, NAMES) for row in range(len(found))])
    off = asked.column_contributions.to_numpy() - truth
    errors = asked.contribution_errors.to_numpy()
    # 80 figures: beyond four standard errors, or a hundredth where there are hardly any, a thousandth are expected.
    assert (np.abs(off) <= 4 * errors + 0.01).mean() > 0.96
    unasked = found.column_contributions.to_numpy() - truth
    assert (off**2).mean() < 0.5 * (unasked**2).mean()
    assert found.contribution_errors.isna().all(axis=None)
    total = asked.base_values + asked.contributions.sum(axis=1)
    np.testing.assert_allclose(total, asked.model_outputs, rtol=0, atol=1e-12)


def test_no_more_is_asked_than_allowed_and_a_row_alone_is_asked_as_among_others(explainer, box):
    rows, before = people(6, seed=2), box.asked
    many = explainer.explain(rows, reason_queries=60)
    assert box.asked - before <= 6 * (1 + 60)
    assert (many.asked.questions > 30).all()
    alone = explainer.explain(rows.iloc[[4]], reason_queries=60)
    pd.testing.assert_series_equal(alone.contributions.iloc[0], many.contributions.iloc[4], check_exact=True)
    pd.testing.assert_series_equal(alone.contribution_errors.iloc[0], many.contribution_errors.iloc[4])
    pd.testing.assert_frame_equal(many[[4]].contributions, alone.contributions, check_exact=True)


def test_questions_too_few_or_without_a_model_are_refused(explainer, tmp_path):
    rows = people(3, seed=3)
    with pytest.raises(InputError, match="12 are the fewest"):
        explainer.explain(rows, reason_queries=11)
    with pytest.raises(InputError, match="reason_queries is a number"):
        explainer.explain(rows, reason_queries=-1)
    explainer.save(tmp_path / "saved.limis")
    loaded = load(tmp_path / "saved.limis")
    outputs = score(rows)
    with pytest.raises(InputError, match="no model to ask"):
        loaded.explain(rows, outputs=outputs).against("all", queries=100)
    ridges = LimisExplainer(score, surrogate="ridge", n_jobs=1).fit(people(200))
    with pytest.raises(InputError, match="reason_queries are questions for curves"):
        ridges.explain(rows, reason_queries=100)


def test_one_row_as_the_reference_is_asked_exactly(explainer):
    rows = people(2, seed=4)
    asked = explainer.explain(rows.iloc[[0]], reference=rows.iloc[[1]], reason_queries=600)
    truth = shapley_values(score, rows.iloc[0], rows.iloc[[1]], NAMES)
    # 100 orders and their reverses of four columns; nothing else is left to chance.
    np.testing.assert_allclose(asked.column_contributions.iloc[0], truth, atol=0.15)


def test_every_class_is_asked_about_at_once():
    class Classes:
        classes_ = np.array(["low", "mid", "high"])

        def predict_proba(self, rows):
            raised = np.exp(np.column_stack([np.full(len(rows), 1.0), score(rows), 1.5 * score(rows) - 1]))
            return raised / raised.sum(axis=1, keepdims=True)

    found = LimisExplainer(Classes(), **OPTIONS).fit(people(300)).explain(people(4, seed=3), reason_queries=60)
    again = found.unfolded(queries=60)
    for place, part in enumerate(found.parts):
        # Each column is one of its own already, so that the same is asked, of all classes together or of one.
        alone = part.unfolded(queries=60)
        pd.testing.assert_frame_equal(alone.contributions, part.contributions)
        pd.testing.assert_frame_equal(again.parts[place].contributions, part.contributions)
    for part in found.in_groups({"person": ["age", "sex"]}, queries=60).parts:
        assert part.contribution_errors.notna().all(axis=None)
    for part in found.parts:
        total = part.base_values + part.contributions.sum(axis=1)
        np.testing.assert_allclose(total, part.model_outputs, atol=1e-9)
        assert part.contribution_errors.notna().all(axis=None)


# --- until trusted ----------------------------------------------------------------------------------------------------


def test_rows_that_are_not_trusted_are_asked_until_they_are(explainer, box, monkeypatch):
    rows = people(30, seed=5)
    known = explainer.explain(rows)
    for cutoff in np.geomspace(1e-9, 1.0, 200):  # at which some are trusted and others not
        before = replace(known, trust=replace(explainer.trust_, cutoff=float(cutoff)))
        if before.fidelity["trusted"].mean() > 0.3:
            break
    monkeypatch.setattr(explainer, "trust_", before.trust)
    asked_before = box.asked
    after = explainer.explain(rows, until_trusted=600)
    questions = after.fidelity["questions"]
    assert box.asked - asked_before == len(rows) + questions.sum()
    assert questions.max() <= 600
    was_trusted = before.fidelity["trusted"]
    assert 0 < was_trusted.mean() < 1
    assert (questions[was_trusted] == 0).all()
    assert (questions[~was_trusted] > 0).all()
    assert after.fidelity["trusted"].mean() > was_trusted.mean()
    total = after.base_values + after.contributions.sum(axis=1)
    np.testing.assert_allclose(total, after.model_outputs, rtol=0, atol=1e-12)
    row = int(np.flatnonzero(~was_trusted)[0])
    alone = explainer.explain(rows.iloc[[row]], until_trusted=600)
    pd.testing.assert_series_equal(alone.fidelity.iloc[0], after.fidelity.iloc[row], check_names=False)
    pd.testing.assert_series_equal(alone.contributions.iloc[0], after.contributions.iloc[row], check_exact=True)
    assert after[[row]].fidelity["questions"].iloc[0] == questions.iloc[row]


def test_of_a_box_of_noise_no_row_becomes_trusted():
    def noise(rows):
        return np.random.default_rng(0).normal(size=5_000)[pd.util.hash_pandas_object(rows, index=False) % 5_000]

    found = LimisExplainer(noise, **OPTIONS).fit(people(400)).explain(people(5, seed=9), until_trusted=600)
    assert (found.fidelity["questions"] > 0).all()
    assert not found.fidelity["trusted"].any()


def test_what_was_asked_and_mended_stays(explainer, monkeypatch):
    never = replace(explainer.trust_, cutoff=-np.inf)
    monkeypatch.setattr(explainer, "trust_", never)
    once = explainer.explain(people(6, seed=5)).against("all", queries=60).until_trusted(600)
    assert once.contribution_errors.notna().all(axis=None)
    twice = once.until_trusted(600)
    trusted = once.fidelity["trusted"].to_numpy()
    assert trusted.any()
    assert twice.fidelity["trusted"].to_numpy()[trusted].all()
    pd.testing.assert_frame_equal(once.contributions[trusted], twice.contributions[trusted])
    assert (twice.fidelity["questions"] >= once.fidelity["questions"]).all()


def test_what_was_never_seen_stays_a_doubt_and_is_not_asked_about(explainer):
    strange = people(4, seed=6).assign(age=200)
    before, after = explainer.explain(strange), explainer.explain(strange, until_trusted=600)
    assert not after.fidelity["trusted"].any()
    only = before.fidelity["doubts"].str.len() == 1
    assert (after.fidelity["questions"][only] == 0).all()


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of shap, as it is imported
def test_of_no_rows_nothing_is_asked(found):
    nothing = found[[]]
    assert len(nothing.until_trusted(600)) == 0
    assert nothing.to_shap().values.shape == (0, 5)


@pytest.mark.parametrize("queries", ["a", 2.5, True, -1, 1e9])
def test_what_is_no_number_of_questions_is_refused(found, queries):
    for ask in (found.until_trusted, lambda n: found.against("all", queries=n), lambda n: found.unfolded(queries=n)):
        with pytest.raises(InputError, match="is a number of questions a row"):
            ask(queries)


def test_until_trusted_is_refused_where_it_cannot_be(explainer):
    rows = people(2)
    with pytest.raises(InputError, match=f"{fewest_until_trusted(4)} are the fewest"):
        explainer.explain(people(2, seed=5), until_trusted=5)
    with pytest.raises(InputError, match="leave out the other queries"):
        explainer.explain(rows, until_trusted=600, queries=10)


# --- groups -----------------------------------------------------------------------------------------------------------


def test_groups_of_columns_are_one_reason(found):
    together = found.in_groups({"person": ["age", "sex"]})
    assert list(together.contributions) == ["person", "income", "noise", "rest"]
    total = together.base_values + together.contributions.sum(axis=1)
    np.testing.assert_allclose(total, together.model_outputs, rtol=0, atol=1e-12)
    # What both do together has nobody else to share with: the sum of both parts, up to what each does with others.
    parts = found.contributions["age"] + found.contributions["sex"]
    np.testing.assert_allclose(together.contributions["person"], parts, atol=0.2)
    names = [reason.columns for reason in together[0].reasons()]
    assert ["age", "sex"] in names
    assert any(reason.words.startswith("person (age = ") for reason in together[0].reasons())
    pairs = together.interactions
    assert set(pairs["first"]) | set(pairs["second"]) <= {"person", "income", "noise"}
    asked = found.in_groups({"person": ["age", "sex"]}, queries=100)
    assert list(asked.contribution_errors) == ["person", "income", "noise"]


def test_groups_that_cannot_be_are_refused(found):
    for groups, told in (
        ({"person": ["age", "height"]}, "not a column"),
        (["age"], "columns under a name"),
        ({"person": None}, "a list of columns"),
        ({"person": []}, "a list of columns"),
        ({"person": ["age", "age"]}, "named twice"),
    ):
        with pytest.raises(InputError, match=told):
            found.in_groups(groups)
    ridges = LimisExplainer(score, surrogate="ridge", n_jobs=1).fit(people(200)).explain(people(2))
    with pytest.raises(InputError, match="only curves"):
        ridges.in_groups({"person": ["age", "sex"]})


def test_columns_that_determine_one_another_can_be_unfolded():
    rows = people(400)
    rows["months"] = 12 * rows["age"]
    found = (
        LimisExplainer(lambda frame: frame["age"] / 10 + frame["months"] / 60, **OPTIONS).fit(rows).explain(rows[:5])
    )
    assert found.units.names[0] == "age / months"
    folded = found.contributions
    np.testing.assert_allclose(folded["age"], folded["months"])  # one reason, shared alike
    open_ = found.unfolded()
    assert list(open_.contributions) == [*rows, "rest"]
    total = open_.base_values + open_.contributions.sum(axis=1)
    np.testing.assert_allclose(total, open_.model_outputs, rtol=0, atol=1e-12)
    assert len(open_[0].reasons()) == 5


def test_every_face_shows_groups(found, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    grouped = found.in_groups({"person": ["age", "sex"]})
    assert "person (age = " in str(grouped[0])
    for kind in ("beeswarm", "mean"):
        assert "person" in [label.get_text() for label in grouped.plot(kind).get_yticklabels()]
    for kind in ("contributions", "training_rows", "curves"):
        grouped[0].plot(kind)
    plt.close("all")
    assert "person" in grouped.to_html(tmp_path / "page.html")
    assert "contribution: person" in grouped.to_frame()
    assert '"person"' in grouped.to_json()


# --- the model as a whole, and letters --------------------------------------------------------------------------------


def test_importances_dependence_and_pairs(found):
    sizes = found.importances
    assert sizes.index[-1] == "noise"
    assert sizes["age"] == pytest.approx(found.contributions["age"].abs().mean())
    told = found.dependence("age")
    assert told["value"].tolist() == found.frame["age"].tolist()
    assert (told["partner"] == "sex").all()
    assert set(told["partner_value"]) == {"Female", "Male"}
    assert found.dependence("sex")["value"].tolist() == found.frame["sex"].tolist()
    pairs = found.strongest_pairs(3)
    assert {pairs.iloc[0]["first"], pairs.iloc[0]["second"]} == {"age", "sex"}
    with pytest.raises(InputError, match="there is no contribution of 'height'"):
        found.dependence("height")


def test_reason_codes_name_what_leads_away_from_the_reference(found):
    codes = found.reason_codes(n=2)
    assert list(codes) == ["row", "rank", "reason", "columns", "contribution"]
    assert codes.groupby("row").size().max() <= 2
    side = np.sign(found.model_outputs - found.base_values)
    for line in codes.itertuples():
        assert np.sign(line.contribution) == side[line.row]
        assert line.reason.endswith("raises the prediction" if line.contribution > 0 else "lowers the prediction")
    lower = found.reason_codes(towards="lower")
    assert (lower["contribution"] < 0).all()
    own = lower[lower["row"] == 0]
    assert own["contribution"].is_monotonic_increasing
    with pytest.raises(InputError, match="n is how many"):
        found.reason_codes(0)
    with pytest.raises(InputError, match="towards is"):
        found.reason_codes(towards="up")


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # shap's own
def test_shaps_own_plots_draw_these_reasons(found):
    shap = pytest.importorskip("shap")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.close("all")
    grouped = found.in_groups({"person": ["age", "sex"]})
    assert grouped.to_shap().feature_names == ["person", "income", "noise", "rest"]
    told = found.to_shap()
    for draw in (
        lambda: shap.plots.waterfall(told[0], show=False),
        lambda: shap.plots.beeswarm(told, show=False),
        lambda: shap.plots.bar(told, show=False),
        lambda: shap.plots.scatter(told[:, "age"], color=told, show=False),
    ):
        draw()
        axes = plt.gcf().axes
        assert any(ax.has_data() for ax in axes)
        plt.close("all")


def test_trust_survives_saving(explainer, box, tmp_path):
    explainer.save(tmp_path / "saved.limis")
    rows = people(10, seed=8)
    loaded = load(tmp_path / "saved.limis", model=box)
    assert explainer.trust_ is not None
    pd.testing.assert_frame_equal(loaded.explain(rows).fidelity, explainer.explain(rows).fidelity, check_exact=True)
