"""The page about many explanations: what was explained, fidelity, weights, groups, and an index of the rows."""

import re
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from html_pages import read
from hypothesis import given, settings
from hypothesis import strategies as st

import limis
from limis import Explanations, InputError, LimisExplainer
from limis.report import cards, fragment, page, style
from limis.report.effects import effects
from limis.report.groups import chosen_columns
from limis.report.words import Numbers, printable
from limis.subgroups.measure import column_weights
from limis.suggest import Suggestions, suggest

NASTY = "<script>alert(1)</script>"


def people(n_rows: int = 240, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows),
            "hours": rng.integers(10, 60, n_rows),
            "job": rng.choice(["clerk", "sales", NASTY], n_rows),
            "sex": rng.choice(["f", "m"], n_rows),
        }
    )


def pay(rows: pd.DataFrame) -> np.ndarray:
    return (rows["hours"] * (1.0 + (rows["job"] == "sales")) + 20 * (rows["sex"] == "m")).to_numpy(dtype=float)


@pytest.fixture(scope="module")
def explainer() -> LimisExplainer:
    return LimisExplainer(pay, random_state=0).fit(people())


@pytest.fixture(scope="module")
def found(explainer) -> Explanations:
    return explainer.explain(people(40, seed=1))


@pytest.fixture(scope="module")
def suggestions(found) -> Suggestions:
    return suggest(found, "> 60", immutable=["age", "sex"], n=2, max_queries=200)


@pytest.fixture(scope="module")
def several() -> LimisExplainer:
    def chances(rows):
        high = 1 / (1 + np.exp(3 - rows["hours"] / 10))
        return np.column_stack([1 - high, 0.6 * high, 0.4 * high])

    return LimisExplainer(chances, random_state=0).fit(people())


def test_the_head_tells_model_rows_versions_and_when(found):
    made = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
    text = read(page(found, title="t", made=made, facts={"Explainer": "pay.limis"})).text
    assert "a function, pay" in text
    assert "40 explained" in text
    assert f"{len(found.training)} that explanations may rest on, with 4 columns" in text
    assert "2031-05-06 07:08 UTC" in text
    assert f"limis {limis.__version__}" in text
    assert "pay.limis" in text


def test_every_row_is_in_the_index_and_its_link_leads_to_its_card(found):
    seen = read(page(found, title="t"))
    links = [value for name, value in seen.attributes if name == "href" and value.startswith("#row-")]
    assert links == [f"#row-{place}" for place in range(40)]


def test_rows_of_one_label_have_links_of_their_own(found):
    twice = found[[0, 0, 1]]
    twice.frame.index = pd.Index(["a b", "a b", "#"])
    read(page(twice, title="t"))  # which refuses an id that is there twice


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("--o", lambda found: -found.outputs),
        ("--e", lambda found: -found.fidelity["error"].to_numpy()),
        ("--d", lambda found: -np.minimum(found.fidelity["change_error_bound"].to_numpy(), 1e9)),
    ],
)
def test_lines_of_the_index_know_their_place_in_every_order(found, order, key):
    seen = read(page(found, title="t"))
    styles = [value for name, value in seen.attributes if name == "style" and "--o" in value]
    places = [int(dict(part.split(":") for part in style.split(";"))[order]) for style in styles]
    assert sorted(places) == list(range(40))
    by_place = np.empty(40)
    by_place[places] = key(found)
    trusted = np.empty(40, dtype=bool)
    trusted[places] = found.fidelity["trusted"]
    if order == "--d":
        assert (np.diff(trusted.astype(int)) >= 0).all()  # those that are not trusted first
        assert (np.diff(by_place[~trusted]) >= 0).all()
    else:
        assert (np.diff(by_place) >= 0).all()


def test_columns_that_weigh_are_told_with_the_heaviest_first(found):
    text = read(page(found, title="t")).text
    part = text[text.index("Which columns weigh, over all rows") : text.index("Worth a look")]
    assert part.index("\nhours") < part.index("\nsex")
    assert "\nage" not in part  # which does nothing
    assert "1 other column weighs less" in part


def test_groups_are_told_with_fidelity_and_flags(found):
    labels = pay(found.frame) + np.where(found.frame["sex"] == "m", 30, 0)
    text = read(page(found, title="t", by=["sex", "hours"], sensitive=["sex"], labels=labels)).text
    assert "By sex" in text
    assert "By hours" in text
    assert 'the black box itself does worse in "sex = m"' in text
    assert "sex carries weight in" in text
    assert "The black box’s own error" in text
    assert "all rows" in text


