"""Which training rows are selected: those of the same regime, few or many, near or far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from limis.experiments import figures, methods
from limis.experiments.experiment import Experiment, grid
from limis.experiments.paper_numbers import AUC, MEAN
from limis.experiments.protocol import PIECEWISE
from limis.experiments.recovery import LIMIS_AND_FORESTS
from limis.experiments.runs import Outcome
from limis.experiments.tables import (
    CELL,
    beside_paper,
    binned,
    cell,
    measured,
    shown,
    summarised,
    with_bins_named,
    with_mean,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = np.linspace(0, 1, 21)
WITH_TEXT_AND_LIME = (methods.PAPER, methods.PAPER_TEXT, methods.DEFAULT, methods.SILO, methods.MAPLE, methods.LIME)


# --- selection-auc -------------------------------------------------------------------------------------


def _auc_table(outcomes: list[Outcome]) -> pd.DataFrame:
    return beside_paper(summarised(with_mean(measured(outcomes)), CELL, ["auc", "selected_share"]), AUC)


def _show_auc(table: pd.DataFrame) -> pd.DataFrame:
    return shown(table, "auc", ["method"], "data").rename(columns={MEAN: "mean of Syn1-3"})


def _draw_auc(table: pd.DataFrame) -> Figure:
    names = list(table["data"].unique())
    figure, axes = figures.panels(names)
    for ax, name in zip(axes[0], names, strict=True):
        figures.dots(ax, table[table["data"] == name], "auc")
        ax.axvline(0.5, color=figures.OTHER, linewidth=0.8, linestyle=":")
        ax.set_xlabel("AUC; hollow: the paper's")
        ax.set_xlim(0.4, 1.01)
    return figure


# --- weight-distribution, weight-distance ------------------------------------------------------------


def _distribution_table(outcomes: list[Outcome]) -> pd.DataFrame:
    lines = []
    for one in outcomes:
        weights = one.found["weights"].astype(float)
        counts, _ = np.histogram(weights.clip(0, 1), BINS)
        for low, count in zip(BINS, counts, strict=False):
            place = {"data": one.run.data, "method": one.run.method.name, "seed": one.run.seed}
            lines.append({**place, "weight": round(low + 0.025, 3), "share": count / weights.size})
    return summarised(pd.DataFrame(lines), ["data", "method", "weight"], ["share"])


def _show_distribution(table: pd.DataFrame) -> pd.DataFrame:
    """Shares of pairs in the ranges that the paper speaks of."""
    ranges = {"below 0.1": (0, 0.1), "0.1 to 0.5": (0.1, 0.5), "above 0.5": (0.5, 1)}
    lines = []
    for (data, method), part in table.groupby(["data", "method"], sort=False):
        shares = {
            words: cell(part.loc[part["weight"].between(low, high), "share"].sum())
            for words, (low, high) in ranges.items()
        }
        lines.append({"data": data, "method": method, **shares})
    return pd.DataFrame(lines)


def _draw_distribution(table: pd.DataFrame) -> Figure:
    names = list(table["data"].unique())
    figure, axes = figures.panels(names)
    for ax, name in zip(axes[0], names, strict=True):
        for method, part in table[table["data"] == name].groupby("method", sort=False):
            colour = figures.COLOURS[str(method)]
            ax.stairs(part["share"], BINS, color=colour, fill=True, alpha=0.2)
            ax.stairs(part["share"], BINS, color=colour, linewidth=1.4, label=method)
        ax.set_xlabel("weight of a training row for a test row")
    axes[0, 0].set_ylabel("share of pairs")
    figures.legend(figure, axes)
    return figure


def _distance_table(outcomes: list[Outcome]) -> pd.DataFrame:
    lines = []
    for one in outcomes:
        relative, percentile, distance = _weights_and_distances(one)
        away = dict(binned(distance, percentile))
        for middle, mean in binned(relative, percentile):
            place = {"data": one.run.data, "method": one.run.method.name, "seed": one.run.seed}
            lines.append({**place, "percentile": middle, "distance": away[middle], "weight": mean})
    return summarised(pd.DataFrame(lines), ["data", "method", "percentile"], ["distance", "weight"])


def _weights_and_distances(one: Outcome) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every pair: weight over the query's mean weight, percentile of the distance for that query, distance."""
    weights = one.found["weights"].astype(float)
    relative = weights / np.maximum(weights.mean(axis=1, keepdims=True), 1e-12)
    queries = one.truth.features.to_numpy()[: len(weights)]
    rows = one.run.problem.training.features.to_numpy()
    distance = np.sqrt(((queries[:, None] - rows[None]) ** 2).sum(axis=2))  # (queries, training rows)
    percentile = 100 * distance.argsort(axis=1).argsort(axis=1) / distance.shape[1]
    return relative.ravel(), percentile.ravel(), distance.ravel()


def _show_distance(table: pd.DataFrame) -> pd.DataFrame:
    return shown(with_bins_named(table), "weight", ["data", "method"], "percentile", 2)


def _draw_distance(table: pd.DataFrame) -> Figure:
    figure, axes = figures.curves_by_data(
        table, "percentile", "weight", "distance between the rows, percentile", "weight, over the mean weight"
    )
    for ax in axes[0]:
        ax.axhline(1, color=figures.OTHER, linewidth=0.8, linestyle=":")
    axes[0, 0].set_ylim(bottom=0)
    return figure


SELECTION = (
    Experiment(
        "selection-auc",
        "Do training rows of the test row's own regime weigh more? AUC at 2,000 training rows",
        lambda scope: grid(WITH_TEXT_AND_LIME, PIECEWISE, scope.sizes(2000), scope),
        _auc_table,
        _show_auc,
        _draw_auc,
        note="LIME uses no training rows; its score is its kernel of their distance. The paper does not say how many "
        "training rows its table has.",
    ),
    Experiment(
        "weight-distribution",
        "Histogram of the weights of training rows, 2,000 training rows",
        lambda scope: grid([methods.PAPER, methods.DEFAULT], PIECEWISE, scope.sizes(2000), scope),
        _distribution_table,
        _show_distribution,
        _draw_distribution,
        note="Of the default these are the weights that its slopes rest on. The paper gives the figure only.",
    ),
    Experiment(
        "weight-distance",
        "Weight of a training row against its distance from the test row, 2,000 training rows",
        lambda scope: grid(LIMIS_AND_FORESTS, PIECEWISE, scope.sizes(2000), scope),
        _distance_table,
        _show_distance,
        _draw_distance,
        note="Weights are told in multiples of the mean weight for the same test row, distances are Euclidean, columns "
        "are percentiles of the distance. The paper gives the figure only.",
    ),
)
