"""How each kind of model is asked: one function a kind, from a frame to its raw answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.pipeline import Pipeline

from limis.errors import BlackBoxError

Ask = Callable[[pd.DataFrame], Any]


@dataclass
class Asker:
    """What can be asked of a model. ``answer`` gives values or probabilities; ``margin``, where known, raw scores."""

    answer: Ask
    margin: Ask | None = None
    gives_probabilities: bool = False  # two columns of class probabilities
    classes: list[Any] | None = None
    is_regressor: bool = False  # values and nothing else


def asker_for(model: Any, from_array: bool) -> Asker:
    """The way to ask this model. ``from_array``: the user works with arrays, so the model gets arrays."""
    if _is_instance(model, "xgboost", "Booster"):
        return _xgboost_booster(model, from_array)
    if _is_instance(model, "lightgbm", "Booster"):
        return _lightgbm_booster(model)
    if _is_instance(model, "torch.nn", "Module"):
        return Asker(lambda frame: _ask_torch(model, frame))
    if hasattr(model, "predict_proba") or hasattr(model, "predict"):
        return _fitted_estimator(model, from_array)
    if callable(model):
        return Asker(lambda frame: model(frame.to_numpy() if from_array else frame))
    raise BlackBoxError(
        f"model is {type(model).__name__!r}, which can be neither called nor asked to predict; pass an object with "
        "predict or predict_proba, a function from rows to outputs, or None with y"
    )


def with_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Text as pandas categories: what XGBoost and LightGBM take for categories."""
    text = [n for n in frame.columns if types.is_string_dtype(frame[n].dtype) or frame[n].dtype == object]
    return frame.astype(dict.fromkeys(text, "category")) if text else frame


def _fitted_estimator(model: Any, from_array: bool) -> Asker:
    def given(frame: pd.DataFrame) -> Any:
        # A model that was seen to be fitted on an array gets an array, also when the user explains a frame.
        nameless = hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
        return frame.to_numpy() if from_array or nameless else frame

    margin = _margin_of(model, given)
    classes = list(model.classes_) if hasattr(model, "classes_") else None
    if hasattr(model, "predict_proba"):
        return Asker(lambda frame: model.predict_proba(given(frame)), margin, True, classes)
    if classes is not None:
        if margin is None:
            raise BlackBoxError(
                f"{type(model).__name__} answers with class labels only; pass a function that gives probabilities"
            )
        return Asker(margin)
    return Asker(lambda frame: model.predict(given(frame)), is_regressor=True)


def _margin_of(model: Any, given: Ask) -> Ask | None:
    """The raw score of a classifier, where it has one; whether it is a logit is checked on its answers."""
    if isinstance(model, Pipeline):
        if not hasattr(model[-1], "predict_proba"):
            return _decision_of(model, given)
        last = _margin_of(model[-1], lambda rows: rows)
        return None if last is None else lambda frame: last(model[:-1].transform(given(frame)))
    if _is_instance(model, "xgboost", "XGBModel"):
        return lambda frame: model.predict(given(frame), output_margin=True)
    if _is_instance(model, "lightgbm", "LGBMModel"):
        return lambda frame: model.predict(given(frame), raw_score=True)
    return _decision_of(model, given)


def _decision_of(model: Any, given: Ask) -> Ask | None:
    return (lambda frame: model.decision_function(given(frame))) if hasattr(model, "decision_function") else None


def _lightgbm_booster(model: Any) -> Asker:
    def given(frame: pd.DataFrame) -> pd.DataFrame:
        # LightGBM takes columns by position, whatever their names; names it could not store stay in their places.
        names = model.feature_name()
        return with_categories(frame[names] if set(names) <= set(frame.columns) else frame)

    return Asker(lambda frame: model.predict(given(frame)), lambda frame: model.predict(given(frame), raw_score=True))


def _xgboost_booster(model: Any, from_array: bool) -> Asker:
    xgboost = sys.modules["xgboost"]

    def ask(frame: pd.DataFrame, margin: bool) -> Any:
        if model.feature_names is None:
            rows = xgboost.DMatrix(frame.to_numpy(), feature_types=model.feature_types, enable_categorical=True)
        else:
            named = frame.set_axis(model.feature_names, axis=1) if from_array else frame[model.feature_names]
            rows = xgboost.DMatrix(with_categories(named), enable_categorical=True)
        return model.predict(rows, output_margin=margin)

    return Asker(lambda frame: ask(frame, False), lambda frame: ask(frame, True))


def _ask_torch(model: Any, frame: pd.DataFrame) -> np.ndarray:
    torch = sys.modules["torch"]
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            parameter = next(model.parameters(), torch.empty(0))
            rows = torch.tensor(frame.to_numpy(dtype=np.float32), device=parameter.device, dtype=parameter.dtype)
            return model(rows).cpu().numpy()
    finally:
        model.train(was_training)


def _is_instance(model: Any, module: str, name: str) -> bool:
    """isinstance without importing the package: if it was never imported, no model of it can exist."""
    loaded = sys.modules.get(module)
    kind = getattr(loaded, name, None)
    return kind is not None and isinstance(model, kind)