def test_sensitive_columns_without_weight_are_told_too(found):
    text = read(page(found, title="t", by=["sex"], sensitive=["age"])).text
    assert "age: no clear weight of its own in any group" in text
    assert text.count("\nBy ") == 1
    made = datetime(2031, 5, 6, tzinfo=UTC)
    pages = [page(found, title="t", by=names, sensitive=names, made=made) for names in ("sex", ["sex"])]
    assert pages[0] == pages[1]  # a name alone is a list of one


def test_columns_to_group_by_are_chosen_where_there_are_rows_enough(found):
    chosen = chosen_columns(found, ["sex"])
    assert chosen[0] == "sex"
    assert "hours" in chosen
    assert chosen_columns(found[:10], ["sex"]) == []
    assert "fewer than 20 rows are explained" in read(page(found[:10], title="t")).text


def test_groups_may_be_made_by_what_the_model_does_not_see(found):
    data = pd.DataFrame({"district": np.repeat(["north", "south"], 20)}, index=found.index)
    assert "district = south" in read(page(found, title="t", by=["district"], data=data)).text


def test_what_cannot_be_grouped_is_named(found, several):
    with pytest.raises(InputError, match="no column 'colour' to group by"):
        page(found, title="t", by=["colour"])
    with pytest.raises(InputError, match="no column 'colour' to call sensitive"):
        page(found, title="t", sensitive=["colour"])
    with pytest.raises(InputError, match="only one is explained"):
        page(found[:1], title="t", by=["sex"])
    with pytest.raises(InputError, match="there are 3 classes"):
        page(several.explain(people(5, seed=2)), title="t", by=["sex"])


def test_suggestions_stand_on_the_cards_of_their_rows(found, suggestions):
    seen = read(page(found, title="t", suggestions=suggestions))
    assert seen.text.count("What would change it") == len(found)
    own = next(row for row in suggestions if row.confirmed)
    (column, (before, after)), *_ = own[0].words.items()
    assert f"{column} {before} → {after}" in seen.text
    assert f"(confirmed: {own[0].says[0]} → {own[0].says[1]})" in seen.text
    assert "not what the change would do in the world" in seen.text
    assert f"would change with {column}: {before} → {after}" in seen.text
    there = next(row for row in suggestions if row.has_goal)
    assert f"says {there.goal} of this row as it is" in seen.text


def test_a_card_alone_can_carry_suggestions(found, suggestions):
    text = read(cards(found[:1], total=1, suggestions=suggestions[:1])).text
    assert "What would change it" in text
    assert "What would change it" not in read(cards(found[:1], total=1)).text


def test_notebooks_draw_suggestions(suggestions):
    seen = read(suggestions._repr_html_())
    assert seen.tags.count("article") == 3
    assert "3 of 40 rows are shown" in seen.text
    assert suggestions[0].wish in seen.text
    own = next(row for row in suggestions if row.confirmed)
    (column, (before, after)), *_ = own[0].words.items()
    assert f"{column} {before} → {after}" in read(own._repr_html_()).text


def test_suggestions_of_other_rows_are_refused(found, suggestions):
    with pytest.raises(InputError, match="suggestions for 2 rows, but 40 rows are explained"):
        page(found, title="t", suggestions=suggestions[:2])
    with pytest.raises(InputError, match="suggestions are for other rows"):
        page(found[:2], title="t", suggestions=suggestions[2:4])


def test_why_nothing_was_found_is_told(found):
    nothing = suggest(found[:2], "> 1000000", immutable=["age", "sex", "hours"], max_queries=50)
    text = read(page(found[:2], title="t", suggestions=nothing)).text
    assert "No change was found for which the black box says" in text


@pytest.fixture(scope="module")
def sloped() -> Explanations:
    return LimisExplainer(pay, surrogate="ridge", random_state=0).fit(people()).explain(people(40, seed=1))


def test_effects_say_what_the_local_model_would_say_of_other_values(sloped):
    found = sloped
    one, rows = found[0], found.frame.iloc[:1]
    told = {effect.column: effect.adds for effect in effects(one, Numbers(3))}
    other = "f" if one.values["sex"] == "m" else "m"
    change = one.predict(rows.assign(sex=other))[0] - one.local_prediction
    assert f"{Numbers(3).signed(change)} with {other}" in told["sex"]
    own = Numbers.of(found.training)
    assert f"{own.signed(change)} with {other}" in read(cards(found[:1], total=1)).text


