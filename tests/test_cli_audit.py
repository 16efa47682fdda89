import json

import numpy as np
import pandas as pd
import pytest

from limis.cli.main import main


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"size": rng.normal(size=n).round(3), "colour": rng.choice(["red", "green", "blue"], n)})
    rows["dear"] = np.where(rows["size"] + (rows["colour"] == "red") > 0, "yes", "no")
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    make_rows(240, 0).to_csv(folder / "train.csv", index=False)
    make_rows(20, 1).to_csv(folder / "test.csv", index=False)
    make_rows(60, 2).to_csv(folder / "more.csv", index=False)
    words = ["fit", str(folder / "train.csv"), "--target", "dear", "-o", str(folder / "dear.limis"), "--quiet"]
    assert main(words) == 0
    return folder


def audit(folder, *words):
    return main(["audit", str(folder / "dear.limis"), str(folder / "test.csv"), "--max-questions", "20000", *words])


def test_it_prints_sentences_and_tables(folder, capsys):
    assert audit(folder, "--held-out", str(folder / "more.csv"), "--quiet") == 0
    printed = capsys.readouterr().out
    assert "limis's reasons score" in printed
    assert "Skill on single changes" in printed


def test_json_has_all_tables_and_html_is_one_page(folder, tmp_path, capsys):
    assert audit(folder, "--against", "lime", "--sensitive", "colour", "-o", str(tmp_path / "audit.json")) == 0
    assert "questions to the model about 20 rows" in capsys.readouterr().out
    stored = json.loads((tmp_path / "audit.json").read_text())
    assert {line["method"] for line in stored["skills"]} >= {"limis", "lime", "nothing changes"}
    assert audit(folder, "-o", str(tmp_path / "audit.html"), "--quiet") == 0
    page = (tmp_path / "audit.html").read_text()
    assert "Audit of explanations of test.csv" in page
    assert "<script" not in page


def test_what_it_does_not_know_is_an_error_in_one_line(folder, capsys):
    assert audit(folder, "--against", "shap,anchors") == 1
    assert "--against knows shap and lime, not 'anchors'" in capsys.readouterr().err
    assert audit(folder, "--sensitive", "age") == 1
    assert "age" in capsys.readouterr().err
    assert audit(folder, "-o", str(folder / "audit.csv")) == 1
    assert ".html" in capsys.readouterr().err
