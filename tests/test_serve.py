"""Pages and REST answers, asked as a browser or a program would."""

import csv
import html
import io
import json
import re
import threading
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from limis import LimisExplainer
from limis.errors import InputError

pytest.importorskip("fastapi")
import httpx

from limis.serve import Settings, make_app
from limis.serve.schema import Answer

MARKUP = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'
PAY = f"pay {MARKUP}"
ROW = {"age": 44, PAY: 1.5, "job": "clerk", "member": True, "since": "2021-05-01"}


@pytest.fixture(scope="module")
def client_for(serving):
    @contextmanager
    def client_of(explainer=None, rows=None, settings=None, app=None):
        with (
            serving(app or make_app(explainer, rows, "rows.csv", settings)) as address,
            httpx.Client(base_url=address, follow_redirects=True, timeout=60) as client,
        ):
            yield client

    return client_of


@pytest.fixture(scope="module")
def client(client_for, served_explainer, served_rows):
    with client_for(served_explainer, served_rows) as client:
        _wait_until_explained(client, "rows")
        yield client


def _wait_until_explained(client, key):
    end = time.monotonic() + 60
    while "data-unfinished" in client.get(f"/tables/{key}").text:
        assert time.monotonic() < end, "the rows were not explained in a minute"
        time.sleep(0.05)


# --- REST -------------------------------------------------------------------------------------------------------


def test_explain_answers_what_the_explainer_says(client, served_explainer, served_rows):
    frame = served_rows.iloc[[3, 7]].reset_index(drop=True)
    rows = json.loads(frame.assign(since=frame["since"].astype(str)).to_json(orient="records"))
    told = client.post("/api/explain", json={"rows": rows}).json()["explanations"]
    expected = served_explainer.explain(frame)
    assert [one["row"] for one in told] == [0, 1]
    np.testing.assert_allclose([one["model_output"] for one in told], expected.model_outputs)
    for row, one in enumerate(told):
        np.testing.assert_allclose(list(one["contributions"].values()), expected.contributions.iloc[row])
        second = 1 / (1 + np.exp(-expected.model_outputs.iloc[row]))
        assert one["prediction"]["probability"] == pytest.approx(max(second, 1 - second))


def test_what_if_tells_the_black_box_the_rows_own_model_and_the_new_explanation(client, served_explainer):
    told = client.post("/api/what-if", json={"row": ROW, "changes": {"age": 60, "job": IMAGE}}).json()
    frame = pd.DataFrame([ROW]).assign(since=pd.Timestamp("2021-05-01"))
    changed = frame.assign(age=60, job=IMAGE)
    own, new = served_explainer.explain(frame)[0], served_explainer.explain(changed)[0]
    assert told["model_output_before"] == pytest.approx(own.model_output)
    assert told["model_output_after"] == pytest.approx(new.model_output)
    assert told["foreseen_after"] == pytest.approx(float(own.predict(changed)[0]))
    assert told["explanation_after"]["local_prediction"] == pytest.approx(new.local_prediction)
    assert told["prediction_after"]["class"] == f"yes {MARKUP}"


def test_neighbours_are_training_rows_with_weights(client, served_explainer):
    (told,) = client.post("/api/neighbours", json={"rows": [ROW], "k": 4}).json()["neighbours"]
    assert len(told) == 4
    weights = [one["weight"] for one in told]
    assert weights == sorted(weights, reverse=True)
    assert told[0]["values"]["age"] == str(served_explainer.training_.frame["age"].iloc[told[0]["position"]])


def test_suggest_is_checked_on_the_model_and_keeps_what_may_not_change(client):
    low = {**ROW, "age": 20, "job": "clerk", PAY: -2.0, "member": False}
    body = {"rows": [low], "immutable": ["age", "since"], "n": 2}
    (told,) = client.post("/api/suggest", json=body).json()["suggestions"]
    assert told["suggestions"]
    for one in told["suggestions"]:
        assert {change["column"] for change in one["changes"]} <= {PAY, "job", "member"}
        assert one["probability_after"] > 0.5


