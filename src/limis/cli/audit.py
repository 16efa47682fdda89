"""``limis audit``: hold explanations against the model they explain."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from limis.cli.opening import add_arguments, features_of, open_explainer
from limis.cli.options import positive
from limis.cli.wishes import names, need_model
from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.fidelity.audit import exam_of, reference_rows
from limis.report import write_text
from limis.table_files import check_input, read_table

WRITABLE = (".html", ".json")
PEERS = ("shap", "lime")

DESCRIPTION = """\
Ask the model what it says when rows change, and see which explanations foresaw it, with an
explainer that `limis fit` wrote and rows that no fitting saw. Questions come by two laws: A takes
values from training rows, B from held-out rows and otherwise; nothing was fitted to those of B.

It tells how much of the model's answers is foreseen, near and far, for one column and for several
at once; whether the reasons are those of the model; whether promised bounds hold and what trusted
explanations are worth; and how stable reasons are. What speaks against an explanation comes first.
"""
EXAMPLES = """\
examples:
  limis audit income.limis test.csv -o audit.html
  limis audit income.limis test.csv --against shap,lime --sensitive sex,race -o audit.html
  limis audit income.limis test.csv --max-questions 100000 -o audit.json
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "audit",
        help="measure how far explanations can be believed, beside SHAP and LIME",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser, "audit", WRITABLE)
    parser.add_argument(
        "--against", default="", metavar="NAMES", help="explain the same rows by these too: shap, lime, or both"
    )
    parser.add_argument("--held-out", type=Path, metavar="FILE", help="more rows that no fitting saw, for law B")
    parser.add_argument(
        "--sensitive",
        action="append",
        default=[],
        metavar="NAMES",
        help="columns by whose values promises are looked at, as in sex,race",
    )
    parser.add_argument("--queries", type=positive, default=0, metavar="N", help="explain with N questions a row (0)")
    parser.add_argument(
        "--max-questions", type=positive, default=1_000_000, metavar="N", help="questions to the model (1000000)"
    )
    parser.add_argument("--random-state", type=int, default=0, metavar="N", help="decides which questions (0)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    against = [name.strip() for name in args.against.split(",") if name.strip()]
    strange = [name for name in against if name not in PEERS]
    if strange:
        raise InputError(f"--against knows shap and lime, not {strange[0]!r}")
    explainer = open_explainer(args, WRITABLE)
    need_model(explainer, args.explainer)
    training = explainer.training_
    rows = features_of(read_table(args.rows, like=training.frame), explainer, args.rows)
    held_out = None
    if args.held_out is not None:
        check_input(args.held_out)
        held_out = features_of(read_table(args.held_out, like=training.frame), explainer, args.held_out)
    explainer.verbose = int(not args.quiet)
    # As many rows as the questions suffice for: others are slow, and would explain the rest for nothing.
    audited = exam_of(training, rows, held_out=held_out, max_questions=args.max_questions).frame if against else rows
    found = explainer.audit(
        rows,
        held_out=held_out,
        against={name: _explained(name, explainer, audited, args.random_state) for name in against},
        queries=args.queries,
        sensitive=[name for text in args.sensitive for name in names(text, training.table)],
        max_questions=args.max_questions,
        random_state=args.random_state,
    )
    if args.output_file is None:
        print(found)
        return 0
    html = args.output_file.suffix.lower() == ".html"
    title = f"Audit of explanations of {args.rows.name}"
    write_text(args.output_file, found.to_html(title=title) if html else found.to_json() + "\n")
    if not args.quiet:
        print("\n".join(found.summary()))
        print(f"written to {args.output_file}")
    return 0


def _explained(name: str, explainer: LimisExplainer, rows: Any, random_state: int) -> Any:
    """The rows as another method explains them, on the reference rows that the audit gives to all."""
    from limis.peers import Lime
    from limis.peers.shap import permutation_shap

    training = explainer.training_
    frame = training.in_training_types(training.table.read(rows))
    if name == "lime":
        return Lime(explainer, discretise=False).explain(frame)
    return permutation_shap(training, frame, reference_rows(training.frame, random_state=random_state))
