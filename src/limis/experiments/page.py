"""All finished results as one page, in Markdown and in HTML."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from limis.errors import InputError
from limis.experiments import bench, growth
from limis.experiments.experiment import Experiment
from limis.experiments.registry import EXPERIMENTS
from limis.experiments.results import read
from limis.report import write_text

HEAD = """\
Written by `limis reproduce --page` from the JSON files beside it.

It opens with the audit: curves (the default), ridges and their peers by questions that nothing was fitted to. By those
ridges are far from what the first round said of them, which had measured them by the very moves that they are fitted on
and chosen by; skill in all tables after the audit's is still of that kind, good for comparing settings and no verdict.

In the other tables each number is a mean over seeds with half of its 95% interval; the paper's number stands in
parentheses where it gives one. "LIMIS (paper)" is the configuration of the paper's released code, the best of six
runs by the error on probe rows; "LIMIS (paper), one run" is one of them, "LIMIS (paper, text)" the configuration of
its text, "LIMIS (default)" what `LimisExplainer(surrogate="ridge")` does, the default when those tables were made.
AWD is the mean absolute difference between estimated and true coefficients, over those that are not zero: lower is
better.
"""

GROWTH_NOTE = (
    "The black box is a booster on 50,000 such rows. A retrieving forest of at most 100,000 rows keeps at most 64 in a "
    "leaf; of more than a million training rows a random million is used. Rows are explained in one call, the black "
    "box's own time left out; NSE and skill are those of 5,000 other rows, of which all sizes are asked the same, "
    "by the law of changes that the default is fitted on. Everything was warm: compiled, and the device awake."
)
NAMES = (
    *("data", "method", "estimator", "objective", "probes", "setting", "characteristics", "black box", "local model"),
    *("nse verdict", "skill verdict", "statistic", "why", "observation", "verdict", "by contributions", "stage"),
)


@dataclass(frozen=True)
class Section:
    """One result as the page shows it."""

    name: str
    description: str
    note: str
    table: pd.DataFrame  # of texts
    has_figure: bool
    command: str
    origin: str  # how many runs, on what
    file: str  # the table


def write_page(folder: Path) -> Path:
    """Write ``README.md`` and ``index.html`` from the results in a folder.

    Parameters
    ----------
    folder : Path
        Where the JSON files are.

    Returns
    -------
    Path
        ``README.md``; the other one is beside it.

    Raises
    ------
    InputError
        If there are no results.
    """
    finished = [one for one in EXPERIMENTS.values() if (folder / f"{one.name}.json").exists()]
    sections = [*(_section(one, folder) for one in finished), *_benches(folder), *_growth(folder)]
    if not sections:
        raise InputError(f"there are no results in {str(folder)!r}; make some with: limis reproduce NAME")
    path = folder / "README.md"
    write_text(path, "\n".join([f"# Results\n\n{HEAD}", *(map(_as_markdown, sections))]))
    write_text(folder / "index.html", _as_html(sections))
    return path


def _section(experiment: Experiment, folder: Path) -> Section:
    origin, table = read(folder / f"{experiment.name}.json")
    n, machines = origin.get("runs"), "; ".join(origin["machines"])
    return Section(
        experiment.name,
        f"{experiment.description}.",
        experiment.note,
        experiment.show(table),
        (folder / f"{experiment.name}.png").exists(),
        origin["command"],
        f"made on {machines}" if n is None else f"{n} run on {machines}" if n == 1 else f"{n} runs on {machines}",
        f"{experiment.name}.csv",
    )


def _growth(folder: Path) -> list[Section]:
    """How fitting and explaining grow, here and on accelerators."""
    sections = []
    for path in sorted(folder.glob("growth*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        lines = found["growth"]
        sections.append(
            Section(
                path.stem,
                f"Training tables of other sizes: Facebook's rows with noise ({lines[0]['columns']} columns).",
                GROWTH_NOTE,
                growth.show(lines),
                path.with_suffix(".png").exists(),
                found["command"],
                f"one run on {lines[0]['machine']}",
                path.name,
            )
        )
    return sections


def _benches(folder: Path) -> list[Section]:
    """Speed beside the peers and, where it was asked for, the shares of the stages."""
    sections = []
    for data in bench.DATA:
        path = folder / f"bench-{data}.json"
        if not path.exists():
            continue
        found = json.loads(path.read_text(encoding="utf-8"))
        rest = (False, found["command"], f"one run on {found['processor']}, {found['machine']}", path.name)
        told = f"{found['data']}, {found['black_box']}, {found['training_rows']:,} training rows"
        note = " ".join([bench.NOTE, *(f"{line}." for line in bench.ratio_lines(found) + bench.setting_lines(found))])
        speed = f"{told}: speed, fidelity and memory beside LIME, SHAP, SILO and MAPLE."
        sections.append(Section(path.stem, speed, note, bench.result_table(found), *rest))
        if "profiles" in found:
            shares = f"{told}: where the time of an explanation goes."
            sections.append(Section(f"{path.stem}-profile", shares, "", bench.profile_table(found), *rest))
    return sections


def _as_markdown(section: Section) -> str:
    parts = [f"## {section.name}", section.description, section.note, markdown(section.table)]
    if section.has_figure:
        parts.append(f"![{section.description.removesuffix('.')}]({section.name}.png)")
    parts.append(f"`{section.command}` · {section.origin} · [table]({section.file})")
    return "\n\n".join(part for part in parts if part) + "\n"


def _as_html(sections: list[Section]) -> str:
    loader = PackageLoader("limis.experiments")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, undefined=StrictUndefined)
    return environment.get_template("results.html").render(head=HEAD.strip(), sections=sections, names=NAMES)


def markdown(table: pd.DataFrame) -> str:
    """A table of texts in Markdown, names left, numbers right."""
    rules = ["---" if name in NAMES else "---:" for name in table]
    rows = [[str(name) for name in table], rules, *([str(value) for value in row] for row in table.to_numpy())]
    return "\n".join("| " + " | ".join(value.replace("|", "\\|") for value in row) + " |" for row in rows)
