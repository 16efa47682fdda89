"""Law B: questions for the audit alone, drawn otherwise than those that anything is fitted to, chosen or calibrated by.

Values come from held-out rows. Near is not a number of rows but a distance, that of the k-th nearest training row.
Columns that change together are columns that vary together, and where rows are not near, those are asked first that
are most like the row in the columns that it keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from limis.fidelity.drawing import GROUP_SIZES, JOINT_SIZES, Drawn, Groups, draw_one_unit, how_many, moves_of
from limis.fidelity.ground import ANY, Ground, same
from limis.perturb import Moves, gower_distance

NAME = "B"
NEAR = 100  # joint changes that stay near stay within the distance of so many training rows
FAR_DONORS = 1000
COMPARED = 50  # held-out rows of which the one most like the row is taken, for a joint change to any
MATCHED = 50  # reference rows, of all those there are, that replace a group
LOOSE = 0.5  # how much chance there is in which columns vary together: of an association of 1


@dataclass
class HeldOut:
    """Rows that fitting never saw, with what varies with what."""

    ground: Ground
    values: np.ndarray  # (held-out rows, columns)
    own: np.ndarray  # (rows,) where each row asked about stands among them; -1 where it does not
    association: np.ndarray  # (units, units), from 0 to 1

    @cached_property
    def ranks(self) -> np.ndarray:
        """The held-out rows with numbers as positions: (rows, columns)."""
        return self.ground.table.ranks(self.values)

    def apart(self, row: int, places: np.ndarray) -> np.ndarray:
        """How far held-out rows are from a row in each column: (rows, columns)."""
        own, others = self.ground.ranks[row], self.ranks[places]
        apart = np.abs(own - others)
        apart = np.where(np.isnan(apart), ~same(others, own), apart)
        return np.where(self.ground.table.is_category, others != own, apart)


def association_of(ground: Ground, outputs: np.ndarray) -> np.ndarray:
    """How much units vary together: rank correlation, categories in the order of their mean output: (units, units)."""
    ranks = ground.training_ranks.copy()
    for j in np.flatnonzero(ground.table.is_category):
        codes = ground.training_values[:, j].astype(np.int64)
        codes -= codes.min()
        counts = np.maximum(np.bincount(codes), 1)
        ranks[:, j] = (np.bincount(codes, weights=outputs) / counts)[codes]
    centre = np.nanmean(np.where(np.isfinite(ranks).any(axis=0), ranks, 0.0), axis=0)
    ranks = np.where(np.isnan(ranks), centre, ranks) - centre
    size = np.sqrt((ranks**2).sum(axis=0))
    ranks /= np.where(size > 0, size, 1.0)
    columns = np.abs(ranks.T @ ranks)
    of_units = np.array([[columns[np.ix_(a, b)].max() for b in ground.units.members] for a in ground.units.members])
    return of_units.clip(0, 1)


def single_changes(held_out: HeldOut, n: int, rng: np.random.Generator) -> dict[str, Moves]:
    """For each range up to ``n`` changes of one unit a row; the donors are places among the held-out rows."""
    ground = held_out.ground
    drawn: dict[str, list[Drawn]] = {str(k): [] for k in ground.ranges}
    for row, from_training, distances in _near(held_out):
        others = np.flatnonzero(np.isfinite(distances))
        for k in ground.ranges:
            if k == ANY:
                pool = rng.permutation(others)[:FAR_DONORS]
            else:
                pool = others[distances[others] <= np.partition(from_training, int(k) - 1)[int(k) - 1]]
            drawn[str(k)] += draw_one_unit(ground, row, held_out.values, pool, n, rng)
    return {name: moves_of(ground, found, np.arange(len(held_out.values))) for name, found in drawn.items()}


def joint_changes(held_out: HeldOut, n: int, rng: np.random.Generator) -> dict[str, Moves]:
    """Up to ``n`` changes of two, three and half of the units a row: units that vary together."""
    ground = held_out.ground
    kinds = {f"{size}, {where}": (size, where) for size in JOINT_SIZES for where in ("near", "any")}
    drawn: dict[str, list[Drawn]] = {name: [] for name in kinds}
    for row, from_training, distances in _near(held_out):
        others = np.flatnonzero(np.isfinite(distances))
        k = min(NEAR, len(from_training))
        near = others[distances[others] <= np.partition(from_training, k - 1)[k - 1]]
        for name, (size, where) in kinds.items():
            for _ in range(n):
                units = np.flatnonzero(_vary_together(held_out, how_many(size, len(ground.units)), rng))
                donor = _donor(held_out, row, units, near if where == "near" else others, where == "near", rng)
                if donor is not None:
                    drawn[name].append((row, donor, units))
    return {name: moves_of(ground, found, np.arange(len(held_out.values))) for name, found in drawn.items()}


def group_removals(held_out: HeldOut, n: int, references: np.ndarray, rng: np.random.Generator) -> dict[str, Groups]:
    """``n`` groups of each kind a row, replaced by those of the reference rows most like it in what is kept.

    ``references`` are places among the held-out rows.
    """
    ground = held_out.ground
    n_units, n_donors = len(ground.units), min(MATCHED, len(references) - 1)
    found: dict[str, list[tuple[int, np.ndarray, np.ndarray]]] = {kind: [] for kind in GROUP_SIZES}
    for row in range(len(ground)):
        others = references[references != held_out.own[row]]
        by_unit = held_out.apart(row, others) @ ground.membership.T.astype(float)  # (references, units)
        for kind in GROUP_SIZES:
            for _ in range(n):
                size = _group_size(kind, n_units, rng)
                units = _vary_together(held_out, size, rng)
                order = np.argsort(by_unit @ ~units, kind="stable")
                found[kind].append((row, units, others[order[:n_donors]]))
    return {
        kind: Groups(*(np.array([one[part] for one in drawn]) for part in range(3))) for kind, drawn in found.items()
    }


def _group_size(kind: str, n_units: int, rng: np.random.Generator) -> int:
    if kind == "one or two":
        return int(rng.integers(1, 3))
    return max(1, n_units // 2) if kind == "half" else int(rng.integers(1, n_units + 1))


def _near(held_out: HeldOut) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """For every row its distances from the training rows, and from held-out rows: itself and its equals are out."""
    ground = held_out.ground
    for row, from_training in ground.near():
        distances = gower_distance(ground.ranks[[row]], held_out.ranks, ground.table.is_category)[0]
        distances[same(held_out.values, ground.values[row]).all(axis=1)] = np.inf
        if held_out.own[row] >= 0:
            distances[held_out.own[row]] = np.inf
        yield row, from_training, distances


def _vary_together(held_out: HeldOut, size: int, rng: np.random.Generator) -> np.ndarray:
    """A unit and those that vary with it most, with some chance: (units,) bool."""
    n_units = len(held_out.ground.units)
    first = int(rng.integers(n_units))
    liking = held_out.association[first] + LOOSE * rng.random(n_units)
    liking[first] = np.inf
    return np.isin(np.arange(n_units), np.argsort(-liking)[:size])


def _donor(
    held_out: HeldOut, row: int, units: np.ndarray, pool: np.ndarray, near: bool, rng: np.random.Generator
) -> int | None:
    """A row of the pool that differs in one of the units: a random one, or of some the most alike in what is kept."""
    pool = rng.permutation(pool)[:COMPARED]
    if len(pool) == 0:
        return None
    differs = held_out.ground.units_that_differ(row, held_out.values[pool])[:, units].any(axis=1)
    pool = pool[differs]
    if len(pool) == 0:
        return None
    if near:
        return int(pool[0])
    kept = ~held_out.ground.membership[units].any(axis=0)
    return int(pool[held_out.apart(row, pool)[:, kept].sum(axis=1).argmin()])
