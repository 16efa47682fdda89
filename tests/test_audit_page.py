"""The page of an audit: whole by itself, everything escaped, what is not known left out."""

import re

import numpy as np
import pandas as pd
import pytest
from html_pages import read

import limis

BAD = '<b>&"x'
METHODS = ("the model", "always wrong", f"shares {BAD}")


def model(rows):
    rows = pd.DataFrame(rows)
    return rows[BAD].to_numpy(dtype=float) + 2 * rows["b"].to_numpy(dtype=float)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    found = pd.DataFrame(rng.normal(size=(330, 3)), columns=[BAD, "b", "c"])
    return found.assign(sex=np.where(np.arange(330) % 2, "<i>f", "m"))


@pytest.fixture(scope="module")
def audit(rows):
    asked = rows[300:330]
    shares = pd.DataFrame({name: np.ones(len(asked)) for name in rows}, index=asked.index)
    explainer = limis.LimisExplainer(model, random_state=0).fit(rows[:300])
    explained = explainer.explain(asked)
    given = {
        "the model": model,
        "always wrong": lambda frame: -3 * model(frame),
        f"shares {BAD}": shares,
        "limis": explained,
    }
    return limis.audit(
        model,
        rows[:300],
        asked,
        given,
        again={"limis": {f"again {BAD}": explained}},
        groups={f"one {BAD}": [BAD, "c"]},
        sensitive=["sex"],
        max_questions=30_000,
    )


@pytest.fixture(scope="module")
def html(audit):
    return audit.to_html(title=f"Audit of {BAD}")


@pytest.fixture(scope="module")
def of_a_function(rows):
    return limis.audit(model, rows[:300], rows[300:330], {"the model": model}, max_questions=30_000)


def test_page_is_whole_by_itself(html):
    read(html)  # known elements only, no handlers, no links out of the page
    assert "<script" not in html
    assert "http://" not in html
    assert "https://" not in html


def test_names_and_values_are_escaped(html):
    found = read(html)
    assert "<b>&" not in html
    assert "<i>f" not in html
    for name in (f"Audit of {BAD}", f"shares {BAD}", f"again {BAD}", f"one {BAD} ({BAD}, c)", "sex = <i>f"):
        assert name in found.text


def test_unknown_numbers_are_left_out(audit, html):
    assert audit.skills["precision"].isna().any()  # there is something to leave out
    assert not re.search(r"\b(nan|none|inf)\b", read(html).text, flags=re.IGNORECASE)


def test_every_method_and_sentence_is_told(audit, html):
    text = read(html).text
    assert {*METHODS, "limis", "nothing changes", "blind answer"} == set(audit.methods)
    for words in (*audit.methods, *audit.summary()):
        assert words in text


def test_drawings_of_changes_promises_and_reasons(html):
    found = read(html)
    assert html.count('class="limis-panel"') == 8  # a law each: ranges; promises by range and by fifths; group sizes
    assert "Skill on single changes, by range" in found.text
    assert "promised: 95.0%" in found.text
    assert "Skill of reasons, by size of the group" in found.text


def test_skill_below_the_drawing_is_written_beneath(audit, html):
    worst = audit.table("single").loc[("always wrong", "A"), "any"]
    assert worst == pytest.approx(-15)  # 1 − (1 + 3)²
    assert "limis-clipped" in html
    assert html.count("−15.00</text>") == 2 * audit.table("single").shape[1]


def test_tables_name_law_and_range(html):
    text = read(html).text
    for words in ("Single changes", "Joint changes", "The strongest column", "At the row", "Trust", "Stability"):
        assert words in text
    for words in ("Promises kept: all rows", "Promises kept: by trust", "Promises kept: sensitive groups"):
        assert words in text
    assert "nearest 10" in text
    assert "Skill in probability" not in text  # the model is no classifier
    assert "decision threshold" not in text


def test_crossing_the_threshold_is_told_of_a_classifier(rows):
    def probability(frame):
        return 1 / (1 + np.exp(-model(frame)))

    given = {"the model": model}
    found = limis.audit(probability, rows[:300], rows[300:330], given, output="logit", max_questions=30_000)
    text = read(found.to_html()).text
    for words in ("Skill in probability", "Recall of crossings", "Precision of crossings"):
        assert words in text


def test_audit_without_bounds_has_no_promises(of_a_function):
    html = of_a_function.to_html()
    text = read(html).text
    assert html.count('class="limis-panel"') == 4
    assert "promised" not in text.replace("fewer rows than promised", "")
    for words in ("Promises kept", "Called trusted", "Asked again", "The strongest column"):
        assert words not in text
    assert "The method does at least as well as knowing nothing" in text


def test_audit_of_attributions_alone_has_no_changes(rows):
    asked = rows[300:330]
    shares = pd.DataFrame({name: np.ones(len(asked)) for name in rows}, index=asked.index)
    html = limis.audit(model, rows[:300], asked, {"shares": shares}, max_questions=30_000).to_html()
    text = read(html).text
    assert html.count('class="limis-panel"') == 2
    assert "Single changes" not in text
    assert "1 of 1 method does worse than knowing nothing" in text


def test_page_of_a_model_that_never_moves(rows):
    found = limis.audit(
        lambda frame: np.zeros(len(frame)), rows[:300], rows[300:330], {"m": model}, max_questions=30_000
    )
    text = read(found.to_html()).text
    assert "Nothing could be measured" in text
    assert not re.search(r"\bnan\b", text, flags=re.IGNORECASE)
