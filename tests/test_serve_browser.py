"""The pages in a real browser: opened, changed, followed, uploaded to and downloaded from.

Screenshots are kept in outputs/screenshots, to be looked at.
"""

import json
import os
import re
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from limis import LimisExplainer

pytest.importorskip("fastapi")
from limis.serve import Settings, make_app

SCREENSHOTS = Path(__file__).parents[1] / "outputs" / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NEEDED = any(os.environ.get(name) for name in ("CI", "LIMIS_NEED_BROWSER"))
TOKEN = "a-token-that-nobody-guesses"  # noqa: S105
PAGES = ("/tables/rows", "/tables/rows/rows/5?c0=71&suggest=yes", "/tables/rows/groups?by=job", "/upload", "/docs")


def _missing(why):
    """Skip where no browser can be had; where one is needed, its absence is a failure."""
    if NEEDED:
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        _missing("playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)  # None: Playwright's own, if it has one
    with sync_playwright() as playwright:
        try:
            # Chromium's own sandbox needs rights that containers do not have; only our own pages are opened.
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except Error:
            if path is not None:
                raise
            _missing(f"there is no browser: neither one of {', '.join(NAMES)} nor Playwright's own")
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(serving, served_explainer, served_rows):
    with serving(make_app(served_explainer, served_rows, "people.csv")) as address:
        yield address


@pytest.fixture
def opened(browser, address):
    """Pages that report what a reader would not see: scripts that ran, refused loads, errors in our own script."""

    @contextmanager
    def open_page(path="/", at=address, **options):
        noticed = []
        context = browser.new_context(base_url=at, **options)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("dialog", lambda dialog: (noticed.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: noticed.append(f"error: {error}"))
        page.on("console", lambda message: noticed.append(message.text) if is_fault(message) else None)
        page.on("request", lambda request: None if request.url.startswith(at) else noticed.append(request.url))
        page.goto(path)
        yield page
        context.close()
        assert noticed == []

    return open_page


def is_fault(message):
    """Whether the browser complains of a page; answers that refuse something are meant."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")


def keep(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def compared(page, words):
    """What the what-if table says in the line that begins with some words: as it is, and changed."""
    line = page.locator(".compare tbody tr", has_text=words)
    return line.locator("td").all_inner_texts()


def test_a_row_is_opened_a_value_changed_and_a_suggestion_followed(opened, served_explainer, served_rows):
    outputs = served_explainer.explain(served_rows).model_outputs.reset_index(drop=True)
    row = int(outputs.idxmin())
    with opened() as page:
        page.get_by_role("link", name=re.compile("^Prediction")).click()
        page.get_by_role("link", name=re.compile("^Prediction")).click()
        keep(page, "rows")
        page.get_by_role("link", name=f"Row {row}", exact=True).click()
        assert page.get_by_role("heading", level=1).inner_text() == f"Row {row}"

        page.get_by_role("textbox", name="age").fill("75")
        page.locator(".compare").wait_for()
        changed = served_explainer.explain(served_rows.iloc[[row]].assign(age=75))
        chance = 100 / (1 + np.exp(-changed.model_outputs.iloc[0]))
        assert f"{chance:.1f}%" in compared(page, "The black box gives")[1]
        assert compared(page, "foresee")[1]
        assert f"Row {row}, changed" in page.locator("#changed").inner_text()
        assert "black box" in page.locator("#heard").inner_text()
        keep(page, "row-changed")
        page.get_by_role("link", name="Back to the row as it is").click()
        page.locator(".compare").wait_for(state="detached")

        page.get_by_role("button", name="Suggest").click()
        page.get_by_role("link", name="Try it (suggestion 1)").click()
        page.locator(".compare").wait_for()
        assert compared(page, "The black box predicts") == ["no", "yes <script>alert(1)</script>"]
        assert page.locator(".fields .changed").count() >= 1
        assert page.evaluate("document.activeElement.id") == "what-if"
        keep(page, "row-suggestion")
        address = page.url
        page.goto(address)  # an address with changes can be passed on
        assert compared(page, "The black box predicts") == ["no", "yes <script>alert(1)</script>"]


def test_a_value_that_cannot_be_is_told_of_beside_the_form(opened):
    with opened("/tables/rows/rows/3") as page:
        page.get_by_role("textbox", name="age").fill("old")
        page.get_by_role("alert").wait_for()
        assert "a number is expected" in page.get_by_role("alert").inner_text()
        page.get_by_role("textbox", name="age").fill("50")
        page.locator(".compare").wait_for()
        assert page.get_by_role("alert").count() == 0


def test_a_csv_is_uploaded_and_results_downloaded(opened, served_explainer, served_rows, tmp_path):
    own = served_rows.iloc[20:32].assign(id=range(12))
    own.to_csv(tmp_path / "mine.csv", index=False)
    expected = served_explainer.explain(served_rows.iloc[20:32]).model_outputs
    with opened("/upload") as page:
        page.get_by_label("A CSV file").set_input_files(tmp_path / "mine.csv")
        page.get_by_role("button", name="Explain it").click()
        assert page.get_by_role("heading", level=1).inner_text() == "mine.csv"
        assert page.locator("table.list tbody tr").count() == 12
        keep(page, "uploaded")
        for kind, ending in (("CSV", "csv"), ("JSON", "json"), ("HTML report", "html")):
            with page.expect_download() as download:
                page.get_by_role("link", name=kind, exact=True).click()
            assert download.value.suggested_filename == f"mine-explained.{ending}"
            download.value.save_as(tmp_path / f"out.{ending}")
    lines = pd.read_csv(tmp_path / "out.csv")
    assert lines["id"].tolist() == list(range(12))
    np.testing.assert_allclose(lines["model_output"], expected)
    np.testing.assert_allclose(
        [one["model_output"] for one in json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))], expected
    )
    assert "mine.csv" in (tmp_path / "out.html").read_text(encoding="utf-8")


def test_a_refused_upload_says_why(opened, tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with opened("/upload") as page:
        page.get_by_label("A CSV file").set_input_files(tmp_path / "other.csv")
        page.get_by_role("button", name="Explain it").click()
        assert "none of the columns" in page.get_by_role("alert").inner_text()


def test_rows_are_filtered_with_the_form(opened, served_explainer, served_rows):
    trusted = served_explainer.explain(served_rows).fidelity["trusted"]
    with opened() as page:
        page.get_by_role("combobox", name="Trust").select_option("not trusted")
        page.get_by_role("combobox", name="Sort by").select_option("error without asking")
        page.get_by_role("button", name="Show").click()
        assert f"{(~trusted).sum()} rows of 120" in page.locator("#main").inner_text()
        assert page.locator("th[aria-sort]").inner_text().startswith("Error")


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("look", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
def test_pages_fit_and_run_nothing_that_is_in_names(opened, path, look, width):
    with opened(path, viewport={"width": width, "height": 800}, color_scheme=look) as page:
        keep(page, f"{re.sub(r'[^a-z]+', '-', path.partition('?')[0]).strip('-')}-{look}-{width}")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
        assert brightness > 200 if look == "light" else brightness < 60


@pytest.mark.parametrize("path", PAGES)
def test_everything_to_fill_in_or_press_has_a_name(opened, path):
    with opened(path) as page:
        nameless = page.evaluate(
            """[...document.querySelectorAll("input:not([type=hidden]), select, button, a[href], summary")]
            .filter(it => !(it.labels?.length && it.labels[0].textContent.trim()) && !it.textContent.trim())
            .map(it => it.outerHTML)"""
        )
        assert nameless == []
        assert page.locator("h1").count() == 1
        assert page.locator("main").count() == 1
        assert page.locator("html[lang=en]").count() == 1


def test_who_fills_in_the_form_is_not_disturbed_while_rows_are_explained(opened, serving):
    go = threading.Event()
    go.set()

    def model(rows):
        assert go.wait(30)
        return rows["a"]

    frame = pd.DataFrame({"a": np.linspace(0, 1, 150)})
    app = make_app(LimisExplainer(model, weighting="forest").fit(frame), frame, "rows.csv")
    go.clear()
    with serving(app) as at, opened("/tables/rows", at=at) as page:
        assert page.get_by_text("0 of 150 rows are explained so far").is_visible()
        field = page.get_by_label("Prediction from")
        with page.expect_response("**/tables/rows"):
            field.fill("0.5")
        assert field.input_value() == "0.5"
        assert field.evaluate("field => field === document.activeElement")
        go.set()
        page.get_by_role("link", name="Show all rows that are explained").click()
        page.get_by_role("link", name="CSV", exact=True).wait_for()


def test_a_keyboard_is_enough(opened):
    with opened() as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "Row 0":
                break
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        keep(page, "keyboard")
        page.keyboard.press("Enter")
        page.get_by_role("heading", level=1, name="Row 0").wait_for()
        page.get_by_role("textbox", name="age").focus()
        page.keyboard.press("Control+A")
        page.keyboard.type("66")
        page.locator(".compare").wait_for()
        assert page.evaluate("document.activeElement.id") == "c0"  # what is typed next still goes there


def test_what_is_typed_before_the_script_is_there_is_answered(opened):
    held = []
    with opened("/tables/rows/rows/5") as page:
        page.route("**/page.js", lambda route: held.append(route))  # noqa: PLW0108 - playwright wants a function
        page.reload(wait_until="commit")
        page.get_by_role("textbox", name="age").fill("66")
        assert page.locator(".compare").count() == 0
        held[0].continue_()
        page.locator(".compare").wait_for()


def test_without_scripts_forms_do_the_same(opened):
    with opened("/tables/rows/rows/5", java_script_enabled=False) as page:
        page.get_by_role("textbox", name="age").fill("75")
        page.get_by_role("button", name="Show what changes").click()
        assert page.locator(".compare").count() == 1
        page.get_by_role("button", name="Suggest").click()
        page.get_by_role("link", name="Try it (suggestion 1)").click()
        assert page.locator(".compare").count() == 1


def test_a_visitor_without_the_token_is_asked_for_it(opened, serving, served_explainer, served_rows):
    app = make_app(served_explainer, served_rows, "people.csv", Settings(token=TOKEN, hosts=None))
    with serving(app) as at, opened("/tables/rows/rows/2", at=at) as page:
        page.get_by_label("token").fill(TOKEN)
        keep(page, "login")
        page.get_by_role("button", name="Enter").click()
        assert page.get_by_role("heading", level=1).inner_text() == "Row 2"
        page.get_by_role("textbox", name="age").fill("70")
        page.locator(".compare").wait_for()
