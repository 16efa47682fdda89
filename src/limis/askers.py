"""How each kind of model is asked: one function a kind, from a frame to its raw answer as an array."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from limis.errors import BlackBoxError

Ask = Callable[[pd.DataFrame], Any]

# From pandas 3 on, writing to a shallow copy leaves the original as it is.
_COPY_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3


@dataclass
class Asker:
    """What can be asked of a model. ``answer`` gives values or probabilities; ``margin``, where known, raw scores."""

    answer: Ask
    margin: Ask | None = None
    gives_probabilities: bool = False  # two columns of class probabilities
    classes: list[Any] | None = None
    is_regressor: bool = False  # values and nothing else
    two_are_logits: bool = False  # two columns that are not probabilities are logits, as networks end


def asker_for(model: Any, from_array: bool, labels: list[Any] | None = None) -> Asker:
    """The way to ask this model: with rows of its own, under the user's column labels; it answers with an array.

    ``from_array``: the user works with arrays, so the model gets arrays. ``labels``: the user's names of the columns,
    in their order, where they are not those of the frame.
    """
    asker = _asker_of(model, from_array)

    def own(ask: Ask) -> Ask:
        return lambda frame: _to_array(ask(own_copy(frame, labels)))

    return replace(asker, answer=own(asker.answer), margin=None if asker.margin is None else own(asker.margin))


def own_copy(frame: pd.DataFrame, labels: list[Any] | None) -> pd.DataFrame:
    """A frame that the model may write into, with the labels it was fitted with."""
    copy = frame.copy(deep=not _COPY_ON_WRITE)
    if labels is not None:
        copy.columns = pd.Index(labels, tupleize_cols=False)
    return copy


def _to_array(answer: Any) -> np.ndarray:
    if _is_instance(answer, "torch", "Tensor"):
        # In float64, because numpy has no word for bfloat16.
        answer = answer.detach().cpu().double()
    return np.asarray(answer)


def _asker_of(model: Any, from_array: bool) -> Asker:
    if _is_instance(model, "xgboost", "Booster"):
        return _xgboost_booster(model, from_array)
    if _is_instance(model, "lightgbm", "Booster"):
        return _lightgbm_booster(model)
    if _is_instance(model, "torch.nn", "Module"):
        return Asker(lambda frame: _ask_torch(model, frame), two_are_logits=True)
    if hasattr(model, "predict_proba") or hasattr(model, "predict"):
        return _fitted_estimator(model, from_array)
    if callable(model):
        return Asker(lambda frame: model(frame.to_numpy(copy=True) if from_array else frame))
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
        # Labels that are no text leave no names behind either, and are taken without them.
        nameless = hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
        named = any(isinstance(label, str) for label in frame.columns)
        return frame.to_numpy(copy=True) if from_array or (nameless and named) else frame

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
    return Asker(lambda frame: model.predict(given(frame)), is_regressor=_is_regressor(model))


def _is_regressor(model: Any) -> bool:
    try:
        return hasattr(model, "__sklearn_tags__") and bool(is_regressor(model))
    except AttributeError:  # it only looks like an estimator of scikit-learn
        return False


def _margin_of(model: Any, given: Ask) -> Ask | None:
    """The raw score of a classifier, where it has one; whether it is a logit is checked on its answers."""
    if isinstance(model, Pipeline):
        if not hasattr(model[-1], "predict_proba"):
            return _decision_of(model, given)
        alone = len(model.steps) == 1  # nothing comes before, and an empty pipeline cannot transform
        return _margin_of(model[-1], given if alone else lambda frame: model[:-1].transform(given(frame)))
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
        names, frame = model.feature_name(), frame.rename(columns=str)
        return with_categories(frame[names] if set(names) <= set(frame.columns) else frame)

    return Asker(lambda frame: model.predict(given(frame)), lambda frame: model.predict(given(frame), raw_score=True))


def _xgboost_booster(model: Any, from_array: bool) -> Asker:
    xgboost = sys.modules["xgboost"]

    def ask(frame: pd.DataFrame, margin: bool) -> Any:
        names = model.feature_names
        if names is None:
            rows = xgboost.DMatrix(frame.to_numpy(), feature_types=model.feature_types, enable_categorical=True)
        else:
            named = frame.set_axis(names, axis=1) if from_array else frame.rename(columns=str)[names]
            rows = xgboost.DMatrix(with_categories(named), enable_categorical=True)
        return model.predict(rows, output_margin=margin)

    return Asker(lambda frame: ask(frame, False), lambda frame: ask(frame, True))


def _ask_torch(model: Any, frame: pd.DataFrame) -> Any:
    torch = sys.modules["torch"]
    training = {part: part.training for part in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            like = next((part for part in model.parameters() if part.is_floating_point()), torch.empty(0))
            rows = torch.tensor(frame.to_numpy(dtype=np.float64, na_value=np.nan))
            return model(rows.to(device=like.device, dtype=like.dtype))
    finally:
        # One by one: train() would set all of them alike, also those that the user has frozen.
        for part, was_training in training.items():
            part.training = was_training


def _is_instance(model: Any, module: str, name: str) -> bool:
    """isinstance without importing the package: if it was never imported, no model of it can exist."""
    loaded = sys.modules.get(module)
    kind = getattr(loaded, name, None)
    return kind is not None and isinstance(model, kind)
