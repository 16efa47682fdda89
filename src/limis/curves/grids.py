"""The values at which responses are recorded: some that exist, for every unit of columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from limis.curves.kernels import find_between, find_cells
from limis.fidelity.units import Units
from limis.table import Table

MOST_HELD, QUANTILES = 8, 8  # values of a number: those held most, and quantiles; all where there are no more
NEAREST = 3  # values of a grid that are near a value
FAR = 0.1  # ranks: of columns that count as one, values farther from all recorded ones than this have no response


class Between(NamedTuple):
    """Where values stand on the grids: the cells next below and above a number, and how far it is between them.

    All are (rows, units). Other values stand in one cell alone, and have -1 where there is none for them.
    """

    low: np.ndarray
    high: np.ndarray
    share: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Whether a value has a place: (rows, units) bool."""
        return self.low >= 0

    def part(self, rows: Any, units: Any = slice(None)) -> Between:
        """Of some rows, and some units."""
        return Between(*(held[rows][..., units] for held in self))

    def at(self, units: np.ndarray) -> Between:
        """Of each row one unit alone: (rows, 1) in each."""
        return Between(*(np.take_along_axis(held, units[:, None], axis=1) for held in self))

    def read(self, by_cell: np.ndarray, lines: np.ndarray) -> np.ndarray:
        """What lines of numbers by cell, (lines, cells), say of the values; lines : places that broadcast with them."""
        first = by_cell[lines, np.maximum(self.low, 0)]
        if not self.share.any():  # all stand on recorded values
            return first
        return first + self.share * (by_cell[lines, np.maximum(self.high, 0)] - first)


