"""``limis report``: one page about a model's predictions for the rows of a table."""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

from limis.class_explanations import ClassExplanations
from limis.cli.explain import of_class
from limis.cli.opening import add_arguments, features_of, open_explainer
from limis.cli.options import add_questions, questions_of
from limis.cli.tables import take_column
from limis.cli.wishes import add_wishes, is_wished, names, need_model, read_wishes
from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.suggest import suggest
from limis.table_files import read_table

WRITABLE = (".html",)
# Fewer rows than this are explained before a progress bar could be read.
ROWS_WORTH_A_BAR = 200

DESCRIPTION = """\
Write a report about the model's predictions for the rows of a table, with an explainer that
`limis fit` wrote: one .html file that needs no network, runs no scripts and prints well. It tells

  what was explained, by which model and when
  how faithful the explanations are, over all rows and in groups of rows
  which columns weigh over all rows, and in which groups
  what to look at: sensitive columns that carry weight, groups in which local models or the model
  itself do worse, groups that more training rows would help
  every row: the reasons, how far to trust them, the training rows they rest on, the curves, the
  coefficients or the tree and, with --suggest, what would change the prediction

Groups are made by the columns named with --by, else by the sensitive columns and those that weigh
most, if there are at least 20 rows. Rows are counted from 0, unless --id names them.
"""
EXAMPLES = """\
examples:
  limis report income.limis rows.csv -o report.html
  limis report income.limis rows.csv -o report.html --suggest --immutable age,sex,race
  limis report income.limis rows.csv -o report.html --by sex --by occupation --sensitive sex,race
  limis report income.limis rows.csv -o report.html --labels income --id person
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "report",
        help="write a page about predictions: fidelity, groups, and a card a row",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser, "report on", WRITABLE, must_write=True)
    parser.add_argument("--title", metavar="TEXT", help="heading of the page")
    parser.add_argument("--id", metavar="COLUMN", help="column of ROWS that names each row")
    parser.add_argument("--outputs", metavar="COLUMN", help="column of ROWS with the model's outputs, as at fit")
    parser.add_argument(
        "--class",
        dest="one_class",
        metavar="LABEL",
        help="of more than two classes, the one to explain (else the predicted one)",
    )
    add_questions(parser)
    groups = parser.add_argument_group("groups")
    groups.add_argument(
        "--by",
        action="append",
        metavar="COLUMN",
        help="a column of ROWS to make groups by, also one that the model does not see; may be given several times",
    )
    groups.add_argument(
        "--sensitive",
        action="append",
        default=[],
        metavar="NAMES",
        help="columns that should not decide, as in sex,race: tells in which groups they carry weight",
    )
    groups.add_argument(
        "--labels", metavar="COLUMN", help="column of ROWS with the truth: tells the model's own error in each group"
    )
    wishes = parser.add_argument_group("suggestions")
    wishes.add_argument(
        "--suggest",
        action="store_true",
        help="tell what would change each prediction, which asks the model many questions; any of the following says "
        "so too",
    )
    add_wishes(wishes)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    explainer = open_explainer(args, WRITABLE)
    training = explainer.training_
    wished = args.suggest or is_wished(args)
    if wished:
        need_model(explainer, args.explainer)
    if args.by and explainer.by_class_ and args.one_class is None:
        raise InputError("--by makes groups for one class at a time; choose it with --class")
    rows = read_table(args.rows, like=training.frame)
    if args.id is not None:
        rows.index = pd.Index(take_column(rows.copy(), args.id, args.rows, "--id"))
    outputs, labels = (_column(rows, getattr(args, option), args, option) for option in ("outputs", "labels"))
    groupers = [_column(rows, name, args, "by").rename(name) for name in args.by or []]
    features = features_of(rows, explainer, args.rows)
    explainer.verbose = int(not args.quiet and len(rows) > ROWS_WORTH_A_BAR)
    found = explainer.explain(features, outputs=outputs, **questions_of(args))
    suggestions = suggest(found, **read_wishes(args, training.table), show=bool(explainer.verbose)) if wished else None
    told = found if args.one_class is None else of_class(found, args.one_class)
    told.to_html(
        args.output_file,
        title=args.title or f"Explanations of {args.rows.name}",
        suggestions=suggestions,
        by=args.by,
        sensitive=[name for text in args.sensitive for name in names(text, training.table)],
        labels=labels,
        data=_unseen(groupers, features),
        facts=_facts(explainer, told, args),
    )
    if not args.quiet:
        trusted = sum(one.trusted for one in told)
        print(f"{len(told):,} rows explained, {trusted:,} of them trusted: {args.output_file}")
    return 0


def _column(rows: pd.DataFrame, name: str | None, args: argparse.Namespace, option: str) -> Any:
    """A column of the rows, or None where none is named."""
    return None if name is None else take_column(rows.copy(), name, args.rows, f"--{option}")


def _unseen(groupers: list[pd.Series], features: pd.DataFrame) -> pd.DataFrame | None:
    """The columns to group by that the model does not see."""
    unseen = [series for series in groupers if series.name not in features.columns]
    return pd.concat(unseen, axis=1) if unseen else None


def _reach(explainer: LimisExplainer) -> str:
    return "near rows" if explainer.bound_ is None else explainer.bound_.holds_for


def _facts(
    explainer: LimisExplainer, found: Explanations | ClassExplanations, args: argparse.Namespace
) -> dict[str, str]:
    measured = {
        "NSE": getattr(explainer, "nse_", None),
        f"skill on changes to values of {_reach(explainer)}": getattr(explainer, "skill_", None),
    }
    known = [f"{name} {value:.3f}" for name, value in measured.items() if value is not None]
    return {
        "Rows": f"{len(found):,} explained, from {args.rows.name}",
        "Explainer": args.explainer.name,
        **({"Measured at fit": f"{', '.join(known)}, on held-out rows (1 is the best, 0 no use)"} if known else {}),
    }
