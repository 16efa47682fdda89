"""How fitting and explaining grow with the training table: Facebook's rows, resampled with noise.

    LIMIS_DATA=data python tools/growth.py 10000 100000 1000000 -o results/growth.json
    LIMIS_DATA=data python tools/growth.py 603713 --device cuda

The black box is scikit-learn's booster on 50,000 such rows, so that only the explainer sees more of them. Each size
runs in a process of its own, whose peak memory is told; numbers are written as they come.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from limis import LimisExplainer
from limis.datasets import load_facebook
from limis.experiments.cache import machine
from limis.training.choose import judge
from limis.training.probes import ProbeRows

TAUGHT = 50_000  # rows that the black box is fitted on
TESTS = 10_000  # rows explained, of which the first are judged
JUDGED = 1_000
NOISE = 0.05  # of a column's standard deviation, for columns of many values


def resampled(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """So many rows of Facebook's, drawn with replacement; numbers of many values get noise. And their labels."""
    data = load_facebook()
    frame = data.frame.astype(np.float32)
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(frame), n_rows)
    drawn = {}
    for name, column in frame.items():
        values, spread = column.to_numpy()[chosen], float(column.std())
        if column.nunique() > 50:
            values = values + rng.normal(scale=NOISE * spread, size=n_rows).astype(np.float32)
        drawn[name] = values
    return pd.DataFrame(drawn), np.asarray(data.target, dtype=np.float64)[chosen]


def measure(n_rows: int, device: str) -> dict[str, Any]:
    """Fit and explain once."""
    taught, labels = resampled(TAUGHT, seed=1)
    model = HistGradientBoostingRegressor(max_iter=200, random_state=0).fit(taught, np.log1p(labels))
    rows, _ = resampled(n_rows, seed=2)
    tests, _ = resampled(TESTS, seed=3)
    explainer = LimisExplainer(model, device=device, random_state=0)
    started = time.perf_counter()
    explainer.fit(rows)
    fit_seconds = time.perf_counter() - started
    fit_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    outputs = explainer.training_.black_box.outputs(tests)
    explainer.explain(tests[:300], outputs=outputs[:300])  # warm
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        found = explainer.explain(tests, outputs=outputs)
        seconds.append((time.perf_counter() - started) / TESTS)
    asked = ProbeRows.ask(explainer.training_, tests[:JUDGED], outputs[:JUDGED], np.random.default_rng(0))
    judged = judge(explainer.training_.table, found.fits.part(np.arange(JUDGED)), asked)
    return {
        "rows": n_rows,
        "columns": rows.shape[1],
        "device": device,
        "fit_seconds": fit_seconds,
        "fit_peak_gib": fit_memory,
        "explain_ms": 1000 * float(np.median(seconds)),
        "explanations_a_second": 1 / float(np.median(seconds)),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        **{name: judged[name] for name in ("nse", "lmae", "skill")},
        "machine": machine(device),
    }


def main() -> None:
    """Measure each size, and write what was found after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    found = []
    for n_rows in args.rows:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found.append(pool.apply(measure, (n_rows, args.device)))
        print(json.dumps(found[-1]), flush=True)
        if args.output is not None:
            args.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
