"""Slopes from recorded changes, levels from narrow rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

import limis
from limis import InputError, LimisExplainer, changes
from limis.around import Heights, Near, around
from limis.blackbox import connect
from limis.changes import RecordedChanges, lines_of
from limis.datasets import make_synthetic
from limis.metrics import awd, selection_auc
from limis.rows import TrainingRows
from limis.table import Table
from limis.training import ProbeRows, fitting
from limis.training import slopes as slope_training
from limis.training.levels import train_level
from limis.training.slopes import train_slopes
from limis.two_scales import _shares
from limis.weighting.learned import estimator_inputs
from limis.weighting.level import LevelMetric


def training_rows(frame, black_box):
    table, frame = Table.learn(frame)
    box, outputs = connect(black_box, frame, from_array=False, output="auto", labels=table.source_labels)
    return TrainingRows(table, box, frame, table.values(frame), outputs)


def mixed_model(rows):
    city = rows["city"].map({"Rome": 1.0, "Oslo": -2.0, "Bern": 0.5}).to_numpy(dtype=float)
    return 2 * rows["a"].to_numpy() + city


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=150), "city": rng.choice(["Rome", "Oslo", "Bern"], 150)})
    return training_rows(frame, mixed_model)


@pytest.fixture(scope="module")
def recorded(mixed):
    return RecordedChanges.ask(mixed, np.random.default_rng(1))


def test_records_are_true_answers_of_the_black_box(mixed, recorded):
    table = mixed.table
    changed = pd.DataFrame({"a": recorded.values[:, 0]})
    words = np.array([table.columns[1].level_word(code) for code in range(3)])
    changed["city"] = words[recorded.values[:, 1].astype(int)]
    answers = mixed_model(changed) - mixed.outputs[recorded.rows]
    np.testing.assert_allclose(recorded.answers * mixed.unit, answers, atol=1e-9)
    same = recorded.values == mixed.values[recorded.rows]
    assert (same.sum(axis=1) == 1).all()  # one column of two changed
    np.testing.assert_array_equal((~same).argmax(axis=1), recorded.columns)


def test_few_changed_rows_are_written_out_at_a_time(mixed, recorded, monkeypatch):
    monkeypatch.setattr(changes, "CELLS_AT_ONCE", 20)
    sizes, ask = [], mixed.black_box.model

    def counting(rows):
        sizes.append(len(rows))
        return ask(rows)

    again = RecordedChanges.ask(mixed.with_model(counting), np.random.default_rng(1))
    np.testing.assert_array_equal(again.outputs, recorded.outputs)
    assert max(sizes) <= 20 // len(mixed.table.source_names)


def test_systems_give_least_squares_slopes_of_the_weighted_changes(mixed, recorded):
    rng = np.random.default_rng(2)
    weights = rng.random(len(mixed))
    weights /= weights.sum()
    found = recorded.systems(mixed.table, mixed.values).slopes(lines_of(sp.csr_array(weights[None])), 0.0, 1e-9)[0][0]
    table = mixed.table
    steps = table.features(recorded.values) - table.features(mixed.values[recorded.rows])
    for column in (0, 1):
        mine = recorded.columns == column
        own = np.flatnonzero(table.feature_column == column)
        root = np.sqrt(weights[recorded.rows[mine]])
        expected, *_ = np.linalg.lstsq(steps[mine][:, own] * root[:, None], recorded.answers[mine] * root, rcond=None)
        np.testing.assert_allclose(found[own], expected, atol=1e-5)


def test_an_additive_black_box_is_recovered_exactly(mixed, recorded):
    weights = lines_of(sp.csr_array(np.full((1, len(mixed)), 1 / len(mixed))))
    found = (
        recorded.systems(mixed.table, mixed.values).slopes(weights, prior=0.0, penalty=1e-9)[0][0]
        * mixed.unit
        / mixed.table.feature_scale
    )
    assert found[0] == pytest.approx(2, abs=1e-5)
    bern, oslo, rome = found[1:]
    assert (rome - oslo, rome - bern) == (pytest.approx(3, abs=1e-4), pytest.approx(0.5, abs=1e-4))


def test_a_strong_prior_gives_the_slopes_of_all_rows(mixed, recorded):
    systems = recorded.systems(mixed.table, mixed.values)
    everyone = lines_of(sp.csr_array(np.full((1, len(mixed)), 1 / len(mixed))))
    one = lines_of(sp.csr_array(([1.0], ([0], [3])), shape=(1, len(mixed))))
    strong, _ = systems.slopes(one, prior=1e6, penalty=0.001 * 1e6)
    np.testing.assert_allclose(strong, systems.slopes(everyone, prior=0.0, penalty=0.001)[0], atol=1e-4)


def test_estimators_see_ranks_and_levels(mixed):
    inputs = estimator_inputs(mixed.table, mixed.values).numpy()
    assert inputs.shape == (150, 4)
    assert abs(inputs[:, 0].std() - 1) < 0.1
    assert set(np.unique(inputs[:, 1:])) == {0.0, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("Syn1", 0.15), ("Syn4", 0.2)])
def test_learned_weights_find_the_rows_of_the_same_behaviour(name, most, monkeypatch):
    # 300 steps on 500 rows, one seed: well below the global ridge's .75 and .51; the bounds leave room for chance.
    monkeypatch.setattr(slope_training, "STEPS", 300)
    data, test = (make_synthetic(name, n, random_state=seed) for n, seed in ((500, 0), (200, 1)))
    explainer = LimisExplainer(data.black_box, surrogate="ridge").fit(data.features)
    found = explainer.explain(test.features)
    assert awd(test.coefficients, found.coefficients.to_numpy()) < most
    if name == "Syn1":
        regime = data.regime[found.training.frame.index]
        assert selection_auc(found.slope_weights, regime, test.regime) > 0.9


def test_training_repeats_with_its_seed_and_leaves_the_global_one_alone(mixed, recorded):
    before = torch.get_rng_state()
    systems = recorded.systems(mixed.table, mixed.values)
    nobody = ProbeRows(mixed.values[:0], mixed.outputs[:0])
    first, second = (
        train_slopes(mixed, recorded, systems, nobody, 5).weights(mixed, mixed.values[:4]) for _ in range(2)
    )
    np.testing.assert_array_equal(first.toarray(), second.toarray())
    assert torch.equal(before, torch.get_rng_state())
    assert (first.toarray()[np.arange(4), np.arange(4)] == 0).all()  # no row speaks for itself


def test_held_out_rows_decide_which_estimator_is_kept(monkeypatch):
    # Answers turned round: the longer it trains, the worse it foresees them, so an early estimator must be kept.
    data, held_out = (make_synthetic("Syn1", n, random_state=seed) for n, seed in ((300, 0), (60, 1)))
    training = training_rows(data.features, data.black_box)
    rng = np.random.default_rng(0)
    recorded = RecordedChanges.ask(training, rng)
    probes = ProbeRows.ask(training, held_out.features, held_out.outputs, rng)
    systems = recorded.systems(training.table, training.values)
    monkeypatch.setattr(slope_training, "STEPS", 60)
    monkeypatch.setattr(slope_training, "CHECK_EVERY", 1)

    def error(probes):
        weights = train_slopes(training, recorded, systems, probes, 0).weights(training, turned.values)
        shares = lines_of(sp.csr_array(weights / weights.sum(axis=1)[:, None]))
        slopes = systems.slopes(shares, 0.0, 0.001)[0] * training.unit
        steps = turned.asked.values - turned.values[turned.asked.rows]
        foreseen = (steps / training.table.feature_scale * slopes[turned.asked.rows]).sum(axis=1)
        return np.abs(foreseen - turned.asked.changes).mean()

    turned = replace(probes, asked=replace(probes.asked, changes=-probes.asked.changes))
    nobody = ProbeRows(training.values[:0], training.outputs[:0])
    assert error(turned) < 0.9 * error(nobody)


def test_level_and_slopes_are_told_apart_and_add_up():
    data = make_synthetic("Syn1", 400, random_state=0)
    explainer = LimisExplainer(data.black_box, surrogate="ridge").fit(data.features)
    found = explainer.explain(data.features.iloc[:20])
    assert {"slopes_from", "level_from", "prior", "n_candidates"} <= set(explainer.choices_)
    assert explainer.choices_["chosen"].sum() == 1
    np.testing.assert_allclose(found.base_values + found.contributions.sum(axis=1), found.local_predictions)
    assert found.slope_weights.shape == found.weights.shape


def test_slopes_carry_the_level_only_as_far_as_they_hold_on_the_narrow_rows():
    along = np.array([[-2.0, -1.0, 1.0, 2.0]] * 4)
    heights = 7 + along * np.array([[0.5], [-1.0], [3.0], [1.0]])
    slopes = np.array([[1.0], [1.0], [1.0], [0.0]])
    near, share, here = np.arange(16).reshape(4, 4), np.full((4, 4), 0.25), np.full((4, 1), 3.0)

    def found_around(most, told):
        return around(Heights(along.reshape(16, 1), heights.ravel()), Near(near, share), here, slopes, most, told)

    found = found_around(1.0, True)
    np.testing.assert_allclose(found.reach, [0.5, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(found_around(0.7, True).reach, [0.5, 0.0, 0.7, 0.0])
    np.testing.assert_allclose(found_around(0.7, False).reach, 0.7)
    np.testing.assert_allclose([found.levels, found.feature_means[:, 0]], [[7.0] * 4, [0.0] * 4], atol=1e-12)
    np.testing.assert_allclose(found.feature_spread, np.sqrt(2.5))
    left_out = ((1 - found.reach) * slopes[:, 0] * here[:, 0])[:, None]
    for told, missed in (
        (found.spread_mean_square, heights - 7),
        (found.residual_mean_square, heights - 7 - slopes * along + left_out),
    ):
        np.testing.assert_allclose(told, ((missed / 0.75) ** 2).mean(axis=1))


def test_contributions_start_at_the_mean_of_the_narrow_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(-2, 2, 500), "b": rng.normal(size=500)})
    explainer = LimisExplainer(lambda rows: rows["a"] ** 2, random_state=0, surrogate="ridge").fit(frame)
    training = explainer.training_
    model = replace(explainer.local_model_, slope_weighting=None, level_from="forest", reach=1.0)
    explainer.local_model_ = model
    rows = pd.DataFrame({"a": [-1.5, 0.1, 1.9], "b": [0.0, 1.0, -1.0]})
    found = explainer.explain(rows)
    near, share = _shares(*model.retriever.nearest(training, training.table.values(rows), model.n_level))
    outputs = np.concatenate([training.outputs, model.copies.outputs * training.unit + training.overall_mean])
    np.testing.assert_allclose(found.base_values, (share * outputs[near]).sum(axis=1))
    assert found.fits.reach.min() < 1  # the black box bends
    np.testing.assert_allclose(found.base_values + found.contributions.sum(axis=1), found.local_predictions)


def test_two_scales_need_a_model_to_ask_and_do_not_sample():
    frame = pd.DataFrame({"a": np.arange(60.0)})
    with pytest.raises(InputError, match="asks the model about changed rows"):
        LimisExplainer(weighting="two-scales", surrogate="ridge").fit(frame, np.arange(60.0))
    with pytest.raises(InputError, match="has no sampling"):
        LimisExplainer(lambda rows: rows["a"], weighting="two-scales", inference="sample", surrogate="ridge").fit(frame)


def test_learned_directions_tell_which_near_rows_say_how_high(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(2500, 6)), columns=list("abcdef"))

    def said(rows):
        return np.sin(4 * rows["a"]) + 0.05 * rows["b"]

    explainer = LimisExplainer(said, weighting="two-scales", random_state=0, surrogate="ridge").fit(frame[:2000])
    training, model = explainer.training_, explainer.local_model_
    plain = replace(model, level_from="forest", level_metric=None, n_level=256, reach=1.0)
    metric = train_level(training, plain, seed=0, memory_limit=1.0)
    along = np.abs(metric.directions).sum(axis=1)
    assert along.argmax() == 0  # only a bends
    values = training.table.values(training.table.read(frame[2000:]))
    learned = replace(plain, level_metric=metric)
    missed = [
        np.abs(one.fit(training, explainer.global_fit_, values).predictions() - said(frame[2000:])).mean()
        for one in (plain, learned)
    ]
    assert missed[1] < missed[0]

    explainer.local_model_ = learned
    alone = explainer.explain(frame[2003:2004])
    batch = explainer.explain(frame[2000:2010])
    np.testing.assert_array_equal(alone.local_predictions, batch.local_predictions.iloc[[3]])
    explainer.save(tmp_path / "learned.limis", include_model=False)
    again = limis.load(tmp_path / "learned.limis", model=said).explain(frame[2000:2010])
    np.testing.assert_array_equal(again.local_predictions, batch.local_predictions)


def test_shares_fall_with_the_distance_along_the_directions_and_rise_with_the_forests_weights():
    metric = LevelMetric(np.ones((2, 1)), 2.0)
    weights = np.array([[0.6, 0.3, 0.1, 0.0], [0.0, 0.0, 0.0, 0.0]])
    near = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    equally_far = metric.shares(np.zeros((2, 1)), np.zeros((4, 1)), near, weights)
    np.testing.assert_allclose(equally_far, [[36 / 46, 9 / 46, 1 / 46, 0.0], [0.0, 0.0, 0.0, 0.0]])
    places = np.array([[3.0], [0.0], [0.5], [0.0]])
    apart = metric.shares(np.zeros((1, 1)), places, near[:1], weights[:1])[0]
    assert apart[0] < equally_far[0, 0] < 1
    assert apart[1] > equally_far[0, 1]
    # However far from all of them, a row rests on several.
    far_out = metric.shares(np.full((1, 1), 1e4), places, near[:1], weights[:1])[0]
    np.testing.assert_allclose(far_out, equally_far[0], atol=0.01)


def three_classes(rows):
    logits = np.column_stack([np.sin(3 * rows["a"]), rows["b"], np.zeros(len(rows))])
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def test_levels_are_learned_where_kernels_cost_too_much_for_classes_too(monkeypatch, tmp_path):
    monkeypatch.setattr(fitting, "MAX_LEARNED_ROWS", 300)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(700, 4)), columns=list("abcd"))
    explainer = LimisExplainer(three_classes, random_state=0, surrogate="ridge").fit(frame[:600])
    assert "forest, learned metric" in set(explainer.choices_["level_from"])
    metric = train_level(explainer.training_, explainer.local_model_, seed=0, memory_limit=1.0)
    for part in explainer.by_class_.values():
        part.local_model = replace(part.local_model, level_metric=metric)
    explainer.local_model_ = replace(explainer.local_model_, level_metric=metric)
    told = explainer.explain(frame[600:])
    explainer.save(tmp_path / "classes.limis", include_model=False)
    again = limis.load(tmp_path / "classes.limis", model=three_classes).explain(frame[600:])
    for label in told.classes:
        np.testing.assert_array_equal(again.for_class(label).local_predictions, told.for_class(label).local_predictions)

    weighted = LimisExplainer(three_classes, random_state=0, surrogate="ridge")
    weighted.fit(frame[:600], sample_weight=rng.uniform(1, 3, size=600))
    assert "forest, learned metric" not in set(weighted.choices_["level_from"])


def test_nothing_is_offered_as_learned_when_the_time_is_over_first(mixed):
    explainer = LimisExplainer(mixed_model, random_state=0, surrogate="ridge").fit(mixed.frame)
    model = explainer.local_model_
    assert train_level(explainer.training_, model, seed=0, memory_limit=1.0, time_budget=1e-9) is None


def test_changes_are_counted_from_the_row_or_from_its_other_copies(mixed, recorded):
    from_copies = recorded.counted(mixed, "copies", told_share=0.5)
    for change in (0, len(recorded) // 2, len(recorded) - 1):
        row, column = recorded.rows[change], recorded.columns[change]
        others = (recorded.rows == row) & (recorded.columns != column)
        expected = 0.5 * (recorded.outputs[change] - recorded.outputs[others].mean())
        assert from_copies.answers[change] == pytest.approx(expected)
    again = from_copies.counted(mixed, "row")
    np.testing.assert_array_equal(again.answers, recorded.answers)

    # Without copies that differ elsewhere there is only the row.
    first = recorded.columns == 0
    alone = replace(recorded, **{n: getattr(recorded, n)[first] for n in ("rows", "columns", "values", "outputs")})
    np.testing.assert_array_equal(alone.counted(mixed, "copies").answers, recorded.answers[first])


def test_changes_of_a_class_are_counted_like_those_of_all():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(80, 3)), columns=list("abc"))
    explainer = LimisExplainer(three_classes, random_state=0, surrogate="ridge").fit(frame)
    training = explainer.training_
    seen = RecordedChanges.ask(training, np.random.default_rng(0)).counted(training, "copies", 0.4)
    own = training.of_class(1)
    outputs = (seen.every[:, 1] - own.overall_mean) / own.unit
    expected = replace(seen, outputs=outputs, every=None).counted(own, "copies", 0.4).answers
    np.testing.assert_allclose(seen.of_class(own, 1).answers, expected)
    change = len(seen) // 2
    others = (seen.rows == seen.rows[change]) & (seen.columns != seen.columns[change])
    assert seen.of_class(own, 1).answers[change] == pytest.approx(0.4 * (outputs[change] - outputs[others].mean()))


def test_a_black_box_that_remembers_its_rows_is_asked_beside_them():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1100, 5)), columns=list("abcde"))
    frame["a"] = np.where(rng.random(1100) < 0.7, 0.0, rng.uniform(1, 10, 1100))
    remembered = dict(zip(frame["b"][:900], rng.normal(scale=3.0, size=900), strict=True))
    kept = set(frame[:900].apply(tuple, axis=1))

    def plain(rows):
        return 4 * (rows["a"] > 5) - rows["b"]

    def said(rows):
        # The whole row is remembered: a change anywhere, and nothing is left of it.
        known = rows[list("abcde")].apply(tuple, axis=1).isin(kept)
        return plain(rows) + np.where(known, rows["b"].map(remembered).fillna(0.0), 0.0)

    for model, start in ((said, "copies"), (plain, "row")):
        explainer = LimisExplainer(model, random_state=0, surrogate="ridge").fit(frame[:900], probe_rows=frame[900:])
        chosen = explainer.choices_.query("chosen").iloc[-1]
        assert (chosen["counted_from"], chosen["told_share"]) == (start, 1.0)
        assert chosen["skill"] > 0.99
        jumps = explainer.training_.table.columns[0].jumps
        assert len(jumps) == 1
        assert 4.8 < jumps[0] < 5.2  # what the black box remembers does not hide it


def test_less_of_the_changes_is_told_where_those_of_other_rows_are_smaller():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(900, 4)), columns=list("abcd"))
    near_training = set(frame["d"][:700])

    def said(rows):
        # Steeper for rows that hold a value of d that was trained on, as most copies of these do.
        return rows["a"] * np.where(rows["d"].isin(near_training), 2.0, 1.0)

    explainer = LimisExplainer(said, weighting="two-scales", random_state=0, surrogate="ridge")
    explainer.fit(frame[:700], probe_rows=frame[700:])
    assert explainer.choices_.query("chosen").iloc[-1]["told_share"] < 1
    slopes = explainer.explain(frame[700:]).coefficients["a"]
    assert 0.7 < slopes.mean() < 1.5  # that of other rows is 1
