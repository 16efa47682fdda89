"""How faithful the default explainer is on Adult, beside the two that every explanation must beat."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from limis.datasets import load_adult, split_rows
from limis.experiments.black_boxes import fit_xgboost_classifier
from limis.explainer import LimisExplainer
from limis.peers import GlobalModel, LocalMean
from limis.training import ProbeRows
from limis.training.choose import judge


def run(seed: int, tests: int) -> pd.DataFrame:
    """One line a method; the same test rows and the same moves of them for all."""
    data = load_adult()
    train, probe, test = (data.frame.iloc[part] for part in split_rows(len(data.frame), random_state=seed))
    income = (data.target == ">50K").to_numpy(dtype=int)
    model = fit_xgboost_classifier(train, income[train.index], n_jobs=-1)

    started = time.perf_counter()
    explainer = LimisExplainer(model, n_jobs=-1, random_state=seed, verbose=1).fit(train, probe_rows=probe)
    fitted = time.perf_counter() - started
    rows = test.sample(min(tests, len(test)), random_state=seed).reset_index(drop=True)
    outputs = explainer.training_.black_box.outputs(rows)
    asked = ProbeRows.ask(explainer.training_, rows, outputs, np.random.default_rng(seed))

    lines = []
    methods: dict[str, LimisExplainer | LocalMean | GlobalModel] = {
        "LIMIS (default)": explainer,
        "local mean, no features": LocalMean(explainer),
        "global ridge": GlobalModel(explainer),
    }
    for name, method in methods.items():
        started = time.perf_counter()
        found = method.explain(rows, outputs=outputs)
        seconds = time.perf_counter() - started
        lines.append({"method": name, **judge(found.training.table, found.fits, asked), "ms a row": 1000 * seconds / len(rows)})
    lines[0]["fit seconds"] = fitted
    return pd.DataFrame(lines)
