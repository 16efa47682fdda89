"""``limis reproduce``: run experiments by name, print their tables, and keep them with where they came from."""

from __future__ import annotations

import argparse
from pathlib import Path

from limis.cli.options import positive
from limis.errors import InputError
from limis.experiments import EXPERIMENTS, GROUPS, Cache, Experiment, Scope, finish, make_missing, named, write_page

EXAMPLES = """\
examples:
  limis reproduce --list
  limis reproduce selection-auc --quick           a trial in a minute, whose numbers mean nothing
  limis reproduce synthetic-awd --jobs 8          as in the paper: ten seeds, a thousand test rows
  limis reproduce all-synthetic --seeds 3
  limis reproduce --page                          all finished results on one page

Ten seeds of everything take a day on one core: --seeds, --jobs and --device shorten that.
Finished runs are kept in the folder's cache: a command that was stopped goes on where it was, and experiments share
their runs. Delete that folder to run them again.
"""
QUICK = Scope(seeds=1, tests=200, quick=True)


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "reproduce",
        help="run experiments and print their tables",
        description="Run experiments by name; write each one's table as JSON and CSV, and its figure.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which experiments, or {' or '.join(GROUPS)}; --list names them all"
    )
    parser.add_argument("--list", action="store_true", help="name all experiments and what they show")
    parser.add_argument("--page", action="store_true", help="write all results of the folder into its README.md")
    parser.add_argument("--quick", action="store_true", help="a trial: 1 seed, 200 test rows, little data and training")
    parser.add_argument("--seeds", type=positive, metavar="N", help="independent runs (10; for real data 3)")
    parser.add_argument("--tests", type=positive, metavar="N", help="test rows of each (1000)")
    parser.add_argument("--rows", type=positive, metavar="N", help="training rows of real data, at most (all)")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes of one thread each (1)")
    parser.add_argument("--device", default="cpu", metavar="NAME", help="where networks are trained: cpu or cuda (cpu)")
    parser.add_argument(
        "--finished", action="store_true", help="make no runs: tables of those that are there, with how many seeds"
    )
    parser.add_argument("--no-plot", action="store_true", help="draw no figures")
    parser.add_argument(
        "-o", "--output-dir", type=Path, metavar="DIR", help="where results go (results; with --quick results/quick)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.list:
        _list()
        return 0
    if not args.names and not args.page:
        raise InputError("name an experiment; limis reproduce --list names them all")
    folder = args.output_dir or Path("results/quick" if args.quick else "results")
    if args.names:
        _reproduce(named(args.names), args, folder)
    if args.page:
        print(f"written to {write_page(folder)}")
    return 0


def _list() -> None:
    for name, experiment in EXPERIMENTS.items():
        print(f"{name}\n    {experiment.description}")
    for name, members in GROUPS.items():
        print(f"{name}\n    {len(members)} of the above")


def _reproduce(experiments: list[Experiment], args: argparse.Namespace, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cache = Cache(folder / "cache")
    scopes = {experiment.name: _scope(experiment, args) for experiment in experiments}
    # All at once: the longest runs of any experiment go first, and shared ones are made once.
    runs = [run for experiment in experiments for run in experiment.runs(scopes[experiment.name])]
    if not args.finished:
        made = make_missing(runs, cache, jobs=args.jobs, device=args.device, show=True)
        print(f"{made} runs made, {len({run.key for run in runs}) - made} were there already")
    for experiment in experiments:
        table = finish(experiment, scopes[experiment.name], folder, cache, plot=not args.no_plot)
        print(f"\n{experiment.name}: {experiment.description}")
        print("nothing to compare yet" if table.empty else experiment.show(table).to_string(index=False))
    print(f"\nwritten to {folder}")


def _scope(experiment: Experiment, args: argparse.Namespace) -> Scope:
    usual = QUICK if args.quick else Scope(seeds=experiment.seeds)
    return Scope(args.seeds or usual.seeds, args.tests or usual.tests, args.quick, args.rows)