def test_rows_that_have_the_target_already_say_so(client):
    high = {**ROW, "age": 79, "job": IMAGE, PAY: 4.0}
    answer = client.post("/api/suggest", json={"rows": [high], "target": f"yes {MARKUP}"})
    assert answer.status_code == 200
    assert answer.json()["suggestions"][0]["reason"] == "it has the target already"


def test_many_rows_are_answered_in_their_order(client, served_explainer, served_rows):
    frame = pd.concat([served_rows, served_rows], ignore_index=True)
    rows = json.loads(frame.assign(since=frame["since"].astype(str)).to_json(orient="records"))
    told = client.post("/api/explain", json={"rows": rows}).json()["explanations"]
    assert [one["row"] for one in told] == list(range(240))
    expected = served_explainer.explain(frame).local_predictions
    np.testing.assert_allclose([one["local_prediction"] for one in told], expected)
    near = client.post("/api/neighbours", json={"rows": rows, "k": 1}).json()["neighbours"]
    assert [len(one) for one in near] == [1] * 240


def test_metadata_tells_columns_classes_and_limits(client):
    told = client.get("/api/metadata").json()
    assert [column["name"] for column in told["columns"]] == list(ROW)
    assert told["classes"] == ["no", f"yes {MARKUP}"]
    assert told["limits"]["rows"] == 1000
    assert client.get("/api/health").json() == {"status": "ok"}


def test_missing_values_and_new_levels_are_taken(client):
    told = client.post("/api/explain", json={"rows": [{**ROW, PAY: None, "job": "diver"}]})
    assert told.status_code == 200
    assert "job has a value never seen in training" in told.json()["explanations"][0]["fidelity"]["doubts"]


BAD_CELLS = {
    "text for a number": ({"age": "44"}, "rows.0.age"),
    "truth for a number": ({"age": True}, "rows.0.age"),
    "a list": ({"age": [44]}, "rows.0.age"),
    "a number for text": ({"job": 3}, "rows.0.job"),
    "text for truth": ({"member": "yes"}, "rows.0.member"),
    "no date": ({"since": "soon"}, "rows.0.since"),
    "a date of no calendar": ({"since": "2021-02-31"}, "rows.0.since"),
    "an unknown column": ({"agee": 44}, "rows.0.agee"),
    "a number out of reach": ({"age": 1e300}, "rows.0.age"),
}


@pytest.mark.parametrize("bad", BAD_CELLS)
def test_a_bad_cell_is_named(client, bad):
    cells, field = BAD_CELLS[bad]
    answer = client.post("/api/explain", json={"rows": [{**ROW, **cells}]})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["field"] == field
    assert answer.json()["detail"][0]["message"]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_are_refused(client, word):
    text = json.dumps({"rows": [ROW]}).replace("44", word)
    answer = client.post("/api/explain", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["field"] == "rows.0.age"


def test_a_missing_column_is_named(client):
    answer = client.post("/api/explain", json={"rows": [{name: ROW[name] for name in ROW if name != "job"}]})
    assert (answer.status_code, answer.json()["detail"][0]["field"]) == (422, "rows.0.job")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 422),
        ("{", 422),
        ("null", 422),
        ("[]", 422),
        ('{"rows": []}', 422),
        ('{"rows": {}}', 422),
        ("[" * 100_000, (400, 422)),
        ('{"rows": ' + '{"age":' * 50_000, (400, 422)),
        ('{"rows": [' + "9" * 5000 + "]}", (400, 422)),
        ('{"rows": ["\\ud800"]}', 422),
        ('{"rows": [{"\\ud800": 1}]}', 422),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_without_a_trace(client, text, status):
    answer = client.post("/api/explain", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code in (status if isinstance(status, tuple) else (status,))
    assert answer.json()["detail"][0]["message"]
    assert "Traceback" not in answer.text


def test_bytes_that_are_no_text_are_refused(client):
    answer = client.post("/api/explain", content=b"\xff\xfe{}", headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)


def test_too_many_rows_are_refused_with_the_limit(client):
    text = '{"rows": [' + ",".join(["{}"] * 1_000_000) + "]}"
    small = json.dumps({"rows": [ROW] * 1001})
    for body in (text, small):
        answer = client.post("/api/explain", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert "1,000" in answer.json()["detail"][0]["message"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"target": "maybe"}, ""),
        ({"immutable": ["agee"]}, ""),
        ({"ranges": {"age": [60, 20]}}, ""),
        ({"directions": {"age": "sideways"}}, ""),
        ({"n": 0}, "n"),
        ({"max_queries": 10**9}, "max_queries"),
        ({"wish": 1}, "wish"),
    ],
)
def test_bad_wishes_are_refused(client, more, field):
    answer = client.post("/api/suggest", json={"rows": [ROW], **more})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["field"] == field


