"""``limis fit``: fit an explainer to a table and a model, and write it to a file."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import pandas as pd

from limis.cli.models import MODEL_HELP, TRUST_HELP, load_model, travels
from limis.cli.options import positive, seed
from limis.cli.summary import default_model_lines, fit_lines
from limis.cli.tables import check_output, drop_columns, take_column
from limis.curves.questions import MAX_QUESTIONS
from limis.default_model import read_target, train_default_model
from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.table_files import as_seen, check_input, read_table
from limis.training.curves import CURVE_WEIGHTINGS

OTHER_WEIGHTINGS = ("auto", "forest", "random", "pairwise", "pairwise-released")
FEWEST_QUESTIONS = 1000  # that an explainer takes

DESCRIPTION = """\
Learn which training rows matter for which row, and write the explainer to one file.

What is explained is one of:
  --target COLUMN               a model is trained to predict COLUMN (LightGBM), and explained;
                                it travels inside the file
  --model MODEL                 your own model
  --outputs COLUMN              your own model's outputs, where it cannot be run from here
  --target COLUMN --no-model    COLUMN itself
"""
EXAMPLES = """\
examples:
  limis fit train.csv --target income -o income.limis
  limis fit train.csv --target income --drop id --model xgboost.json -o income.limis
  limis fit train.parquet --model my_model:predict --probe validation.parquet -o risk.limis
  limis fit train.csv --target income --model pipeline.joblib --trust-model -o income.limis
  limis fit scored.csv --outputs score -o risk.limis
  limis fit train.csv --target income --surrogate tree --max-depth 2 -o rules.limis
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "fit",
        help="fit an explainer to a table and a model",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("train", type=Path, metavar="TRAIN", help="training rows: .csv or .parquet")
    parser.add_argument("-o", "--output-file", type=Path, required=True, metavar="FILE", help="where to write: .limis")
    columns = parser.add_argument_group("columns")
    columns.add_argument("--target", metavar="COLUMN", help="what the model predicts; never a reason itself")
    columns.add_argument("--outputs", metavar="COLUMN", help="column with the model's outputs")
    columns.add_argument(
        "--drop", nargs="+", action="extend", default=[], metavar="COLUMN", help="columns to leave out"
    )
    columns.add_argument(
        "--categorical", nargs="+", action="extend", default=[], metavar="COLUMN", help="number codes of categories"
    )
    columns.add_argument("--probe", type=Path, metavar="FILE", help="rows to choose and measure on (else a tenth)")
    models = parser.add_argument_group("model")
    either = models.add_mutually_exclusive_group()
    either.add_argument("--model", metavar="MODEL", help=MODEL_HELP)
    either.add_argument("--no-model", action="store_true", help="explain the target itself")
    models.add_argument("--trust-model", action="store_true", help=TRUST_HELP)
    options = parser.add_argument_group("explainer")
    options.add_argument(
        "--output", choices=("auto", "logit", "probability"), default="auto", help="what of a classifier is explained"
    )
    options.add_argument(
        "--surrogate",
        choices=("curves", "ridge", "tree"),
        default="curves",
        help="the kind of small model: response curves (the default), slopes, or a tree of if-then rules",
    )
    options.add_argument(
        "--max-depth", type=int, choices=range(1, 6), help="of trees: conditions that a rule may have (3)"
    )
    options.add_argument(
        "--weighting",
        choices=tuple(dict.fromkeys((*CURVE_WEIGHTINGS, *OTHER_WEIGHTINGS))),
        default="auto",
        help=f"how training rows are weighed: {', '.join(CURVE_WEIGHTINGS)} for curves; {', '.join(OTHER_WEIGHTINGS)} "
        "for ridges and trees, of which pairwise is the paper's network, and slow (auto)",
    )
    options.add_argument(
        "--max-questions",
        type=positive,
        metavar="N",
        help=f"of curves: changed rows that the model may be asked about ({MAX_QUESTIONS:,})",
    )
    options.add_argument(
        "--answers",
        type=Path,
        metavar="DIR",
        help="of curves: keep there what the model says, so that a command that was stopped goes on where it was",
    )
    options.add_argument("--seed", type=seed, default=0, metavar="N", help="of everything random (0)")
    options.add_argument("--jobs", type=positive, default=-1, metavar="N", help="cores to use (all)")
    options.add_argument("--quiet", action="store_true", help="print errors only")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    started = time.perf_counter()
    _check_usage(args)
    check_output(args.output_file, (".limis",))
    for path in (args.train, args.probe):
        if path is not None:
            check_input(path)
    model = None if args.model is None else load_model(args.model, args.trust_model)
    rows = read_table(args.train)
    probe = None if args.probe is None else as_seen(read_table(args.probe, like=rows), rows, args.probe)
    n_probe = 0 if probe is None else len(probe)
    features, target, outputs = _take_apart(rows, args, args.train)
    classes = None
    if model is None and outputs is None and not args.no_model:
        assert target is not None  # the usage was checked
        model = train_default_model(features, target, args.seed, args.jobs, verbose=not args.quiet)
        classes = read_target(target).classes
        if not args.quiet:
            print("\n".join(default_model_lines(model, target)))
    explainer = LimisExplainer(
        model,
        surrogate=args.surrogate,
        weighting=args.weighting,
        **({} if args.max_depth is None else {"max_depth": args.max_depth}),
        **({} if args.max_questions is None else {"max_questions": args.max_questions}),
        **({} if args.answers is None else {"answers": args.answers}),
        output=args.output,
        categorical_features=args.categorical or "auto",
        n_jobs=args.jobs,
        random_state=args.seed,
        verbose=int(not args.quiet),
    )
    explainer.fit(features, target if model is None and outputs is None else None, **_given(probe, outputs, args))
    if classes is not None:
        explainer.name_classes(classes)  # LightGBM itself only counts them
    explainer.save(args.output_file)
    if not args.quiet:
        n_probe = n_probe or len(features) - len(explainer.training_.frame)
        print("\n".join(fit_lines(explainer, n_probe, time.perf_counter() - started, args.output_file)))
        if model is not None and not travels(model):
            print("The model is not inside that file: give the same --model to `limis explain`.")
    return 0


