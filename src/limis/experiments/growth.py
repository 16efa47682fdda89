"""How fitting and explaining grow with the training table: Facebook's rows, resampled with noise.

The black box is scikit-learn's booster on 50,000 such rows, so that only the explainer sees more of them. Each size
runs in a process of its own, whose peak memory is told, after a small fit that compiles code and wakes the device.
All sizes explain the same rows and are asked the same changes of them.
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
from limis.experiments.bench.methods import timed, whole
from limis.experiments.cache import machine
from limis.experiments.figures import panels
from limis.metrics import nse
from limis.perturb import MovedRows, draw_moves, moved_values
from limis.retrieval import retriever
from limis.subgroups.resampling import interval, resampled_means
from limis.table import Table
from limis.walk import LocalFits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
NOISE = 0.05  # of a column's standard deviation, for columns of many values
MANY_VALUES = 50
ROUNDS = 5
RESAMPLES = 1000
BLUE = "#1a66c9"


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    taught: int = 50_000  # rows that the black box is fitted on
    warm: int = 20_000  # training rows of the fit before the one that counts
    explained: int = 10_000  # rows explained together; more on an accelerator
    judged: int = 5_000  # the first of them
    reasons: int = 2_000  # the first of them, of which reasons are read
    donors: int = 50_000  # rows to whose values columns of these are changed


TRIAL = Scale(taught=2_000, warm=150, explained=300, judged=100, reasons=50, donors=300)
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


def measure(
    sizes: Sequence[int],
    device: str = "cpu",
    scale: Scale | None = None,
    *,
    surrogate: str = "ridge",
    without_bounds: bool = False,
) -> Iterator[dict[str, Any]]:
    """One line a size, as soon as it is known; ``without_bounds``: two, the second with a forest of all rows."""
    scale = scale or (Scale() if device == "cpu" else ON_ACCELERATOR)
    for n_rows in sizes:
        for bounded in (True, False) if without_bounds else (True,):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                yield pool.apply(_measure_one, (n_rows, device, scale, surrogate, bounded))


class _TimedModel:
    """The black box as a function, and the seconds of the processor that it took."""

    def __init__(self, model: HistGradientBoostingRegressor) -> None:
        self.model = model
        self.seconds = 0.0

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        started = time.process_time()
        found = np.asarray(self.model.predict(rows))
        self.seconds += time.process_time() - started
        return found


def _measure_one(n_rows: int, device: str, scale: Scale, surrogate: str, bounded: bool) -> dict[str, Any]:
    if not bounded:
        retriever.MAX_FOREST_ROWS = n_rows  # of this process alone
    taught, labels = resampled(scale.taught, seed=1)
    model = HistGradientBoostingRegressor(max_iter=200, random_state=0).fit(taught, np.log1p(labels))
    LimisExplainer(model, surrogate=surrogate, device=device).fit(resampled(scale.warm, seed=4)[0])
    (rows, _), (tests, _) = resampled(n_rows, seed=2), resampled(scale.explained, seed=3)
    box = _TimedModel(model)
    explainer = LimisExplainer(box, surrogate=surrogate, device=device, random_state=0)
    started, worked = time.perf_counter(), time.process_time()
    explainer.fit(rows)
    fit_seconds, own_seconds = time.perf_counter() - started, time.process_time() - worked - box.seconds
    outputs = explainer.training_.black_box.outputs(tests)
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        found = explainer.explain(tests, outputs=outputs)
        seconds.append((time.perf_counter() - started) / len(tests))
    told = [timed(lambda: whole(explainer.explain(tests, outputs=outputs)))[0] for _ in range(ROUNDS)]
    reasons = _reasons_ms(explainer, tests[: scale.reasons], outputs[: scale.reasons]) if surrogate == "curves" else {}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    judged = np.arange(len(tests))[: scale.judged]
    return {
        "rows": n_rows,
        "columns": rows.shape[1],
        "device": device,
        "surrogate": surrogate,
        "bounded": bounded,
        "fit_seconds": fit_seconds,
        "fit_own_cpu_seconds": own_seconds,
        "explain_ms": 1000 * float(np.median(seconds)),
        "with_contributions_ms": 1000 * float(np.median(told)) / len(tests),
        **reasons,
        "explained_together": len(tests),
        "explanations_a_second": 1 / float(np.median(seconds)),
        "peak_gib": peak,
        "nse": nse(outputs[judged], found.fits.part(judged).predictions()),
        **_foreseen(explainer, found.fits.part(judged), tests.iloc[judged], resampled(scale.donors, seed=5)[0]),
        "machine": machine(device),
    }


def _reasons_ms(explainer: LimisExplainer, tests: pd.DataFrame, outputs: np.ndarray) -> dict[str, Any]:
    """What reading the reasons of curves takes a row, their explanations included."""
    _ = explainer.explain(tests[:2], outputs=outputs[:2]).contributions  # what is worked out once is not counted
    seconds = timed(lambda: explainer.explain(tests, outputs=outputs).contributions)[0]
    return {"reasons_ms": 1000 * seconds / len(tests), "reasons_together": len(tests)}


def _foreseen(explainer: LimisExplainer, fits: LocalFits, tests: pd.DataFrame, donors: pd.DataFrame) -> dict[str, Any]:
    """Skill on changes, in squares with its 95% interval over rows, and in absolute values.

    Few rows carry most squares, so they say little of small differences; absolute values say more.
    """
    # Drawn without the training rows, so that all sizes are asked the same.
    table, _ = Table.learn(donors)
    values, others = table.values(tests), table.values(donors)
    moves = draw_moves(table, values, others, np.random.default_rng(0))
    moved = moved_values(values, others, moves)
    box = explainer.training_.black_box
    asked = pd.DataFrame(moved.astype(np.float32), columns=tests.columns)
    changes = box.outputs(asked) - box.outputs(tests)[moves.rows]
    missed = changes - fits.changes(moves.rows, MovedRows(explainer.training_.table, moved))
    sums = [
        np.bincount(moves.rows, part, minlength=len(tests))
        for part in (missed**2, changes**2, abs(missed), abs(changes))
    ]
    drawn = resampled_means(np.column_stack(sums), RESAMPLES, np.random.default_rng(1))
    of_squares, of_sizes = 1 - sums[0].sum() / sums[1].sum(), 1 - sums[2].sum() / sums[3].sum()
    ends = interval(1 - drawn[:, ::2] / drawn[:, 1::2], len(tests))
    return {
        "skill": float(of_squares),
        "skill_interval": [float(end[0]) for end in ends],
        "absolute_skill": float(of_sizes),
        "absolute_skill_interval": [float(end[1]) for end in ends],
    }


def show(lines: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The same as texts."""
    return pd.DataFrame(
        [
            {
                "training rows": f"{line['rows']:,}",
                "device": line["device"],
                "surrogate": line.get("surrogate", "ridge"),
                "forest of": f"at most {retriever.MAX_FOREST_ROWS:,} rows" if line["bounded"] else "all rows",
                "fit, s": f"{line['fit_seconds']:.1f}",
                "of all cores, without the model's": f"{line['fit_own_cpu_seconds']:.1f}"
                if "fit_own_cpu_seconds" in line
                else "",
                "explain, ms a row": f"{line['explain_ms']:.3g}",
                "explanations a second": f"{line['explanations_a_second']:,.0f}",
                "reasons a second": f"{1000 / line['reasons_ms']:,.0f}" if "reasons_ms" in line else "",
                "peak memory, GiB": f"{line['peak_gib']:.1f}",
                "NSE": f"{line['nse']:.3f}",
                "skill (95% interval)": _with_ends(line, "skill"),
                "in absolute values": _with_ends(line, "absolute_skill"),
            }
            for line in lines
        ]
    )


