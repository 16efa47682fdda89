"""All experiments by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from limis.experiments import adult_fidelity, synthetic_awd


@dataclass(frozen=True)
class Experiment:
    """What it shows, and how to run it: from (seed, number of test rows) to a table of results."""

    description: str
    run: Callable[[int, int], pd.DataFrame]


EXPERIMENTS = {
    "adult-fidelity": Experiment(
        "Adult, XGBoost with the appendix's settings, ridge: NSE, LMAE and skill on changes of the default explainer, "
        "of its neighbourhoods' mean and of the global ridge",
        adult_fidelity.run,
    ),
    "synthetic-awd": Experiment(
        "Syn1 to Syn4 at 500, 1,000 and 2,000 training rows, ridge: absolute weight difference, NSE and selection AUC "
        "of the default explainer, SILO, MAPLE and the global ridge, beside the paper's LIMIS",
        synthetic_awd.run,
    ),
}
