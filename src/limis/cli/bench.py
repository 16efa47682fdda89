"""``limis bench``: how fast things are here, as ratios within one run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from limis.cli.tables import check_output, replacing
from limis.experiments.cache import machine
from limis.experiments.tree_speed import Size, measure_trees

EXAMPLES = """\
examples:
  limis bench trees                 trees for many rows at once against scikit-learn's, one by one
  limis bench trees -o bench.json

Ratios hold for the machine and the moment: nothing else should run at the same time.
"""
TRIAL = Size(rows=2000, queries=50, candidates=64, features=20, scikit_queries=5, rounds=1)


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "bench",
        help="measure how fast things are here",
        description="Measure speed as ratios within one run.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("trees",), help="what to measure")
    parser.add_argument("--quick", action="store_true", help="a trial, whose numbers mean nothing")
    parser.add_argument("-o", "--output-file", type=Path, metavar="FILE", help="where to write the numbers: .json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.output_file is not None:
        check_output(args.output_file, (".json",))
    lines = measure_trees(TRIAL if args.quick else Size())
    print(pd.DataFrame(lines).to_string(index=False, float_format=lambda number: f"{number:.3g}"))
    if args.output_file is not None:
        with replacing(args.output_file) as unfinished:
            unfinished.write_text(json.dumps({"machine": machine(), "trees": lines}, indent=1) + "\n", encoding="utf-8")
    return 0
