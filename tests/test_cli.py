import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.linear_model import LinearRegression

import limis
from limis.cli import fit
from limis.cli import main as main_module
from limis.cli.main import main


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "id": [f"n{i}" for i in range(n)],
            "size": rng.normal(size=n).round(3),
            "colour": rng.choice(["red", "green", "blue"], n),
            "zip": rng.choice(["02139", "94110", "A1"], n),
            "flag": rng.random(n) > 0.5,
        }
    )
    rows["price"] = 2 * rows["size"] + rows["colour"].map({"red": 3, "green": 0, "blue": -3}) + rows["flag"]
    rows["dear"] = np.where(rows["price"] > 0, "yes", "no")
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables, models and two explainers, for tests that only read them."""
    folder = tmp_path_factory.mktemp("cli")
    train = make_rows(240, 0)
    train.to_csv(folder / "train.csv", index=False)
    train.to_parquet(folder / "train.parquet")
    make_rows(12, 1).to_csv(folder / "rows.csv", index=False)
    make_rows(60, 2).to_csv(folder / "probe.csv", index=False)
    (folder / "my_model.py").write_text("def predict(rows):\n    return 3 * rows['size']\n\nnumber = 5\n")
    plain = LinearRegression().fit(train[["size"]], train["price"])
    joblib.dump(plain, folder / "plain.joblib")
    trees = xgboost.XGBRegressor(n_estimators=5).fit(train[["size"]], train["price"])
    trees.save_model(folder / "trees.json")
    run_in(folder, "fit", "train.csv", "--target", "dear", "--drop", "id", "price", "-o", "dear.limis", "--quiet")
    return folder


def run_in(folder, *words):
    """Run the command in a folder; an error is shown."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(words) == 0
    finally:
        os.chdir(before)


