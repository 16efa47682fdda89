"""Stage 0: a black box for a user who has none, trained by LightGBM on a target column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.model_selection import train_test_split

from limis.askers import with_categories
from limis.columns import kind_of
from limis.errors import InputError, require
from limis.labels import MOST_CLASSES
from limis.progress import progress

__all__ = ["Target", "read_target", "train_default_model"]

MAX_TREES, PATIENCE = 500, 20
# Rows are held out to choose the number of trees only where enough are left on both sides.
MIN_ROWS_TO_HOLD_OUT, MIN_CLASS_ROWS, HELD_OUT_SHARE = 200, 20, 0.1
TREES_WITHOUT_HELD_OUT = 100


@dataclass
class Target:
    """A target column as numbers: those of its classes in their order, from 0; ``classes`` is None for numbers."""

    values: np.ndarray
    classes: list[Any] | None


def read_target(target: pd.Series) -> Target:
    """Two values are classes, and so are texts; more numbers are numbers."""
    name = f"target {target.name!r}" if target.name is not None else "the target"
    missing = target.isna().to_numpy()
    if missing.any():
        raise InputError(
            f"{name} is missing in row {np.flatnonzero(missing)[0]} ({missing.sum()} in all); drop such rows"
        )
    numeric = types.is_numeric_dtype(target.dtype) and not types.is_bool_dtype(target.dtype)
    found = [value.item() if isinstance(value, np.generic) else value for value in target.unique()]
    if len(found) < 2:
        raise InputError(f"{name} has one class only, {found[0]!r}: there is nothing to learn")
    if len(found) == 2:
        classes = sorted(found) if numeric else sorted(found, key=str)
        return Target((target == classes[1]).to_numpy(dtype=np.float64), classes)
    if not numeric:
        classes = sorted(found, key=str)
        if len(classes) > MOST_CLASSES:
            raise InputError(f"{name} has {len(classes)} classes; at most {MOST_CLASSES} can be learned, or numbers")
        places = {label: place for place, label in enumerate(classes)}
        return Target(target.map(places).to_numpy(dtype=np.float64), classes)
    values = target.to_numpy(dtype=np.float64)
    if np.isinf(values).any():
        raise InputError(f"{name} is infinite in row {np.flatnonzero(np.isinf(values))[0]}")
    return Target(values, None)


def train_default_model(
    frame: pd.DataFrame,
    target: pd.Series,
    random_state: int = 0,
    n_jobs: int | None = None,
    *,
    verbose: bool = False,
) -> Any:
    """Train gradient-boosted trees that predict a column from the others.

    Text columns are categories, missing values stay missing, and categories never seen in training are treated as
    missing. A tenth of the rows, where there are enough, decides how many trees are kept.

    Parameters
    ----------
    frame : DataFrame
        The columns to predict from.
    target : Series
        What to predict: a column of classes (two values, or texts) or of numbers.
    random_state : int, default=0
        Seed of the held-out rows and of LightGBM.
    n_jobs : int, default=None
        Threads to train with; all cores when None or negative. The model does not depend on it.
    verbose : bool, default=False
        Show progress on standard error.

    Returns
    -------
    lightgbm.Booster
        It predicts the probability of the second class (in sorted order), those of all where there are more than two,
        or the number. ``best_score["held_out"]`` has the numbers earned on the held-out rows, where there were any:
        auc and binary_logloss, multi_error and multi_logloss, or rmse.

    Raises
    ------
    InputError
        If the target has one class, too many, or missing labels, or if a column is of a type that LightGBM does not
        take.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": range(60), "colour": ["red", "blue", None] * 20})
    >>> model = train_default_model(frame, frame["size"] > 30)
    >>> new = pd.DataFrame({"size": [5, 55], "colour": ["red", "green"]})
    >>> model.predict(new.astype({"colour": "category"})).round().tolist()
    [0.0, 1.0]
    """
    lightgbm = require("lightgbm", "lightgbm")
    goal = read_target(target)
    _check_columns(frame)
    rows = with_categories(frame).set_axis(_plain_names(frame.columns), axis=1)
    settings = {
        **_objective(goal),
        # The usual 20 rows a leaf would leave a small table without a single split.
        "min_data_in_leaf": int(np.clip(len(frame) // 20, 1, 20)),
        "num_threads": 0 if n_jobs is None or n_jobs < 0 else n_jobs,
        "seed": random_state,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    training, held_out = _hold_out(goal, random_state)
    data = lightgbm.Dataset(rows.iloc[training], goal.values[training])
    callbacks, watched, most = [], [], TREES_WITHOUT_HELD_OUT
    if len(held_out):
        watched = [lightgbm.Dataset(rows.iloc[held_out], goal.values[held_out], reference=data)]
        callbacks.append(lightgbm.early_stopping(PATIENCE, first_metric_only=True, verbose=False))
        most = MAX_TREES
    with progress(most, "training a model", verbose) as bar:
        callbacks.append(lambda _: bar.update())
        trained = lightgbm.train(
            settings, data, most, valid_sets=watched, valid_names=["held_out"] * len(watched), callbacks=callbacks
        )
        bar.total = bar.n  # it stopped early: all that was needed is done
    # As it will be when read back from a file: the kept trees only, and no training rows.
    model = lightgbm.Booster(model_str=trained.model_to_string())
    model.best_score = trained.best_score
    return model


def _objective(goal: Target) -> dict[str, Any]:
    if goal.classes is None:
        return {"objective": "regression", "metric": ["rmse"]}
    if len(goal.classes) == 2:
        return {"objective": "binary", "metric": ["binary_logloss", "auc"]}
    return {"objective": "multiclass", "num_class": len(goal.classes), "metric": ["multi_logloss", "multi_error"]}


def _check_columns(frame: pd.DataFrame) -> None:
    """Refuse dates and durations, which LightGBM does not take."""
    if frame.shape[1] == 0:
        raise InputError("there is no column to predict from")
    for name in frame.columns:
        kind = kind_of(frame[name], str(name))
        if kind in ("date", "duration"):
            raise InputError(
                f"column {str(name)!r} holds {kind}s, which the default model does not take; turn them into numbers "
                "(a year, days since an event) or drop the column"
            )


def _hold_out(goal: Target, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the rows to train on, and of those that choose the number of trees."""
    everything = np.arange(len(goal.values))
    is_classes = goal.classes is not None
    enough = len(everything) >= MIN_ROWS_TO_HOLD_OUT
    if is_classes:
        enough = enough and np.bincount(goal.values.astype(np.int64)).min() >= MIN_CLASS_ROWS
    if not enough:
        return everything, everything[:0]
    training, held_out = train_test_split(
        everything,
        test_size=HELD_OUT_SHARE,
        random_state=random_state,
        stratify=goal.values if is_classes else None,
    )
    return np.sort(training), np.sort(held_out)


def _plain_names(columns: Any) -> list[str]:
    """Names without the characters that LightGBM's files cannot hold; it finds columns by position, not by name."""
    names = [re.sub(r'[\s",:\[\]{}]', "_", str(name)) for name in columns]
    return names if len(set(names)) == len(names) else [f"{name}_{j}" for j, name in enumerate(names)]
