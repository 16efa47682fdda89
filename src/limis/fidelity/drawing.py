"""What both laws draw: changes of units of a row, and groups of units to be replaced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.fidelity.ground import Ground
from limis.perturb import Moves

JOINT_SIZES = ("2", "3", "half")
GROUP_SIZES = ("one or two", "half", "every size")

Drawn = tuple[int, int, np.ndarray]  # a row, the donor of its new values, and the units that change


@dataclass
class Groups:
    """Groups of units of a row, each to be replaced by those of some donors."""

    rows: np.ndarray  # (groups,)
    units: np.ndarray  # (groups, units) bool
    donors: np.ndarray  # (groups, donors)

    def __len__(self) -> int:
        return len(self.rows)


def how_many(size: str, n_units: int) -> int:
    """A joint change's number of units in figures."""
    return max(2, n_units // 2) if size == "half" else int(size)


def are_enough(size: str, n_units: int) -> bool:
    """Whether so many units make a joint change of the size: two, three, or of half whatever differs, two at least."""
    return n_units >= 2 if size == "half" else n_units == int(size)


def draw_one_unit(row: int, pool: np.ndarray, differs: np.ndarray, n: int, rng: np.random.Generator) -> list[Drawn]:
    """Up to ``n`` times a unit that some row of the pool holds otherwise, and one of those that do.

    Every such unit is as likely as another, and none comes again before all did. differs : (pool, units) bool.
    """
    movable = rng.permutation(np.flatnonzero(differs.any(axis=0)))
    if len(movable) == 0:
        return []
    units, lots = movable[np.arange(n) % len(movable)], rng.random(n)
    seen = np.cumsum(differs[:, units], axis=0)  # (pool, draws) how many of those that differ came so far
    donors = pool[np.argmax(seen > (lots * seen[-1]).astype(np.int64), axis=0)]
    drawn = {pair: (row, pair[0], np.array(pair[1:])) for pair in zip(donors.tolist(), units.tolist(), strict=True)}
    return list(drawn.values())


def moves_of(ground: Ground, drawn: list[Drawn], places: np.ndarray) -> Moves:
    """What was drawn as moves: (row, donor, units) each; ``places`` says where each donor stands in its frame."""
    changed = np.zeros((len(drawn), ground.values.shape[1]), dtype=bool)
    if drawn:
        units = [one[2] for one in drawn]
        starts = np.cumsum([0, *map(len, units[:-1])])
        changed = np.logical_or.reduceat(ground.membership[np.concatenate(units)], starts, axis=0)
    rows, donors = (np.array([one[part] for one in drawn], dtype=np.int64) for part in (0, 1))
    return Moves(rows, places[donors], changed)
