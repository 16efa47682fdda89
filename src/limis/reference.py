"""Whom a prediction is compared with: the rows from whose mean output reasons lead to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

MOST_STANDING = 100  # rows that stand for all of a reference
FEW = 30  # rows, of which the mean is uncertain enough to say so
EVERYBODY = "all training rows"


@dataclass(eq=False)
class Reference:
    """Some rows, a few that stand for them, and the mean output of all.

    Those that stand for them come from all ranges of outputs alike, so that their mean is that of all, or nearly so.
    """

    name: str
    n_rows: int
    values: np.ndarray  # (standing, columns)
    outputs: np.ndarray  # (standing,); of several classes a column each
    mean: np.ndarray  # of all rows; of several classes one each
    error: np.ndarray | None = None  # standard error of that mean, where there are few rows
    frame: pd.DataFrame | None = None  # those that stand for all, as the black box is asked about them

    @classmethod
    def of(
        cls,
        name: str,
        values: np.ndarray,
        outputs: np.ndarray,
        order: np.ndarray | None = None,
        frame: pd.DataFrame | None = None,
    ) -> Reference:
        """Of rows with their outputs: (rows,) or (rows, classes).

        order : (rows,) one number a row, by which rows that stand for all are spread; the outputs, where these are one.
        frame : the rows as the black box takes them, where it may be asked about mixtures with them.
        """
        order = outputs if order is None else order
        standing = _standing_for(order, min(MOST_STANDING, len(values)))
        n, error = len(values), None
        if 1 < n < FEW:
            error = outputs.std(axis=0, ddof=1) / np.sqrt(n)
        few = None if frame is None else frame.iloc[standing]
        return cls(name, n, values[standing], outputs[standing], outputs.mean(axis=0), error, few)

    def of_class(self, place: int) -> Reference:
        """The same with the outputs of one of several classes."""
        error = None if self.error is None else self.error[place]
        return replace(self, outputs=self.outputs[:, place], mean=self.mean[place], error=error)


def _standing_for(outputs: np.ndarray, n: int) -> np.ndarray:
    """Places of n rows: of each n-th part of the rows, in the order of outputs, the one nearest to its mean."""
    order = np.argsort(outputs, kind="stable")
    edges = np.linspace(0, len(order), n + 1).astype(np.int64)
    found = np.empty(n, dtype=np.int64)
    for part in range(n):
        rows = order[edges[part] : edges[part + 1]]
        found[part] = rows[np.abs(outputs[rows] - outputs[rows].mean()).argmin()]
    return np.sort(found)


@dataclass(eq=False)
class References:
    """The reference of each of some explained rows: one for all of them, or several."""

    kinds: list[Reference]
    of_row: np.ndarray  # (rows,) places among the kinds

    @classmethod
    def one(cls, reference: Reference, n_rows: int) -> References:
        """The same for all rows."""
        return cls([reference], np.zeros(n_rows, dtype=np.int64))

    def part(self, chosen: np.ndarray) -> References:
        """Of some of the rows."""
        return References(self.kinds, self.of_row[chosen])

    def of_class(self, place: int) -> References:
        """The same with the outputs of one of several classes."""
        return References([one.of_class(place) for one in self.kinds], self.of_row)

    def of(self, row: int) -> Reference:
        """Of one row."""
        return self.kinds[self.of_row[row]]

    @property
    def means(self) -> np.ndarray:
        """Mean output of each row's reference: (rows,)."""
        return np.array([float(one.mean) for one in self.kinds])[self.of_row]