def test_a_black_box_that_fails_gets_one_line_without_its_trace(client_for):
    def fails(rows):
        if (rows["a"] > 5).any():
            raise RuntimeError("cannot\nStack trace:\n  secret.cc:1")
        return rows["a"]

    frame = pd.DataFrame({"a": np.linspace(0, 1, 80)})
    with client_for(LimisExplainer(fails, weighting="forest").fit(frame)) as client:
        answer = client.post("/api/explain", json={"rows": [{"a": 6.0}]})
    assert answer.status_code == 422
    assert "cannot" in answer.text
    assert "secret" not in answer.text


def assert_declared(client, told):
    """Everything in an answer is in the schema, and of the type that it says."""
    declared = client.get("/openapi.json").json()["components"]["schemas"]["Answer"]["properties"]
    assert set(told) <= set(declared)
    Answer.model_validate(told, strict=True)


def test_the_schema_tells_what_an_explanation_holds(client):
    (told,) = client.post("/api/explain", json={"rows": [ROW]}).json()["explanations"]
    assert {"prediction", "values", "contributions", "curves", "fidelity"} <= set(told)
    assert_declared(client, told)


# --- pages ------------------------------------------------------------------------------------------------------


def shown_rows(page):
    return [int(row) for row in re.findall(r'/rows/(\d+)">Row', page)]


def test_rows_are_sorted_by_prediction_error_and_trust(client, served_explainer, served_rows):
    found = served_explainer.explain(served_rows)
    by_prediction = np.argsort(-found.model_outputs.to_numpy(), kind="stable")[:50].tolist()
    assert shown_rows(client.get("/tables/rows?sort=prediction&way=down").text) == by_prediction
    by_error = np.argsort(found.fidelity["error"].to_numpy(), kind="stable")[:50].tolist()
    assert shown_rows(client.get("/tables/rows?sort=error").text) == by_error
    trusted = found.fidelity["trusted"].to_numpy()
    first = shown_rows(client.get("/tables/rows?sort=trusted&way=down").text)
    assert trusted[first].tolist() == sorted(trusted, reverse=True)[:50]


def test_rows_are_filtered_and_paged(client, served_explainer, served_rows):
    found = served_explainer.explain(served_rows)
    chance = 1 / (1 + np.exp(-found.model_outputs.to_numpy()))
    trusted = found.fidelity["trusted"].to_numpy()
    wanted = np.flatnonzero(~trusted & (chance >= 0.2) & (chance <= 0.9)).tolist()
    page = client.get("/tables/rows?trust=no&low=20&high=90").text
    assert shown_rows(page) == wanted[:50]
    assert shown_rows(client.get("/tables/rows?page=3").text) == list(range(100, 120))
    assert "No row is so" in client.get("/tables/rows?low=101").text


@pytest.mark.parametrize("query", ["sort=age", "way=left", "trust=1", "low=abc", "low=nan", "page=-1", "page=x"])
def test_a_choice_that_makes_no_sense_is_refused(client, query):
    answer = client.get(f"/tables/rows?{query}")
    assert answer.status_code == 422
    assert "That did not work" in answer.text


def test_a_row_has_its_card_its_neighbours_and_a_form(client):
    page = client.get("/tables/rows/rows/5").text
    assert 'class="limis-card"' in page
    assert "Training row" in page
    assert page.count("data-own=") == len(ROW)


