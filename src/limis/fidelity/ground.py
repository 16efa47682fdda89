"""What questions are drawn on: rows, the rows that values are taken from, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from limis.fidelity.units import Units
from limis.perturb import gower_distance, near_others
from limis.table import Table

MOST_ROWS = 50_000  # of the training rows, that distances are measured to
RANGES = (10, 50, 200, 1000)
ANY = "any"
SMALLEST_SHARE = 5  # a range of more than one in so many training rows is no neighbourhood


@dataclass
class Ground:
    """Rows to ask about and the training rows around them."""

    table: Table
    units: Units
    values: np.ndarray  # (rows, columns) of the rows to ask about
    training_values: np.ndarray  # (training rows, columns), equal ones once
    training_places: np.ndarray  # (training rows,) where each stands in the training frame

    @classmethod
    def of(
        cls, table: Table, units: Units, values: np.ndarray, training_values: np.ndarray, rng: np.random.Generator
    ) -> Ground:
        """Of a long training table a random part is looked at; equal rows count once."""
        places = np.arange(len(training_values))
        if len(places) > MOST_ROWS:
            places = np.sort(rng.choice(places, MOST_ROWS, replace=False))
        places = places[~pd.DataFrame(training_values[places]).duplicated().to_numpy()]
        return cls(table, units, values, training_values[places], places)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def membership(self) -> np.ndarray:
        """Which column belongs to which unit: (units, columns) bool."""
        return self.units.matrix(self.values.shape[1])

    @cached_property
    def ranks(self) -> np.ndarray:
        """The rows, with numbers as positions among the training rows: (rows, columns)."""
        return self.table.ranks(self.values)

    @cached_property
    def training_ranks(self) -> np.ndarray:
        """The same of the training rows."""
        return self.table.ranks(self.training_values)

    @cached_property
    def ranges(self) -> list[int | str]:
        """How far questions go: the k nearest training rows, and any."""
        return [*(k for k in RANGES if k * SMALLEST_SHARE <= len(self.training_values)), ANY]

    def near(self, block: int = 256) -> Iterator[tuple[int, np.ndarray]]:
        """For every row its distances from the training rows that differ from it; equal ones are infinitely far."""
        for start in range(0, len(self), block):
            found = gower_distance(self.ranks[start : start + block], self.training_ranks, self.table.is_category)
            for row, distances in enumerate(found, start):
                distances[same(self.training_values, self.values[row]).all(axis=1)] = np.inf
                yield row, distances

    def nearest(self, k: int) -> list[np.ndarray]:
        """For every row the places of the k nearest training rows that differ from it, nearest first."""
        return near_others(self.table, self.values, self.training_values, self.training_ranks, k)

    def any_others(self, row: int, n: int, rng: np.random.Generator) -> np.ndarray:
        """Places of up to n training rows that differ from a row, each as likely as another and in no order."""
        every = len(self.training_values)
        drawn = rng.choice(every, min(n + 1, every), replace=False)  # of equal ones there is one at most
        return drawn[~same(self.training_values[drawn], self.values[row]).all(axis=1)][:n]

    def units_that_differ(self, row: int, others: np.ndarray) -> np.ndarray:
        """In which units other rows, given by their values, differ from a row: (others, units) bool."""
        members = self.units.members
        differs = ~same(others, self.values[row])[:, np.concatenate(members)]
        if len(members) == differs.shape[1]:  # each is one column
            return differs
        starts = np.cumsum([0, *map(len, members[:-1])])
        return np.logical_or.reduceat(differs, starts, axis=1)


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where values are equal; two that are missing are."""
    return (a == b) | (np.isnan(a) & np.isnan(b))
