import re

import pytest

from limis.cli import demo
from limis.cli.main import main
from limis.report.text import WIDTH


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "people.html"


def test_the_demo_tells_each_person_and_writes_a_page(page, capsys):
    demo.run_demo(page, n_people=4, seed=0, training_rows=1500)
    printed, progress = capsys.readouterr()
    people = printed.split("── Person ")[1:]
    assert [person[0] for person in people] == ["1", "2", "3", "4"]
    for person in people:
        assert re.search(r"The model +<?\d[\d.]*% for >50K \(logit [−\d.]+\); in truth: [<>]=?50K", person)
        assert re.search(r"^Why \d+", person, re.MULTILINE)
        assert "What if" in person
        assert "Trust it?" in person
    assert {re.search("in truth: (.+)", person)[1] for person in people} == {"<=50K", ">50K"}
    assert re.search(r"right \d\d\.\d% of the time, AUC 0\.\d{3}", printed)
    assert re.search(r"NSE -?\d\.\d{3}", printed)
    assert re.search(r"skill on changes -?\d\.\d{3}", printed)
    assert max(len(line) for line in printed.splitlines() if str(page) not in line) <= WIDTH
    assert "training a model" in progress
    assert str(page) in printed
    html = page.read_text(encoding="utf-8")
    assert html.count("&gt;50K") >= 4
    assert "<script" not in html


def test_people_are_drawn_by_the_seed_half_of_each_outcome():
    target = demo.load_adult().target.iloc[demo.TRAINING_ROWS :]
    drawn = demo._draw_people(target, 9, seed=1)
    assert drawn == demo._draw_people(target, 9, seed=1)
    assert drawn != demo._draw_people(target, 9, seed=2)
    assert target.loc[drawn].value_counts().to_dict() == {">50K": 5, "<=50K": 4}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-o", "page.pdf"], 1, "page.pdf does not end in .html"),
        (["-o", "no-such-folder/page.html"], 1, "folder no-such-folder is not there"),
        (["--rows", "99999", "-o", "page.html"], 1, "only 16,281 people"),
        (["--rows", "0"], 2, "from 1 to"),
        (["--seed", "-1"], 2, "from 0 to"),
    ],
)
def test_what_cannot_be_is_said_before_the_work(words, code, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "train_default_model", None)  # any work would fail on this
    assert main(["demo", *words]) == code
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
