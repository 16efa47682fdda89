"""Law A: the questions that choose, calibrate and measure a fit.

A single change takes one unit of a row to the value of a training row: one of the k nearest (Gower on ranks), or any.
A joint change takes several units from one training row that differs in all of them ("half": in up to half). For
reasons, a group of units is replaced by those of reference rows, each unit being in with a probability that is drawn
for the group.
"""

from __future__ import annotations

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
from limis.fidelity.ground import ANY, Ground
from limis.perturb import Moves

NAME = "A"
NEAR = 200  # joint changes that stay near take their values from so many rows
FAR_DONORS = 1000  # rows looked at for a change to any value


def single_changes(
    ground: Ground, n: int, rng: np.random.Generator, ranges: list[int | str] | None = None
) -> dict[str, Moves]:
    """For each range, of all where not given, up to ``n`` changes of one unit a row; donors are places in training."""
    ranges = ground.ranges if ranges is None else ranges
    drawn: dict[str, list[Drawn]] = {str(k): [] for k in ranges}
    for row, near in enumerate(ground.nearest(max((int(k) for k in ranges if k != ANY), default=0))):
        far = ground.any_others(row, FAR_DONORS, rng) if ANY in ranges else near[:0]
        differs = ground.units_that_differ(row, ground.training_values[np.concatenate([near, far])])
        for k in ranges:
            pool, own = (far, differs[len(near) :]) if k == ANY else (near[: int(k)], differs[: len(near)][: int(k)])
            drawn[str(k)] += draw_one_unit(row, pool, own, n, rng)
    return {name: moves_of(ground, found, ground.training_places) for name, found in drawn.items()}


def joint_changes(ground: Ground, n: int, rng: np.random.Generator) -> dict[str, Moves]:
    """Up to ``n`` changes of two, three and half of the units a row, from near rows and from any."""
    kinds = {f"{size}, {where}": (size, where) for size in JOINT_SIZES for where in ("near", "any")}
    drawn: dict[str, list[Drawn]] = {name: [] for name in kinds}
    for row, near in enumerate(ground.nearest(NEAR)):
        for name, (size, where) in kinds.items():
            pool = rng.permutation(near)[:n] if where == "near" else ground.any_others(row, n, rng)
            differs = ground.units_that_differ(row, ground.training_values[pool])
            for donor, able in zip(pool, differs, strict=True):
                units = rng.permutation(np.flatnonzero(able))[: how_many(size, len(ground.units))]
                if are_enough(size, len(units)):
                    drawn[name].append((row, int(donor), units))
    return {name: moves_of(ground, found, ground.training_places) for name, found in drawn.items()}


def group_removals(ground: Ground, n: int, references: np.ndarray, rng: np.random.Generator) -> dict[str, Groups]:
    """``n`` groups of each kind a row, each replaced by those of all reference rows."""
    found = {}
    for kind in GROUP_SIZES:
        units = np.array([draw_group(kind, len(ground.units), rng) for _ in range(n * len(ground))])
        rows = np.repeat(np.arange(len(ground)), n)
        found[kind] = Groups(rows, units, np.tile(references, (len(rows), 1)))
    return found


def draw_group(kind: str, n_units: int, rng: np.random.Generator) -> np.ndarray:
    """A group of units, at least one: (units,) bool."""
    if kind == "every size":
        chosen = rng.random(n_units) < rng.random()
        chosen[rng.integers(n_units)] |= not chosen.any()
        return chosen
    size = int(rng.integers(1, 3)) if kind == "one or two" else max(1, n_units // 2)
    chosen = np.zeros(n_units, dtype=bool)
    chosen[rng.permutation(n_units)[:size]] = True
    return chosen
