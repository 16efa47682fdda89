"""Black boxes with the hyper-parameters of the paper's appendix, on raw frames."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from limis.errors import require

Task = Literal["classification", "regression"]
KINDS = ("XGBoost", "LightGBM", "MLP", "RF")
WITH_DEFAULTS = ("LightGBM, defaults", "RF, defaults")  # as their packages have them, not the appendix
N_TREES = 1000
QUICK_TREES, QUICK_EPOCHS = 30, 3


def paper_preprocessing() -> Any:
    """One-hot categories and min–max numbers, as in the paper."""
    return make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32),
            make_column_selector(dtype_exclude="number"),
        ),
        (MinMaxScaler(), make_column_selector(dtype_include="number")),
    )


def fit_black_box(
    kind: str, task: Task, frame: pd.DataFrame, target: np.ndarray, n_jobs: int | None = None, quick: bool = False
) -> Pipeline:
    """One of `KINDS` or `WITH_DEFAULTS`, fitted; a small one for a trial."""
    preprocessing = paper_preprocessing().fit(frame)
    n_features = len(preprocessing.get_feature_names_out())
    model = _model(kind, task == "classification", n_features, n_jobs, quick)
    return make_pipeline(preprocessing, model).fit(frame, target)


def _model(kind: str, classifies: bool, n_features: int, n_jobs: int | None, quick: bool) -> Any:
    n_trees = QUICK_TREES if quick else N_TREES
    if kind in WITH_DEFAULTS:
        return _with_defaults(kind, classifies, n_jobs, quick)
    if kind == "XGBoost":
        xgboost = require("xgboost", "xgboost")
        booster = xgboost.XGBClassifier if classifies else xgboost.XGBRegressor
        return booster(n_estimators=n_trees, max_depth=6, learning_rate=0.3, n_jobs=n_jobs, random_state=0)
    if kind == "LightGBM":
        lightgbm = require("lightgbm", "lightgbm")
        booster = lightgbm.LGBMClassifier if classifies else lightgbm.LGBMRegressor
        return booster(
            n_estimators=n_trees,
            learning_rate=0.1,
            min_child_samples=20,
            n_jobs=n_jobs,
            random_state=0,
            deterministic=True,
            force_row_wise=True,
            verbose=-1,
        )
    if kind == "RF":
        # The paper's criterion, gini, is for classes; regression takes the usual squared error.
        forest = RandomForestClassifier if classifies else RandomForestRegressor
        return forest(n_estimators=n_trees, n_jobs=n_jobs, random_state=0)
    widths = tuple(max(1, n_features // share) for share in (1, 2, 4, 8))
    options: dict[str, Any] = {
        "hidden_layer_sizes": widths,
        "batch_size": 256,
        "early_stopping": True,
        "n_iter_no_change": 10,
        "max_iter": QUICK_EPOCHS if quick else 200,
        "random_state": 0,
    }
    if classifies:
        return MLPClassifier(**options)
    # A net does not find its way to thousands of shares: it learns the target in units of its deviation.
    return TransformedTargetRegressor(MLPRegressor(**options), transformer=StandardScaler())


def _with_defaults(kind: str, classifies: bool, n_jobs: int | None, quick: bool) -> Any:
    """A model as its package has it; both grow 100 trees."""
    trees = {"n_estimators": QUICK_TREES} if quick else {}
    if kind.startswith("RF"):
        forest = RandomForestClassifier if classifies else RandomForestRegressor
        return forest(**trees, n_jobs=n_jobs, random_state=0)
    lightgbm = require("lightgbm", "lightgbm")
    booster = lightgbm.LGBMClassifier if classifies else lightgbm.LGBMRegressor
    return booster(**trees, n_jobs=n_jobs, random_state=0, deterministic=True, force_row_wise=True, verbose=-1)