def test_what_if_on_a_page(client, served_explainer, served_rows):
    page = client.get("/tables/rows/rows/5/what-if?c0=71").text
    said = served_explainer.explain(served_rows.iloc[[5]].assign(age=71))
    chance = 100 / (1 + np.exp(-said.model_outputs.iloc[0]))
    assert f"{chance:.1f}%" in page
    assert "age: " in page
    assert "Row 5, changed" in page
    assert client.get("/tables/rows/rows/5/what-if").text.strip() == ""
    whole = client.get("/tables/rows/rows/5?c0=71").text
    assert "Row 5, changed" in whole
    assert 'value="71"' in whole


@pytest.mark.parametrize("query", ["c0=old", "c0=inf", "c0=1e300", "c2=99", "c2=x", "c4=soon"])
def test_a_value_that_cannot_be_is_refused_on_a_page(client, query):
    answer = client.get(f"/tables/rows/rows/5/what-if?{query}")
    assert answer.status_code == 422
    assert 'class="problem"' in answer.text


@pytest.mark.parametrize("text", ["1,5", "1_0", "1,23,456", "12,3456", ",5", "1,000,00"])
def test_a_comma_or_line_that_does_not_part_thousands_is_refused(client, text):
    answer = client.get("/tables/rows/rows/5/what-if", params={"c1": text})
    assert answer.status_code == 422
    assert "a number is expected" in answer.text


def test_commas_may_part_thousands(client):
    with_commas, without = (
        client.get("/tables/rows/rows/5/what-if", params={"c1": text}).text for text in ("-1,234.5", "-1234.5")
    )
    assert with_commas == without


def test_suggestions_lead_to_the_what_if_that_confirms_them(client, served_explainer, served_rows):
    row = int(served_explainer.explain(served_rows).model_outputs.reset_index(drop=True).idxmin())
    page = client.get(f"/tables/rows/rows/{row}/suggestions?keep=since").text
    links = re.findall(r'href="(/tables/rows/rows/\d+\?[^"#]*)#what-if"', page)
    assert links
    for link in links:
        query = link.replace("&amp;", "&").partition("?")[2]
        assert "c4=" not in query
        followed = client.get(f"/tables/rows/rows/{row}/what-if?{query}").text
        assert re.search(r"The black box predicts</th><td>no</td><td>yes", followed)


def test_groups_have_a_cell_for_every_column(client):
    page = client.get("/tables/rows/groups?by=job&sensitive=age").text
    assert len(re.findall(r'class="shade\d"', page)) == 3 * len(ROW)
    assert "job = clerk" in page
    assert client.get("/tables/rows/groups?by=nothing").status_code == 422
    assert client.get("/tables/rows/groups?by=job&measure=wishes").status_code == 422


def test_every_choice_is_sent_as_it_is_named_with_all_its_spaces(client):
    for path in ("/tables/rows", "/tables/rows/rows/1", "/tables/rows/groups?by=job"):
        page = client.get(path).text
        assert "<option value=" in page
        assert not re.search(r"<option(?! value=)", page)


def test_what_is_not_there_is_not_found(client):
    for path in (
        "/tables/other",
        "/tables/rows/rows/5000",
        "/static/other.js",
        "/nothing",
        "/tables/rows/rows/-1",
        f"/tables/rows/rows/{'9' * 5000}",
    ):
        assert client.get(path).status_code == 404


def test_names_and_values_are_text_everywhere(client, served_rows):
    upload = served_rows.head(3).assign(**{MARKUP: "=1+1", "note": IMAGE})
    moved = client.post("/tables", files={"file": (f"{MARKUP}.csv", upload.to_csv(index=False))})
    pages = [moved.text]
    paths = ["/tables/rows", "/tables/rows/rows/2?c0=33&suggest=yes", "/tables/rows/groups?by=job&sensitive=age"]
    pages += [client.get(path).text for path in [*paths, "/docs", "/upload", f"/tables/{MARKUP}"]]
    pages.append(client.get("/tables/rows/explained.html").text)
    for page in pages:
        assert MARKUP not in page
        assert "<img" not in page
    assert "&lt;script&gt;" in pages[1]


def test_every_page_forbids_what_comes_from_elsewhere_and_uses_nothing_of_it(client):
    for path in ("/tables/rows", "/tables/rows/rows/0", "/docs", "/upload", "/tables/rows/groups", "/nothing"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r'(src|href)="(https?:)?//', answer.text)
        assert not re.search(r"<style|<script(?! src=)| style=| on\w+=\"", answer.text)


