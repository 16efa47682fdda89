"""`limis serve`: what it refuses before it listens, and that it serves what it was given."""

import os
import re
import signal
import subprocess
import sys

import pandas as pd
import pytest

from limis.cli.main import main

pytest.importorskip("fastapi")
import httpx

from limis import LimisExplainer
from limis.datasets import load_adult


@pytest.fixture(scope="module")
def explainer_file(tmp_path_factory):
    """An explainer that has its model inside."""
    lightgbm = pytest.importorskip("lightgbm")
    adult = load_adult()
    frame = adult.frame[["age", "hours-per-week", "education-num"]].head(300)
    model = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(frame, adult.target.head(300))
    path = tmp_path_factory.mktemp("served") / "income.limis"
    LimisExplainer(model, weighting="forest", n_jobs=1).fit(frame).save(path)
    frame.tail(20).to_csv(path.with_name("rows.csv"), index=False)
    return path


def started(words, **environment):
    """The server as a process, and the first lines that it prints."""
    command = [sys.executable, "-m", "limis", "serve", *map(str, words), "--port", "0"]
    process = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return process, re.search(r"http://\S+(?=/ )", line).group()


def stopped(process):
    process.send_signal(signal.SIGINT)
    code = process.wait(30)
    errors = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    return code, errors


def test_it_serves_rows_to_this_machine_without_a_token_and_ends_when_interrupted(explainer_file):
    process, address = started([explainer_file, explainer_file.with_name("rows.csv")])
    try:
        assert address.startswith("http://127.0.0.1:")
        assert "rows.csv" in httpx.get(f"{address}/", follow_redirects=True).text
    finally:
        code, errors = stopped(process)
    assert (code, errors) == (0, "")


def test_of_more_rows_than_can_be_held_the_first_are_served(explainer_file, tmp_path):
    rows = pd.read_csv(explainer_file.with_name("rows.csv"))
    many = pd.concat([rows] * 501, ignore_index=True)
    many.to_csv(tmp_path / "many.csv", index=False)
    process, address = started([explainer_file, tmp_path / "many.csv"])
    try:
        assert process.stdout.readline() == "many.csv has 10,020 rows, of which the first 10,000 are served\n"
        page = httpx.get(f"{address}/", follow_redirects=True).text
        assert "<h1>many.csv, the first 10,000 of 10,020 rows</h1>" in page
        assert httpx.get(f"{address}/tables/rows/rows/10000").status_code == 404
    finally:
        assert stopped(process) == (0, "")


def test_others_are_asked_for_a_token_which_is_made_and_printed(explainer_file):
    process, address = started([explainer_file, "--host", "0.0.0.0"], LIMIS_TOKEN="")  # noqa: S104
    address = address.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
    try:
        line = process.stdout.readline()
        assert line.startswith("token: ")
        token = line.removeprefix("token: ").strip()
        assert len(token) >= 32
        assert httpx.get(f"{address}/api/metadata").status_code == 401
        allowed = httpx.get(f"{address}/api/metadata", headers={"Authorization": f"Bearer {token}"})
        assert allowed.json()["classes"] == ["<=50K", ">50K"]
    finally:
        assert stopped(process) == (0, "")


def test_a_token_of_ones_own_is_not_printed(explainer_file):
    own = "my-own-token-of-32-characters-ok"
    process, address = started([explainer_file], LIMIS_TOKEN=own)
    try:
        assert httpx.get(f"{address}/api/metadata").status_code == 401
        assert httpx.get(f"{address}/api/metadata", headers={"Authorization": f"Bearer {own}"}).status_code == 200
    finally:
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert own not in rest + errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.limis"], "is not there"),
        (["{file}", "missing.csv"], "is not there"),
        (["{file}", "--token", "short"], "at least 16"),
        (["{file}", "--host", "host.invalid"], "cannot listen on host.invalid"),
        (["{file}", "--host", "203.0.113.7"], "cannot listen on 203.0.113.7"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(explainer_file, capsys, words, message):
    assert main(["serve", *(word.format(file=explainer_file) for word in words)]) == 1
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize("port", ["-1", "x", "65536"])
def test_a_port_that_is_none_is_refused(explainer_file, capsys, port):
    assert main(["serve", str(explainer_file), f"--port={port}"]) == 2
    assert "a port is a number" in capsys.readouterr().err


def test_without_the_extra_it_names_it(explainer_file, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["serve", str(explainer_file)]) == 1
    assert 'pip install "limis-xai[serve]"' in capsys.readouterr().err
