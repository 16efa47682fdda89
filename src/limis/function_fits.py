"""Local models that no list of slopes can express: trees, bins, sigmoids.

Whoever judges explanations asks two things of their fits: ``predictions()``, what g says of its own row, and
``changes(rows, moved)``, how its answer moves with the features. `FunctionFits` answers both by asking g
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from limis.perturb import MovedRows
from limis.walk import LocalFits

# g: what it says of rows given by their features, (n, features) → (n,).
Function = Callable[[np.ndarray], np.ndarray]


@dataclass(eq=False, kw_only=True)
class FunctionFits(LocalFits):
    """The surrogates of some rows, each a function of the features.

    ``coefficients`` are whatever such a model shows in their place; neither predictions nor changes are made of them.
    """

    functions: np.ndarray  # (rows,) of Function
    parts: np.ndarray  # (rows, features): what leads from the level to the prediction

    def weighted_differences(self) -> np.ndarray:
        """Each feature's part in the step from the level to the prediction: (rows, features)."""
        return self.parts

    def changes(self, rows: np.ndarray, moved: MovedRows) -> np.ndarray:
        """What g says of moves: g(moved) − g(row), for each move."""
        answers = np.empty(len(rows))
        order = np.argsort(rows, kind="stable")
        starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
        for start, end in pairwise([*starts.tolist(), len(rows)]):
            moves = order[start:end]  # all of one row
            row = int(rows[moves[0]])
            function = self.functions[row]
            answers[moves] = function(moved.features[moves]) - function(self.features[[row]])
        return answers


def make_fits(
    numbers: dict[str, np.ndarray],
    weights: sp.csr_array,
    functions: list[Function] | None = None,
    parts: np.ndarray | None = None,
) -> LocalFits:
    """Fits that rest on one set of weights: linear ones, or others where functions and parts are given."""
    shape = numbers["coefficients"].shape
    numbers = {**numbers, "unknown": np.zeros(shape, dtype=bool), "reach": np.ones(shape[0])}
    if functions is None or parts is None:
        return LocalFits(**numbers, weights=weights, slope_weights=weights, spans=None)
    objects = np.empty(len(functions), dtype=object)
    objects[:] = functions
    return FunctionFits(**numbers, weights=weights, slope_weights=weights, spans=None, functions=objects, parts=parts)
