"""Finding equal rows among many, by keys of 64 bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import prange

from limis.threads import in_parallel

ROWS_AT_ONCE = 100_000  # whose keys are made
# Odd numbers without a pattern: what they multiply spreads over all bits.
_SPREAD, _STIR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@dataclass
class KeyedRows:
    """Rows in the order of their keys. Equal rows have equal keys; rows with equal keys are compared."""

    values: np.ndarray  # (rows, columns)
    keys: np.ndarray  # (rows,) sorted
    places: np.ndarray  # (rows,) where each stands among the values; of equal keys the first comes first

    @classmethod
    def of(cls, values: np.ndarray) -> KeyedRows:
        """Rows given by their values."""
        keys = row_keys(values)
        places = np.argsort(keys, kind="stable")
        return cls(values, keys[places], places)

    def equal_to(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places of the rows that equal each given row in all columns, and where each one's begin.

        Places are in order; missing equals missing, and minus zero equals zero.
        """
        keys = row_keys(values)
        first, last = np.searchsorted(self.keys, keys), np.searchsorted(self.keys, keys, side="right")
        counts = last - first
        row = np.repeat(np.arange(len(values)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        places = self.places[first[row] + within]
        equal = _equal(values[row], self.values[places])
        starts = np.concatenate([[0], np.cumsum(np.bincount(row[equal], minlength=len(values)))])
        return starts, places[equal]

    def first_equal_to(self, values: np.ndarray) -> np.ndarray:
        """The place of the first row that equals each given row in all columns, -1 where none does: (rows,)."""
        found = np.empty(len(values), dtype=np.int64)
        _find_first(self.values, self.keys, self.places, values, row_keys(values), found)
        return found

    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """One place of each distinct row, in order, and for every row which of them it equals."""
        begins = np.ones(len(self.keys), dtype=bool)
        begins[1:] = self.keys[1:] != self.keys[:-1]
        first = self.places[begins][np.cumsum(begins) - 1]  # of all with the same key
        unlike = ~_equal(self.values[first], self.values[self.places])
        leader = np.empty(len(self.keys), dtype=np.int64)
        leader[self.places] = first
        # Two rows that differ hardly ever have the same key; if so, each is compared with all that have it.
        for place in np.sort(self.places[unlike]):
            _, equal = self.equal_to(self.values[[place]])
            leader[place] = equal[0]
        return np.unique(leader, return_inverse=True)


def row_keys(values: np.ndarray) -> np.ndarray:
    """A key of 64 bits for each row, the same for equal rows: (rows,).

    Examples
    --------
    >>> import numpy as np
    >>> keys = row_keys(np.array([[1.0, np.nan], [1.0, np.nan], [np.nan, 1.0], [0.0, 2.0], [-0.0, 2.0]]))
    >>> (keys[:, None] == keys).astype(int).tolist()
    [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 1]]
    """
    keys = np.empty(len(values), dtype=np.uint64)
    for start in range(0, len(values), ROWS_AT_ONCE):
        block = slice(start, start + ROWS_AT_ONCE)
        # One NaN, one zero.
        plain = np.where(np.isnan(values[block]), np.nan, values[block]) + 0.0
        _write_keys(np.ascontiguousarray(plain).view(np.uint64), keys[block])
    return keys


@in_parallel
def _find_first(
    values: np.ndarray,
    keys: np.ndarray,
    places: np.ndarray,
    asked: np.ndarray,
    asked_keys: np.ndarray,
    found: np.ndarray,
) -> None:
    """Write the place of the first row that equals each asked one, of all with its key, or -1."""
    for row in prange(len(asked)):
        found[row] = -1
        at = np.searchsorted(keys, asked_keys[row])
        while found[row] < 0 and at < len(keys) and keys[at] == asked_keys[row]:
            equal = True
            for column in range(asked.shape[1]):
                own, other = asked[row, column], values[places[at], column]
                equal &= own == other or (np.isnan(own) and np.isnan(other))
            if equal:
                found[row] = places[at]
            at += 1


@in_parallel
def _write_keys(bits: np.ndarray, keys: np.ndarray) -> None:
    half, less, spread, stir = np.uint64(32), np.uint64(29), _SPREAD, _STIR
    for row in prange(len(bits)):
        key = np.uint64(0)
        for column in range(bits.shape[1]):
            own = bits[row, column]
            key = (key ^ own ^ (own >> half)) * spread
            key = (key ^ (key >> less)) * stir
            key ^= key >> half
        keys[row] = key


def _equal(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    return ((rows == others) | (np.isnan(rows) & np.isnan(others))).all(axis=1)
