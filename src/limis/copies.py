"""Changed copies of training rows: more rows that the black box has spoken of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class ChangedCopies:
    """Training rows with one column changed, and what the black box says of them: more rows to learn from."""

    values: np.ndarray  # (copies, columns)
    outputs: np.ndarray  # (copies,) standardised
    origin: np.ndarray  # (copies,) the training row changed
    every: np.ndarray | None = None  # (copies, classes) outputs for each of several classes, in its own units

    @classmethod
    def none(cls, n_columns: int, n_classes: int | None = None) -> ChangedCopies:
        """No copies at all."""
        every = None if n_classes is None else np.empty((0, n_classes))
        return cls(np.empty((0, n_columns)), np.empty(0), np.empty(0, dtype=np.int64), every)
