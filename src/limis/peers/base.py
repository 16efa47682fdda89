"""What all peers share: rows in, `Explanations` out, over the training rows and black box of a fitted explainer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.outputs import outputs_of
from limis.rows import TrainingRows
from limis.walk import LocalFits

ModelKind = Literal["ridge", "tree"]


@dataclass
class Rows:
    """Rows to explain, in all the forms a peer may need."""

    frame: pd.DataFrame
    values: np.ndarray  # (rows, columns)
    features: np.ndarray  # (rows, features)
    outputs: np.ndarray | None  # (rows,); None where there is nobody to ask

    def __len__(self) -> int:
        return len(self.values)


@dataclass
class Peer(ABC):
    """Another way to explain, made from a fitted explainer: it has the same training rows and black box.

    Parameters
    ----------
    explainer : LimisExplainer
        Fitted.
    """

    explainer: LimisExplainer

    @cached_property
    def training(self) -> TrainingRows:
        """The rows that explanations rest on, as the peers' papers have them: numbers and levels, without jumps."""
        if self.explainer.by_class_:
            raise InputError("peers explain one output; give the explainer a function for the class of interest")
        return self.explainer.training_.without_jumps()

    def explain(self, X: Any, *, outputs: Any = None) -> Explanations:
        """Explain rows, as `LimisExplainer.explain` does; no bound on the error on changes is known.

        Parameters
        ----------
        X : DataFrame or array
            Rows with the columns seen by the explainer.
        outputs : array, default=None
            The black box's outputs on ``X``; it is asked where they are not given.
        """
        rows = read_rows(self.training, X, outputs)
        return Explanations(
            training=self.training,
            frame=rows.frame,
            values=rows.values,
            fits=self.fits(rows),
            outputs=rows.outputs,
            bound=None,
            tolerance=self.explainer.tolerance * self.training.output_deviation,
        )

    @abstractmethod
    def fits(self, rows: Rows) -> LocalFits:
        """The peer's model of each row."""


def read_rows(training: TrainingRows, X: Any, outputs: Any = None) -> Rows:
    """Check rows against the training table, and ask the black box about them where it can be asked."""
    table, black_box = training.table, training.black_box
    frame = table.read(X)
    values = table.values(frame)
    frame = training.in_training_types(frame)
    known = None
    if outputs is not None or black_box.can_be_asked:
        known = outputs_of(black_box, frame, outputs, "outputs")
    return Rows(frame, values, table.features(values), known)


def check_local_model(local_model: str) -> None:
    """Refuse anything but the two kinds of local model."""
    if local_model not in ("ridge", "tree"):
        raise InputError(f'local_model is "ridge" or "tree", not {local_model!r}')