@pytest.fixture
def limis_command(folder, tmp_path, monkeypatch, capsys):
    """The command, run in a fresh folder with links to the tables; gives the exit code and what was written."""
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("LIMIS_DEBUG", raising=False)

    def run(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    yield run
    sys.modules.pop("my_model", None)


def test_fit_trains_a_model_and_says_what_it_found(limis_command, tmp_path):
    code, out, err = limis_command(
        "fit", "train.csv", "--target", "dear", "--drop", "id", "price", "-o", "new.limis", "--jobs", "1"
    )
    assert code == 0
    assert "LightGBM, trained here to predict dear = yes" in out
    assert "240 to explain with, each a probe row of a fit without it, 4 columns" in out
    assert "the logit of yes (chosen by auto)" in out
    assert re.search(r"NSE (0\.\d{3}|1\.000)", out)
    assert re.search(r"skill on changes (0\.\d{3}|1\.000)", out)
    assert re.search(r"weights \w+: best on probe rows of the 3 tried", out)
    assert "new.limis" in out
    assert "recording responses" in err
    explainer = limis.load(tmp_path / "new.limis")
    assert list(explainer.feature_names_in_) == ["size", "colour", "zip", "flag"]
    assert type(explainer.model).__name__ == "Booster"
    assert explainer.training_.black_box.classes == ["no", "yes"]


def test_fit_explains_the_target_itself(limis_command, tmp_path):
    code, out, _ = limis_command(
        *("fit", "train.parquet", "--target", "price", "--no-model", "--drop", "id", "dear", "-o", "new.limis"),
        *("--probe", "probe.csv"),
    )
    assert code == 0
    assert "240 to explain with, 60 probe rows" in out
    assert "the values given" in out
    assert "not measured: there is no model" in out
    code, out, _ = limis_command("explain", "new.limis", "rows.csv", "-o", "out.csv")
    assert code == 0
    assert "give --model or --outputs" in out
    assert "model_output" not in pd.read_csv(tmp_path / "out.csv").columns


def test_fit_and_explain_with_given_outputs(limis_command, tmp_path):
    words = ("--outputs", "price", "--drop", "id", "dear", "-o", "new.limis", "--quiet")
    assert limis_command("fit", "train.csv", *words, "--probe", "probe.csv") == (0, "", "")
    code, out, err = limis_command("explain", "new.limis", "rows.csv", "--outputs", "price", "-o", "out.csv")
    assert (code, err) == (0, "")
    assert "give --model" not in out
    written = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(written["model_output"], written["price"])


def test_fit_asks_a_function_of_the_current_folder(limis_command, tmp_path):
    words = ("--model", "my_model:predict", "--drop", "id", "dear", "price", "-o", "new.limis")
    code, out, _ = limis_command("fit", "train.csv", *words, "--weighting", "forest", "--max-questions", "2000")
    assert code == 0
    options = limis.load(tmp_path / "new.limis").get_params()
    assert (options["surrogate"], options["weighting"], options["max_questions"]) == ("curves", "forest", 2000)
    assert "The model is not inside that file" in out
    code, _, err = limis_command("explain", "new.limis", "rows.csv", "--model", "my_model:predict", "-o", "out.csv")
    assert (code, err) == (0, "")
    written = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(written["model_output"], 3 * written["size"])


def test_fit_reads_model_files(limis_command, tmp_path):
    others = ("--drop", "id", "dear", "colour", "zip", "flag", "--target", "price", "--quiet")
    assert limis_command("fit", "train.csv", "--model", "trees.json", *others, "-o", "trees.limis") == (0, "", "")
    model = limis.load(tmp_path / "trees.limis").model
    model.save_model(tmp_path / "again.ubj")
    code, _, err = limis_command("explain", "trees.limis", "rows.csv", "--model", "again.ubj", "-o", "out.json")
    assert (code, err) == (0, "")
    words = ("--model", "plain.joblib", "--trust-model", *others, "-o", "plain.limis")
    assert limis_command("fit", "train.csv", *words, "--surrogate", "tree", "--max-depth", "2") == (0, "", "")
    assert limis.load(tmp_path / "plain.limis").max_depth == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to explain: give --target, --model or --outputs"),
        (["--no-model", "--outputs", "price"], "give --target"),
        (["--no-model", "--outputs", "price", "--target", "dear"], "leave out --no-model"),
        (["--outputs", "price", "--output", "logit"], "needs a model that can be asked"),
        (["--target", "dear", "--trust-model"], "give that too"),
        (["--target", "dear", "--model", "m:f", "--no-model"], "not allowed with"),
        (["--target", "dear", "--seed", "x"], "whole number"),
        (["--target", "dear", "--weighting", "pairwise"], "--weighting pairwise is for --surrogate ridge or tree"),
        (["--target", "dear", "--surrogate", "ridge", "--weighting", "none"], "none is for --surrogate curves"),
        (["--target", "dear", "--max-depth", "2"], "--max-depth is for --surrogate tree"),
        (["--target", "dear", "--surrogate", "tree", "--max-questions", "5000"], "is for --surrogate curves"),
        (["--target", "dear", "--surrogate", "tree", "--answers", "said"], "--answers is for --surrogate curves"),
        (["--target", "dear", "--max-questions", "10"], "--max-questions is 1,000 or more, not 10"),
        (["--outputs", "price", "--max-questions", "5000"], "--max-questions needs a model that can be asked"),
    ],
)
def test_fit_usage(limis_command, words, message):
    code, out, err = limis_command("fit", "train.csv", "-o", "new.limis", *words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("extension", [".csv", ".parquet"])
def test_explain_writes_a_table_with_the_rows_own_columns_first(limis_command, tmp_path, extension):
    code, out, err = limis_command("explain", "dear.limis", "rows.csv", "-o", f"out{extension}")
    assert (code, err) == (0, "")
    assert out.startswith("12 rows explained, ")
    read = pd.read_csv if extension == ".csv" else pd.read_parquet
    written, rows = read(tmp_path / f"out{extension}"), make_rows(12, 1)
    assert list(written.columns[: rows.shape[1]]) == list(rows.columns)
    assert list(written["id"]) == list(rows["id"])
    parts = written[[name for name in written.columns if name.startswith("contribution: ")]]
    assert list(parts.columns) == [f"contribution: {name}" for name in ("size", "colour", "zip", "flag", "rest")]
    np.testing.assert_allclose(written["base_value"] + parts.sum(axis=1), written["local_prediction"], atol=1e-9)
    assert {"model_output", "trusted", "doubts", "fixed_here", "unknown_here"} <= set(written.columns)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # shap's own
def test_questions_and_a_reference_are_options(limis_command, tmp_path):
    code, _, _ = limis_command("explain", "dear.limis", "rows.csv", "-o", "asked.csv", "--until-trusted", "1000")
    assert code == 0
    assert (pd.read_csv(tmp_path / "asked.csv")["questions"] <= 1000).all()
    code, *_ = limis_command(
        "explain", "dear.limis", "rows.csv", "-o", "asked.csv", "--reference", "size > 1", "--reason-queries", "50"
    )
    assert code == 0
    base = pd.read_csv(tmp_path / "asked.csv")["base_value"]
    assert np.ptp(base) == 0
    code, _, err = limis_command("explain", "dear.limis", "rows.csv", "--reasons", "shapley")
    assert code == 1
    assert "the trees split on categories" in err
    code, _, err = limis_command("explain", "dear.limis", "rows.csv", "--reason-queries", "2")
    assert code == 1
    assert "are the fewest" in err


def test_explain_writes_json_and_html(limis_command, tmp_path):
    assert limis_command("explain", "dear.limis", "rows.csv", "-o", "out.json", "--quiet") == (0, "", "")
    cases = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [case["row"] for case in cases] == list(range(12))
    assert limis_command("explain", "dear.limis", "rows.csv", "-o", "out.HTML", "--quiet") == (0, "", "")
    assert "rows.csv" in (tmp_path / "out.HTML").read_text(encoding="utf-8")


def test_explain_prints_text(limis_command):
    code, out, err = limis_command("explain", "dear.limis", "rows.csv")
    assert (code, err) == (0, "")
    assert out.count("── Row ") == 12
    assert out.count("% for yes (logit") == 12
    assert "size = " in out


def test_columns_are_read_as_they_were_at_fit(limis_command, tmp_path):
    # By themselves these would be read as numbers, as numbers, and as neither.
    odd = pd.DataFrame({"size": [1.0, 2.0], "colour": [None, None], "zip": ["02139", "94110"], "flag": [True, None]})
    odd.to_csv(tmp_path / "odd.csv", index=False)
    code, _, err = limis_command("explain", "dear.limis", "odd.csv", "-o", "out.parquet")
    assert (code, err) == (0, "")
    written = pd.read_parquet(tmp_path / "out.parquet")
    assert list(written["zip"]) == ["02139", "94110"]
    assert "zip" not in " ".join(written["doubts"])
    assert "colour" in written["doubts"][0]
    odd.astype({"colour": float}).drop(columns="flag").assign(flag=[True, False]).to_parquet(tmp_path / "odd.parquet")
    assert limis_command("explain", "dear.limis", "odd.parquet", "-o", "out.csv", "--quiet")[0] == 0


def test_dates_of_a_parquet_file_are_read_from_csv(limis_command, tmp_path):
    rows = make_rows(120, 3)[["size", "price"]]
    rows["sold"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(120), "D")
    rows.to_parquet(tmp_path / "dated.parquet")
    words = ("--target", "price", "--no-model", "-o", "dated.limis", "--quiet")
    assert limis_command("fit", "dated.parquet", *words) == (0, "", "")
    rows.to_csv(tmp_path / "dated.csv", index=False)
    assert limis_command("explain", "dated.limis", "dated.csv", "-o", "out.csv", "--quiet") == (0, "", "")
    (tmp_path / "bad.csv").write_text("size,sold\n1,2024-01-01\n2,soon\n")
    code, _, err = limis_command("explain", "dated.limis", "bad.csv", "-o", "out.csv")
    assert code == 1
    assert "column 'sold' held dates at fit, but row 1 has 'soon'" in err


def fails_in_one_line(result, message):
    code, out, err = result
    assert code == 1
    assert out == ""
    assert err.startswith("limis: error: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "bad.csv is not there"),
        ("", "bad.csv is empty"),
        ("\n\n", "bad.csv is empty"),
        ("size,dear\n", "column names but no rows"),
        ("size,dear\n1,yes\n2,no,3\n4,no\n", "bad.csv, line 3: 3 values, but the first line names 2 columns"),
        ("size,dear\n1,yes\n\n2\n", "bad.csv, line 4: 1 value, but"),
        ('size,dear\n1,"yes\nno"\n2,no,no\n', "bad.csv, line 4: 3 values"),
        ('size,dear\n1,"yes\n2,no\n', "bad.csv, line 2: "),
        ("size,size,dear\n1,2,yes\n", "the column 'size' more than once"),
        ("size;dear\n1;yes\n", "values are to be separated by commas"),
        ("size,price\n1,2\n", "no column 'dear' for --target; it has 'size', 'price'"),
        ("dear\nyes\nno\n", "no column left"),
        ("size,dear\n1,yes\n2,yes\n", "one class only"),
        ("size,dear\n1,yes\n2,\n", "missing in row 1"),
        (b"size,dear\n1,\xff\n", "not UTF-8"),
    ],
)
def test_bad_tables(limis_command, tmp_path, content, message):
    if content is not None:
        (tmp_path / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    fails_in_one_line(limis_command("fit", "bad.csv", "--target", "dear", "-o", "new.limis", "--quiet"), message)
    assert not list(tmp_path.glob("*new.limis*"))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("plain.joblib", "reading it runs whatever code it holds; if you trust whoever made it, add --trust-model"),
        ("no_such_module:predict", "there is no module 'no_such_module'"),
        ("my_model:no_such_function", "module my_model has no 'no_such_function'"),
        ("my_model:number", "'int': neither a function nor a model"),
        ("my_model:", "write module:name"),
        ("my_model", "not a model file by its extension"),
        ("no_such_file.json", "no_such_file.json is not there"),
        ("broken.json", "broken.json is not a model that XGBoost saved"),
        ("broken.txt", "broken.txt is not a model that LightGBM saved"),
        ("broken_module:predict", "importing broken_module failed: ZeroDivisionError"),
        ("half_module:predict", "importing half_module failed: No module named 'absent_package'"),
    ],
)
def test_bad_models(limis_command, tmp_path, model, message):
    (tmp_path / "broken.json").write_text('{"a":')
    (tmp_path / "broken.txt").write_text("no tree")
    (tmp_path / "broken_module.py").write_text("1 / 0")
    (tmp_path / "half_module.py").write_text("import absent_package")
    fails_in_one_line(limis_command("fit", "train.csv", "--model", model, "-o", "new.limis"), message)
    assert not list(tmp_path.glob("*new.limis*"))


