"""What commands on a stored explainer and a table of rows have in common: their arguments, and opening both."""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from limis import store
from limis.cli.models import MODEL_HELP, TRUST_HELP, load_model
from limis.cli.tables import check_output
from limis.explainer import LimisExplainer
from limis.table_files import as_seen, check_input


def add_arguments(
    parser: argparse.ArgumentParser, purpose: str, writable: tuple[str, ...], must_write: bool = False
) -> None:
    """Add the explainer, the rows ("the rows to ``purpose``"), the file to write and the model."""
    parser.add_argument("explainer", type=Path, metavar="EXPLAINER", help="a file that `limis fit` wrote")
    parser.add_argument("rows", type=Path, metavar="ROWS", help=f"the rows to {purpose}: .csv or .parquet")
    parser.add_argument(
        *("-o", "--output-file"),
        type=Path,
        metavar="FILE",
        required=must_write,
        help=f"where to write: {', '.join(writable)}",
    )
    parser.add_argument("--model", metavar="MODEL", help=f"{MODEL_HELP}. Not needed for a model inside EXPLAINER")
    parser.add_argument("--trust-model", action="store_true", help=TRUST_HELP)
    parser.add_argument("--quiet", action="store_true", help="no progress and no remarks")


def open_explainer(args: argparse.Namespace, writable: tuple[str, ...]) -> LimisExplainer:
    """Load the explainer with the model that was named, after a look at every path."""
    if args.output_file is not None:
        check_output(args.output_file, writable, inputs=(args.explainer, args.rows))
    check_input(args.explainer)
    check_input(args.rows)
    return load_explainer(args)


def load_explainer(args: argparse.Namespace) -> LimisExplainer:
    """Load the explainer with the model that was named."""
    model = None if args.model is None else load_model(args.model, args.trust_model)
    return store.load(args.explainer, model=model)


def features_of(rows: pd.DataFrame, explainer: LimisExplainer, path: Path) -> pd.DataFrame:
    """The columns that the explainer knows, or all of them where it knows none: it then says what it misses."""
    features = as_seen(rows, explainer.training_.frame, path)
    return rows if features.shape[1] == 0 else features
