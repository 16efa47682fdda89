"""Do explanations recover the true local behaviour, where it is known? The paper's synthetic data, beside the peers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd

from limis.datasets import SyntheticData, make_synthetic
from limis.explainer import LimisExplainer
from limis.metrics import awd, nse, selection_auc
from limis.peers import GlobalModel, Maple, Silo

NAMES = ("Syn1", "Syn2", "Syn3", "Syn4")
# Mean absolute weight difference of LIMIS in the paper's tables, by data set and number of training rows.
PAPER_AWD = {
    ("Syn1", 500): 0.5531, ("Syn2", 500): 0.5869, ("Syn3", 500): 0.6512,
    ("Syn1", 1000): 0.2129, ("Syn2", 1000): 0.4289, ("Syn3", 1000): 0.5527,
    ("Syn1", 2000): 0.1562, ("Syn2", 2000): 0.3325, ("Syn3", 2000): 0.3920, ("Syn4", 2000): 0.2508,
}  # fmt: skip


def run(seed: int, tests: int) -> pd.DataFrame:
    """One line a data set, size and method, for one seed."""
    lines: list[dict[str, Any]] = []
    for n in (500, 1000, 2000):
        for name in NAMES:
            lines += _one(name, n, seed, tests)
            print(f"{name}, {n} rows, seed {seed}: AWD {lines[-4]['awd']:.4f}", flush=True)
    return pd.DataFrame(lines)


def _one(name: str, n: int, seed: int, tests: int) -> list[dict[str, Any]]:
    """N training rows, N/10 probe rows and test rows of their own, the function itself as the black box."""
    training, probes, test = (
        make_synthetic(name, size, random_state=1000 * seed + part) for part, size in enumerate((n, n // 10, tests))
    )
    started = time.perf_counter()
    explainer = LimisExplainer(training.black_box, random_state=seed, n_jobs=-1)
    explainer.fit(training.features, probe_rows=probes.features)
    fitted = time.perf_counter() - started
    methods = {
        "LIMIS (default)": explainer,
        "SILO": Silo(explainer),
        "MAPLE": Maple(explainer, validation=probes.features),
        "global ridge": GlobalModel(explainer),
    }
    lines = [
        {"data": name, "rows": n, "seed": seed, "method": label, **_judge(method, training, test)}
        for label, method in methods.items()
    ]
    lines[0] |= {"fit seconds": fitted, "paper": PAPER_AWD.get((name, n), np.nan)}
    return lines


def _judge(method: Any, training: SyntheticData, test: SyntheticData) -> dict[str, float]:
    found = method.explain(test.features)
    line = {
        "awd": awd(test.coefficients, found.coefficients.to_numpy()),
        "nse": nse(test.outputs, found.local_predictions.to_numpy()),
    }
    if len(np.unique(training.regime)) > 1:
        line["auc"] = selection_auc(found.slope_weights, training.regime, test.regime)
    return line
