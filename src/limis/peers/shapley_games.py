"""Shapley values, and values of pairs, of any model by questions about a row, as current methods have them.

Where questions are few, each replaces a group of a row's columns by those of one reference row, drawn anew for each;
else by those of all reference rows. What the model says of the row and, on average, of these costs nothing.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from limis.changes import ask_moved
from limis.errors import require
from limis.perturb import Moves
from limis.rows import TrainingRows

Estimator = Literal["permutation", "kernel", "regression-msr", "proxy"]
Index = Literal["FSII", "k-SII"]
PROXY_TREES = 100
ENDS = 2  # questions that packages ask and that are known here: of no column kept, and of all


@dataclass
class Game:
    """One row against reference rows: what the model says where the row keeps some of its columns."""

    training: TrainingRows
    row: pd.DataFrame
    reference: pd.DataFrame
    base: float
    output: float
    rng: np.random.Generator
    averaged: bool = False  # over all reference rows, and not one of them for each group

    @property
    def n(self) -> int:
        """Players."""
        return len(self.training.table.columns)

    @property
    def seed(self) -> int:
        """For what has random numbers of its own."""
        return int(self.rng.integers(2**31))

    def __call__(self, kept: np.ndarray) -> np.ndarray:
        """Where the row keeps some columns, the model's output, the others those of reference rows: (groups,)."""
        kept = np.atleast_2d(kept).astype(bool)
        found = np.where(kept.all(axis=1), self.output, self.base)
        asked = np.flatnonzero(kept.any(axis=1) & ~kept.all(axis=1))
        n_reference = len(self.reference)
        if self.averaged:
            donors = np.tile(np.arange(n_reference), (len(asked), 1))
        else:
            donors = self.rng.integers(n_reference, size=(len(asked), 1))
        changed = np.repeat(~kept[asked], donors.shape[1], axis=0)
        moves = Moves(np.zeros(donors.size, dtype=np.int64), donors.ravel(), changed)
        answers = ask_moved(self.training, self.row, moves, self.reference)[1]
        found[asked] = answers.reshape(donors.shape).mean(axis=1)
        return found


def games(
    training: TrainingRows, frame: pd.DataFrame, outputs: np.ndarray, reference: pd.DataFrame, *, averaged: bool = False
) -> list[Game]:
    """One a row."""
    base = float(training.black_box.outputs(reference).mean())
    return [
        Game(training, frame.iloc[[row]], reference, base, float(outputs[row]), np.random.default_rng(row), averaged)
        for row in range(len(frame))
    ]


def shapley_values(game: Game, questions: int, estimator: Estimator) -> np.ndarray:
    """Shapley values of all columns, by so many questions: (columns,)."""
    if estimator == "regression-msr":
        return _regression(game, questions)
    if estimator == "proxy":
        return _proxy(game, questions)
    package = require("shapiq", "peers")
    kind = package.KernelSHAP if estimator == "kernel" else package.PermutationSamplingSV
    options = {"pairing_trick": True} if estimator == "kernel" else {}
    found = _approximated(kind(game.n, random_state=game.seed, **options), game, questions)
    return np.array([found[(column,)] for column in range(game.n)])


def pair_values(game: Game, groups: int, index: Index) -> Any:
    """``shapiq.InteractionValues`` of order two, by so many groups."""
    package = require("shapiq", "peers")
    if index == "FSII":
        approximator = package.RegressionFSII(game.n, 2, pairing_trick=True, random_state=game.seed)
    else:
        approximator = package.KernelSHAPIQ(game.n, 2, index="k-SII", pairing_trick=True, random_state=game.seed)
    return _approximated(approximator, game, groups)


def _approximated(approximator: Any, game: Game, questions: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where groups are so few that not all questions are needed
        return approximator.approximate(questions + ENDS, game)


def _regression(game: Game, questions: int) -> np.ndarray:
    """Least squares over groups, and what it leaves unexplained, from every group asked (maximum sample reuse)."""
    n, base, output = game.n, game.base, game.output
    kept, shares = _draw(n, questions, game.rng)
    said = game(kept)
    # Both ends are met: the last value is what the others leave of the whole.
    own = kept[:, :-1].astype(float) - kept[:, -1:]
    line = np.linalg.lstsq(own, said - base - kept[:, -1] * (output - base), rcond=None)[0]
    line = np.append(line, output - base - line.sum())
    return line + _reused(said - base - kept @ line, kept, shares)


def _proxy(game: Game, questions: int) -> np.ndarray:
    """Exact values of trees taught the game, and what they leave unexplained by every group that was asked."""
    lightgbm, shap = require("lightgbm", "lightgbm"), require("shap", "peers")
    n, base, output = game.n, game.base, game.output
    kept, shares = _draw(n, questions, game.rng)
    said = game(kept)
    ends = np.array([np.zeros(n), np.ones(n)])
    trees = lightgbm.LGBMRegressor(
        n_estimators=PROXY_TREES, num_leaves=15, min_child_samples=5, verbose=-1, n_jobs=1, random_state=0
    ).fit(np.concatenate([kept, ends]).astype(float), np.concatenate([said, [base, output]]))
    explainer = shap.TreeExplainer(trees, np.zeros((1, n)), feature_perturbation="interventional")
    values = np.asarray(explainer.shap_values(np.ones((1, n)), check_additivity=False))[0]
    low, high = trees.predict(ends)
    # What the trees miss at both ends is a game in which all units are alike.
    missed = said - trees.predict(kept.astype(float))
    line = (base - low) + kept.mean(axis=1) * ((output - high) - (base - low))
    return values + ((output - high) - (base - low)) / n + _reused(missed - line, kept, shares)


def _draw(n: int, questions: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Groups and their complements by the Shapley kernel's sizes, and how likely each's size was."""
    sizes = np.arange(1, n)
    chances = 1 / (sizes * (n - sizes))
    chances /= chances.sum()
    drawn = rng.choice(sizes, max(1, questions // 2), p=chances)
    kept = np.argsort(rng.random((len(drawn), n)), axis=1) < drawn[:, None]
    kept = np.concatenate([kept, ~kept])
    return kept, chances[kept.sum(axis=1) - 1]


def _reused(missed: np.ndarray, kept: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Shapley values of a game that is zero at both ends, unbiased, each from all groups."""
    size, n = kept.sum(axis=1), kept.shape[1]
    each = np.where(kept, (1 / size)[:, None], -(1 / (n - size))[:, None])
    return (each * (missed / shares)[:, None]).mean(axis=0)
