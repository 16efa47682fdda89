"""Which pairs of units do more together than each alone: the few that are told beside the curves."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from limis.curves.taught import TaughtModel
from limis.fidelity.units import Units

MOST_PAIRS = 10
LEADING = 20  # units that matter most, among which pairs are looked for
SAMPLES = 150  # rows that take the values of other rows
LEAST_SHARE = 0.001  # of what the units do alone


def importance(
    taught: TaughtModel, values: np.ndarray, unit_of: np.ndarray, rng: np.random.Generator, n: int = 500
) -> np.ndarray:
    """Mean square of what each unit does when it takes the values of another row: (units,)."""
    rows, donors = rng.integers(len(values), size=(2, n))
    own = taught.cells(values[rows])
    return (taught.unit_changes(own, np.arange(n), taught.cells(values[donors]), unit_of) ** 2).mean(axis=0)


def leading_pairs(
    taught: TaughtModel,
    values: np.ndarray,
    units: Units,
    unit_of: np.ndarray,
    matters: np.ndarray,
    rng: np.random.Generator,
    most: int = MOST_PAIRS,
) -> np.ndarray:
    """The pairs whose joint change differs most from the sum of the single ones: (pairs, 2)."""
    leading = np.sort(np.argsort(-matters, kind="stable")[:LEADING])
    leading = leading[matters[leading] > 0]
    pairs = np.array(list(combinations(leading.tolist(), 2)), dtype=np.int64).reshape(-1, 2)
    if len(pairs) == 0 or len(units) < 2:
        return pairs[:0]
    rows, donors = rng.integers(len(values), size=(2, SAMPLES))
    own, cells, questions = taught.cells(values[rows]), taught.cells(values[donors]), np.arange(SAMPLES)
    alone = taught.unit_changes(own, questions, cells, unit_of)
    both = taught.pair_changes(own, questions, cells, unit_of, pairs)
    changed = both != 0
    beyond = np.where(changed, both - alone[:, pairs[:, 0]] - alone[:, pairs[:, 1]], 0.0)
    energy = (beyond**2).mean(axis=0)
    order = np.argsort(-energy, kind="stable")[:most]
    return pairs[np.sort(order[energy[order] > LEAST_SHARE * matters.sum()])]
