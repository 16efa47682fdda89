"""The command `limis suggest`."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import limis
from limis.cli.main import main

MODEL = """
import numpy as np

def chance(rows):
    return 1 / (1 + np.exp(-(rows["size"] + 2 * (rows["colour"] == "red") + (rows["zip=code"] == "A1"))))

def price(rows):
    return 10 * rows["size"] + (rows["colour"] == "red")
"""


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"n{i}" for i in range(n)],
            "size": rng.normal(-1, 1, n).round(2),
            "age": rng.integers(20, 60, n),
            "colour": rng.choice(["red", "green", "light, blue"], n),
            "zip=code": rng.choice(["02139", "94110", "A1"], n),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, rows, a model and two explainers, for tests that only read them."""
    folder = tmp_path_factory.mktemp("suggest")
    make_rows(200, 0).to_csv(folder / "train.csv", index=False)
    rows = make_rows(60, 1)
    refused = (rows["size"] < 0) & (rows["colour"] != "red") & (rows["zip=code"] != "A1")
    rows[refused].head(6).to_csv(folder / "rows.csv", index=False)
    (folder / "suggest_model.py").write_text(MODEL)
    before = Path.cwd()
    os.chdir(folder)
    try:
        for name, output in (("chance", ["--output", "logit"]), ("price", [])):
            words = ["fit", "train.csv", "--model", f"suggest_model:{name}", "--drop", "id", *output, "--quiet"]
            assert main([*words, "-o", f"{name}.limis"]) == 0
    finally:
        os.chdir(before)
        sys.modules.pop("suggest_model", None)
    return folder


@pytest.fixture
def suggest(folder, tmp_path, monkeypatch, capsys):
    """The command, run in a fresh folder with links to the tables; gives the exit code and what was written."""
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("LIMIS_DEBUG", raising=False)

    def run(*words, name="chance", model=True):
        capsys.readouterr()
        given = ["--model", f"suggest_model:{name}"] if model else []
        code = main(["suggest", f"{name}.limis", "rows.csv", *given, *map(str, words)])
        return code, *capsys.readouterr()

    yield run
    sys.modules.pop("suggest_model", None)


def test_suggestions_are_printed_as_sentences(suggest):
    code, out, err = suggest("--target", "1", "--immutable", "age,zip=code", "-n", 1)
    assert (code, err) == (0, "")
    assert out.count("the model gives class 1, which is wished, ") == 6
    assert out.count("(confirmed: ") == 6
    assert "age: " not in out.replace("age (", "")
    assert " -> " in out


@pytest.mark.parametrize("extension", [".csv", ".parquet"])
def test_a_table_has_the_rows_own_columns_first(suggest, tmp_path, extension):
    options = ("--range", "size=:0.5", "--range", "colour=green", "--direction", "age=up", "--max-queries", 300)
    code, out, err = suggest(*options, "-o", f"out{extension}")
    assert (code, err) == (0, "")
    assert out.startswith("6 rows, ")
    read = pd.read_csv if extension == ".csv" else pd.read_parquet
    written, rows = read(tmp_path / f"out{extension}"), pd.read_csv(tmp_path / "rows.csv")
    assert list(written.columns[:7]) == [*rows.columns, "row", "rank"]
    assert (written["id"] == rows["id"][written["row"]].to_numpy()).all()
    assert (written["queries"] <= 300).all()
    assert not written["changes"].str.contains("-> red|-> light", na=False).any()
    best = written[written["rank"] == 1]
    assert (best["confirmed"] == (best["probability_after"] > 0.5)).all()


def test_json_of_values_with_a_level(suggest, tmp_path):
    words = ("--target", "> 8", "--immutable", "age", "--immutable", "zip=code", "-o", "out.json", "--quiet")
    assert suggest(*words, name="price") == (0, "", "")
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [row["row"] for row in found] == list(range(6))
    assert all(row["suggestions"][0]["output_after"] > 8 for row in found)
    assert all({change["column"] for change in row["suggestions"][0]["changes"]} <= {"size", "colour"} for row in found)
    assert found[0]["evidence"]["output"] > 8


def test_levels_and_names_with_marks_of_their_own(suggest, tmp_path):
    words = ("--range", "colour=light, blue", "--range", "zip=code=A1", "--range", "size=-30:-20", "--together", "none")
    code, _, err = suggest(*words)
    assert code == 1
    assert "ranges['size'] leaves nothing to choose from" in err
    code, _, err = suggest(*words[:4], "--immutable", "size,age", "--together", "colour,zip=code", "-o", "out.json")
    assert (code, err) == (0, "")
    for row in json.loads((tmp_path / "out.json").read_text(encoding="utf-8")):
        for one in row["suggestions"]:
            assert {change["to"] for change in one["changes"]} <= {"light, blue", "A1"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "2"], "target '2' is not a class of the model; its classes are 0, 1"),
        (["--target", "0"], "all 6 rows have the target already, class 0"),
        (["--immutable", "sise"], "immutable names 'sise', which is not a column; did you mean 'size'"),
        (["--range", "size"], "--range size is incomplete: write --range NAME="),
        (["--range", "size=3"], "is not a range: write size=LOW:HIGH"),
        (["--range", "size=1:2", "--range", "size=1:3"], "--range size is given twice"),
        (["--range", "size=3:2"], "is empty"),
        (["--range", "colour=pink"], "'pink', which no training row has"),
        (["--direction", "age=sideways"], 'is "up" or "down"'),
        (["--together", "size,agee"], "together names 'agee'"),
        (["-o", "out.html"], "does not end in .csv, .parquet or .json"),
    ],
)
def test_what_cannot_be_meant_is_one_line(suggest, words, message):
    code, out, err = suggest(*words)
    assert (code, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1


def test_usage(suggest):
    assert suggest("-n", "0")[0] == 2
    assert suggest("--max-queries", "none")[0] == 2


def test_a_model_is_needed(suggest):
    code, _, err = suggest(model=False)
    assert code == 1
    assert "not inside chance.limis; give --model" in err


def test_columns_that_the_output_would_have_twice_are_refused(suggest, tmp_path):
    rows = pd.read_csv(tmp_path / "rows.csv").assign(rank=1)
    (tmp_path / "rows.csv").unlink()
    rows.to_csv(tmp_path / "rows.csv", index=False)
    code, _, err = suggest("-o", "out.csv")
    assert code == 1
    assert "has a column 'rank', and so would the output" in err
    assert suggest("-o", "out.json", "--quiet")[0] == 0


def test_the_command_says_what_the_library_says(suggest, folder, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    import suggest_model

    suggest("--immutable", "age", "-o", "out.json", "--quiet")
    explainer = limis.load(folder / "chance.limis", model=suggest_model.chance)
    rows = pd.read_csv(folder / "rows.csv", dtype={"zip=code": str}).drop(columns="id")
    found = explainer.suggest(rows, immutable=["age"])
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8")) == json.loads(found.to_json())