# --- uploads and downloads --------------------------------------------------------------------------------------


def problem(answer):
    """What the page of a refused upload says."""
    (told,) = re.findall(r'class="problem" role="alert">(.*?)</p>', answer.text, re.DOTALL)
    return html.unescape(told)


def uploaded(client, frame, name="people.csv"):
    answer = client.post("/tables", files={"file": (name, frame.to_csv(index=False))}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    key = answer.headers["location"].rpartition("/")[2]
    _wait_until_explained(client, key)
    return key


def test_an_upload_is_explained_and_downloaded_in_every_format(client, served_explainer, served_rows):
    own = served_rows.head(12).assign(id=[f"p{i}" for i in range(12)])
    key = uploaded(client, own)
    expected = served_explainer.explain(served_rows.head(12))
    answer = client.get(f"/tables/{key}/explained.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="people-explained.csv"'
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    assert [line["id"] for line in lines] == own["id"].tolist()
    np.testing.assert_allclose([float(line["model_output"]) for line in lines], expected.model_outputs)
    told = client.get(f"/tables/{key}/explained.json").json()
    assert [one["row"] for one in told] == list(range(12))
    np.testing.assert_allclose([one["local_prediction"] for one in told], expected.local_predictions)
    page = client.get(f"/tables/{key}/explained.html").text
    assert page.count('class="limis-card"') == 12


def test_nothing_is_downloaded_before_all_rows_are_explained(client_for):
    go = threading.Event()
    go.set()

    def model(rows):
        assert go.wait(20)
        return rows["a"]

    frame = pd.DataFrame({"a": np.linspace(0, 1, 150)})
    explainer = LimisExplainer(model, weighting="forest").fit(frame)
    app = make_app(explainer, frame, "rows.csv")
    go.clear()
    with client_for(app=app) as client:
        page = client.get("/tables/rows").text
        assert "explained.csv" not in page
        assert "when all are explained" in page
        for kind in ("csv", "json", "html"):
            answer = client.get(f"/tables/rows/explained.{kind}")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert "0 of 150 rows are explained so far" in answer.text
        go.set()
        _wait_until_explained(client, "rows")
        page = client.get("/tables/rows").text
        assert "HTML report of the first 100<" in page
        assert "HTML report<" in client.get("/tables/rows?high=0.2").text
        assert len(client.get("/tables/rows/explained.json").json()) == 150


def test_downloads_follow_the_choice(client):
    shown = shown_rows(client.get("/tables/rows?sort=error&way=down&trust=no").text)
    told = client.get("/tables/rows/explained.json?sort=error&way=down&trust=no").json()
    assert [one["row"] for one in told][:50] == shown
    lines = client.get("/tables/rows/explained.csv?sort=error&way=down&trust=no").text
    errors = [float(line["error"]) for line in csv.DictReader(io.StringIO(lines))]
    assert errors == sorted(errors, reverse=True)
    assert client.get("/tables/rows/explained.html?low=101").status_code == 422


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "none of the columns"),
        (b"age,job\n1,clerk\n", "missing"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"age,age\n1,2\n", "more than once"),
        (b'age,"job\n1,2', "line"),
        (b"age\n", "no rows"),
        (b"age\n" + b"1\n" * 200_000, "200,001 lines"),
        (b"age," * 20_000 + b"job\n1\n", "20,001 columns"),
    ],
)
def test_an_upload_that_cannot_be_read_says_why(client, text, words):
    answer = client.post("/tables", files={"file": ("people.csv", text)})
    assert answer.status_code == 422
    assert words in answer.text


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [("age", "old", "numbers"), ("member", "maybe", "true or false"), ("since", "soon", "dates")],
)
def test_an_upload_with_a_value_that_cannot_be_read_names_it(client, served_rows, column, value, kind):
    bad = served_rows.head(3).astype({column: object})
    bad.loc[1, column] = value
    answer = client.post("/tables", files={"file": ("people.csv", bad.to_csv(index=False))})
    assert answer.status_code == 422
    assert problem(answer).startswith(f"people.csv: column '{column}' held {kind} at fit, but row 1 has '{value}'")


