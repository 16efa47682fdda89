"""``limis demo``: from the Adult data to ten explanations in about a minute."""

from __future__ import annotations

import argparse
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, roc_auc_score

from limis.askers import with_categories
from limis.cli.options import positive, seed
from limis.cli.summary import quality_lines
from limis.cli.tables import check_output, write_explanations
from limis.datasets import load_adult
from limis.default_model import read_target, train_default_model
from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.report.text import WIDTH, render

TRAINING_ROWS = 32_561  # the training part as first published; the others are its test part

DESCRIPTION = """\
Show limis at work: on the census of 1994, train a model that predicts who earns more than
$50,000 a year, fit an explainer to it, explain some people that neither has seen, and write
the explanations as a page too.
"""
EXAMPLES = """\
examples:
  limis demo
  limis demo --rows 3 --seed 7 -o three-people.html
"""


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "demo",
        help="ten explanations of a model of incomes",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-o", "--output-file", type=Path, default=Path("limis-demo.html"), metavar="FILE", help="page (limis-demo.html)"
    )
    parser.add_argument("--rows", type=positive, default=10, metavar="N", help="how many people to explain (10)")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of everything random (0)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    check_output(args.output_file, (".html",))
    run_demo(args.output_file, args.rows, args.seed)
    return 0


def run_demo(page: Path, n_people: int, seed: int, training_rows: int = TRAINING_ROWS) -> None:
    """The whole demo; fewer training rows make it quicker."""
    started = time.perf_counter()
    adult = load_adult()
    frame, target = adult.frame, adult.target
    seen, unseen = slice(training_rows), slice(TRAINING_ROWS, None)
    people = _draw_people(target.iloc[unseen], n_people, seed)
    print(textwrap.fill(f"{adult.description} {adult.citation} ({adult.licence}).", WIDTH) + "\n")

    model = train_default_model(frame.iloc[seen], target.iloc[seen], seed, verbose=True)
    print("\n".join(_model_lines(model, frame.iloc[unseen], target.iloc[unseen], training_rows)))
    explainer = LimisExplainer(model, random_state=seed, n_jobs=-1, verbose=1).fit(frame.iloc[seen])
    explainer.name_classes(read_target(target).classes or [])  # LightGBM itself only counts them
    print("\n".join(quality_lines(explainer)) + "\n")

    found = explainer.explain(frame.loc[people])
    for number, (one, truth) in enumerate(zip(found, target.loc[people], strict=True), 1):
        print(render(one, f"Person {number} of {n_people} (row {one.label})", note=f"in truth: {truth}"))
    write_explanations(found, frame.loc[people], page, title="Who earns more than $50,000 a year?")
    print(f"{int(found.fidelity['trusted'].sum())} of {n_people} explanations are trusted on their own.")
    print("They describe the model, not the world: they are neither causes nor advice.")
    print(f"The same as a page: {page.resolve()} ({time.perf_counter() - started:.0f} s in all)")


def _draw_people(target: pd.Series, n_people: int, seed: int) -> list[int]:
    """Labels of rows drawn at random, half of them (rounded up) of the rarer class."""
    rng = np.random.default_rng(seed)
    rare, common = (target.index[target == value].to_numpy() for value in target.value_counts().index[::-1])
    n_rare = min((n_people + 1) // 2, len(rare))
    if n_people - n_rare > len(common):
        raise InputError(f"there are only {len(target):,} people to explain; --rows {n_people} is too many")
    drawn = [rng.choice(rare, n_rare, replace=False), rng.choice(common, n_people - n_rare, replace=False)]
    return [int(label) for label in rng.permutation(np.concatenate(drawn))]


def _model_lines(model: Any, frame: pd.DataFrame, target: pd.Series, training_rows: int) -> list[str]:
    """What the black box is and how well it predicts rows it has not seen."""
    goal = read_target(target)
    chances = model.predict(with_categories(frame))
    accuracy = accuracy_score(goal.values, chances > 0.5)
    auc = roc_auc_score(goal.values, chances)
    return [
        f"Model          LightGBM, {model.num_trees()} trees, trained on {training_rows:,} people",
        f"               on {len(frame):,} others: right {accuracy:.1%} of the time, AUC {auc:.3f}",
    ]
