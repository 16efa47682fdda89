"""What is explained: the black box's outputs, asked, given, or the labels themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from limis.blackbox import BlackBox, Output, connect
from limis.errors import InputError
from limis.given import checked_outputs
from limis.labels import read_labels
from limis.table import Table

ROWS_TO_COMPARE = 100


def first_outputs(
    model: Any, output: Output, table: Table, frame: pd.DataFrame, y: Any, outputs: Any
) -> tuple[BlackBox, np.ndarray]:
    """The black box and what it says of the training rows; of several classes for each of them."""

    def connected(rows: pd.DataFrame) -> tuple[BlackBox, np.ndarray]:
        return connect(model, rows, from_array=table.from_array, output=output, labels=table.source_labels)

    if model is not None and outputs is None:
        return connected(frame)
    if outputs is not None:
        if model is None:
            return BlackBox("value", "values"), checked_outputs(outputs, len(frame), "outputs")
        black_box, asked = connected(frame.iloc[:ROWS_TO_COMPARE])
        given = checked_outputs(outputs, len(frame), "outputs", black_box.n_outputs)
        if not np.allclose(asked, given[:ROWS_TO_COMPARE], rtol=1e-3, atol=1e-3):
            raise InputError(
                f"outputs disagree with the model: for the first row the model says {_shown(asked[0])} on the "
                f"{black_box.scale} scale, outputs says {_shown(given[0])}; pass one of the two, or matching ones"
            )
        return black_box, given
    if y is None:
        raise InputError(
            "there is nothing to explain: pass a model to LimisExplainer, or y or outputs to fit. "
            "This estimator requires y to be passed, but the target y is None."
        )
    labels, classes = read_labels(y, len(frame))
    n_classes = 2 if classes is None else len(classes)
    return BlackBox("value" if classes is None else "probability", "values", classes, n_classes=n_classes), labels


def outputs_of(black_box: BlackBox, frame: pd.DataFrame, given: Any, name: str) -> np.ndarray:
    """The outputs on rows: those given, else asked for."""
    if given is not None:
        if black_box.stands_for_labels:
            return read_labels(given, len(frame), black_box.classes)[0]
        return checked_outputs(given, len(frame), name, black_box.n_outputs)
    if not black_box.can_be_asked:
        raise InputError(f"there is no model to ask about these rows; pass {name}")
    return black_box.outputs(frame)


def _shown(outputs: Any) -> str:
    return ", ".join(f"{number:.6g}" for number in np.ravel(outputs))