@pytest.fixture(scope="module")
def stepping() -> Explanations:
    """Rows below and above the one jump of a black box."""
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(400) < 0.6, 0, rng.choice([500, 2000, 4000, 8000, 9000, 40000], 400))
    frame = pd.DataFrame({"gain": gain, "age": rng.uniform(20, 70, 400)})
    explainer = LimisExplainer(lambda rows: 5.0 * (rows["gain"] > 5000) + 0.02 * rows["age"], surrogate="ridge")
    return explainer.fit(frame).explain(pd.DataFrame({"gain": [500, 9000], "age": [40.0, 40.0]}))


def test_what_passing_a_jump_adds_is_told_from_the_side_of_the_row(stepping):
    column = stepping.training.table.columns[0]
    border = column.show_border(column.jumps[0])
    size = stepping.coefficients[("gain", f"> {border}")]
    below, above = (
        next(effect.adds for effect in effects(one, Numbers(2)) if effect.column == "gain") for one in stepping
    )
    assert f"{Numbers(2).signed(size.iloc[0])} above {border}" in below
    assert f"{Numbers(2).signed(-size.iloc[1])} at {border} or below" in above


def test_the_weight_of_a_number_is_how_far_local_models_move_up_and_down(stepping):
    gain = stepping.training.frame["gain"]
    grid = pd.concat([stepping.frame.iloc[[0]]] * 2000, ignore_index=True)
    grid["gain"] = np.linspace(gain.min(), gain.max(), 2000)
    moved = np.abs(np.diff(stepping[0].predict(grid))).sum()
    assert column_weights(stepping, "coefficients")["gain"].iloc[0] == pytest.approx(
        moved, rel=1e-4
    )  # but for the ends of slopes
    assert "move, up and down together," in read(page(stepping, title="t")).text


def test_a_missing_number_and_a_level_never_seen_have_no_other_values_to_tell_of():
    ridges = LimisExplainer(pay, surrogate="ridge", weighting="forest").fit(people())
    rows = people(1, seed=6).assign(hours=np.nan, sex="x")
    told = {effect.column for effect in effects(ridges.explain(rows, outputs=[1.0])[0], Numbers(3))}
    assert not told & {"hours", "sex"}


def test_a_column_too_large_to_square_is_told_without_its_coefficient():
    frame = pd.DataFrame({"a": np.linspace(0, 1, 120), "huge": 1e300 * np.linspace(-1, 1, 120)})
    explainer = LimisExplainer(lambda rows: rows["a"] + rows["huge"] / 1e300, surrogate="ridge", weighting="forest")
    found = explainer.fit(frame).explain(frame[:2])
    assert [effect.column for effect in effects(found[0], Numbers(2))] == ["a"]
    assert "huge" in read(page(found, title="t")).text


def test_trees_have_a_page_of_their_own_kind():
    trees = LimisExplainer(pay, surrogate="tree", random_state=0).fit(people()).explain(people(30, seed=3))
    seen = read(page(trees, title="t"))
    assert "a shallow tree for each row" in seen.text
    assert "the mean size of the column’s contribution" in seen.text
    assert " ".join(trees[0].rules()[0].conditions[0].split()) in seen.text


def test_of_several_classes_the_predicted_one_is_told(several):
    found = several.explain(people(6, seed=2))
    text = read(page(found, title="t")).text
    assert "Groups are told for one class at a time" in text
    assert text.count("trusted") >= 6
    one_class = found.for_class(found.classes[0])
    read(page(one_class, title="t"))


def test_labels_alone_have_a_page():
    frame = people()
    found = (
        LimisExplainer(random_state=0).fit(frame, np.where(pay(frame) > 60, "yes", "no")).explain(people(25, seed=4))
    )
    text = read(page(found, title="t")).text
    assert "none: the labels themselves are explained" in text
    assert "The black box was not asked about these rows" in text


def test_other_pages_may_have_the_style_of_this_one(found):
    html = page(found[:1], title="t")
    assert all(line in html for line in style().splitlines())


