"""One row on the search for another outcome: what may change, and what the black box answered so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from limis.explanation import Explanations
from limis.perturb import MovedRows
from limis.suggest.target import Target
from limis.suggest.units import Options, Unit

# Units, by their number and in its order, each with the option that it moves to.
Change = tuple[tuple[int, int], ...]

SEARCH = "search"  # the source of what no explanation proposed
SPREAD = 8  # values of a number that are looked at for any row, from the least allowed to the most


@dataclass(eq=False)
class Case:
    """A row that should get to another outcome."""

    explained: Explanations
    row: int  # among the explained ones
    values: np.ndarray  # (columns,)
    output: float
    target: Target
    options: list[Options]  # of each unit
    near: np.ndarray  # the training rows nearest to it that have the wished outcome, nearest first
    left: int  # questions that may still be asked
    kept_back: int  # of these, kept for making smaller what was found
    outputs: dict[Change, float] = field(default_factory=dict)  # what was asked, and the answers
    gaps: dict[Change, float] = field(default_factory=dict)  # how far the answers are from the wished one
    confirmed: set[Change] = field(default_factory=set)
    sources: dict[Change, str] = field(default_factory=dict)  # who proposed a change, where it was not the search
    proposed: dict[str, list[Change]] = field(default_factory=dict)  # by their source, the explanation's own proposals
    _costs: dict[Change, tuple[int, float, Change]] = field(default_factory=dict, repr=False)

    # --- what may change ------------------------------------------------------------------------------

    def looked_at(self, unit: int) -> np.ndarray:
        """Options worth a look: frequent ones, or a number's from end to end and beside jumps; those of near rows."""
        own = self.options[unit]
        allowed = np.flatnonzero(own.allowed)
        picked = [own.unit.tried, own.unit.option_of_row[self.near]]
        if own.unit.is_number and len(allowed):
            picked.append(allowed[np.linspace(0, len(allowed) - 1, SPREAD).round().astype(np.int64)])
        options = np.unique(np.concatenate(picked))
        options = options[options >= 0]
        return options[own.allowed[options]]

    @cached_property
    def singles(self) -> dict[Change, float]:
        """Changes of one unit that are worth a look, and how far from the target they are expected to lead."""
        changes = [((unit, option),) for unit in range(len(self.options)) for option in self.looked_at(unit).tolist()]
        return dict(zip(changes, self.foreseen_gaps(changes).tolist(), strict=True))

    def foreseen_gaps(self, changes: Sequence[Change]) -> np.ndarray:
        """How far from the target the local model expects changes to lead, from where the black box says the row is."""
        if not changes:
            return np.empty(0)
        after = moved([own.unit for own in self.options], self.values[None], changes)
        rows = MovedRows(self.explained.training.table, after)
        steps = self.explained.fits.changes(np.full(len(changes), self.row), rows)
        return self.target.gap(self.output + steps, self.row)

    # --- what a change costs ----------------------------------------------------------------------------

    def columns(self, change: Change) -> frozenset[int]:
        """The columns that a change alters."""
        altered: set[int] = set()
        for unit, option in change:
            differs = self.options[unit].changed[option].tolist()
            altered.update(j for j, differ in zip(self.options[unit].unit.columns, differs, strict=True) if differ)
        return frozenset(altered)

    def distance(self, change: Change) -> float:
        """How far a change leads: the rank-space distances of its columns, summed."""
        return self.cost(change)[1]

    def cost(self, change: Change) -> tuple[int, float, Change]:
        """What changes are ranked by: how many columns, how far; ties by where they stand in the table."""
        known = self._costs.get(change)
        if known is None:
            distance = sum(float(self.options[unit].distance[option]) for unit, option in change)
            known = self._costs[change] = len(self.columns(change)), distance, change
        return known

    def by_gap(self, change: Change) -> tuple[float, Change]:
        """What answers are ranked by: how near they came; ties by where the changes stand in the table."""
        return self.gaps[change], change

    # --- what is known ----------------------------------------------------------------------------------

    def note(self, change: Change, output: float, gap: float, reached: bool) -> None:
        """Keep what the black box answered."""
        self.outputs[change], self.gaps[change] = output, gap
        if reached:
            self.confirmed.add(change)

    def found(self, most: int) -> int:
        """How many sets of at most so many columns, none of which includes another, were seen to do."""
        few = [change for change in self.confirmed if self.cost(change)[0] <= most]
        return len({columns for columns, _ in self._undominated(few)})

    def best(self, changes: Iterable[Change], n: int) -> list[Change]:
        """Up to ``n`` of the cheapest; those first that alter other columns than the ones before."""
        first: list[Change] = []
        more: list[Change] = []
        seen: set[frozenset[int]] = set()
        for columns, change in self._undominated(changes):
            (more if columns in seen else first).append(change)
            seen.add(columns)
        return sorted([*first, *more][:n], key=self.cost)

    def _undominated(self, changes: Iterable[Change]) -> list[tuple[frozenset[int], Change]]:
        """The cheapest first, without those that alter more columns than another one, or the same ones further.

        What is equally near and alters the same columns is another way only if it leads to other levels.
        """
        kept: list[tuple[frozenset[int], Change]] = []
        nearest: dict[frozenset[int], float] = {}
        levels_seen: set[tuple[frozenset[int], Change]] = set()
        for change in sorted(changes, key=self.cost):
            columns, distance = self.columns(change), self.distance(change)
            levels = tuple(step for step in change if not self.options[step[0]].unit.is_number)
            further = distance > nearest.setdefault(columns, distance) or (columns, levels) in levels_seen
            if not further and not any(fewer < columns for fewer, _ in kept):
                kept.append((columns, change))
                levels_seen.add((columns, levels))
        return kept


def moved(units: Sequence[Unit], values: np.ndarray, changes: Sequence[Change]) -> np.ndarray:
    """Values after changes: (changes, columns); ``values`` are those before, a line for each change or one for all."""
    after = np.repeat(values, len(changes), axis=0) if len(values) == 1 else values.copy()
    steps = np.array([(line, *step) for line, change in enumerate(changes) for step in change])
    for number in np.unique(steps[:, 1]).tolist():
        lines, _, options = steps[steps[:, 1] == number].T
        after[np.ix_(lines, units[number].columns)] = units[number].values[options]
    return after
