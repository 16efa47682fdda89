"""``limis explain``: explain the rows of a table."""

from __future__ import annotations

import argparse
from pathlib import Path

from limis.class_explanations import ClassExplanations
from limis.cli.opening import add_arguments, features_of, open_explainer
from limis.cli.options import positive
from limis.cli.tables import WRITABLE, check_names, take_column, write_explanations
from limis.cli.text import render
from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.lines import line_names
from limis.table_files import read_table

# Fewer rows than this are explained before a progress bar could be read.
ROWS_WORTH_A_BAR = 500

DESCRIPTION = """\
Explain the rows of a table with an explainer that `limis fit` wrote.

Without -o, each explanation is printed as text. With -o, the extension names the format:

  .csv, .parquet  one line a row, in the rows' order: first all columns of ROWS as they are (so
                  that ids stay), then model_output (absent when no model could be asked),
                  local_prediction, base_value, neighbourhood_shift, a "contribution: COLUMN"
                  each, and how far to trust it: error, neighbourhood_error, change_error_bound,
                  gain, effective_rows, trusted (true or false) and reasons (why not);
                  fixed_here and unknown_here list the columns whose contribution of about zero
                  does not mean that they have no effect
  .json           a list of objects, one a row, with coefficients and the closest training rows
  .html           a page to read, which needs no network

base_value plus all contributions is local_prediction. Rows are counted from 0. Where the model has
more than two classes, .csv and .parquet have a line a row and class, with "class", "predicted" and
"probability" before the rest, and text and .html tell of the predicted class.
"""
EXAMPLES = """\
examples:
  limis explain income.limis rows.csv | less
  limis explain income.limis rows.csv -o explained.parquet --quiet
  limis explain income.limis rows.csv -o explained.html
  limis explain income.limis rows.csv --queries 200 -o explained.html
  limis explain risk.limis rows.csv --model my_model:predict -o explained.csv
  limis explain risk.limis rows.csv --outputs score -o explained.csv
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "explain",
        help="explain the rows of a table",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser, "explain", WRITABLE)
    parser.add_argument("--outputs", metavar="COLUMN", help="column of ROWS with the model's outputs, as at fit")
    parser.add_argument(
        "--class",
        dest="one_class",
        metavar="LABEL",
        help="of more than two classes, the one to explain (else the predicted one)",
    )
    parser.add_argument(
        "--queries",
        type=positive,
        default=0,
        metavar="N",
        help="ask the model N more questions about each row, for reasons that foresee more (0)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    explainer = open_explainer(args, WRITABLE)
    training = explainer.training_
    rows = read_table(args.rows, like=training.frame)
    if args.output_file is not None and args.output_file.suffix.lower() in (".csv", ".parquet"):
        several = bool(explainer.by_class_) and args.one_class is None
        check_names(rows, line_names(training.table.names, several), args.rows, ".json or .html")
    outputs = None if args.outputs is None else take_column(rows.copy(), args.outputs, args.rows, "--outputs")
    features = features_of(rows, explainer, args.rows)
    explainer.verbose = int(not args.quiet and len(rows) > ROWS_WORTH_A_BAR)
    found = explainer.explain(features, outputs=outputs, queries=args.queries)
    if args.one_class is not None:
        found = of_class(found, args.one_class)
    if args.output_file is None:
        for one in found:
            print(render(one, f"Row {one.label}"))
        return 0
    write_explanations(found, rows, args.output_file, title=f"Explanations of {args.rows.name}")
    if not args.quiet:
        _report(found, explainer, outputs is not None, args.output_file)
    return 0


def of_class(found: Explanations | ClassExplanations, label: str) -> Explanations:
    """The explanations of one class, where there are several."""
    if not isinstance(found, ClassExplanations):
        raise InputError("--class is for models of more than two classes, and this one has not so many")
    return found.for_class(label)


def _report(found: Explanations | ClassExplanations, explainer: LimisExplainer, given: bool, path: Path) -> None:
    trusted = sum(one.trusted for one in found)
    print(f"{len(found):,} rows explained, {trusted:,} of them trusted: {path}")
    if not given and not explainer.training_.black_box.can_be_asked:
        print("The model's own outputs are not among the results: give --model or --outputs to have them.")
