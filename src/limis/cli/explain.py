"""``limis explain``: explain the rows of a table."""

from __future__ import annotations

import argparse

from limis.class_explanations import ClassExplanations
from limis.cli.opening import add_arguments, features_of, load_explainer, open_explainer
from limis.cli.options import add_questions, positive, questions_of
from limis.cli.tables import WRITABLE, check_names, take_column, write_explanations
from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.lines import line_names
from limis.report.text import render
from limis.table_files import check_input, read_table

# Fewer rows than this are explained before a progress bar could be read.
ROWS_WORTH_A_BAR = 500

DESCRIPTION = """\
Explain the rows of a table with an explainer that `limis fit` wrote.

Without -o, each explanation is printed as text. With -o, the extension names the format:

  .csv, .parquet  one line a row, in the rows' order: first all columns of ROWS as they are (so
                  that ids stay), then model_output (absent when no model could be asked),
                  local_prediction, base_value, neighbourhood_shift (not of curves), a
                  "contribution: COLUMN" each, and how far to trust it: error,
                  neighbourhood_error, change_error_bound, gain, effective_rows, of curves
                  foresight and why_error (as expected), trusted (true or false) and doubts (why
                  not); fixed_here and unknown_here list the columns whose contribution of about
                  zero does not mean that they have no effect; of curves, .parquet has these too,
                  as lists, and the interactions
  .json           a list of objects, one a row, with its curves (column, then value, output, low,
                  high and own for each value) or coefficients, and the closest training rows
  .html           a page to read, which needs no network

base_value plus all contributions is local_prediction. Of curves base_value is the mean over all training
rows, or over those of --reference, and "contribution: rest" is what is special about the very row;
error is that of what is expected without asking about the row. Rows are counted from 0. Where the model has
more than two classes, .csv and .parquet have a line a row and class, with "class", "predicted" and
"probability" before the rest, and text and .html tell of the predicted class.

A folder of Parquet files, or one file with --workers or --cluster, is explained in parts, and may be
larger than memory. -o then names a folder, which gets files like a .csv above, part-000000.parquet
and so on, with the number of each row in the whole input, from 0, in row_number. Run the same again
after a stop or a crash: what is finished is kept, and no row is lost or told twice.
"""
EXAMPLES = """\
examples:
  limis explain income.limis rows.csv | less
  limis explain income.limis rows.csv -o explained.parquet --quiet
  limis explain income.limis rows.csv -o explained.html
  limis explain income.limis rows.csv --queries 200 -o explained.html
  limis explain income.limis rows.csv --reference "other outcome" -o explained.html
  limis explain risk.limis rows.csv --model my_model:predict -o explained.csv
  limis explain risk.limis rows.csv --outputs score -o explained.csv
  limis explain income.limis many-rows/ -o explained/ --workers 8
  limis explain income.limis many-rows/ -o explained/ --workers 8 --cluster auto
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
    add_questions(parser)
    parser.add_argument("--workers", type=positive, metavar="N", help="explain in parts, N at a time (2)")
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help='explain in parts on a Ray cluster, whose machines see the same folders, or "auto": the one of '
        "RAY_ADDRESS, else Ray on this machine",
    )
    parser.add_argument(
        "--rows-a-part", type=positive, metavar="N", help="of rows explained in parts, how many at a time (5000)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.rows.is_dir() or any(given is not None for given in (args.workers, args.cluster, args.rows_a_part)):
        return _run_in_parts(args)
    explainer = open_explainer(args, WRITABLE)
    training = explainer.training_
    rows = read_table(args.rows, like=training.frame)
    if args.output_file is not None and args.output_file.suffix.lower() in (".csv", ".parquet"):
        several = bool(explainer.by_class_) and args.one_class is None
        check_names(rows, line_names(training.table.names, several), args.rows, ".json or .html")
    outputs = None if args.outputs is None else take_column(rows.copy(), args.outputs, args.rows, "--outputs")
    features = features_of(rows, explainer, args.rows)
    explainer.verbose = int(not args.quiet and len(rows) > ROWS_WORTH_A_BAR)
    found = explainer.explain(features, outputs=outputs, **questions_of(args))
    if args.one_class is not None:
        found = of_class(found, args.one_class)
    if args.output_file is None:
        for one in found:
            print(render(one, f"Row {one.label}"))
        return 0
    write_explanations(found, rows, args.output_file, title=f"Explanations of {args.rows.name}")
    if not args.quiet:
        _report(len(found), sum(one.trusted for one in found), explainer, args)
    return 0


def _run_in_parts(args: argparse.Namespace) -> int:
    if args.output_file is None or args.output_file.suffix.lower() in WRITABLE:
        named = "a folder" if args.output_file is None else f"a folder, not {args.output_file}"
        raise InputError(f"rows that are explained in parts go to {named}: write -o explained/")
    check_input(args.explainer)
    explainer = load_explainer(args)
    explainer.verbose = int(not args.quiet)
    given = {"workers": args.workers, "rows_a_part": args.rows_a_part}
    done = explainer.explain_dataset(
        args.rows,
        args.output_file,
        cluster=args.cluster,
        outputs=args.outputs,
        one_class=args.one_class,
        **questions_of(args),
        **{name: value for name, value in given.items() if value is not None},
    )
    if not args.quiet:
        if done.parts_found:
            print(f"{done.parts_found:,} of {done.parts:,} parts were there already, from a run before.")
        _report(done.rows, done.trusted, explainer, args)
    return 0


def of_class(found: Explanations | ClassExplanations, label: str) -> Explanations:
    """The explanations of one class, where there are several."""
    if not isinstance(found, ClassExplanations):
        raise InputError("--class is for models of more than two classes, and this one has not so many")
    return found.for_class(label)


def _report(rows: int, trusted: int, explainer: LimisExplainer, args: argparse.Namespace) -> None:
    print(f"{rows:,} rows explained, {trusted:,} of them trusted: {args.output_file}")
    if args.outputs is None and not explainer.training_.black_box.can_be_asked:
        print("The model's own outputs are not among the results: give --model or --outputs to have them.")