def _with_ends(line: dict[str, Any], name: str) -> str:
    low, high = line[f"{name}_interval"]
    return f"{line[name]:.3f} ({low:.3f} to {high:.3f})"


def draw(lines: Sequence[dict[str, Any]]) -> Figure:
    """What grows with the training rows, and what does not."""
    table = pd.DataFrame(lines)
    shown = {
        "fit, s": "fit_seconds",
        "explain, ms a row": "explain_ms",
        "peak memory, GiB": "peak_gib",
        "NSE and skill, 95% intervals": "nse",
    }
    figure, axes = panels(list(shown), share_y=False)
    for ax, measured in zip(axes[0], shown.values(), strict=True):
        ax.plot(table["rows"], table[measured], color=BLUE, marker="o")
        ax.set_xscale("log")
        ax.set_xlabel("training rows")
        ax.set_ylim(0, 1.15 * max(table[measured].max(), 1e-9) if measured != "nse" else 1.05)
    fidelity = axes[0, -1]
    for name, line, marker in (("skill", "--", "s"), ("absolute_skill", ":", "D")):
        fidelity.plot(table["rows"], table[name], color=BLUE, marker=marker, linestyle=line)
        fidelity.fill_between(table["rows"], *zip(*table[f"{name}_interval"], strict=True), color=BLUE, alpha=0.15)
    words = {"nse": ("NSE", -0.12), "skill": ("skill", -0.2), "absolute_skill": ("skill in absolute values", 0.05)}
    for name, (text, above) in words.items():
        fidelity.annotate(text, (table["rows"].iloc[0], table[name].iloc[0] + above))
    return figure
