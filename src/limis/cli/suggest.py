"""``limis suggest``: what could change in rows for the model to say something else."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from limis.cli.opening import add_arguments, features_of, open_explainer
from limis.cli.tables import check_names, replacing
from limis.cli.wishes import add_wishes, need_model, read_wishes
from limis.report.words import printable
from limis.suggest import Suggestions
from limis.suggest.result import LINE_COLUMNS
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
    add_wishes(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    explainer = open_explainer(args, WRITABLE)
    training = explainer.training_
    need_model(explainer, args.explainer)
    rows = read_table(args.rows, like=training.frame)
    if args.output_file is not None and args.output_file.suffix.lower() != ".json":
        check_names(rows, ("row", *LINE_COLUMNS), args.rows, ".json")
    explainer.verbose = int(not args.quiet and len(rows) > ROWS_WORTH_A_BAR)
    found = explainer.suggest(features_of(rows, explainer, args.rows), **read_wishes(args, training.table))
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
