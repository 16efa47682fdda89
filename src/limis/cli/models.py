"""Loading black boxes that a command line can name: a model file, or a function in a module."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import joblib

from limis.errors import InputError, require
from limis.table_files import check_input

XGBOOST, LIGHTGBM, PICKLED = (".json", ".ubj"), (".txt",), (".joblib", ".pkl", ".pickle")
MODEL_HELP = (
    "the model to explain: an XGBoost file (.json, .ubj), a LightGBM file (.txt), module:name for a function or "
    "fitted model that Python can import (the current folder is searched too), or a .joblib or .pkl file, "
    "which also needs --trust-model"
)
TRUST_HELP = (
    "read .joblib and .pkl files. Reading one runs whatever code it holds: do so only with files that you made "
    "or whose maker you trust"
)


def load_model(name: str, trust: bool) -> Any:
    """The model that ``--model`` names."""
    extension = Path(name).suffix.lower()
    if extension in XGBOOST + LIGHTGBM + PICKLED:
        return _from_file(Path(name), extension, trust)
    if ":" in name:
        return _from_module(name)
    raise InputError(
        f"--model {name} is not a model file by its extension ({', '.join(XGBOOST + LIGHTGBM + PICKLED)}), "
        "nor module:name"
    )


def travels(model: Any) -> bool:
    """Whether a saved explainer holds this model in the model's own format."""
    return any(base.__module__.partition(".")[0] in ("xgboost", "lightgbm") for base in type(model).__mro__)


def _from_file(path: Path, extension: str, trust: bool) -> Any:
    check_input(path)
    if extension in PICKLED:
        return _unpickled(path, trust)
    return _xgboost_booster(path) if extension in XGBOOST else _lightgbm_booster(path)


def _xgboost_booster(path: Path) -> Any:
    xgboost = require("xgboost", "xgboost")
    try:
        return xgboost.Booster(model_file=str(path))
    except (xgboost.core.XGBoostError, ValueError) as error:
        # Its messages start with a time and a place in its own source, and end in a stack trace.
        words = re.sub(r"^\[[\d:]+\] \S+: ", "", str(error)).partition("\n")[0]
        raise InputError(f"{path} is not a model that XGBoost saved: {words}") from error


def _lightgbm_booster(path: Path) -> Any:
    lightgbm = require("lightgbm", "lightgbm")
    # LightGBM writes to standard error by itself when a file is not its own, so look before.
    if not path.read_bytes().startswith(b"tree"):
        raise InputError(f"{path} is not a model that LightGBM saved: its first line is not 'tree'")
    try:
        return lightgbm.Booster(model_file=str(path))
    except (lightgbm.basic.LightGBMError, ValueError) as error:
        raise InputError(f"{path} is not a model that LightGBM saved: {error}") from error


def _unpickled(path: Path, trust: bool) -> Any:
    if not trust:
        raise InputError(
            f"{path} is a pickle: reading it runs whatever code it holds; if you trust whoever made it, "
            "add --trust-model"
        )
    try:
        return joblib.load(path)
    except Exception as error:  # a pickle may run anything, so it may raise anything
        raise InputError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error


def _from_module(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InputError(f"--model {name} is incomplete: write module:name, such as my_model:predict")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(f"importing {module_name} failed: {error}") from error
        raise InputError(f"there is no module {module_name!r} in {here} or among the installed packages") from None
    except Exception as error:  # a module runs code of its own, so it may raise anything
        raise InputError(f"importing {module_name} failed: {type(error).__name__}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(f"module {module_name} has no {attribute!r}")
        found = getattr(found, part)
    if not (callable(found) or hasattr(found, "predict")):
        raise InputError(f"{name} is {type(found).__name__!r}: neither a function nor a model with predict")
    return found
