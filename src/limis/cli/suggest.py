"""``limis suggest``: what could change in rows for the model to say something else."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from limis.cli.opening import add_arguments, features_of, open_explainer
from limis.cli.options import positive
from limis.cli.tables import check_names, replacing
from limis.errors import InputError
from limis.report.words import printable
from limis.suggest import Suggestions
from limis.suggest.result import LINE_COLUMNS
from limis.table import Table
from limis.table_files import read_table

WRITABLE = (".csv", ".parquet", ".json")
# Fewer rows than this are searched before a progress bar could be read.
ROWS_WORTH_A_BAR = 200

DESCRIPTION = """\
Suggest changes of rows for which the model would say something else, with an explainer that
`limis fit` wrote. Every suggestion is checked on the model and marked confirmed or not. Columns
only move to values that training rows have.

Without -o, the suggestions are printed as text. With -o, the extension names the format:

  .csv, .parquet  one line a suggestion, the best of each row first: all columns of ROWS as they
                  are (so that ids stay), then row (counted from 0), rank, changes, n_changes,
                  distance, output_before, output_after, the wished class's probability_before
                  and probability_after, confirmed, source, goal, queries and reason. A row
                  without any suggestion has one line, with rank 0 and the reason. Of more than
                  two classes an output is how far the wished class is ahead of the likeliest other
                  one, in log-probability or, if the explainer is on that scale, in probability
  .json           a list of objects, one a row, with the nearest training row that already has
                  the wished outcome

Suggestions tell what the model answers to a changed row, not what a change would do in the world.
"""
EXAMPLES = """\
examples:
  limis suggest income.limis rows.csv --target ">50K" --immutable age,sex,race
  limis suggest income.limis rows.csv --range hours-per-week=20:60 --direction education-num=up
  limis suggest income.limis rows.csv --range "workclass=Private,Local-gov" -n 1 -o out.csv
  limis suggest price.limis rows.csv --target "> 100" --model my_model:predict -o out.json
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "suggest",
        help="suggest changes of rows for which the model says something else",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser, "change", WRITABLE)
    parser.add_argument(
        "--target",
        metavar="WISH",
        help="a class, needed where there are more than two, else by default the one a row does not have; or for "
        'values a level such as "> 100", up or down',
    )
    parser.add_argument(
        "--immutable", action="append", default=[], metavar="NAMES", help="columns that may not change, as in age,sex"
    )
    parser.add_argument(
        "--range",
        action="append",
        default=[],
        dest="ranges",
        metavar="NAME=RANGE",
        help="where a column may move to: hours=20:60 (an end may be left out; .. for : where ends have colons), or "
        "job=clerk,sales for categories",
    )
    parser.add_argument(
        "--direction",
        action="append",
        default=[],
        dest="directions",
        metavar="NAME=WAY",
        help="which way a number may move: age=up or weight=down",
    )
    parser.add_argument(
        "--together",
        action="append",
        default=[],
        metavar="NAMES",
        help="columns that change only together, as in city,country; found from the data when not given; none: none do",
    )
    parser.add_argument("-n", type=positive, default=3, metavar="N", help="suggestions a row (3)")
    parser.add_argument(
        "--max-queries", type=positive, default=1000, metavar="N", help="questions to the model a row, at most (1000)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    explainer = open_explainer(args, WRITABLE)
    training = explainer.training_
    if not training.black_box.can_be_asked:
        raise InputError(f"suggestions are checked on the model, which is not inside {args.explainer}; give --model")
    rows = read_table(args.rows, like=training.frame)
    if args.output_file is not None and args.output_file.suffix.lower() != ".json":
        check_names(rows, ("row", *LINE_COLUMNS), args.rows, ".json")
    explainer.verbose = int(not args.quiet and len(rows) > ROWS_WORTH_A_BAR)
    found = explainer.suggest(
        features_of(rows, explainer, args.rows),
        args.target,
        immutable=[name for text in args.immutable for name in _names(text, training.table)],
        ranges=_ranges(args.ranges, training.table),
        directions=_directions(args.directions, training.table),
        together=_together(args.together, training.table),
        n=args.n,
        max_queries=args.max_queries,
    )
    if args.output_file is None:
        print("\n\n".join(printable(repr(row)) for row in found))
        return 0
    _write(found, rows, args.output_file)
    if not args.quiet:
        done = sum(row.confirmed for row in found)
        print(f"{len(found):,} rows, {done:,} of them with a confirmed suggestion: {args.output_file}")
    return 0


def _write(found: Suggestions, rows: pd.DataFrame, path: Path) -> None:
    with replacing(path) as unfinished:
        if path.suffix.lower() == ".json":
            unfinished.write_text(found.to_json() + "\n", encoding="utf-8")
            return
        lines = found.to_frame().reset_index()
        table = pd.concat([rows.loc[lines["row"]].reset_index(drop=True), lines], axis=1)
        if path.suffix.lower() == ".csv":
            table.to_csv(unfinished, index=False)
        else:
            table.to_parquet(unfinished, index=False)


def _names(text: str, table: Table) -> list[str]:
    """Names with commas between them; one that has a comma of its own is taken whole."""
    return [text] if text in table.names else [name.strip() for name in text.split(",")]


def _named(text: str, table: Table, option: str) -> tuple[str, str]:
    """A column and what is said of it; the name may itself have an equals sign."""
    parts = text.split("=")
    for place in range(1, len(parts)):
        name = "=".join(parts[:place]).strip()
        if name in table.names:
            return name, "=".join(parts[place:]).strip()
    if len(parts) == 1:
        raise InputError(
            f"{option} {text} is incomplete: write {option} NAME=..., such as {option} {table.names[0]}=..."
        )
    return parts[0].strip(), "=".join(parts[1:]).strip()


def _ranges(texts: list[str], table: Table) -> dict[str, Any]:
    ranges: dict[str, Any] = {}
    for text in texts:
        name, given = _named(text, table, "--range")
        column = next((column for column in table.columns if column.name == name), None)
        if column is not None and column.is_category:
            levels = [given] if given in column.words else [level.strip() for level in given.split(",") if level]
            ranges.setdefault(name, []).extend(levels)
            continue
        if name in ranges:
            raise InputError(f"--range {name} is given twice; give it once")
        # Times of day have colons of their own.
        low, between, high = given.partition(".." if ".." in given else ":")
        if not between or (between == ":" and ":" in high):
            raise InputError(
                f"--range {text} is not a range: write {name}=LOW:HIGH, such as {name}=20:60 or {name}=20:, "
                f"with two dots where the ends have colons, as in {name}=06:00..07:30"
            )
        ranges[name] = (low.strip() or None, high.strip() or None)
    return ranges


def _directions(texts: list[str], table: Table) -> dict[str, str]:
    directions: dict[str, str] = {}
    for text in texts:
        name, way = _named(text, table, "--direction")
        if name in directions:
            raise InputError(f"--direction {name} is given twice; give it once")
        directions[name] = way
    return directions


def _together(texts: list[str], table: Table) -> Any:
    if not texts:
        return "auto"
    return [] if texts == ["none"] else [tuple(_names(text, table)) for text in texts]