def test_without_outputs_the_index_tells_no_prediction_and_no_error(found):
    frame = people(120)
    unasked = LimisExplainer(weighting="forest").fit(frame, outputs=pay(frame)).explain(people(3, seed=1))
    heads = [
        re.findall(r'<th scope="col">(\w+ ?\w*)', html[html.index('id="rows"') : html.index("<article")])
        for html in (page(unasked, title="t"), page(found, title="t"))
    ]
    assert heads == [
        ["Row", "Expected", "Trust", "Main reasons"],
        ["Row", "Prediction", "Trust", "Main reasons"],
    ]
    assert "error at the row" not in page(unasked, title="t")
    assert "without asking" in page(found, title="t")


def test_other_pages_may_have_the_cards_of_a_notebook_without_their_style(found):
    whole, part = cards(found[:2], total=2), fragment(found[:2])
    assert "<style>" not in part
    assert part.count('class="limis-card"') == 2
    assert part[part.index("<article") : part.rindex("</article>")] in whole


def test_no_rows_make_a_page_without_numbers(found):
    assert "0 explained" in read(page(found[:0], title="t")).text


def test_a_constant_black_box_makes_a_page():
    found = LimisExplainer(lambda rows: np.full(len(rows), 7.0)).fit(people(60)).explain(people(25, seed=5))
    assert "No column visibly moves the prediction" in read(page(found, title="t")).text


@settings(max_examples=8)
@given(
    name=st.text(min_size=1, max_size=60),
    level=st.text(min_size=1, max_size=60).filter(lambda text: text not in ("clerk", "sales")),
    label=st.text(max_size=60),
)
def test_any_name_level_or_label_comes_out_as_text(name, level, label):
    names = {"job": name} if name not in ("age", "hours", "sex") else {}
    frame, rows = (
        people(n, seed).replace({"job": {NASTY: level}}).rename(columns=names) for n, seed in ((60, 0), (22, 1))
    )
    rows.index = pd.Index([label, *range(21)], dtype=object)
    explainer = LimisExplainer(lambda rows: rows["hours"].to_numpy(dtype=float), max_questions=1000)
    found = explainer.fit(frame).explain(rows)
    column = names.get("job", "job")
    told = suggest(found, "> 40", max_queries=30, n=1)
    seen = read(page(found, title="t", by=[column], sensitive=[column], suggestions=told, facts={label: name}))
    everything = seen.text + "\n".join(seen.titles)
    for text in (column, label):
        assert printable(text) in everything


def test_a_script_in_a_name_a_level_a_label_or_a_fact_is_text_on_every_part_of_the_page():
    frame = people(80).rename(columns={"job": f"job{NASTY}"})
    rows = people(30, seed=1).rename(columns={"job": f"job{NASTY}"}).set_axis([NASTY] * 30, axis=0)
    found = LimisExplainer(lambda rows: rows["hours"].to_numpy(dtype=float), random_state=0).fit(frame).explain(rows)
    told = suggest(found, "> 40", max_queries=30)
    html = page(
        found,
        title=NASTY,
        by=[f"job{NASTY}"],
        sensitive=[f"job{NASTY}"],
        suggestions=told,
        facts={NASTY: NASTY},
    )
    assert "<script" not in html
    seen = read(html)
    assert f"job{NASTY} = {NASTY}" in seen.text
    assert "script" not in seen.tags


@pytest.mark.parametrize("surrogate", ["ridge", "tree"])
def test_a_thousand_rows_with_long_names_and_suggestions_stay_below_ten_megabytes(surrogate):
    rng = np.random.default_rng(0)
    levels = [f"a level with quite a long description, number {place}" for place in range(8)]
    names = [f"{place:02} months since the last payment was made on this account".ljust(60, "x") for place in range(15)]

    def table(n):
        return pd.DataFrame(
            {name: rng.normal(size=n) if place < 8 else rng.choice(levels, n) for place, name in enumerate(names)}
        )

    def model(rows):
        ends = rows[names[8]].str.endswith("3") + 1.0 * rows[names[9]].str.endswith("1")
        return rows[names[0]] * rows[names[1]] + rows[names[2]] + ends

    explainer = LimisExplainer(model, surrogate=surrogate, random_state=0).fit(table(300))
    rows = table(12)
    found, changes = explainer.explain(rows), explainer.suggest(rows, "up", max_queries=60)
    few = page(found[:2], title="few", suggestions=explainer.suggest(rows[:2], "up", max_queries=60), by=[])
    more = page(found, title="more", suggestions=changes, by=[])
    each = (len(more.encode()) - len(few.encode())) / 10
    assert 1000 * each < 10e6
    assert all(name in read(more).text for name in names[:3])