def test_a_pickle_that_cannot_be_read(limis_command, tmp_path):
    (tmp_path / "broken.pkl").write_bytes(b"nothing")
    words = ("--model", "broken.pkl", "--trust-model", "-o", "new.limis")
    fails_in_one_line(limis_command("fit", "train.csv", *words), "broken.pkl cannot be loaded")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dear.limis", "rows.csv", "-o", "out.xlsx"], "out.xlsx does not end in .parquet, .csv, .json or .html"),
        (["dear.limis", "rows.csv", "-o", "nowhere/out.csv"], "the folder nowhere is not there"),
        (["dear.limis", "rows.csv", "-o", "folder.csv"], "folder.csv is a folder"),
        (["dear.limis", "rows.csv", "-o", "rows.csv"], "rows.csv is read and would be overwritten"),
        (["dear.limis", "rows.txt"], "rows.txt is not there"),
        (["dear.limis", "my_model.py"], "my_model.py does not end in .csv or .parquet"),
        (["absent.limis", "rows.csv"], "absent.limis is not there"),
        (["corrupt.limis", "rows.csv"], "corrupt.limis is damaged"),
        (["rows.csv", "rows.csv"], "not a saved explainer"),
        (["dear.limis", "few.csv"], "columns seen at fit are missing from the table: 'colour', 'zip'"),
        (["dear.limis", "none.csv"], "none of the columns seen at fit"),
        (["dear.limis", "text.csv"], "row 0 has 'large'"),
        (["dear.limis", "few.csv", "--outputs", "score"], "no column 'score' for --outputs"),
        (["dear.limis", "clash.csv", "-o", "out.csv"], "clash.csv has a column 'trusted', and so would the output"),
        (["dear.limis", "corrupt.parquet"], "corrupt.parquet cannot be read as Parquet"),
    ],
)
def test_bad_explain(limis_command, tmp_path, words, message):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "corrupt.limis").write_bytes((tmp_path / "dear.limis").read_bytes()[:-500])
    (tmp_path / "corrupt.parquet").write_bytes(b"PAR1")
    (tmp_path / "few.csv").write_text("size,flag\n1,True\n")
    (tmp_path / "none.csv").write_text("x,y\n1,2\n")
    (tmp_path / "text.csv").write_text("size,colour,zip,flag\nlarge,red,A1,True\n")
    (tmp_path / "clash.csv").write_text("size,colour,zip,flag,trusted\n1,red,A1,True,yes\n")
    before = set(tmp_path.rglob("*"))
    fails_in_one_line(limis_command("explain", *words), message)
    assert set(tmp_path.rglob("*")) == before


