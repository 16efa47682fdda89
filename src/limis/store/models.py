"""The black box in the file: XGBoost and LightGBM in their native formats, and the check of a model given instead."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from limis.changes import ask_moved
from limis.errors import StoreError, require
from limis.perturb import Moves
from limis.rows import TrainingRows
from limis.store.plain import one_line

XGBOOST, LIGHTGBM = "model.ubj", "model.txt"
MODEL_MEMBERS = (XGBOOST, LIGHTGBM)
MIXED = "mixed"  # what the model says of mixed rows

_ROWS_TO_COMPARE = 1000
ROWS_TO_ASK = 100
_TOLERANCE = 1e-3


def pack_model(training: TrainingRows, include: bool | Literal["auto"]) -> dict[str, bytes]:
    """The model as a member of the file; none where it is not to be included, or cannot be."""
    model = training.black_box.model
    if include is False or (model is None and include == "auto"):
        return {}
    if include not in (True, "auto"):
        raise StoreError(f'include_model is True, False or "auto", not {include!r}')
    member = _member_of(model)
    if member is None:
        if include == "auto":
            return {}
        what = "there is no model" if model is None else f"the model is a {type(model).__name__}"
        raise StoreError(
            f"include_model=True needs an XGBoost or LightGBM model, but {what}; save with include_model=False "
            "and pass the model again: limis.load(path, model=model)"
        )
    data = _proven_bytes(member, training)
    if data is not None:
        return {member: data}
    problem = f"the {type(model).__name__}, saved in its native format, does not answer as it does here"
    if include == "auto":
        warnings.warn(f"{problem}; it is left out: pass it again, limis.load(path, model=model)", stacklevel=4)
        return {}
    raise StoreError(f"{problem}; save with include_model=False and pass it again: limis.load(path, model=model)")


def unpack_model(member: str, data: bytes) -> Any:
    """The booster that a member holds."""
    name = "xgboost" if member == XGBOOST else "lightgbm"
    library = require(name, extra=name)
    try:
        if member == LIGHTGBM:
            return library.Booster(model_str=data.decode())
        booster = library.Booster()
        booster.load_model(bytearray(data))
    except Exception as error:
        raise StoreError(
            f"the model in the file cannot be read by {name} {library.__version__} ({one_line(error)}); "
            "install the version that made it, or pass the model: limis.load(path, model=model)"
        ) from error
    return booster


def known_mixed(training: TrainingRows) -> dict[str, np.ndarray]:
    """`mixed_outputs` to be kept, where the model answers: a file is not lost with a server that is down.

    Of an explainer that was loaded, those that its file had.
    """
    if MIXED in training.__dict__:
        return {MIXED: training.__dict__[MIXED]}
    if not training.black_box.can_be_asked:
        return {}
    try:
        return {MIXED: mixed_outputs(training)}
    except Exception:  # noqa: BLE001 - what the model raises may be anything
        return {}


def mixed_outputs(training: TrainingRows) -> np.ndarray:
    """What the model says of rows that no table holds: training rows with every other column from the next one.

    A model that remembers its training rows agrees on these with any other that does. (rows,), or (rows, classes).
    """
    n = min(ROWS_TO_ASK, len(training))
    changed = np.arange(len(training.table.columns)) % 2 == 1
    moves = Moves(np.arange(n), (np.arange(n) + 1) % len(training), np.tile(changed, (n, 1)))
    every, outputs = ask_moved(training, training.frame, moves)
    return outputs if every is None else every


def check_model(training: TrainingRows, path: Any) -> None:
    """Refuse a model that answers otherwise than the one that was explained."""
    box = training.black_box
    known = training.outputs[:ROWS_TO_ASK]
    asked = box.outputs(training.frame.iloc[:ROWS_TO_ASK])
    _refuse_other(asked, known, training, path, "training row {row}")
    if MIXED in training.__dict__:
        said = mixed_outputs(training)
        _refuse_other(
            said, training.__dict__[MIXED], training, path, "training row {row} with some columns of the next one"
        )


def _refuse_other(asked: np.ndarray, known: np.ndarray, training: TrainingRows, path: Any, words: str) -> None:
    other = ~np.isclose(asked, known, rtol=_TOLERANCE, atol=_TOLERANCE * training.output_deviation)
    if other.any():
        place = tuple(int(one) for one in np.argwhere(other)[0])
        raise StoreError(
            f"this is not the model that {path} explains: of {words.format(row=place[0])} it says {asked[place]:.6g} "
            f"({training.black_box.scale}), where that one said {known[place]:.6g}; pass the same model, or fit again"
        )


def _member_of(model: Any) -> str | None:
    """Where a model of this kind is kept; None without a native format. No package is imported to find out."""
    for member, name, wrapper in ((XGBOOST, "xgboost", "XGBModel"), (LIGHTGBM, "lightgbm", "LGBMModel")):
        library = sys.modules.get(name)
        if library is not None and isinstance(model, (library.Booster, getattr(library, wrapper))):
            return member
    return None


def _proven_bytes(member: str, training: TrainingRows) -> bytes | None:
    """The model in its native format, if what is read back from it answers the same; None if not."""
    box, from_array = training.black_box, training.table.from_array
    rows = training.frame.iloc[:_ROWS_TO_COMPARE]
    try:
        data = _xgboost_bytes(box.model, from_array) if member == XGBOOST else _lightgbm_bytes(box.model)
        again = replace(box, model=unpack_model(member, data))
        return data if np.array_equal(again.outputs(rows), box.outputs(rows)) else None
    except Exception:  # noqa: BLE001 - whatever goes wrong, this model does not travel
        return None


def _lightgbm_bytes(model: Any) -> bytes:
    booster = model.booster_ if hasattr(model, "booster_") else model
    return booster.model_to_string().encode()


def _xgboost_bytes(model: Any, from_array: bool) -> bytes:
    booster = model
    if hasattr(model, "get_booster"):
        booster = model.get_booster()
        best = getattr(model, "best_iteration", None)
        # After early stopping the wrapper predicts with the best rounds only, a booster with all it has.
        if best is not None and best + 1 < booster.num_boosted_rounds() and model.booster != "gblinear":
            booster = _first_rounds(booster, best + 1)
        if from_array and booster.feature_names is not None:
            # A wrapper takes an array for the frame it was fitted on; a booster with names asks for the names.
            booster = booster.copy()
            booster.feature_names = None
    return bytes(booster.save_raw("ubj"))


def _first_rounds(booster: Any, rounds: int) -> Any:
    """The booster after some rounds, knowing its categories still: slicing alone forgets them (dmlc/xgboost#12462)."""
    whole, cut = (json.loads(part.save_raw("json")) for part in (booster, booster[:rounds]))
    trees_of_whole, trees_of_cut = (_trees(saved) for saved in (whole, cut))
    if "cats" in trees_of_whole:
        trees_of_cut["cats"] = trees_of_whole["cats"]
    return unpack_model(XGBOOST, json.dumps(cut).encode())


def _trees(saved: dict[str, Any]) -> dict[str, Any]:
    gradient_booster = saved["learner"]["gradient_booster"]
    return gradient_booster.get("gbtree", gradient_booster)["model"]  # "gbtree" is inside for dart
