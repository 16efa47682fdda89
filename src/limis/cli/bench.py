"""``limis bench``: how fast things are here, as ratios within one run."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path

import pandas as pd

from limis.cli.options import positive
from limis.cli.tables import check_output, replacing
from limis.errors import InputError
from limis.experiments import bench, growth
from limis.experiments.cache import machine
from limis.experiments.tree_speed import Size, measure_trees
from limis.report.text import WIDTH

EXAMPLES = """\
examples:
  limis bench adult                             LIMIS, LIME, SHAP, SILO and MAPLE on the same model and rows
  limis bench facebook -o bench-facebook.json
  limis bench adult --methods LIME TreeSHAP     only these, beside LIMIS with ridges
  limis bench adult --methods "LIMIS curves" LIME TreeSHAP
  limis bench adult --methods --profile         LIMIS alone, and where its time goes
  limis bench growth                            fitting and explaining with 10,000 to 10,000,000 training rows
  limis bench growth --sizes 603713 --device cuda
  limis bench growth --sizes 100000 1000000 --surrogate curves
  limis bench growth --sizes 300000 --without-bounds
  limis bench trees                             trees for many rows at once against scikit-learn's, one by one

Adult takes some ten minutes on two cores. Ratios hold for the machine and the moment: nothing else should run at the
same time, which costs those most that use several threads. OMP_NUM_THREADS=1 before the command leaves one thread to
all but XGBoost.
"""
TREES, GROWTH = "trees", "growth"
TRIAL = Size(rows=2000, queries=50, candidates=64, features=20, scikit_queries=5, rounds=1)


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "bench",
        help="measure how fast things are here",
        description="Measure speed, fidelity and memory of explainers side by side, as ratios within one run.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what", nargs="?", default="adult", choices=(*bench.DATA, GROWTH, TREES), help="what to measure (adult)"
    )
    parser.add_argument("--rows", type=positive, metavar="N", help="test rows, explained together (1000)")
    parser.add_argument(
        "--methods", nargs="*", metavar="NAME", help=f"some of: {', '.join(bench.METHODS)} (all); case does not matter"
    )
    parser.add_argument("--profile", action="store_true", help="also tell where the time of LIMIS goes, by stage")
    parser.add_argument(
        "--sizes", nargs="+", type=positive, metavar="N", help="of growth: training rows (10,000 to 10,000,000)"
    )
    parser.add_argument("--device", default="cpu", help='of growth: where rows are explained, such as "cuda" (cpu)')
    parser.add_argument(
        "--surrogate",
        default="ridge",
        choices=("ridge", "tree", "curves"),
        help="of growth: what explains a row (ridge)",
    )
    parser.add_argument(
        "--without-bounds",
        action="store_true",
        help="of growth: also with a forest grown on all rows, its leaves whole",
    )
    parser.add_argument("--quick", action="store_true", help="a trial, whose numbers mean nothing")
    parser.add_argument("-o", "--output-file", type=Path, metavar="FILE", help="where to write the numbers: .json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.output_file is not None:
        check_output(args.output_file, (".json",))
    of_growth = args.sizes is not None or args.device != "cpu" or args.surrogate != "ridge" or args.without_bounds
    if args.what != GROWTH and of_growth:
        raise InputError("--sizes, --device, --surrogate and --without-bounds are for growth: limis bench growth")
    text = {TREES: _trees, GROWTH: _growth}.get(args.what, _explainers)(args)
    if args.output_file is not None:
        _write(args.output_file, text)
    return 0


def _write(path: Path, text: str) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def _trees(args: argparse.Namespace) -> str:
    if args.profile or args.rows is not None or args.methods is not None:
        raise InputError("--rows, --methods and --profile are for explainers; name a data set instead of trees")
    lines = measure_trees(TRIAL if args.quick else Size())
    print(pd.DataFrame(lines).to_string(index=False, float_format=lambda number: f"{number:.3g}"))
    return json.dumps({"machine": machine(), "trees": lines}, indent=1) + "\n"


def _growth(args: argparse.Namespace) -> str:
    if args.profile or args.rows is not None or args.methods is not None:
        raise InputError("--rows, --methods and --profile are for explainers; name a data set instead of growth")
    sizes = args.sizes or ((150, 180) if args.quick else growth.SIZES)
    lines = []
    scale = growth.TRIAL if args.quick else None
    how = {"surrogate": args.surrogate, "without_bounds": args.without_bounds}
    for line in growth.measure(sizes, args.device, scale, **how):
        lines.append(line)
        print(growth.show(lines).iloc[[-1]].to_string(index=False, header=len(lines) == 1), flush=True)
        if args.output_file is not None:  # long runs are not lost
            _write(args.output_file, json.dumps({"command": _command(args), "growth": lines}, indent=1) + "\n")
    if args.output_file is not None and len(sizes) > 1 and not args.without_bounds:
        growth.draw(lines).savefig(args.output_file.with_suffix(".png"))
    return json.dumps({"command": _command(args), "growth": lines}, indent=1) + "\n"


def _explainers(args: argparse.Namespace) -> str:
    size = bench.QUICK if args.quick else bench.Size()
    if args.rows is not None:
        size = size.with_rows(args.rows)
    own_names = {name.lower(): name for name in bench.METHODS}
    methods = bench.METHODS if args.methods is None else [own_names.get(name.lower(), name) for name in args.methods]
    found = bench.measure(args.what, size, methods, profiled=args.profile, say=_say)
    print(f"{found['data']}, {found['black_box']}, {found['training_rows']:,} training rows, {found['processor']}")
    print(f"{found['machine']}\n")
    print(bench.result_table(found).to_string(index=False))
    print("", *bench.ratio_lines(found), sep="\n")
    if args.profile:
        print(f"\n{bench.profile_table(found).to_string(index=False)}")
    print("", *(textwrap.fill(line, WIDTH) for line in [bench.NOTE, *bench.setting_lines(found)]), sep="\n")
    return bench.as_json({"command": _command(args), **found})


def _command(args: argparse.Namespace) -> str:
    words = ["limis", "bench", args.what]
    words += [] if args.rows is None else ["--rows", str(args.rows)]
    words += [] if args.sizes is None else ["--sizes", *map(str, args.sizes)]
    words += [] if args.device == "cpu" else ["--device", args.device]
    words += [] if args.methods is None else ["--methods", *(f'"{name}"' for name in args.methods)]
    words += [] if args.surrogate == "ridge" else ["--surrogate", args.surrogate]
    words += ["--without-bounds"] if args.without_bounds else []
    words += ["--profile"] if args.profile else []
    return " ".join([*words, "--quick"] if args.quick else words)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