def test_an_output_that_is_there_survives_an_error(limis_command, tmp_path, monkeypatch):
    (tmp_path / "out.json").write_text("old")
    monkeypatch.setattr(limis.Explanations, "to_json", lambda _: 1 / 0)
    code, _, err = limis_command("explain", "dear.limis", "rows.csv", "-o", "out.json")
    assert code == 1
    assert "unexpected ZeroDivisionError" in err
    assert (tmp_path / "out.json").read_text() == "old"
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("words", [["--help"], ["demo", "--help"], ["fit", "--help"], ["explain", "--help"]])
def test_help_has_examples(limis_command, words):
    code, out, err = limis_command(*words)
    assert (code, err) == (0, "")
    assert "examples:\n  limis " in out


def test_version_and_usage(limis_command):
    assert limis_command("--version") == (0, f"limis {limis.__version__}\n", "")
    assert limis_command()[0] == 2
    assert limis_command("no-such-command")[0] == 2


def test_debugging_shows_where_an_error_came_from(limis_command, monkeypatch):
    monkeypatch.setenv("LIMIS_DEBUG", "1")
    with pytest.raises(limis.InputError):
        limis_command("fit", "absent.csv", "--target", "x", "-o", "new.limis")


def test_interrupting_is_not_an_error_of_the_input(limis_command, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "read_table", interrupted)
    code, _, err = limis_command("fit", "train.csv", "--target", "dear", "-o", "new.limis")
    assert (code, err) == (main_module.INTERRUPTED, "limis: interrupted\n")


