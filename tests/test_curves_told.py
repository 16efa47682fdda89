"""Curves as people and programs are told of them: text, cards, pages, JSON, tables, the server, groups, suggestions."""

import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from html_pages import read
from small_data import small

import limis
from limis import InputError, LimisExplainer
from limis.cli.main import main
from limis.default_model import train_default_model
from limis.report import cards
from limis.report.curves import _bends, curves_of, drawings, pairs_told, what_ifs
from limis.report.words import Numbers
from limis.subgroups import subgroups
from limis.suggest import suggest

mpl.use("Agg")

FEW = {"surrogate": "curves", "max_questions": 20_000, "n_jobs": 1}
# What is true of slopes and of levels of rows alike, and of curves is not.
OF_SLOPES = (
    "rows like", "comparable row", "adds up", "In two steps", "steps", "own step", "stand at", "coefficient", "slope",
    "straight line", "local models miss", "sets them apart", "sets it apart", "neighbourhood",
)  # fmt: skip


def jobs(n=500, seed=0):
    """Numbers, gaps, a category, a date, and two columns that are one."""
    rng = np.random.default_rng(seed)
    city = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "hours": rng.integers(10, 60, n),
            "pay": np.where(rng.random(n) < 0.15, np.nan, rng.gamma(2, 10, n).round(1)),
            "kind": rng.choice(["<b>clerk</b>", "nurse", "cook"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "city": np.array(["Rome", "Oslo", "Bonn"])[city],
            "code": city * 10,
        }
    )


def level(rows):
    """A pair that is more than its parts, a gap that matters, and a date that does."""
    late = (rows["since"] > pd.Timestamp("2021-03-01")).to_numpy(dtype=float)
    together = (rows["hours"] > 35).to_numpy() * (rows["city"] == "Oslo").to_numpy()
    return (
        (rows["hours"] / 15 + rows["pay"].isna() * 1.5 + (rows["kind"] == "nurse")).to_numpy() + late + 3.0 * together
    )


def chance(rows):
    """A probability that is 0 or 1 for many rows."""
    return np.clip((level(rows) - 2.5) / 2, 0, 1)


class Classes:
    """A classifier of three classes."""

    classes_ = np.array(["low", "mid", "high"])

    def predict_proba(self, rows):
        logits = np.column_stack([np.full(len(rows), 3.5), level(rows), 1.8 * level(rows) - 4])
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def values():
    """Explanations of values."""
    return LimisExplainer(level, **FEW).fit(jobs()).explain(jobs(30, seed=1))


@pytest.fixture(scope="module")
def chances():
    """Explanations of probabilities."""
    return LimisExplainer(chance, output="probability", **FEW).fit(jobs()).explain(jobs(40, seed=1))


@pytest.fixture(scope="module")
def classes():
    """Explanations of three classes."""
    return LimisExplainer(Classes(), **FEW).fit(jobs()).explain(jobs(25, seed=1))


@pytest.fixture(scope="module")
def labels():
    """Explanations of labels, for which there is no model."""
    frame = jobs()
    said = np.where(level(frame) > 4, "yes", "no")
    return LimisExplainer(**FEW).fit(frame, said).explain(jobs(25, seed=1))


@pytest.fixture(params=["values", "chances", "classes", "labels"])
def found(request):
    return request.getfixturevalue(request.param)


# --- every face -------------------------------------------------------------------------------------------------------


def test_no_face_says_what_is_true_of_slopes_alone(found):
    faces = {"text": str(found[0]), "card": read(found[0]._repr_html_()).text, "page": read(found.to_html()).text}
    for face, told in faces.items():
        assert [words for words in OF_SLOPES if words in told] == [], face


def test_text_tells_the_prediction_what_values_do_what_if_and_who_speaks(values):
    told = str(values[0])
    numbers = Numbers.of(values.training)
    assert f"The model      {numbers.show(values[0].model_output)}" in told
    largest = values[0].reasons()[0]
    assert f"{largest.words} " in told
    assert numbers.signed(largest.contribution) in told
    assert " instead of " in told
    assert "Who speaks" in told
    assert "Trust it?" in told
    assert repr(values[0]) == f"<explanation of row 0, {'' if values[0].trusted else 'not '}trusted>"


def test_columns_that_are_one_are_one_reason(values):
    one = values[0]
    reason = next(reason for reason in one.reasons() if "city" in reason.columns)
    assert reason.columns == ["city", "code"]
    assert reason.contribution == pytest.approx(one.contributions["city"] + one.contributions["code"])


