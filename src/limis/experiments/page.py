"""All finished results as one Markdown page."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from limis.errors import InputError
from limis.experiments.experiment import Experiment
from limis.experiments.registry import EXPERIMENTS
from limis.experiments.results import read

HEAD = """\
# Results

Written by `limis reproduce --page` from the JSON files beside it. Each number is a mean over seeds with half of its
95% interval; the paper's number stands in parentheses where it gives one. "LIMIS (paper)" is the configuration of the
paper's released code, the best of six runs by the error on probe rows; "LIMIS (paper), one run" is one of them,
"LIMIS (paper, text)" the configuration of its text, "LIMIS (default)" what `LimisExplainer()` does. AWD is
the mean absolute difference between estimated and true coefficients, over those that are not zero: lower is better.
"""
NAMES = ("data", "method", "estimator", "objective", "probes", "setting", "characteristics")


def write_page(folder: Path) -> Path:
    """Write ``README.md`` from the results in a folder.

    Parameters
    ----------
    folder : Path
        Where the JSON files are.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InputError
        If there are no results.
    """
    finished = [one for one in EXPERIMENTS.values() if (folder / f"{one.name}.json").exists()]
    if not finished:
        raise InputError(f"there are no results in {str(folder)!r}; make some with: limis reproduce NAME")
    path = folder / "README.md"
    path.write_text("\n".join([HEAD, *(_section(one, folder) for one in finished)]), encoding="utf-8", newline="\n")
    return path


def _section(experiment: Experiment, folder: Path) -> str:
    origin, table = read(folder / f"{experiment.name}.json")
    parts = [f"## {experiment.name}", f"{experiment.description}.", experiment.note, markdown(experiment.show(table))]
    if (folder / f"{experiment.name}.png").exists():
        parts.append(f"![{experiment.description}]({experiment.name}.png)")
    n, machines = origin["runs"], "; ".join(origin["machines"])
    runs = f"{n} run" if n == 1 else f"{n} runs"
    parts.append(f"`{origin['command']}` · {runs} on {machines} · [table]({experiment.name}.csv)")
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown(table: pd.DataFrame) -> str:
    """A table of texts in Markdown, names left, numbers right."""
    rules = ["---" if name in NAMES else "---:" for name in table]
    rows = [[str(name) for name in table], rules, *([str(value) for value in row] for row in table.to_numpy())]
    return "\n".join("| " + " | ".join(value.replace("|", "\\|") for value in row) + " |" for row in rows)