def test_warnings_are_one_line(limis_command, monkeypatch):
    def warns(*_, **__):
        limis.cli.main.warnings.warn("careful", stacklevel=1)
        raise limis.InputError("two\n lines")

    monkeypatch.setattr(fit, "read_table", warns)
    code, _, err = limis_command("fit", "train.csv", "--target", "dear", "-o", "new.limis")
    assert (code, err) == (1, "limis: warning: careful\nlimis: error: two lines\n")


def test_a_plain_terminal_still_shows_every_sign(folder, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    run_in(folder, "explain", "dear.limis", "rows.csv")
    text = written.getvalue().decode("ascii")
    assert "(logit -" in text
    assert "?" not in text.replace("Trust it?", "")


def test_a_reader_that_stops_reading_is_no_error(folder):
    words = [sys.executable, "-m", "limis", "explain", "dear.limis", "rows.csv"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(words, cwd=folder, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own words
    os.close(writing)
    assert (done.returncode, done.stderr) == (main_module.PIPE_CLOSED, "")


def test_the_bench_of_trees_prints_ratios_and_keeps_them(tmp_path, capsys):
    kept = tmp_path / "bench.json"
    assert main(["bench", "trees", "--quick", "-o", str(kept)]) == 0
    assert "times_faster" in capsys.readouterr().out
    lines = json.loads(kept.read_text(encoding="utf-8"))["trees"]
    assert len(lines) == 3
    assert all(line["times_faster"] > 0 for line in lines)
