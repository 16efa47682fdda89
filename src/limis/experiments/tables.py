"""From runs to tables: one line a run, then means over seeds with 95% intervals, the paper's numbers beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy.stats import t

from limis.experiments.paper_numbers import MEAN, Numbers
from limis.experiments.protocol import PIECEWISE
from limis.experiments.runs import Outcome

CELL = ["data", "rows", "method"]


def measured(outcomes: Iterable[Outcome]) -> pd.DataFrame:
    """One line a run: what it is, and everything measured of it."""
    return pd.DataFrame(
        {
            "data": one.run.data,
            "rows": one.run.rows,
            "method": one.run.method.name,
            "seed": one.run.seed,
            **one.measures(),
        }
        for one in outcomes
    )


def with_mean(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines, and for each method, size and seed the mean over Syn1 to Syn3 where all three are there."""
    by = ["rows", "method", "seed"]
    three = lines[lines["data"].isin(PIECEWISE)]
    complete = three[three.groupby(by)["data"].transform("nunique") == len(PIECEWISE)]
    means = complete.drop(columns="data").groupby(by, as_index=False, sort=False).mean().assign(data=MEAN)
    return pd.concat([lines, means[lines.columns]], ignore_index=True)


def half_width(values: pd.Series) -> float:
    """Half of the 95% interval of a mean, from Student's t; unknown from one value."""
    n = values.count()
    return float(t.ppf(0.975, n - 1) * values.std() / np.sqrt(n)) if n > 1 else float("nan")


def summarised(lines: pd.DataFrame, by: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """Means over the seeds, each value followed by half of its 95% interval, in the order of first appearance."""
    groups = lines.groupby(list(by), sort=False, dropna=False)
    columns = {"seeds": groups["seed"].nunique()}
    for value in values:
        columns[value] = groups[value].mean()
        columns[f"{value} ±"] = groups[value].apply(half_width)
    return pd.DataFrame(columns).reset_index()


def beside_paper(table: pd.DataFrame, numbers: Numbers, name: str = "paper") -> pd.DataFrame:
    """The table with the paper's number for each method, data and size; the variant of its text has none of its own."""
    keys = zip(table["method"], table["data"], table["rows"], strict=True)
    return table.assign(**{name: [numbers.get(key, np.nan) for key in keys]})


def binned(values: np.ndarray, percentiles: np.ndarray, n_bins: int = 10) -> list[tuple[float, float]]:
    """Mean value in each of equally wide bins of a percentile, with the bins' middles; empty ones are left out."""
    place = np.minimum((percentiles * n_bins / 100).astype(int), n_bins - 1)
    middles = (np.arange(n_bins) + 0.5) * 100 / n_bins
    return [(middles[b], float(values[place == b].mean())) for b in range(n_bins) if (place == b).any()]


def with_bins_named(table: pd.DataFrame, n_bins: int = 10) -> pd.DataFrame:
    """The table in the order of the percentile's bins, each called by its ends instead of its middle."""
    table = table.sort_values("percentile", kind="stable")
    half = 50 / n_bins
    return table.assign(percentile=[f"{middle - half:g}-{middle + half:g}%" for middle in table["percentile"]])


def cell(mean: float, half: float = float("nan"), paper: float = float("nan"), digits: int = 3) -> str:
    """A number as tables show it: 0.213 ± 0.012 (paper 0.213)."""
    if np.isnan(mean):
        return ""
    text = f"{mean:.{digits}f}"
    text += "" if np.isnan(half) else f" ± {half:.{digits}f}"
    return text + ("" if np.isnan(paper) else f" (paper {paper:.{digits}f})")


def shown(table: pd.DataFrame, value: str, rows: Sequence[str], columns: str, digits: int = 3) -> pd.DataFrame:
    """One value spread over columns: mean, interval and the paper's number in each cell.

    Where lines rest on different numbers of seeds, the smallest of each is told.
    """
    texts = [
        cell(line[value], line[f"{value} ±"], line.get("paper", np.nan), digits) for line in table.to_dict("records")
    ]
    keys = [*rows, columns]
    wide = table[keys].assign(text=texts).set_index(keys)["text"].unstack(columns)
    order = pd.MultiIndex.from_frame(table[list(rows)].drop_duplicates())
    wide = wide.reindex(index=order if len(rows) > 1 else order.get_level_values(0), columns=table[columns].unique())
    wide = wide.fillna("")
    if table["seeds"].min() < table["seeds"].max():
        wide.insert(0, "seeds", table.groupby(list(rows), sort=False)["seeds"].min().reindex(wide.index))
    return wide.reset_index().rename_axis(columns=None)
