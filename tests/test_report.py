import copy
import dataclasses

import numpy as np
import pandas as pd
import pytest
from html_pages import read
from hypothesis import given, settings
from hypothesis import strategies as st

from limis import Explanations, InputError, LimisExplainer
from limis.local_view import FIXED, UNKNOWN_HERE, Reason
from limis.report import cards, page, write_text
from limis.report.chart import bars
from limis.report.curves import curves_of, what_ifs
from limis.report.words import MINUS, Numbers, printable

NASTY = "<script>alert(1)</script>"
FEW = {"max_questions": 2000, "n_jobs": 1}  # too few for a bound on the error on changes


def mixed_frame(n_rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows),
            "income": rng.normal(3e4, 1e4, n_rows).round(2),
            "city": rng.choice(["Oslo", "Bergen", "Tromsø"], n_rows, p=[0.6, 0.3, 0.1]),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D"),
            "planet": "Earth",
        }
    )


def value_of(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["city"] == "Oslo", frame["age"] / 10, 3 + frame["income"] / 1e4).astype(float)


class Classifier:
    classes_ = np.array(["<low>", '"high" & more'])
    feature_names_in_ = np.array(["age", "income", "city", "since", "planet"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        share = 1 / (1 + np.exp(5 - value_of(frame)))
        return np.column_stack([1 - share, share])

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.classes_[(value_of(frame) > 5).astype(int)]


def unlike_training() -> pd.DataFrame:
    return mixed_frame().iloc[:1].assign(city="Atlantis", age=400)


@pytest.fixture(scope="module")
def regression() -> Explanations:
    frame = mixed_frame()
    found = LimisExplainer(value_of).fit(frame)
    return found.explain(pd.concat([frame.iloc[:3], unlike_training()]))


@pytest.fixture(scope="module")
def ridges() -> Explanations:
    frame = mixed_frame()
    found = LimisExplainer(value_of, surrogate="ridge").fit(frame)
    return found.explain(pd.concat([frame.iloc[:3], unlike_training()]))


@pytest.fixture(scope="module")
def classification() -> Explanations:
    frame = mixed_frame()
    return LimisExplainer(Classifier(), output="logit", **FEW).fit(frame).explain(frame.iloc[:3])


@pytest.fixture(scope="module")
def labels() -> Explanations:
    frame = mixed_frame()
    y = np.where(value_of(frame) > 5, "yes", "no")
    return LimisExplainer(**FEW).fit(frame, y).explain(frame.iloc[:2])


@pytest.fixture(scope="module")
def many_columns() -> Explanations:
    X = np.random.default_rng(0).normal(size=(300, 80))
    return LimisExplainer(lambda rows: rows[:, 0] * 2 - rows[:, 1], surrogate="ridge").fit(X).explain(X[:2])


def with_(found: Explanations, **training) -> Explanations:
    """The same explanations with other fields of their training rows."""
    other = copy.copy(found.training)
    for name, value in training.items():
        setattr(other, name, value)
    return dataclasses.replace(found, training=other)


def renamed(found: Explanations, names: list[str], city: str) -> Explanations:
    """The same explanations with other column names, and another word for Oslo."""
    table = found.training.table
    frames = []
    for frame in (found.frame, found.training.frame):
        other = frame.assign(city=frame["city"].replace("Oslo", city))
        frames.append(other.set_axis(names, axis=1))
    columns = [
        dataclasses.replace(
            column, name=name, sources=[name], levels=[city if level == "Oslo" else level for level in column.levels]
        )
        for column, name in zip(table.columns, names, strict=True)
    ]
    table = dataclasses.replace(table, columns=columns, source_names=names)
    return dataclasses.replace(with_(found, table=table, frame=frames[1]), frame=frames[0])


def test_a_page_is_one_document_that_loads_nothing(regression):
    html = page(regression, title="Prices")
    found = read(html)
    assert html.lstrip().startswith("<!DOCTYPE html>")
    assert found.tags.count("article") == len(regression)
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert not any(word in html.replace("http-equiv", "") for word in ("http", "url(", "@import"))


def test_the_head_says_what_was_explained_and_what_it_is_not(regression, classification, labels):
    text = read(page(regression, title="Prices & more")).text
    assert "Prices & more" in text
    assert "4 explained" in text
    assert f"{int(regression.fidelity['trusted'].sum())} of 4 trusted" in text
    assert "describe the model; they are not causes and not ground truth" in text
    assert "in its own units" in text
    text = read(page(classification, title="t")).text
    assert 'logits (log-odds) of "high" & more, the class that counts as 1 against <low>' in text
    assert "1 for yes and 0 for no" in read(page(labels, title="t")).text


@pytest.mark.parametrize(
    ("box", "words"),
    [
        ({"clipped_share": 0.02}, "kept 0.001 away from 0 and 1 for 2.0% of the training rows"),
        ({"classes": None}, "of class 1, the class that counts as 1 against class 0"),
        ({"scale": "probability", "reads": "probabilities"}, 'Numbers are probabilities of "high" & more'),
    ],
)
def test_the_head_tells_what_the_numbers_are(classification, box, words):
    box = dataclasses.replace(classification.training.black_box, **box)
    text = read(page(with_(classification, black_box=box), title="t")).text
    assert words in text
    assert ("logit" in text) == (box.scale == "logit")


def test_a_fragment_says_how_many_of_all_are_shown(regression):
    html = cards(regression[:2], total=40)
    found = read(html)
    assert "<html" not in html
    assert found.tags.count("article") == 2
    assert "2 of 40 explanations are shown" in found.text
    assert "not causes and not ground truth" in found.text
    assert "explanations are shown" not in read(cards(regression[:1], total=1)).text
    assert "All 4 explanations are shown" in read(cards(regression, total=4)).text


def test_notebooks_draw_explanations(regression):
    assert read(regression._repr_html_()).tags.count("article") == 4
    assert read(regression[1]._repr_html_()).tags.count("article") == 1
    assert read(regression[:0]._repr_html_()).tags.count("article") == 0


def luminance(colour: str) -> float:
    """Of a colour such as #1c2128, as WCAG defines it."""
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_of_words_is_legible_on_a_card_and_on_the_page(regression, scheme):
    style = cards(regression[:1], total=1)
    own = next(part for part in style.split("{") if f"color-scheme:{scheme}" in part).split("}")[0]
    colours = dict(pair.strip().split(":") for pair in own.split(";") if "#" in pair)
    for words in ("--ink", "--soft", "--raise", "--good", "--bad"):
        for ground in ("--card", "--page"):
            high, low = sorted([luminance(colours[words]), luminance(colours[ground])], reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5  # what WCAG asks of text


def test_a_card_tells_the_numbers_of_its_explanation(ridges):
    one = ridges[0]
    text = read(cards(ridges[:1], total=1)).text
    numbers = Numbers.of(ridges.training)
    for number in (one.model_output, one.local_prediction, one.base_value, ridges.training.overall_mean):
        assert numbers.show(number) in text
    assert numbers.signed(one.neighbourhood_shift) in text
    assert f"Row {one.label}" in text
    for reason in one.reasons():
        assert reason.words in text
        assert reason.status or numbers.signed(reason.contribution) in text
    apart = one.neighbourhood().iloc[0]
    assert f"{apart['column']}: {apart['here']}" in text
    assert f"(all rows: {apart['overall']})" in text


def test_a_card_of_curves_tells_what_other_values_would_lead_to(regression):
    one, numbers = regression[0], Numbers.of(regression.training)
    text = read(cards(regression[:1], total=1)).text
    for number in (one.model_output, regression.training.overall_mean, one.fidelity["error"]):
        assert numbers.show(number) in text
    for reason in one.reasons():
        assert reason.words in text
        assert numbers.signed(reason.contribution) in text
    told = what_ifs(curves_of(one), numbers, numbers.show)
    assert {line.column for line in told} >= {"age", "city"}
    for line in told:
        assert f"{line.value} instead of {line.own} it would say {line.said}" in " ".join(text.split())
    # They stand at what the black box says of the row: there is no error there to tell of.
    assert "away" not in text


def test_logits_are_told_as_probabilities_too(classification):
    text = read(cards(classification[:1], total=1)).text
    output = classification[0].model_output
    assert f"{1 / (1 + np.exp(-output)):.1%}" in text
    assert f"logit {Numbers.of(classification.training).show(output)}" in text
    assert "towards <low>" in text


def test_without_outputs_nothing_is_said_of_the_black_box(labels):
    text = read(cards(labels, total=2)).text
    assert labels.outputs is None
    assert "the black box says" not in text
    assert "the stand-in’s prediction" in text
    assert "Label" in text
    assert "how good explanations are was not measured" in text


def test_fixed_and_unknown_are_named_and_never_called_no_effect(ridges):
    assert ridges[3].status["city"] == UNKNOWN_HERE
    assert ridges[3].status["planet"] == FIXED
    text = read(cards(ridges[3:], total=1)).text
    assert "fixed here" in text
    assert "so its effect cannot be seen" in text
    assert "planet = Earth" in text
    assert "no comparable row has this value" in text
    assert "city = Atlantis" in text
    assert "no effect" not in text


def test_trust_in_curves_comes_with_what_is_expected_and_promised(regression):
    text = read(cards(regression[:1], total=1)).text
    assert "✓ trusted" in text
    assert f"expected to foresee {regression.fidelity['foresight'].iloc[0]:.0%} of what changes" in text
    assert regression.trust.promise in text
    never = dataclasses.replace(regression.trust, cutoff=-np.inf)
    text = read(cards(dataclasses.replace(regression, trust=never)[3:], total=1)).text
    assert "✕ not trusted" in text
    assert "too near the worst that is promised" in text
    assert "city has a value never seen in training" in text
    assert "age is above all training rows" in text


def test_trust_in_ridges_comes_with_bound_tolerance_and_doubts(ridges):
    numbers = Numbers.of(ridges.training)
    trusting = dataclasses.replace(ridges, tolerance=1e6)
    text = read(cards(trusting[:1], total=1)).text
    assert "✓ trusted" in text
    assert f"at most {numbers.show(ridges.fidelity['change_error_bound'].iloc[0])} (with 95% confidence)" in text
    assert f"within the tolerance of {numbers.show(1e6)}" in text
    text = read(cards(dataclasses.replace(ridges, tolerance=0.0)[3:], total=1)).text
    assert "✕ not trusted" in text
    assert "above the tolerance of 0" in text
    assert "city has a value never seen in training" in text
    assert "age is above all training rows" in text
    out_of_range = read(cards(trusting[3:], total=1)).text
    assert "Not trusted" in out_of_range
    assert "within the tolerance" in out_of_range


def test_training_rows_that_count_most_are_a_table_with_headers(ridges):
    one = ridges[0]
    found = read(cards(ridges[:1], total=1))
    scopes = [value for name, value in found.attributes if name == "scope"]
    effects = found.text.count(" for each ")
    assert scopes.count("col") == 3 + 4 + 3
    assert scopes.count("row") >= 4 + 6 + effects
    assert "This row" in found.text
    for label in one.training_rows(k=5).index:
        assert f"\n{label}" in found.text
    for weight in (one.weights / one.weights.sum()).iloc[:5]:
        assert f"{weight:.1%}" in found.text


def test_bars_can_be_heard_and_told_apart_without_colour(ridges):
    html = cards(ridges[:1], total=1)
    found = read(html)
    n_bars = found.tags.count("svg")
    reasons = ridges[0].reasons()
    contributions = [reason.contribution for reason in reasons]
    assert n_bars == len(contributions)
    unseen = [reason.columns for reason in reasons if reason.status]
    assert ["planet"] in unseen  # always Earth
    assert found.attributes.count(("aria-label", "effect not seen")) == len(unseen)
    assert found.attributes.count(("role", "img")) == n_bars
    assert found.attributes.count(("aria-label", "lowers it")) == sum(value < 0 for value in contributions)
    assert html.count('fill="#fdf1e7"') == sum(value < 0 for value in contributions)


def test_coefficients_of_dates_are_told_in_days():
    frame = mixed_frame()
    later = LimisExplainer(lambda rows: (rows["since"] - pd.Timestamp("2020-01-01")).dt.days / 100, surrogate="ridge")
    later.fit(frame)
    assert "+1.00 for each 100 days later" in read(cards(later.explain(frame.iloc[:1]), total=1)).text


def test_many_columns_are_summed_into_one_bar(many_columns):
    found = read(cards(many_columns[:1], total=1))
    assert found.tags.count("svg") == 8
    reasons = many_columns[0].reasons()
    others = sum(len(reason.columns) for reason in reasons[7:])
    assert f"{others} other columns" in found.text
    total = sum(reason.contribution for reason in reasons[7:])
    assert Numbers.of(many_columns.training).signed(total) in found.text


def test_a_script_in_a_name_a_level_a_label_or_a_title_is_text(regression):
    found = renamed(regression, [NASTY, "b\"'>", "c", "d", "e"], city='<img src=x onerror="alert(2)">')
    found.frame.index = pd.Index([NASTY, "1", "2", "3"])
    html = page(found, title=NASTY)
    assert "<script" not in html
    assert "<img" not in html
    seen = read(html)
    assert f"Row {NASTY}" in seen.text
    assert f"{NASTY} =" in seen.text
    assert '<img src=x onerror="alert(2)">' in seen.text


@settings(max_examples=40)
@given(
    names=st.lists(st.text(min_size=1, max_size=120), min_size=5, max_size=5, unique=True),
    city=st.text(min_size=1, max_size=120).filter(lambda text: text not in ("Bergen", "Tromsø")),
    title=st.text(),
)
def test_any_name_comes_out_as_text(regression, names, city, title):
    found = renamed(regression, names, city)
    seen = read(page(found, title=title))
    everything = seen.text + "\n".join(seen.titles)
    for name in names:
        assert printable(name) in everything
    assert printable(title) in everything


def test_characters_that_are_not_text_are_replaced(regression, tmp_path):
    found = renamed(regression, ["a\x00b", "c\x85", "d\u202e", "\x1b[31m", "e"], city="Oslo")
    html = page(found, title="t\x07\ud800")
    read(html)
    write_text(tmp_path / "page.html", html)
    assert not set("\x00\x07\x1b\ud800\u202e") & set(html)


def test_long_names_are_cut_with_the_whole_in_the_title(ridges):
    long = "very long name " * 40
    found = renamed(ridges, [long, "b", "c", "d", "e"], city="x" * 500)
    seen = read(page(found, title="t"))
    assert "very long name very lon…" in seen.text  # the head of a table's column
    assert any(title.startswith(long) for title in seen.titles)


@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1e6, 1e18])
def test_tiny_and_huge_outputs_stay_short(factor):
    frame = mixed_frame()
    found = LimisExplainer(lambda rows: factor * value_of(rows), **FEW).fit(frame).explain(frame.iloc[:1])
    numbers = Numbers.of(found.training)
    shown = numbers.show(found[0].model_output)
    assert len(shown) <= 12
    assert float(shown.replace(",", "").replace(MINUS, "-")) == pytest.approx(found[0].model_output, rel=0.01)
    assert shown in read(page(found, title="t")).text


def test_rounding_errors_are_not_drawn_as_long_bars():
    reasons = [Reason(["a"], "a = 1", 1e-9, ""), Reason(["b"], "b = 2", -0.5e-9, "")]
    assert all(bar.length < 0.1 for bar in bars(reasons, None, Numbers(2), least=0.1))
    assert [bar.length for bar in bars(reasons, None, Numbers(2), least=0.0)] == [50, 25]


def test_a_constant_black_box_is_drawn():
    frame = mixed_frame(60)
    found = LimisExplainer(lambda rows: np.full(len(rows), 7.0)).fit(frame).explain(frame.iloc[:1])
    assert "7.00" in read(page(found, title="t")).text


def test_a_row_without_weights_says_so(ridges):
    fits = dataclasses.replace(ridges.fits, weights=ridges.fits.weights * 0, empty=np.ones(4, dtype=bool))
    fits.weights.eliminate_zeros()
    text = read(page(dataclasses.replace(ridges, fits=fits), title="t")).text
    assert "no training row counts as like this one" in text
    assert "fewer than two training rows had weight, so this is the global model" in text
    assert "What it rests on" not in text


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "page.html"
    write_text(path, "old")
    write_text(str(path), "Tromsø")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "Tromsø"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(InputError, match=r"folder .*nowhere.* does not exist"):
        write_text(tmp_path / "nowhere" / "page.html", "x")
    with pytest.raises(InputError, match="it is a folder"):
        write_text(tmp_path, "x")


def test_to_html_writes_what_it_returns(regression, tmp_path):
    html = regression.to_html(tmp_path / "page.html", title="Mine")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == html