def test_durations_come_back_from_csv(client_for):
    frame = pd.DataFrame({"a": np.linspace(0, 1, 120), "wait": pd.to_timedelta(np.arange(120), unit="h")})
    explainer = LimisExplainer(lambda rows: rows["a"] + rows["wait"].dt.days, weighting="forest").fit(frame)
    with client_for(explainer, frame.head(5)) as client:
        key = uploaded(client, frame.iloc[[30, 80]])
        told = client.get(f"/tables/{key}/explained.json").json()
        assert [one["values"]["wait"] for one in told] == [
            one.values["wait"] for one in explainer.explain(frame.iloc[[30, 80]])
        ]
        bad = frame.head(3).astype({"wait": str})
        bad.loc[1, "wait"] = "long"
        answer = client.post("/tables", files={"file": ("waits.csv", bad.to_csv(index=False))})
        assert answer.status_code == 422
        assert problem(answer).startswith("waits.csv: column 'wait' held durations at fit, but row 1 has 'long'")


def test_forms_without_a_file_are_refused(client):
    assert client.post("/tables", data={"file": "text"}).status_code == 422
    assert client.post("/tables").status_code == 422
    broken = client.post("/tables", content=b"--x", headers={"Content-Type": "multipart/form-data; boundary=y"})
    assert broken.status_code in (400, 422)


def test_a_csv_that_would_have_a_name_twice_is_refused(client, served_rows):
    key = uploaded(client, served_rows.head(3).assign(error=1))
    answer = client.get(f"/tables/{key}/explained.csv")
    assert answer.status_code == 422
    assert "error" in answer.text
    assert client.get(f"/tables/{key}/explained.json").status_code == 200


def test_uploads_are_limited_in_rows_and_number_and_are_forgotten(client_for, served_explainer, served_rows):
    settings = Settings(upload_rows=50, most_uploads=2, upload_seconds=3600)
    with client_for(served_explainer, served_rows.head(5), settings=settings) as client:
        answer = client.post("/tables", files={"file": ("a.csv", served_rows.head(51).to_csv(index=False))})
        assert answer.status_code == 422
        assert "50" in answer.text
        keys = [uploaded(client, served_rows.head(2)) for _ in range(3)]
        assert len(set(keys)) == 3
        assert all(len(key) >= 20 for key in keys)
        assert [client.get(f"/tables/{key}").status_code for key in keys] == [404, 200, 200]
    with client_for(served_explainer, served_rows.head(5), settings=Settings(upload_seconds=0)) as client:
        answer = client.post("/tables", files={"file": ("a.csv", served_rows.head(2).to_csv(index=False))})
        assert answer.status_code == 404
        assert client.get("/tables/rows").status_code == 200


def test_as_many_uploads_are_held_as_may_be(client_for, served_explainer, served_rows):
    with client_for(served_explainer, served_rows.head(5), settings=Settings(most_uploads=5)) as client:
        keys = [uploaded(client, served_rows.head(2)) for _ in range(6)]
        assert [client.get(f"/tables/{key}").status_code for key in keys] == [404, 200, 200, 200, 200, 200]


def test_rows_that_the_model_refuses_later_on_are_told_of(client_for):
    def fails(rows):
        if (rows["a"] > 5).any():
            raise RuntimeError("cannot")
        return rows["a"]

    frame = pd.DataFrame({"a": np.linspace(0, 1, 150)})
    rows = frame.copy()
    rows.loc[130, "a"] = 6.0
    with client_for(LimisExplainer(fails, weighting="forest").fit(frame), rows) as client:
        _wait_until_explained(client, "rows")
        page = client.get("/tables/rows").text
    assert "Only the first 100 of 150 rows" in page
    assert "cannot" in page