def test_what_ifs_are_read_off_the_curves(values):
    one, numbers = values[2], Numbers.of(values.training)
    told = what_ifs(curves_of(one), numbers, numbers.show)
    assert 0 < len(told) <= 4
    for line in told:
        curve = one.curve(line.column)
        furthest = curve.loc[curve["change"].abs().idxmax()]
        assert line.said == numbers.show(furthest["output"])
        assert line.ends == f"{numbers.show(furthest['low'])} to {numbers.show(furthest['high'])}"
        assert f"with {line.column} {line.value} instead of {line.own} it would say {line.said}" in str(line)
        assert line.value != line.own


def test_pairs_are_told_where_they_do_more_than_their_curves(values):
    numbers = Numbers.of(values.training)
    told = {frozenset(pair[:2]) for one in values for pair in pairs_told(one, numbers)}
    assert frozenset(("hours", "city / code")) in told
    assert frozenset(("pay", "kind")) not in told


def test_reasons_that_are_not_told_are_told_together():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 14)), columns=[f"column {j}" for j in range(14)])
    found = LimisExplainer(lambda rows: np.asarray(rows).sum(axis=1), **FEW).fit(X).explain(X[:2])
    for told in (str(found[0]), read(found[0]._repr_html_()).text):
        assert "other columns" in told
        assert "all training rows" in told


# --- drawings ---------------------------------------------------------------------------------------------------------


def test_a_card_draws_the_leading_curves_with_the_own_value_marked(values):
    html = cards(values[:1], total=1)
    assert html.count("<figure>") == html.count('<svg class="limis-curve"') == 3
    assert html.count('class="limis-here"') == 3
    assert html.count("<desc>") == 3
    assert html.count('class="limis-band"') >= 1
    page = read(html)
    assert "as in this row" in page.text
    assert "&lt;b&gt;clerk&lt;/b&gt;" in values.to_html()


def test_numbers_are_lines_levels_are_dots_and_what_is_missing_stands_beside(values):
    numbers = Numbers.of(values.training)
    gaps = np.isnan(values.values[:, 1])
    for row in (int(np.flatnonzero(gaps)[0]), int(np.flatnonzero(~gaps)[0])):
        one = values[row]
        some = [curve for curve in curves_of(one) if curve.name in ("pay", "kind", "since")]
        drawn = {own.column: own for own in drawings(some, one.reasons(), numbers, numbers.show)}
        assert set(drawn) == {"pay", "kind", "since"}
        for name, drawing in drawn.items():
            known = one.curve(name)
            if name == "kind":
                assert drawing.line == ""
                assert drawing.dots.count("h0") == len(known) - 1
                assert [own for _, _, own in drawing.names].count(True) == 1
            else:
                assert 1 <= drawing.line.count("L") < known["value"].notna().sum()
                assert drawing.dots == "" or name == "pay"
        # A missing number has no place on the line, and stands to the right of all that have one.
        assert (drawn["pay"].own[0] == 250) == bool(gaps[row])
        assert drawn["pay"].dots.startswith("M250") == (not gaps[row])
        assert drawn["pay"].ends[-1] == (260, "missing")


def test_a_line_is_drawn_with_no_more_points_than_can_be_seen():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 250, 40))
    for y in (np.cumsum(rng.normal(0, 2, 40)), 3 + x / 4, np.repeat([10.0, 90.0], 20)):
        kept = _bends(x, y)
        np.testing.assert_allclose(np.interp(x, x[kept], y[kept]), y, atol=0.7)
    assert _bends(x, 3 + x / 4) == [0, 39]


def test_dates_have_curves_with_dates_on_them(values):
    one = values[0]
    curve = next(curve for curve in curves_of(one) if curve.name == "since")
    assert all(word.startswith("202") for word in curve.words)
    assert np.all(np.diff(curve.places) > 0)


# --- data -------------------------------------------------------------------------------------------------------------


