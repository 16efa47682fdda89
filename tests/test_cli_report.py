"""The command `limis report`."""

import sys

import numpy as np
import pandas as pd
import pytest
from html_pages import read

from limis.cli.main import main

MODEL = """
import numpy as np

def three(rows):
    high = chance(rows)
    return np.column_stack([1 - high, 0.6 * high, 0.4 * high])

def chance(rows):
    return 1 / (1 + np.exp(-(rows["size"] + 2 * (rows["colour"] == "red"))))
"""


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"n{i}" for i in range(n)],
            "size": rng.normal(-1, 1, n).round(2),
            "age": rng.integers(20, 60, n),
            "colour": rng.choice(["red", "green"], n),
        }
    ).assign(district=lambda rows: np.where(rows.index % 2, "north", "south"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, rows, a model and an explainer, for tests that only read them."""
    folder = tmp_path_factory.mktemp("report")
    make_rows(200, 0).to_csv(folder / "train.csv", index=False)
    rows = make_rows(40, 1)
    rows.assign(truth=(rows["size"] > -1).astype(int)).to_csv(folder / "rows.csv", index=False)
    (folder / "report_model.py").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", list(sys.path))
        for name, output in (("chance", ["--output", "logit"]), ("three", [])):
            words = ["fit", "train.csv", "--model", f"report_model:{name}", *output, "--quiet", "-o", f"{name}.limis"]
            assert main([*words, "--drop", "id", "district"]) == 0
    sys.modules.pop("report_model", None)
    return folder


@pytest.fixture
def report(folder, tmp_path, monkeypatch, capsys):
    """The command, run in the folder; gives the exit code, what was written to the terminal, and the page's text."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("LIMIS_DEBUG", raising=False)
    path = tmp_path / "report.html"

    def run(*words, model=True, name="chance"):
        capsys.readouterr()
        given = ["--model", f"report_model:{name}"] if model else []
        code = main(["report", f"{name}.limis", "rows.csv", "-o", str(path), *given, *words])
        text = read(path.read_text(encoding="utf-8")).text if path.exists() else ""
        return code, capsys.readouterr(), text

    yield run
    sys.modules.pop("report_model", None)


def test_a_report_tells_of_all_rows_and_where_they_came_from(report):
    code, (out, err), text = report()
    assert (code, err) == (0, "")
    assert "40 rows explained" in out
    assert "40 explained, from rows.csv" in text
    assert "chance.limis" in text
    assert "on held-out rows" in text
    assert "By size" in text
    assert "What would change it" not in text


def test_suggestions_are_made_when_asked_for_or_wished(report):
    assert "What would change it" in report("--suggest", "--quiet")[2]
    code, _, text = report("--target", "1", "--immutable", "age,size", "--range", "colour=red", "--quiet")
    assert code == 0
    assert "colour green → red" in text
    assert "age " not in text.partition("What would change it")[2].partition("differs in")[0]


def test_groups_and_labels_may_be_columns_that_the_model_does_not_see(report):
    code, _, text = report("--by", "district", "--by", "colour", "--sensitive", "size,age", "--labels", "truth")
    assert code == 0
    assert "district = north" in text
    assert "age carries weight in" not in text
    assert "The black box’s own error" in text


def test_rows_have_the_names_of_a_column(report):
    text = report("--id", "id", "--title", "My rows", "--by", "district")[2]
    assert "My rows" in text
    assert "Row n0" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--by", "planet"], "rows.csv has no column 'planet' for --by"),
        (["--labels", "planet"], "rows.csv has no column 'planet' for --labels"),
        (["--id", "planet"], "rows.csv has no column 'planet' for --id"),
        (["--sensitive", "planet"], "there is no column 'planet' to call sensitive"),
        (["--class", "b"], "--class is for models of more than two classes"),
        (["--immutable", "planet"], "planet"),
    ],
)
def test_what_is_not_there_is_named(report, words, said):
    code, (_, err), text = report(*words)
    assert code == 1
    assert said in err
    assert text == ""


def test_of_several_classes_the_predicted_one_is_told_or_the_one_named(report):
    code, _, text = report("--target", "1", name="three")
    assert code == 0
    assert "Each card explains the class that is predicted for its row" in text
    assert "What would change it" in text
    code, _, text = report("--class", "2", "--by", "district", name="three")
    assert code == 0
    assert "district = north" in text


def test_groups_of_several_classes_need_a_class(report):
    code, (_, err), _ = report("--by", "district", name="three")
    assert code == 1
    assert "choose it with --class" in err


def test_suggestions_need_a_model(report):
    code, (_, err), _ = report("--suggest", model=False)
    assert code == 1
    assert "give --model" in err


def test_a_report_without_a_model_says_what_it_cannot_tell(report):
    code, _, text = report(model=False)
    assert code == 0
    assert "not at hand" in text
    assert "The black box was not asked about these rows" in text


def test_a_file_to_write_is_needed(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["report", "chance.limis", "rows.csv"]) == 2
    assert "-o" in capsys.readouterr().err
    assert main(["report", "chance.limis", "rows.csv", "-o", "report.pdf"]) == 1
