"""Results on disk: a table as JSON with where it came from, the same as CSV, and its figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from limis import __version__
from limis.errors import InputError, MissingExtraError
from limis.experiments.cache import Cache
from limis.experiments.experiment import Experiment
from limis.experiments.protocol import Scope
from limis.report import write_text


def finish(experiment: Experiment, scope: Scope, folder: Path, cache: Cache, *, plot: bool = True) -> pd.DataFrame:
    """Make the table of an experiment from those of its runs that are in the cache, and write it.

    Parameters
    ----------
    experiment : Experiment
        Which one.
    scope : Scope
        How far it goes.
    folder : Path
        Where ``NAME.json``, ``NAME.csv`` and ``NAME.png`` are written.
    cache : Cache
        Where its runs are.
    plot : bool, default=True
        Whether the figure is drawn too; without matplotlib it is left out.

    Returns
    -------
    DataFrame
        The tidy table; nothing is written where it is empty.
    """
    runs = cache.finished(experiment.runs(scope))
    if not runs:
        raise InputError(f"no run of {experiment.name} is finished")
    found = [cache.load(run) for run in runs]
    table = experiment.tabulate([run.outcome(one) for run, one in zip(runs, found, strict=True)])
    if table.empty:  # of comparisons, one side may not have been run yet
        return table
    origin: dict[str, Any] = {"command": _command(experiment.name, scope), "limis": __version__}
    machines = {str(one["machine"]) for one in found}
    if experiment.cell:
        table, others = _with_other_cells(table, list(experiment.cell), folder / f"{experiment.name}.json")
        machines |= others
    else:
        origin["runs"] = len(runs)
    origin["machines"] = sorted(machines)
    write_text(folder / f"{experiment.name}.json", as_json(origin, table))
    write_text(folder / f"{experiment.name}.csv", table.to_csv(index=False, lineterminator="\n"))
    if plot:
        draw(experiment, table, folder)
    return table


def _with_other_cells(table: pd.DataFrame, cell: list[str], path: Path) -> tuple[pd.DataFrame, set[str]]:
    """The table with the cells that only the result on disk has, and the machines that these were made on."""
    if not path.exists():
        return table, set()
    stored, before = read(path)
    known = pd.MultiIndex.from_frame(table[cell].drop_duplicates())
    others = before[~pd.MultiIndex.from_frame(before[cell]).isin(known)]
    if others.empty:
        return table, set()
    joined = pd.concat([others, table], ignore_index=True)
    return joined.sort_values(cell, kind="stable", ignore_index=True), set(stored["machines"])


def draw(experiment: Experiment, table: pd.DataFrame, folder: Path) -> bool:
    """Write the figure; False without matplotlib."""
    try:
        figure = experiment.draw(table)
    except MissingExtraError:
        return False
    figure.savefig(folder / f"{experiment.name}.png", metadata={"Software": None})
    return True


def read(path: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """Where a result came from, and its table."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    table = pd.DataFrame(stored["results"])
    unknown = table.columns[table.isna().all()]
    return stored, table.astype(dict.fromkeys(unknown, float))


def as_json(origin: dict[str, Any], table: pd.DataFrame) -> str:
    """One line of the table a line of the file, so that versions of it can be compared; what is unknown is null."""
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    lines = ",\n".join("  " + json.dumps(record, ensure_ascii=False) for record in records)
    head = json.dumps(origin, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{head},\n "results": [\n{lines}\n ]\n}}\n'


def _command(name: str, scope: Scope) -> str:
    rows = "" if scope.rows is None else f" --rows {scope.rows}"
    quick = " --quick" if scope.quick else ""
    return f"limis reproduce {name} --seeds {scope.seeds} --tests {scope.tests}{rows}{quick}"
