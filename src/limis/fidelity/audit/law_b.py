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

from limis.fidelity.drawing import (
    GROUP_SIZES,
    JOINT_SIZES,
    Drawn,
    Groups,
    are_enough,
    draw_one_unit,
    how_many,
    moves_of,
)
from limis.fidelity.ground import ANY, Ground, same
from limis.perturb import Moves, gower_distance

NAME = "B"
NEAR = 100  # joint changes that stay near stay within the distance of so many training rows
FAR_DONORS = 1000
COMPARED = 50  # held-out rows of which the one most like the row is taken, for a joint change to any
MATCHED = 50  # reference rows at most, a quarter of all, that replace a group
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
            differs = ground.units_that_differ(row, held_out.values[pool])
            drawn[str(k)] += draw_one_unit(row, pool, differs, n, rng)
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
                pool = rng.permutation(near if where == "near" else others)[:COMPARED]
                drawn[name] += _draw_several(held_out, row, size, pool, where == "near", rng)
    return {name: moves_of(ground, found, np.arange(len(held_out.values))) for name, found in drawn.items()}


def group_removals(held_out: HeldOut, n: int, references: np.ndarray, rng: np.random.Generator) -> dict[str, Groups]:
    """``n`` groups of each kind a row, replaced by those of the reference rows most like it in what is kept.

    ``references`` are places among the held-out rows.
    """
    ground = held_out.ground
    n_units = len(ground.units)
    found: dict[str, list[tuple[int, np.ndarray, np.ndarray]]] = {kind: [] for kind in GROUP_SIZES}
    for row in range(len(ground)):
        twins = same(held_out.values[references], ground.values[row]).all(axis=1)
        others = references[~twins & (references != held_out.own[row])]
        others = rng.permutation(others if len(others) else references)  # ties are settled by chance
        by_unit = held_out.apart(row, others) @ ground.membership.T.astype(float)  # (references, units)
        for kind in GROUP_SIZES:
            for _ in range(n):
                size = _group_size(kind, n_units, rng)
                units = _vary_together(held_out, size, rng)
                order = np.argsort(by_unit @ ~units, kind="stable")
                found[kind].append((row, units, others[order[: matched_donors(len(references))]]))
    return {kind: _as_groups(drawn) for kind, drawn in found.items()}


def matched_donors(n_references: int) -> int:
    """How many rows replace a group: few enough of all that they are alike."""
    return max(1, min(MATCHED, n_references // 4))


def _as_groups(drawn: list[tuple[int, np.ndarray, np.ndarray]]) -> Groups:
    """Where a row has equals among the references fewer donors may be left, and some count more than once."""
    most = max(len(donors) for _, _, donors in drawn)
    donors = [np.resize(own, most) for _, _, own in drawn]
    rows, units = (np.array([one[part] for one in drawn]) for part in (0, 1))
    return Groups(rows, units, np.array(donors))


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


def _vary_together(
    held_out: HeldOut, size: int, rng: np.random.Generator, able: np.ndarray | None = None
) -> np.ndarray:
    """A unit and those that vary with it most, with some chance, of those that are able: (units,) bool."""
    n_units = len(held_out.ground.units)
    allowed = np.arange(n_units) if able is None else np.flatnonzero(able)
    if len(allowed) == 0:
        return np.zeros(n_units, dtype=bool)
    first = int(rng.choice(allowed))
    liking = held_out.association[first] + LOOSE * rng.random(n_units)
    liking[first] = np.inf
    return np.isin(np.arange(n_units), allowed[np.argsort(-liking[allowed])[:size]])


def _draw_several(
    held_out: HeldOut, row: int, size: str, pool: np.ndarray, near: bool, rng: np.random.Generator
) -> list[Drawn]:
    """Units that vary together, from a row of the pool that differs in all of them: one change, or none.

    Near, the row is a random one; otherwise, of those that differ, the one most alike in the columns that are kept.
    """
    ground = held_out.ground
    if len(pool) == 0:
        return []
    differs = ground.units_that_differ(row, held_out.values[pool])
    able = differs[0] if near else differs.mean(axis=0) > 0
    wanted = how_many(size, len(ground.units))
    units = np.flatnonzero(_vary_together(held_out, wanted, rng, able))
    fitting = np.flatnonzero(differs[:, units].all(axis=1))
    if size == "half" and len(fitting) == 0:  # no row differs in so many: what the nearest to it holds otherwise
        best = int(differs[:, units].sum(axis=1).argmax())
        units, fitting = units[differs[best, units]], np.array([best])
    if not are_enough(size, len(units)) or len(fitting) == 0:
        return []
    if near:
        return [(row, int(pool[fitting[0]]), units)]
    kept = ~ground.membership[units].any(axis=0)
    apart = held_out.apart(row, pool[fitting])[:, kept].sum(axis=1)
    return [(row, int(pool[fitting[apart.argmin()]]), units)]