def _check_usage(args: argparse.Namespace) -> None:
    """What argparse cannot check: which options need which others."""
    if args.target is None and args.model is None and args.outputs is None:
        args.parser.error("nothing to explain: give --target, --model or --outputs")
    if args.no_model and args.target is None:
        args.parser.error("--no-model explains the target itself: give --target")
    if args.no_model and args.outputs is not None:
        args.parser.error("--outputs are explained as they are: leave out --no-model")
    asked = args.model is not None or not (args.no_model or args.outputs is not None)
    if args.output != "auto" and not asked:
        args.parser.error(f"--output {args.output} needs a model that can be asked")
    if args.trust_model and args.model is None:
        args.parser.error("--trust-model is about --model: give that too")
    _check_surrogate(args, asked)


def _check_surrogate(args: argparse.Namespace, asked: bool) -> None:
    """Which options are for which kind of small model."""
    curves = args.surrogate == "curves"
    if args.weighting not in (CURVE_WEIGHTINGS if curves else OTHER_WEIGHTINGS):
        others = "ridge or tree" if curves else "curves"
        args.parser.error(f"--weighting {args.weighting} is for --surrogate {others}")
    if args.max_depth is not None and args.surrogate != "tree":
        args.parser.error("--max-depth is for --surrogate tree")
    for name, given in (("--max-questions", args.max_questions), ("--answers", args.answers)):
        if given is not None and not curves:
            args.parser.error(f"{name} is for --surrogate curves")
        if given is not None and not asked:
            args.parser.error(f"{name} needs a model that can be asked")
    if args.max_questions is not None and args.max_questions < FEWEST_QUESTIONS:
        args.parser.error(f"--max-questions is {FEWEST_QUESTIONS:,} or more, not {args.max_questions:,}")


def _take_apart(
    rows: pd.DataFrame, args: argparse.Namespace, path: Path
) -> tuple[pd.DataFrame, pd.Series | None, pd.Series | None]:
    """The features, the target and the outputs of a table."""
    target = None if args.target is None else take_column(rows, args.target, path, "--target")
    outputs = None
    if args.outputs is not None:
        outputs = target if args.outputs == args.target else take_column(rows, args.outputs, path, "--outputs")
    features = drop_columns(rows, args.drop, path)
    if features.shape[1] == 0:
        raise InputError(f"{path} has no column left to explain with")
    return features, target, outputs


def _given(probe: pd.DataFrame | None, outputs: pd.Series | None, args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `LimisExplainer.fit`."""
    given: dict[str, Any] = {"outputs": outputs}
    if probe is None:
        return given
    asked_for = args.outputs or (args.target if args.no_model else None)
    if asked_for is not None:
        option = "--outputs" if args.outputs else "--target"
        given["probe_outputs"] = take_column(probe, asked_for, args.probe, option)
    unused = [name for name in (args.target, *args.drop) if name in probe.columns]
    return {**given, "probe_rows": probe.drop(columns=unused)}