def test_json_has_every_value_of_every_curve(found):
    told = json.loads(found.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    cases = told if "classes" not in told[0] else [one for case in told for one in case["classes"]]
    parts = [found] if hasattr(found, "fits") else found.parts
    for place, case in enumerate(cases[:3]):
        frame = parts[place % len(parts)][place // len(parts)].curve_frame()
        assert [curve["column"] for curve in case["curves"]] == list(dict.fromkeys(frame["column"]))
        lines = [line for curve in case["curves"] for line in curve["values"]]
        assert all(set(line) == {"value", "output", "low", "high", "own"} for line in lines)
        np.testing.assert_array_equal([line["output"] for line in lines], frame["output"])
        assert [line["own"] for line in lines] == frame["own"].tolist()
        missing = frame["value"].isna().to_numpy()
        assert [line["value"] is None for line in lines] == missing.tolist()
        assert all(set(pair) == {"first", "second", "value"} for pair in case["interactions"])
        assert case["reference"] == "all training rows"
        assert "neighbourhood_shift" not in case


def test_frames_have_no_level_of_a_neighbourhood(found):
    frame = found.to_frame()
    assert "neighbourhood_shift" not in frame
    assert {"local_prediction", "base_value", "contribution: hours"} <= set(frame)
    one = found[0]
    with pytest.raises(InputError, match="no level of a neighbourhood"):
        _ = one.neighbourhood_shift


def test_probabilities_stay_between_0_and_1(chances):
    frame = chances.curves
    ends = frame[["output", "low", "high"]]
    assert ends.min(axis=None) == 0
    assert ends.max(axis=None) == 1
    assert (frame["low"] <= frame["output"]).all()
    assert (frame["output"] <= frame["high"]).all()
    own = chances.local_predictions.loc[frame["row"]].to_numpy()
    np.testing.assert_allclose(frame["change"], frame["output"] - own, atol=1e-12)
    rows = jobs(60, seed=3)
    said = np.array([one.predict(rows) for one in chances])
    assert said.min() == 0
    assert said.max() == 1
    one = chances[int(chances.model_outputs.argmax())]
    changed = pd.concat([chances.frame.iloc[[one.row]]] * len(one.curve("hours")))
    changed["hours"] = one.curve("hours")["value"].astype(int).to_numpy()
    np.testing.assert_allclose(one.predict(changed), one.curve("hours")["output"], atol=1e-9)


def test_logits_go_where_they_like():
    found = LimisExplainer(Chances(), output="logit", **FEW).fit(jobs(300)).explain(jobs(5, seed=1))
    assert found.curves["output"].max() > 1
    assert found.curves["low"].min() < 0
    assert "%" in str(what_ifs(curves_of(found[0]), Numbers(2), lambda logit: f"{logit:.0%}")[0])
    assert "logit" in str(found[0])


class Chances:
    """A classifier of two classes."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows):
        second = 1 / (1 + np.exp(3.5 - level(rows)))
        return np.column_stack([1 - second, second])


# --- a stand-in -------------------------------------------------------------------------------------------------------


def test_curves_of_a_stand_in_are_marked_in_every_face(labels):
    assert not labels.fidelity["trusted"].any()
    assert all("stand-in" in doubts[0] for doubts in labels.fidelity["doubts"])
    assert labels.curves[["low", "high"]].isna().all(axis=None)
    told = json.loads(labels.to_json())
    assert all(case["stand_in"] for case in told)
    assert all(line["low"] is None for case in told for curve in case["curves"] for line in curve["values"])
    assert "stand-in" in str(labels[0])
    assert "(" not in str(what_ifs(curves_of(labels[0]), Numbers(2), str)[0])
    assert "stand-in" in read(labels[0]._repr_html_()).text
    assert "of a stand-in" in read(labels.to_html()).text
    assert labels.curves["output"].between(0, 1).all()
    assert labels.local_predictions.between(0, 1).all()


def test_a_stand_in_is_still_one_when_it_is_loaded_with_a_model(tmp_path):
    frame = jobs(300)
    explainer = LimisExplainer(**FEW).fit(frame, outputs=level(frame))
    explainer.save(tmp_path / "of-outputs.limis")
    found = limis.load(tmp_path / "of-outputs.limis", model=level).explain(jobs(5, seed=1))
    assert found[0].to_dict()["stand_in"] is True
    assert not found.fidelity["trusted"].any()


def test_curves_of_a_model_that_is_not_at_hand_are_no_stand_ins(values, tmp_path):
    explainer = LimisExplainer(level, **FEW).fit(jobs(300))
    explainer.save(tmp_path / "of-a-model.limis")
    found = limis.load(tmp_path / "of-a-model.limis").explain(jobs(5, seed=1))
    assert found[0].to_dict()["stand_in"] is values[0].to_dict()["stand_in"] is False
    assert "not asked" in str(found[0])
    assert "stand-in" not in str(found[0]) + read(found.to_html()).text


# --- groups, suggestions, plots ---------------------------------------------------------------------------------------


def test_groups_and_suggestions_work_with_curves(values, classes):
    groups = subgroups(values, "kind")
    assert groups.measure == "contributions"
    assert (groups.fidelity["lmae"] > 0).all()  # of what is expected without asking
    with pytest.raises(InputError, match="no coefficients"):
        subgroups(values, "kind", measure="coefficients")
    assert subgroups(classes.for_class("high"), "kind").values["hours"].gt(0).all()
    confirmed = [change for row in suggest(values[:4], "up") for change in row if change.confirmed]
    assert confirmed
    goal = next(label for label in classes.classes if label != classes.predicted.iloc[0])
    assert suggest(classes[:1], goal)[0][0].confirmed
    assert read(values.to_html(suggestions=suggest(values, "up"), by=["kind"])).text


def test_bars_of_curves_lead_from_the_reference_to_the_row(values):
    one = values[0].against("hours > 30")
    ax = one.plot("contributions")
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert "hours > 30" in names[0]
    assert names[1] == one.reasons()[0].words
    assert names[-2:] == ["the rest", "this row"]
    last = ax.patches[-1]
    ends = last.get_x(), last.get_x() + last.get_width()
    assert min(abs(end - one.model_output) for end in ends) < 1e-9


# --- the command and the server ---------------------------------------------------------------------------------------


def test_the_command_writes_curves(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = small("classification")
    frame, target = data.frame, data.target
    frame.head(6).to_csv("rows.csv", index=False)
    LimisExplainer(train_default_model(frame, target, 0), **FEW).fit(frame).save("x.limis")
    for name in ("out.parquet", "out.csv", "out.json", "out.html"):
        assert main(["explain", "x.limis", "rows.csv", "-o", name, "--quiet"]) == 0
    table = pd.read_parquet("out.parquet")
    told = json.loads((tmp_path / "out.json").read_text())
    for row in range(6):
        assert [curve["column"] for curve in table["curves"][row]] == [one["column"] for one in told[row]["curves"]]
        outputs = [line["output"] for curve in table["curves"][row] for line in curve["values"]]
        assert outputs == [line["output"] for curve in told[row]["curves"] for line in curve["values"]]
    assert not {"curves", "neighbourhood_shift"} & set(pd.read_csv("out.csv"))
    capsys.readouterr()
    assert main(["explain", "x.limis", "rows.csv"]) == 0
    text = capsys.readouterr().out
    assert text.count("What if") == 6
    assert [words for words in OF_SLOPES if words in text] == []


@pytest.mark.parametrize("several", [False, True], ids=["one output", "classes"])
def test_the_server_tells_curves(several, serving):
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("fastapi")
    from limis.serve import make_app, schema

    explainer = LimisExplainer(Classes() if several else level, **FEW).fit(jobs(300))
    rows = jobs(4, seed=1)
    row = {"hours": 20, "pay": None, "kind": "nurse", "since": "2021-01-01", "city": "Oslo", "code": 10}
    with serving(make_app(explainer, rows, "rows")) as address, httpx.Client(base_url=address, timeout=60) as client:
        told = client.post("/api/explain", json={"rows": [row]})
        assert told.status_code == 200, told.text
        answer = schema.Explained.model_validate(told.json()).explanations[0]
        for one in answer.classes or [answer]:
            names = [curve.column for curve in one.curves]
            assert "hours" in names
            assert one.stand_in is False
            assert one.neighbourhood_shift is None
        changed = client.post("/api/what-if", json={"row": row, "changes": {"hours": 50}}).json()
        assert changed["foreseen_before"] == pytest.approx(changed["model_output_before"])
        assert abs(changed["foreseen_after"] - changed["model_output_after"]) < 1.5
        assert (
            client.post("/api/suggest", json={"rows": [row], "target": "low" if several else "down"}).status_code == 200
        )
        page = client.get("/tables/rows/rows/1", params={"f0": "55"})
        assert page.text.count('limis-curve"') >= 3
        assert "local model" not in page.text.replace("the local model misses", "")
        listed = client.get("/tables/rows")
        assert "Local model" not in listed.text
        groups = client.get("/tables/rows/groups", params={"by": "kind"} | ({"class": "high"} if several else {}))
        assert groups.status_code == 200
        assert "coefficients" not in groups.text
