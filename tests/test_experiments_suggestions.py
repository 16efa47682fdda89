"""``limis reproduce suggestions``: every method on the same rows under the same constraints."""

import numpy as np
import pandas as pd
import pytest

from limis.experiments import EXPERIMENTS, Scope, black_boxes, suggested_people, suggestions
from limis.experiments.page import markdown
from limis.table import Table

SMALL = Scope(seeds=1, tests=3, quick=True)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    pytest.importorskip("xgboost")
    monkeypatch.setattr(suggestions, "QUICK_ROWS", 200)
    monkeypatch.setattr(black_boxes, "QUICK_TREES", 5)
    monkeypatch.setattr(suggested_people, "PEOPLE", 3)


def made(method, setting="capital fixed"):
    run = suggestions.SuggestionsRun(method, setting, 0, 0, 3, quick=True)
    return run.outcome(run.execute())


def made_up(method, setting, confirmed, n_changes, single):
    n = len(confirmed)
    known = {"distance": np.arange(n) / 10, "ms": np.full(n, 2.0), "questions": np.full(n, 7)}
    alone = np.full(n, np.nan) if method in suggestions.DICE else np.array([1.0] + [0.0] * (n - 1))
    lines = {"confirmed": confirmed, "n_changes": n_changes, "single": single, **known, "proposed": alone}
    return pd.DataFrame({**lines, "alone": alone}).assign(method=method, setting=setting)


@pytest.mark.parametrize("method", suggestions.LIMIS)
def test_limis_is_measured_by_its_first_suggestion(method):
    lines = made(method)
    assert len(lines) == 3
    done = lines[lines["confirmed"]]
    assert (done["n_changes"] > 0).all()
    assert (done["distance"] > 0).all()
    assert (lines["alone"] <= lines["proposed"]).all()
    assert not done["single"].str.startswith(tuple(suggestions.SETTINGS["capital fixed"])).any()


@pytest.mark.parametrize("method", suggestions.DICE)
def test_dice_is_measured_by_the_row_it_returns(method):
    pytest.importorskip("dice_ml", reason="DiCE is not installed; it comes with the extras dev and peers")
    lines = made(method)
    assert len(lines) == 3
    done = lines[lines["confirmed"]]
    assert len(done)
    assert (done["n_changes"] > 0).all()
    assert lines["alone"].isna().all()
    assert (lines["ms"] > 0).all()


def test_distances_of_changed_rows_are_those_of_the_suggestions():
    task = suggestions.Task.draw(0, quick=True)
    rows = task.rejected[:3]
    told = task.explainer(0).suggest(rows, 1, immutable=suggestions.PERSONAL, n=1)
    first = [row[0] for row in told]
    moved = suggestions._moved(Table.learn(task.train)[0], rows, told.changed_rows())
    assert moved["distance"] == pytest.approx([one.distance for one in first], abs=1e-5)
    for one, single in zip(first, moved["single"], strict=True):
        (column, (_, to)), *more = one.words.items()
        assert single == ("" if more else f"{column} -> {to}")


def test_the_runs_cover_every_row_once_for_each_method_and_setting():
    runs = EXPERIMENTS["suggestions"].runs(Scope(seeds=1))
    assert len({run.key for run in runs}) == len(runs)
    for method in (*suggestions.LIMIS, *suggestions.DICE):
        for setting in suggestions.SETTINGS:
            own = [run for run in runs if (run.method, run.setting) == (method, setting)]
            assert sorted(row for run in own for row in range(run.start, run.stop)) == list(range(500))


def test_the_table_counts_all_rows_and_averages_over_confirmed_ones():
    gain = "capital-gain -> 5,178"
    outcomes = [
        made_up("DiCE random", "capital free", [True, False], [3, 9], ["", ""]),
        made_up("LIMIS (tree)", "capital free", [True, True], [1, 1], [gain, "capital-gain -> 99,999"]),
        made_up("LIMIS (tree)", "capital free", [True, True], [2, 1], ["", gain]),
    ]
    experiment = EXPERIMENTS["suggestions"]
    table = experiment.tabulate(outcomes)
    limis, dice = table.to_dict("records")
    assert (limis["method"], limis["rows"], limis["confirmed"], limis["alone"]) == ("LIMIS (tree)", 4, 1.0, 0.5)
    assert (limis["within 1"], limis["within 2"], limis["columns"]) == (0.75, 1.0, 1.25)
    assert (limis["same change"], limis["its share"]) == (gain, 0.5)
    assert (limis["same column"], limis["the column's share"]) == ("capital-gain", 0.75)
    assert (dice["confirmed"], dice["within 2"], dice["within 3"], dice["columns"]) == (0.5, 0.0, 0.5, 3.0)
    assert (dice["same change"], dice["its share"]) == ("", 0.0)
    shown = experiment.show(table).to_dict("records")
    assert shown[0]["most frequent change"] == f"{gain} (50.0%)"
    assert shown[1]["explanation alone"] == shown[1]["most frequent change"] == ""
    assert "| capital free | LIMIS (tree) | 4 | 100.0% |" in markdown(experiment.show(table))


def test_the_share_within_few_columns_is_drawn_for_every_method():
    pytest.importorskip("matplotlib")
    outcomes = [
        made_up(method, setting, [True], [2], [""])
        for method in (*suggestions.LIMIS, *suggestions.DICE)
        for setting in suggestions.SETTINGS
    ]
    experiment = EXPERIMENTS["suggestions"]
    figure = experiment.draw(experiment.tabulate(outcomes))
    assert [len(ax.lines) for ax in figure.axes] == [4, 4]


def test_the_people_are_told_with_what_their_tree_sees():
    pytest.importorskip("matplotlib")
    experiment = EXPERIMENTS["suggestions-people"]
    (run,) = experiment.runs(SMALL)
    table = experiment.tabulate([run.outcome(run.execute())])
    assert table["person"].tolist() == [1, 2, 3, 1, 2, 3]
    assert (table["before"] < 0.5).all()
    assert ((table["after"] > 0.5) == table["confirmed"]).all()
    assert ((table["climb after"] > 0.5) == table["climb confirmed"]).all()
    assert (table["climb after"].notna() == (table["climb"] != "")).all()
    task = suggestions.Task.draw(0, quick=True)
    for person, words in zip(task.rejected[:3].to_dict("records"), table["characteristics"], strict=False):
        told = dict(part.split(": ") for part in words.split(", "))
        assert all(str(person[column]) == value.replace(",", "") for column, value in told.items())
    shown = experiment.show(table)
    assert len(shown) == 3
    assert len(experiment.draw(table).axes) == 2
    unfound = table.assign(suggestion="", confirmed=False, after=np.nan)
    assert (experiment.show(unfound).filter(like="suggestion") == "-").all(axis=None)
