"""Changed rows in the user's own columns and types: what the black box is asked about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from limis.perturb import Moves, moved_frame
from limis.rows import TrainingRows


@dataclass(eq=False)
class ChangedRows:
    """Rows whose cells may be changed to what training rows hold there, dummies and types included."""

    sources: list[list[str]]  # of each column
    names: list[str]  # of the user's columns, in their order
    cells: dict[str, pd.Series]  # the rows, and then the training rows, in types that suit both
    index: pd.Index  # of the rows
    values: list[np.ndarray]  # for each column its values in training, ascending
    holders: list[np.ndarray]  # and a training row that holds each

    @classmethod
    def of(cls, training: TrainingRows, frame: pd.DataFrame) -> ChangedRows:
        """Get ready to change the rows of ``frame``."""
        own, donors = np.arange(len(frame)), np.arange(len(training))
        from_training = np.repeat([False, True], [len(own), len(donors)])
        both = Moves(
            rows=np.concatenate([own, np.zeros_like(donors)]),
            donors=np.concatenate([np.zeros_like(own), donors]),
            changed=np.repeat(from_training[:, None], len(training.table.columns), axis=1),
        )
        table = training.table
        cells = moved_frame(table, frame, training.frame, both)
        present = training.frame.notna()
        held = [
            _held(values, np.all(present[column.sources].to_numpy(), axis=1))
            for column, values in zip(table.columns, training.values.T, strict=True)
        ]
        return cls(
            sources=[column.sources for column in table.columns],
            names=table.source_names,
            cells={name: cells[name] for name in table.source_names},
            index=frame.index,
            values=[values for values, _ in held],
            holders=[rows for _, rows in held],
        )

    def frame(self, rows: np.ndarray, before: np.ndarray, after: np.ndarray) -> pd.DataFrame:
        """The rows with some values changed to ones that training rows hold; the values are a line each of ``rows``."""
        changed = (before != after) & ~np.isnan(after)
        cells = {}
        for j, sources in enumerate(self.sources):
            places, to = rows.copy(), after[changed[:, j], j]
            places[changed[:, j]] = len(self.index) + self.holders[j][np.searchsorted(self.values[j], to)]
            for source in sources:
                cells[source] = self.cells[source].take(places).reset_index(drop=True)
        return pd.DataFrame(cells)[self.names].set_axis(self.index[rows])


def _held(values: np.ndarray, whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column and the first row that holds each, of dummies one with none missing if any."""
    order = np.argsort(~whole, kind="stable")
    distinct, first = np.unique(values[order], return_index=True)
    return distinct, order[first]
