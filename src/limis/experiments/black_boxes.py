"""Black boxes with the hyper-parameters of the paper's appendix, on raw frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from limis.errors import require


def paper_preprocessing() -> Any:
    """One-hot categories and min–max numbers, as in the paper."""
    return make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32),
            make_column_selector(dtype_exclude="number"),
        ),
        (MinMaxScaler(), make_column_selector(dtype_include="number")),
    )


def fit_xgboost_classifier(
    frame: pd.DataFrame, target: np.ndarray, n_jobs: int | None = None, n_trees: int = 1000
) -> Pipeline:
    """XGBoost: in the paper 1,000 trees, of depth 6 at learning rate 0.3."""
    xgboost = require("xgboost", "xgboost")
    booster = xgboost.XGBClassifier(n_estimators=n_trees, max_depth=6, learning_rate=0.3, n_jobs=n_jobs, random_state=0)
    return make_pipeline(paper_preprocessing(), booster).fit(frame, target)
