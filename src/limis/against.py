"""References by name: everybody, a condition, a group, rows, one row, the other outcome, rows near the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from limis.blackbox import leading_direction
from limis.errors import InputError
from limis.kinds import plain
from limis.outputs import outputs_of
from limis.reference import EVERYBODY, FEW, Reference, References
from limis.rows import TrainingRows

ALL, OTHER_OUTCOME, NEAR_THRESHOLD = "all", "other outcome", "near threshold"
NEAR_SHARE = 0.02  # of the training rows are near the threshold, and `FEW` at least


def references_for(training: TrainingRows, given: Any, outputs: np.ndarray) -> References:
    """The reference of each explained row.

    Parameters
    ----------
    training : TrainingRows
        Those of the explainer; of several classes with the outputs of all.
    given : str, mapping, frame, Series or array
        As in `LimisExplainer.explain`.
    outputs : array of shape (rows,) or (rows, classes)
        Of the explained rows: what the other outcome is.
    """
    if isinstance(given, str) and given == OTHER_OUTCOME:
        return _other_outcomes(training, outputs)
    return References.one(_reference(training, given), len(outputs))


def check_queries(queries: Any, name: str = "queries") -> None:
    """Refuse what is no number of questions."""
    if isinstance(queries, bool) or not isinstance(queries, Integral) or queries < 0:
        raise InputError(f"{name} is a number of questions a row, 0 or more, not {queries!r}")


def check_can_be_asked(training: TrainingRows, outputs: np.ndarray | None) -> None:
    """Refuse questions about reasons where there is no model, or its outputs of the rows are not known."""
    if not training.black_box.can_be_asked:
        raise InputError("there is no model to ask; pass it to LimisExplainer, or to limis.load")
    if outputs is None:
        raise InputError("the model's outputs of the rows are not known, so it cannot be asked about their reasons")


def everybody(training: TrainingRows) -> Reference:
    """All training rows, worked out once."""
    held: Reference | None = training.__dict__.get("_everybody")
    if held is None:
        held = _of_training(training, EVERYBODY, np.arange(len(training)))
        training.__dict__["_everybody"] = held
    return held


def _reference(training: TrainingRows, given: Any) -> Reference:
    if given is None:
        return everybody(training)
    if isinstance(given, str):
        if given == ALL:
            return everybody(training)
        return _near_threshold(training) if given == NEAR_THRESHOLD else _where(training, given)
    if isinstance(given, Mapping):
        return _group(training, given)
    if isinstance(given, pd.Series):
        given = given.to_frame().T.infer_objects()
    if np.ndim(given) != 2:
        raise InputError(
            f"reference is a condition, a group, rows or one row, not {given!r}; one row of an array is X[[7]]"
        )
    frame = training.in_training_types(training.table.read(given, "in reference"))
    if len(frame) == 0:
        raise InputError("reference has no rows; at least one is needed to compare with")
    if not training.black_box.can_be_asked:
        raise InputError("what the model says of the reference rows is not known; name training rows by a condition")
    known = outputs_of(replace(training.black_box, view=None), frame, None, "reference")
    name = f"row {frame.index[0]}" if len(frame) == 1 else f"the {len(frame):,} rows given"
    order = known if training.every is None else known @ leading_direction(training.every)
    return Reference.of(name, training.table.values(frame), known, order, frame)


def _of_training(training: TrainingRows, name: str, places: np.ndarray) -> Reference:
    known = training.outputs if training.every is None else training.every
    frame = training.frame.iloc[places]
    return Reference.of(name, training.values[places], known[places], training.outputs[places], frame)


def _where(training: TrainingRows, condition: str) -> Reference:
    try:
        found = training.frame.reset_index(drop=True).eval(condition)
        if not (isinstance(found, pd.Series) and pd.api.types.is_bool_dtype(found) and len(found) == len(training)):
            raise TypeError("it is neither true nor false of each row")
    except Exception as error:  # whatever pandas finds wrong with a condition is the caller's to mend
        raise InputError(
            f"reference={condition!r} is no condition that training rows can be held against ({error}); write one such "
            f'as "age > 40" or "sex == \'Female\'", or "{ALL}", "{OTHER_OUTCOME}" or "{NEAR_THRESHOLD}"'
        ) from error
    chosen = found.to_numpy(dtype=bool, na_value=False)
    return _some(training, f"training rows where {condition}", np.flatnonzero(chosen))


def _group(training: TrainingRows, group: Mapping[Any, Any]) -> Reference:
    if not group:
        raise InputError('reference names no column; write a group such as {"sex": "Female"}')
    chosen = np.ones(len(training), dtype=bool)
    for name, value in group.items():
        if str(name) not in training.frame:
            names = ", ".join(map(str, training.frame.columns))
            raise InputError(f"reference names {name!r}, which is not a column; there are {names}")
        own = training.frame[str(name)]
        if not pd.api.types.is_scalar(value):
            raise InputError(
                f"reference[{name!r}] is one value of the column, not {value!r}; write a condition instead"
            )
        chosen &= (own.isna() if pd.isna(value) else own == value).to_numpy(dtype=bool, na_value=False)
    words = ", ".join(f"{name} = {plain(value)}" for name, value in group.items())
    return _some(training, f"training rows with {words}", np.flatnonzero(chosen))


def _some(training: TrainingRows, name: str, places: np.ndarray) -> Reference:
    if len(places) == 0:
        raise InputError(f"there are no {name}; a reference needs one row at least")
    return _of_training(training, name, places)


def _near_threshold(training: TrainingRows) -> Reference:
    threshold = {"logit": 0.0, "probability": 0.5}.get(training.black_box.scale)
    if threshold is None or training.every is not None:
        raise InputError(f'reference="{NEAR_THRESHOLD}" is for models of two classes; name rows by a condition')
    n = min(len(training), max(FEW, round(NEAR_SHARE * len(training))))
    near = np.argsort(np.abs(training.outputs - threshold), kind="stable")[:n]
    return _of_training(training, f"the {n:,} training rows nearest to the threshold", np.sort(near))


def _other_outcomes(training: TrainingRows, outputs: np.ndarray) -> References:
    """For the rows of each predicted class the training rows that are predicted another."""
    box = training.black_box
    if not box.is_classifier:
        raise InputError(f'reference="{OTHER_OUTCOME}" is for classifiers; name rows by a condition such as "age > 40"')
    if training.every is None:
        threshold = 0.0 if box.scale == "logit" else 0.5
        own, known = (outputs > threshold).astype(np.int64), (training.outputs > threshold).astype(np.int64)
    else:
        own, known = outputs.argmax(axis=1), training.every.argmax(axis=1)
    kinds: list[Reference] = []
    of_row = np.zeros(len(own), dtype=np.int64)
    for place in np.unique(own).tolist():
        classes = list(range(box.n_classes)) if box.classes is None else [str(plain(one)) for one in box.classes]
        name = f"predicted {classes[1 - place]}" if len(classes) == 2 else f"not predicted {classes[place]}"
        of_row[own == place] = len(kinds)
        kinds.append(_some(training, f"training rows {name}", np.flatnonzero(known != place)))
    return References(kinds, of_row)
