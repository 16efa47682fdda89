"""How fitting and explaining grow with the training table: Facebook's rows, resampled with noise.

The black box is scikit-learn's booster on 50,000 such rows, so that only the explainer sees more of them. Each size
runs in a process of its own, whose peak memory is told, after a small fit that compiles code and wakes the device.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from limis import LimisExplainer
from limis.datasets import load_facebook
from limis.experiments.cache import machine
from limis.experiments.figures import panels
from limis.training.choose import judge
from limis.training.probes import ProbeRows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
NOISE = 0.05  # of a column's standard deviation, for columns of many values
MANY_VALUES = 50
ROUNDS = 5


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    taught: int = 50_000  # rows that the black box is fitted on
    warm: int = 20_000  # training rows of the fit before the one that counts
    explained: int = 10_000  # rows explained together; more on an accelerator
    judged: int = 1_000


TRIAL = Scale(taught=2_000, warm=150, explained=300, judged=100)
ON_ACCELERATOR = Scale(explained=65_536)


def resampled(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """So many rows of Facebook's, drawn with replacement, with noise on numbers of many values; and their labels."""
    data = load_facebook()
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(data.frame), n_rows)
    drawn = {}
    for name, column in data.frame.astype(np.float32).items():
        drawn[name] = column.to_numpy()[chosen]
        if column.nunique() > MANY_VALUES:
            spread = np.float32(NOISE * column.std())
            drawn[name] += spread * rng.standard_normal(n_rows, dtype=np.float32)
    return pd.DataFrame(drawn, copy=False), np.asarray(data.target, dtype=np.float64)[chosen]


def measure(sizes: Sequence[int], device: str = "cpu", scale: Scale | None = None) -> Iterator[dict[str, Any]]:
    """One line a size, as soon as it is known."""
    scale = scale or (Scale() if device == "cpu" else ON_ACCELERATOR)
    for n_rows in sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            yield pool.apply(_measure_one, (n_rows, device, scale))


def _measure_one(n_rows: int, device: str, scale: Scale) -> dict[str, Any]:
    taught, labels = resampled(scale.taught, seed=1)
    model = HistGradientBoostingRegressor(max_iter=200, random_state=0).fit(taught, np.log1p(labels))
    LimisExplainer(model, device=device).fit(resampled(scale.warm, seed=4)[0])
    (rows, _), (tests, _) = resampled(n_rows, seed=2), resampled(scale.explained, seed=3)
    explainer = LimisExplainer(model, device=device, random_state=0)
    started = time.perf_counter()
    explainer.fit(rows)
    fit_seconds = time.perf_counter() - started
    outputs = explainer.training_.black_box.outputs(tests)
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        found = explainer.explain(tests, outputs=outputs)
        seconds.append((time.perf_counter() - started) / len(tests))
    judged = slice(scale.judged)
    asked = ProbeRows.ask(explainer.training_, tests[judged], outputs[judged], np.random.default_rng(0))
    told = judge(explainer.training_.table, found.fits.part(np.arange(len(tests))[judged]), asked)
    return {
        "rows": n_rows,
        "columns": rows.shape[1],
        "device": device,
        "fit_seconds": fit_seconds,
        "explain_ms": 1000 * float(np.median(seconds)),
        "explained_together": len(tests),
        "explanations_a_second": 1 / float(np.median(seconds)),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        **{name: told[name] for name in ("nse", "skill")},
        "machine": machine(device),
    }


def show(lines: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The same as texts."""
    return pd.DataFrame(
        [
            {
                "training rows": f"{line['rows']:,}",
                "device": line["device"],
                "fit, s": f"{line['fit_seconds']:.0f}",
                "explain, ms a row": f"{line['explain_ms']:.3g}",
                "explanations a second": f"{line['explanations_a_second']:,.0f}",
                "peak memory, GiB": f"{line['peak_gib']:.1f}",
                "NSE": f"{line['nse']:.3f}",
                "skill": f"{line['skill']:.3f}",
            }
            for line in lines
        ]
    )


def draw(lines: Sequence[dict[str, Any]]) -> Figure:
    """What grows with the training rows, and what does not."""
    table = pd.DataFrame(lines)
    shown = {
        "fit, s": "fit_seconds",
        "explain, ms a row": "explain_ms",
        "peak memory, GiB": "peak_gib",
        "NSE and skill": "nse",
    }
    figure, axes = panels(list(shown), share_y=False)
    for ax, measured in zip(axes[0], shown.values(), strict=True):
        ax.plot(table["rows"], table[measured], color="#1a66c9", marker="o")
        ax.set_xscale("log")
        ax.set_xlabel("training rows")
        ax.set_ylim(0, 1.15 * max(table[measured].max(), 1e-9) if measured != "nse" else 1.05)
    axes[0, -1].plot(table["rows"], table["skill"], color="#1a66c9", marker="s", linestyle="--")
    axes[0, -1].annotate("NSE", (table["rows"].iloc[0], table["nse"].iloc[0] - 0.1))
    axes[0, -1].annotate("skill", (table["rows"].iloc[0], table["skill"].iloc[0] - 0.1))
    return figure
