"""What a fit found, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from limis.default_model import read_target
from limis.explainer import LimisExplainer
from limis.report.text import explained
from limis.report.words import count


def default_model_lines(model: Any, target: pd.Series) -> Iterator[str]:
    """What the default black box is, and how good."""
    goal = read_target(target)
    what = f" = {goal.classes[1]}" if goal.classes is not None and len(goal.classes) == 2 else ""
    yield _line("Model", f"LightGBM, trained here to predict {target.name}{what}; {model.num_trees()} trees")
    scores = model.best_score.get("held_out", {})
    if "auc" in scores:
        yield _line("", f"AUC {scores['auc']:.3f} on the tenth of the rows that chose the number of trees")
    elif "multi_error" in scores:
        right = 1 - scores["multi_error"]
        yield _line("", f"{right:.1%} right on the tenth of the rows that chose the number of trees")
    elif "rmse" in scores:
        share = 1 - scores["rmse"] ** 2 / goal.values.var()
        yield _line("", f"typical error {scores['rmse']:.4g} (R² {share:.3f}) on the tenth of the rows that")
        yield _line("", "chose the number of trees")


def fit_lines(explainer: LimisExplainer, n_probe: int, seconds: float, path: Path) -> Iterator[str]:
    """What was fitted, how well, how long it took and where it is."""
    training = explainer.training_
    columns = count(len(training.table.columns), "column", "columns")
    held_out = f"{n_probe:,} probe rows held out"
    if explainer.bound_ is not None and explainer.bound_.cross_fitted:
        held_out = "each a probe row of a fit without it"
    yield _line("Rows", f"{len(training.frame):,} to explain with, {held_out}, {columns}")
    yield _line("Explained", _scale(explainer))
    yield from quality_lines(explainer)
    chosen = _chosen(explainer.choices_)
    if chosen:
        yield _line("Chosen", chosen)
    yield _line("Took", f"{seconds:.1f} s")
    yield _line("Written to", f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


def quality_lines(explainer: LimisExplainer) -> Iterator[str]:
    """NSE and skill on changes of the explanations, with what they mean."""
    heading = "Fidelity"
    if hasattr(explainer, "nse_"):
        yield _line(heading, f"NSE {explainer.nse_:.3f}: how much of the differences between held-out rows the")
        yield _line("", "explanations account for (1 is all, 0 is no more than the mean)")
        heading = ""
    if hasattr(explainer, "skill_"):
        yield _line(heading, f"skill on changes {explainer.skill_:.3f}: how much of the model's answer to a changed")
        yield _line("", "column they foresee (1 is all, 0 is no more than expecting no change);")
        skills = ", ".join(f"{reach} {skill:.2f}" for reach, skill in explainer.skill_by_range_.items())
        yield _line("", f"to values of the nearest rows: {skills}")
    elif not heading:
        yield _line("", "skill on changes not measured: there is no model to ask about changed rows")
    if heading:
        yield _line(heading, "not measured: too few rows")


def _scale(explainer: LimisExplainer) -> str:
    black_box = explainer.training_.black_box
    words = explained(black_box)
    if explainer.output == "auto" and black_box.is_classifier and black_box.can_be_asked:
        words += " (chosen by auto)"
    if black_box.clipped_share:
        words += f"; {black_box.clipped_share:.1%} of the rows too near 0% or 100%, and cut there"
    return words


def _chosen(choices: pd.DataFrame) -> str:
    """The options that won on probe rows, out of how many."""
    if choices.empty:
        return ""
    numbers = ("nse", "lmae", "skill", "merit", "error", "global_error", "chosen")
    best = choices[choices["chosen"]]
    lines = best.drop(columns=[name for name in numbers if name in best]).to_dict("records")
    words = ", ".join(
        f"{str(name).removeprefix('n_').replace('_', ' ')} {_option(value)}"
        for line in lines
        for name, value in line.items()
        if pd.notna(value)
    )
    return f"{words}: best on probe rows of the {len(choices)} tried" if len(choices) > 1 else words


def _option(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return value if isinstance(value, str) else format(value, "g")


def _line(heading: str, words: str) -> str:
    return f"{heading:<15}{words}"
