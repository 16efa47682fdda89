"""The values at which responses are recorded: some that exist, for every unit of columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from limis.fidelity.units import Units
from limis.table import Table

MOST_HELD, QUANTILES = 8, 8  # values of a number: those held most, and quantiles; all where there are no more
FAR = 0.1  # ranks: of columns that count as one, values farther from all recorded ones than this have no response


@dataclass
class Grids:
    """For each unit some rows whose values it takes; a unit without any is not recorded."""

    units: Units
    donors: list[np.ndarray]  # for each unit places of training rows
    values: list[np.ndarray]  # for each unit (donors, its columns)

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
        found = np.full((len(values), len(self.units)), -1, dtype=np.int64)
        ranks = table.ranks(values)
        whole = np.full((int(self.starts[-1]), values.shape[1]), np.nan)
        cells = [slice(start, stop) for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True)]
        for members, own, at in zip(self.units.members, self.values, cells, strict=True):
            whole[at, members] = own
        grids = table.ranks(whole)  # of all units at once: ranking is shared among threads, which takes its time
        for unit, (members, own) in enumerate(zip(self.units.members, self.values, strict=True)):
            if len(own) == 0:
                continue
            grid = grids[cells[unit]][:, members]  # (cells, columns of the unit)
            apart = np.zeros((len(values), len(own)))
            for place, j in enumerate(members):
                here, there = ranks[:, j, None], grid[None, :, place]
                if table.is_category[j]:
                    apart += np.where(here == there, 0.0, np.inf)
                else:
                    both = np.isnan(here) & np.isnan(there)
                    with np.errstate(invalid="ignore"):
                        distance = np.abs(here - there)
                    apart += np.where(both, 0.0, np.where(np.isnan(distance), np.inf, distance))
            nearest = apart.argmin(axis=1)
            least = apart[np.arange(len(values)), nearest]
            limit = np.inf if len(members) == 1 else FAR * len(members)
            found[:, unit] = np.where(least < limit, self.starts[unit] + nearest, -1)
        return found

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