def test_a_fault_while_rows_are_explained_is_told_and_logged(client_for, monkeypatch, caplog):
    def fails(_):
        raise ZeroDivisionError("secret")

    frame = pd.DataFrame({"a": np.linspace(0, 1, 150)})
    explainer = LimisExplainer(lambda rows: rows["a"], weighting="forest").fit(frame)
    monkeypatch.setattr("limis.serve.tables.lines_of", fails)
    with client_for(explainer, frame) as client:
        _wait_until_explained(client, "rows")
        page = client.get("/tables/rows").text
    assert "Only the first 0 of 150 rows" in page
    assert "a fault in limis" in page
    assert "secret" not in page
    assert "ZeroDivisionError" in caplog.text


# --- other explainers --------------------------------------------------------------------------------------------


def test_more_than_two_classes(client_for):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    labels = np.array(["red", "green", "blue"])[frame.to_numpy().argmax(axis=1)]
    model = LogisticRegression().fit(frame, labels)
    with client_for(LimisExplainer(model).fit(frame), frame.head(10)) as client:
        _wait_until_explained(client, "rows")
        row = frame.iloc[0].to_dict()
        (told,) = client.post("/api/explain", json={"rows": [row]}).json()["explanations"]
        predicted = model.predict(frame.head(1))[0]
        assert told["prediction"]["class"] == predicted
        assert len(told["classes"]) == 3
        for one in (told, *told["classes"]):
            assert_declared(client, one)
        changed = client.post("/api/what-if", json={"row": row, "changes": {"a": 9.0}}).json()
        assert changed["prediction_after"]["class"] == "red"
        assert predicted in client.get("/tables/rows").text
        assert "The black box predicts" in client.get("/tables/rows/rows/0/what-if?c0=9").text
        assert '<option value="red" selected>' in client.get("/tables/rows/groups?by=a&class=red").text
        lines = client.get("/tables/rows/explained.csv").text.splitlines()
        assert len(lines) == 1 + 3 * 10
        other = "red" if predicted != "red" else "blue"
        (told,) = client.post("/api/suggest", json={"rows": [row], "target": other}).json()["suggestions"]
        assert told["goal"]
        assert client.post("/api/suggest", json={"rows": [row]}).status_code == 422


def test_values_and_trees(client_for):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(300), "b": rng.random(300)})

    def model(rows):
        return np.where(rows["a"] > 0.5, 10.0, 0.0) + rows["b"]

    with client_for(LimisExplainer(model, surrogate="tree").fit(frame), frame.head(10)) as client:
        _wait_until_explained(client, "rows")
        assert "limis-tree" in client.get("/tables/rows/rows/0").text
        (told,) = client.post("/api/explain", json={"rows": [{"a": 0.2, "b": 0.5}]}).json()["explanations"]
        assert told["rules"]
        assert_declared(client, told)
        assert "prediction" not in told
        assert "The black box says" in client.get("/tables/rows/rows/0/what-if?c0=0.9").text
        assert client.get("/tables/rows/groups?by=a").status_code == 200
        assert client.get("/tables/rows/rows/0/suggestions?target=up").status_code == 200


def test_an_explainer_without_its_model_explains_but_suggests_nothing(client_for):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(120), "b": rng.random(120)})
    explainer = LimisExplainer(weighting="forest").fit(frame, outputs=frame["a"].to_numpy())
    with client_for(explainer) as client:
        _wait_until_explained(client, "rows")
        row = {"a": 0.2, "b": 0.5}
        (told,) = client.post("/api/explain", json={"rows": [row]}).json()["explanations"]
        assert "model_output" not in told
        changed = client.post("/api/what-if", json={"row": row, "changes": {"a": 0.9}}).json()
        assert changed["model_output_after"] is None
        assert changed["foreseen_after"] > changed["foreseen_before"]
        assert client.post("/api/suggest", json={"rows": [row]}).status_code == 422
        assert client.get("/tables/rows").status_code == 200
        page = client.get("/tables/rows/rows/0?c0=0.9")
        assert "curves foresee" in page.text
        assert 'id="suggest"' not in page.text
        assert client.get("/api/metadata").json()["has_model"] is False


