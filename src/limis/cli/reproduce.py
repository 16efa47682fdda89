"""``limis reproduce``: run an experiment by name, print its table, and keep its numbers with where they came from."""

from __future__ import annotations

import argparse
import json
import platform
import time
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from limis import __version__
from limis.cli.options import positive, seed
from limis.errors import InputError
from limis.experiments import EXPERIMENTS
from limis.report import write_text

EXAMPLES = """\
examples:
  limis reproduce --list
  limis reproduce adult-fidelity
  limis reproduce adult-fidelity --tests 200 --seed 1 -o results/adult.json
"""
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "xgboost", "lightgbm")


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "reproduce",
        help="run an experiment and print its figures",
        description="Run an experiment by name, print its table and write it as JSON.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="which experiment; --list names them all")
    parser.add_argument("--list", action="store_true", help="name all experiments and what they show")
    parser.add_argument("--tests", type=positive, default=1000, metavar="N", help="test rows (1000)")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of everything random (0)")
    parser.add_argument("-o", "--output-file", type=Path, metavar="FILE", help="JSON (results/NAME.json)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.list:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name}\n    {experiment.description}")
        return 0
    if args.name not in EXPERIMENTS:
        raise InputError(f"there is no experiment {args.name!r}; there are: {', '.join(EXPERIMENTS)}")
    path = args.output_file or Path("results") / f"{args.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    table = EXPERIMENTS[args.name].run(args.seed, args.tests)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3f}", na_rep=""))
    write_text(path, json.dumps(_with_origin(table, args, time.perf_counter() - started), indent=1) + "\n")
    print(f"written to {path}")
    return 0


def _with_origin(table: pd.DataFrame, args: argparse.Namespace, seconds: float) -> dict[str, object]:
    """The results with the command, the machine and the versions that gave them."""
    lines = [{key: value for key, value in line.items() if pd.notna(value)} for line in table.to_dict("records")]
    return {
        "command": f"limis reproduce {args.name} --tests {args.tests} --seed {args.seed}",
        "results": lines,
        "seconds": round(seconds, 1),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {"limis": __version__, **{name: version(name) for name in PACKAGES}},
    }