@dataclass
class Grids:
    """For each unit some rows whose values it takes; a unit without any is not recorded."""

    units: Units
    donors: list[np.ndarray]  # for each unit places of training rows
    values: list[np.ndarray]  # for each unit (donors, its columns)
    _ranked: tuple[Table, np.ndarray] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, table: Table, units: Units, training_values: np.ndarray, most: int = MOST_HELD + QUANTILES) -> Grids:
        """Values that training rows hold, at most so many for each unit."""
        donors = [_spread(table, members, training_values, most) for members in units.members]
        values = [training_values[own][:, members] for own, members in zip(donors, units.members, strict=True)]
        return cls(units, donors, values)

    def only(self, recorded: np.ndarray) -> Grids:
        """The same with values for some of the units alone: (units,) bool."""
        donors = [own if kept else own[:0] for own, kept in zip(self.donors, recorded, strict=True)]
        values = [own if kept else own[:0] for own, kept in zip(self.values, recorded, strict=True)]
        return Grids(self.units, donors, values)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each unit's cells begin: (units + 1,)."""
        return np.cumsum([0, *map(len, self.donors)])

    @property
    def sizes(self) -> np.ndarray:
        """How many cells each unit has: (units,)."""
        return np.diff(self.starts)

    def cells(self, table: Table, values: np.ndarray) -> np.ndarray:
        """The cell of each unit that is nearest to its value, -1 where none is near: (rows, units).

        Numbers go to the nearest recorded one in ranks, levels and missing values to themselves alone.
        """
        found = np.empty((len(values), len(self.units)), dtype=np.int64)
        members = self.units.members
        sizes = np.array([len(columns) for columns in members])
        find_cells(
            table.ranks(values),
            self._ranks(table),
            self.starts,
            np.concatenate(members),
            np.cumsum([0, *sizes]),
            table.is_category,
            np.where(sizes == 1, np.inf, FAR * sizes),
            found,
        )
        return found

    def between(self, table: Table, values: np.ndarray) -> Between:
        """Where values stand among those of the grids, numbers between two of them."""
        low = self.cells(table, values)
        found = Between(low, low.copy(), np.zeros(low.shape))
        find_between(values, self._numbers, self.starts, self._column_of(table), *found)
        return found

    @cached_property
    def _numbers(self) -> np.ndarray:
        """The value of each cell, of several columns the first: (cells,)."""
        return np.concatenate([np.empty(0), *(own[:, 0] for own in self.values)])

    def _column_of(self, table: Table) -> np.ndarray:
        """The column of each unit that is one number, -1 of others: (units,)."""
        members = self.units.members
        return np.array([own[0] if len(own) == 1 and not table.is_category[own[0]] else -1 for own in members])

    def _ranks(self, table: Table) -> np.ndarray:
        """The values of all cells as the table ranks them, worked out once: (cells, columns), NaN in other units'."""
        if self._ranked is None or self._ranked[0] is not table:
            whole = np.full((int(self.starts[-1]), len(table.columns)), np.nan)
            for unit, (members, own) in enumerate(zip(self.units.members, self.values, strict=True)):
                whole[self.starts[unit] : self.starts[unit + 1], members] = own
            self._ranked = (table, table.ranks(whole))
        return self._ranked[1]

    def draw(
        self, table: Table, values: np.ndarray, units: np.ndarray, near: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """A cell of its unit for each row: any or, where ``near``, one of the three nearest of a number: (rows,).

        units, near : (rows,).
        """
        cells = self.starts[units] + (rng.random(len(units)) * self.sizes[units]).astype(np.int64)
        for unit, column in enumerate(self._column_of(table)):
            mine = np.flatnonzero(near & (units == unit))
            if column < 0 or self.sizes[unit] <= NEAREST or len(mine) == 0:
                continue
            own = self._ranks(table)[self.starts[unit] : self.starts[unit + 1], column]
            apart = np.abs(own - table.ranks(values[mine])[:, [column]])
            apart = np.where((apart == 0) | np.isnan(apart), np.inf, apart)  # the own value is no change
            nearest = np.argsort(apart, axis=1, kind="stable")[:, :NEAREST]
            cells[mine] = self.starts[unit] + nearest[np.arange(len(mine)), rng.integers(NEAREST, size=len(mine))]
        return cells

    def moved(self, values: np.ndarray, units: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Rows after one unit of each took the value of a cell: (rows, columns)."""
        found = values.copy()
        for unit in np.unique(units):
            mine = np.flatnonzero(units == unit)
            found[np.ix_(mine, self.units.members[unit])] = self.values[unit][cells[mine] - self.starts[unit]]
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ranked": None}

    def holds(self, values: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Whether the cells, (rows, units), are the units' very values: (rows, units) bool."""
        found = np.zeros(cells.shape, dtype=bool)
        for unit, (members, own) in enumerate(zip(self.units.members, self.values, strict=True)):
            known = np.flatnonzero(cells[:, unit] >= 0)
            here, there = values[known][:, members], own[cells[known, unit] - self.starts[unit]]
            found[known, unit] = ((here == there) | (np.isnan(here) & np.isnan(there))).all(axis=1)
        return found


def _spread(table: Table, members: np.ndarray, values: np.ndarray, most: int) -> np.ndarray:
    """Places of rows that hold the values held most and, of numbers with more values, some spread evenly."""
    own = pd.DataFrame(values[:, members])
    first = np.flatnonzero(~own.duplicated().to_numpy())
    group = own.groupby(list(own.columns), sort=False, dropna=False).ngroup().to_numpy()
    counts = np.bincount(group)[group[first]]
    by_count = first[np.argsort(-counts, kind="stable")]
    if len(first) <= most or table.is_category[members].all():
        return np.sort(by_count[:most])
    numbers = [j for j in members if not table.is_category[j]]
    repeated = by_count[: int((counts > 1).sum())]
    order = np.argsort(values[:, numbers[0]], kind="stable")  # missing comes last
    order = order[: np.isfinite(values[:, numbers[0]]).sum()]
    n_even = most - min(most // 2, len(repeated))
    even = order[np.linspace(0, len(order) - 1, n_even).round().astype(np.int64)] if len(order) else order
    chosen = np.unique(np.concatenate([repeated[: most - n_even], even]))
    return chosen[~own.iloc[chosen].duplicated().to_numpy()]