@pytest.mark.parametrize("far", ["9999-12-31", "1500-01-01"])
def test_a_date_that_the_columns_type_does_not_reach_is_named(client_for, far):
    since = pd.Series(pd.date_range("2020-01-01", periods=120)).astype("datetime64[ns]")
    frame = pd.DataFrame({"a": np.linspace(0, 1, 120), "since": since})
    explainer = LimisExplainer(lambda rows: rows["a"], weighting="forest").fit(frame)
    row = {"a": 0.5, "since": "2020-02-01"}
    with client_for(explainer, frame.head(5)) as client:
        answer = client.post("/api/explain", json={"rows": [row, {**row, "since": far}]})
        assert (answer.status_code, answer.json()["detail"][0]["field"]) == (422, "rows.1.since")
        assert far in answer.json()["detail"][0]["message"]
        answer = client.post("/api/what-if", json={"row": row, "changes": {"since": far}})
        assert (answer.status_code, answer.json()["detail"][0]["field"]) == (422, "changes.since")
        page = client.get(f"/tables/rows/rows/0/what-if?c1={far}")
        assert page.status_code == 422
        assert far in page.text


def test_a_column_too_large_to_square_has_a_schema_without_its_ends(client_for):
    frame = pd.DataFrame({"a": np.linspace(0, 1, 120), "huge": 1e300 * np.linspace(-1, 1, 120)})
    with client_for(LimisExplainer(lambda rows: rows["a"], weighting="forest").fit(frame), frame.head(5)) as client:
        row = client.get("/openapi.json").json()["components"]["schemas"]["Row"]["properties"]
        number, missing = row["huge"]["anyOf"]
        assert (number, missing) == ({"type": "number"}, {"type": "null"})
        assert {"minimum", "maximum"} <= set(row["a"]["anyOf"][0])
        assert client.get("/docs").status_code == 200


def test_a_cell_that_may_be_of_several_types_is_named_once(client_for):
    mixed = pd.Series(["x", True, 3] * 40, dtype=object)
    frame = pd.DataFrame({"a": np.linspace(0, 1, 120), "mixed": mixed})
    with client_for(LimisExplainer(lambda rows: rows["a"], weighting="forest").fit(frame), frame.head(6)) as client:
        row = {"a": 0.5, "mixed": []}
        (told,) = client.post("/api/explain", json={"rows": [{**row, "mixed": 3}, row]}).json()["detail"]
        assert told["field"] == "rows.1.mixed"
        assert all(word in told["message"] for word in ("number", "boolean", "string"))
        (told,) = client.post("/api/what-if", json={"row": {**row, "mixed": "x"}, "changes": row}).json()["detail"]
        assert told["field"] == "changes.mixed"
        body = {"rows": [{**row, "mixed": 3}], "target": [], "ranges": {"a": [{}, 1]}}
        told = client.post("/api/suggest", json=body).json()["detail"]
        assert [one["field"] for one in told] == ["target", "ranges.a.0"]


def test_dummies_that_are_one_column_are_one_field(client_for):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 200)
    frame = pd.DataFrame({f"colour_{name}": (codes == k).astype(int) for k, name in enumerate(("red", "blue", "grey"))})
    frame["a"] = rng.random(200)

    def model(rows):
        return rows["a"] + 2 * rows["colour_blue"]

    groups = {"colour": [name for name in frame if name.startswith("colour")]}
    with client_for(LimisExplainer(model, groups=groups).fit(frame), frame.iloc[np.flatnonzero(codes == 0)]) as client:
        page = client.get("/tables/rows/rows/0").text
        assert page.count("data-own=") == 2
        options = {word: code for code, word in re.findall(r'<option value="(\d)"[^>]*>(\w+)</option>', page)}
        changed = client.get(f"/tables/rows/rows/0/what-if?c0={options['blue']}").text
        assert "colour: red → blue" in changed
        two = {"colour_red": 1, "colour_blue": 1, "colour_grey": 0, "a": 0.5}
        assert client.post("/api/explain", json={"rows": [two]}).status_code == 422


def test_a_table_that_does_not_fit_is_refused_at_the_start(served_explainer, served_rows):
    with pytest.raises(InputError, match="missing"):
        make_app(served_explainer, served_rows.drop(columns="job"), "rows.csv")
    with pytest.raises(InputError, match="at most 50"):
        make_app(served_explainer, served_rows, "rows.csv", Settings(upload_rows=50))
