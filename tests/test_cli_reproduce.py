"""``limis reproduce``: from the command to tables, figures and the page of all results."""

import os

import numpy as np
import pytest

from limis.cli.main import main
from limis.experiments import EXPERIMENTS, write_page
from limis.experiments.runs import SyntheticRun


def zeros_found(run, device="cpu"):  # noqa: ARG001 - as all runs have it
    """What a run finds that explains nothing."""
    return {
        "coefficients": np.zeros((run.tests, 11)),
        "predictions": np.zeros(run.tests),
        "auc": np.array(np.nan),
        "selected_share": np.array(0.0),
        "weights": np.zeros((run.tests, run.rows)),
        "fit_seconds": np.array(1.0),
        "explain_seconds": np.array(1.0),
    }


def test_the_list_names_every_experiment_with_what_it_shows(capsys):
    assert main(["reproduce", "--list"]) == 0
    told = capsys.readouterr().out
    for experiment in EXPERIMENTS.values():
        assert f"{experiment.name}\n    {experiment.description}\n" in told
    assert "all-synthetic\n    14 of the above" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "no experiment 'nonsense'; there are: audit-skill, audit-verdicts"),
        ([], "name an experiment"),
        (["--page", "-o", "no/such/folder"], "there are no results in 'no/such/folder'"),
    ],
)
def test_commands_that_cannot_run_say_why(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 1
    assert message in capsys.readouterr().err


def test_a_quick_trial_from_the_command_to_the_page(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("lime")
    command = ["reproduce", "syn4", "--quick", "--tests", "10", "-o", os.fspath(tmp_path), "--page"]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "7 runs made, 0 were there already" in told
    assert "LIMIS (default)" in told
    pages = {"README.md", "index.html"}
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "syn4.json", "syn4.csv", "syn4.png", *pages}
    assert '<h2 id="syn4">' in (tmp_path / "index.html").read_text()
    page = (tmp_path / "README.md").read_text()
    assert "## syn4" in page
    assert "](syn4.png)" in page
    assert "`limis reproduce syn4 --seeds 1 --tests 10 --quick` · 7 runs" in page
    assert "| LIMIS (default) |" in page

    monkeypatch.setattr(SyntheticRun, "execute", lambda _: pytest.fail("a finished run was made again"))
    (tmp_path / "syn4.png").unlink()
    assert main(command) == 0
    assert "0 runs made, 7 were there already" in capsys.readouterr().out
    assert (tmp_path / "syn4.png").exists()


@pytest.mark.parametrize("without", ["--no-plot", "matplotlib"])
def test_tables_are_made_where_figures_are_not(without, tmp_path, monkeypatch):
    monkeypatch.setattr(SyntheticRun, "execute", zeros_found)
    if without == "matplotlib":

        def absent(name):
            raise ModuleNotFoundError(name, name="matplotlib")

        monkeypatch.setattr("limis.errors.importlib.import_module", absent)
    flags = [without] if without.startswith("-") else []
    assert main(["reproduce", "syn4", "--quick", "--tests", "10", "-o", os.fspath(tmp_path), *flags]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "syn4.json", "syn4.csv"}
    assert "png" not in write_page(tmp_path).read_text()


def test_quick_results_do_not_land_among_the_full_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SyntheticRun, "execute", zeros_found)
    assert main(["reproduce", "syn4", "--quick", "--no-plot"]) == 0
    assert (tmp_path / "results" / "quick" / "syn4.json").exists()
    assert not (tmp_path / "results" / "syn4.json").exists()
