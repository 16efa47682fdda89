"""Rows that measure a finished fit, by law A: changes to values of training rows at several distances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from limis.changes import ask_moved
from limis.fidelity.drawing import GROUP_SIZES
from limis.fidelity.ground import ANY, Ground
from limis.fidelity.law_a import draw_group, single_changes
from limis.fidelity.units import Units, find_units
from limis.perturb import Moves
from limis.rows import TrainingRows
from limis.training.probes import ProbeRows

CHANGES = 6  # of each row and range
MOST_GROUPED, ENOUGH_GROUPED = 1000, 700  # rows that are asked about groups of columns, and how many are enough
# Groups of each size a row, as many as leave questions for enough rows, and training rows that replace each: many
# groups tell more of a row than many rows for each, of which the taught model foresees most.
GROUPINGS, DONORS = (8, 6, 4, 2, 1), 2
PROMISED = 200  # the range that bounds hold for, or the widest below it that the table is long enough for
FLAT = 0.05  # of the outputs' deviation: where changes do less nothing matters, and nothing is promised


@dataclass
class Grouping:
    """How many rows are asked about groups of columns, and about how many."""

    rows: int
    groups: int  # of each size

    @classmethod
    def within(cls, n_questions: int, n_rows: int) -> Grouping:
        """As many as so many questions allow, of so many rows."""
        most = min(n_rows, MOST_GROUPED)
        for groups in GROUPINGS:
            rows = n_questions // (groups * DONORS * len(GROUP_SIZES))
            if rows >= min(most, ENOUGH_GROUPED):
                break
        return cls(min(rows, most), groups)


@dataclass
class GroupAnswers:
    """Groups of units of some rows, replaced by those of a few training rows, and what the black box says then."""

    rows: np.ndarray  # (groups,)
    units: np.ndarray  # (groups, units) bool
    donors: np.ndarray  # (groups, donors, columns) values
    outputs: np.ndarray  # (groups, donors)
    every: np.ndarray | None = None  # (groups, donors, classes)

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def ask(
        cls,
        training: TrainingRows,
        frame: pd.DataFrame,
        places: np.ndarray,
        units: Units,
        n_groups: int,
        rng: np.random.Generator,
    ) -> GroupAnswers:
        """Draw so many groups of every size for each of some rows, given by their places in a frame, and ask."""
        n_units = len(units)
        sizes = [kind for kind in GROUP_SIZES for _ in range(n_groups)]
        groups = np.array([draw_group(kind, n_units, rng) for _ in places for kind in sizes]).reshape(-1, n_units)
        rows = np.repeat(places, len(sizes))
        donors = rng.integers(len(training), size=(len(rows), DONORS))
        changed = np.repeat(groups @ units.matrix(len(training.table.columns)), DONORS, axis=0)
        every, outputs = ask_moved(training, frame, Moves(np.repeat(rows, DONORS), donors.ravel(), changed))
        if every is not None:
            every = every.reshape(*donors.shape, -1)
        return cls(rows, groups, training.values[donors], outputs.reshape(donors.shape), every)

    def of_class(self, place: int) -> GroupAnswers:
        """The same with the answers for one of several classes."""
        assert self.every is not None
        return replace(self, outputs=self.every[:, :, place], every=None)

    def part(self, chosen: np.ndarray, n_rows: int) -> GroupAnswers:
        """Those of some of ``n_rows`` rows."""
        place = np.full(n_rows, -1)
        place[chosen] = np.arange(len(chosen))
        kept = place[self.rows] >= 0
        every = None if self.every is None else self.every[kept]
        return GroupAnswers(place[self.rows[kept]], self.units[kept], self.donors[kept], self.outputs[kept], every)


@dataclass
class MeasuringRows:
    """Rows that chose nothing, with the black box's answers to their changes, by range: the k nearest rows, or any."""

    rows: ProbeRows
    by_range: dict[str, ProbeRows]  # the same rows, each with the changes of one range
    groups: GroupAnswers | None = None  # of some of them, where reasons are measured

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def ask(
        cls,
        training: TrainingRows,
        frame: pd.DataFrame,
        outputs: np.ndarray,
        every: np.ndarray | None,
        rng: np.random.Generator,
        units: Units | None = None,
        group_questions: int = 0,
    ) -> MeasuringRows:
        """Draw changes by law A and ask the black box about them, if it can be asked.

        ``units`` are the training rows', where they are known already. With ``group_questions``, so many questions go
        to groups of columns too, so that reasons can be measured, and all rows are asked about twice as many changes of
        the promised range: where these do anything, groups are asked about first.
        """
        rows = ProbeRows(training.table.values(frame), outputs, None, every)
        if not training.black_box.can_be_asked or len(rows) == 0:
            return cls(rows, {})
        units = units or find_units(training.table, training.values)
        ground = Ground.of(training.table, units, rows.values, training.values, rng)
        drawn = single_changes(ground, CHANGES, rng)
        grouping = Grouping.within(group_questions if len(units) > 1 else 0, len(rows))
        if grouping.rows:
            name = _promised(drawn)
            again = single_changes(ground, CHANGES, rng, [name if name == ANY else int(name)])
            drawn[name] = Moves.join([drawn[name], again[name]])
        found = cls(
            rows,
            {
                name: ProbeRows.asked_about(training, frame, outputs, moves, every)
                for name, moves in drawn.items()
                if len(moves)
            },
        )
        if grouping.rows:
            # Of several classes each is flat elsewhere: rows chosen by one would be no sample of the others'.
            last = np.zeros(len(rows)) if every is not None else found.flat(training.unit)
            places = np.sort(np.argsort(last, kind="stable")[: grouping.rows])
            found.groups = GroupAnswers.ask(training, frame, places, units, grouping.groups, rng)
        return found

    def flat(self, unit: float) -> np.ndarray:
        """Where changes of the promised range do nothing worth telling; ``unit`` is the outputs' deviation: (rows,)."""
        n, asked = len(self), self.promised.asked
        if asked is None:
            return np.zeros(n, dtype=bool)
        counts, moved = (np.bincount(asked.rows, weights, n) for weights in (None, asked.changes**2))
        return np.asarray(moved < counts * (FLAT * unit) ** 2)

    @property
    def n_questions(self) -> int:
        """How many changed rows the black box was asked about."""
        of_groups = 0 if self.groups is None else self.groups.outputs.size
        return of_groups + sum(len(part.asked.moves) for part in self.by_range.values() if part.asked is not None)

    @property
    def promised_range(self) -> str:
        """The range that bounds are learned on."""
        return _promised(self.by_range)

    @property
    def promised(self) -> ProbeRows:
        """The rows with the changes that bounds are learned on."""
        return self.by_range.get(self.promised_range, self.rows)

    def part(self, chosen: np.ndarray) -> MeasuringRows:
        """Some of the rows, with their changes."""
        by_range = {name: part.part(chosen) for name, part in self.by_range.items()}
        groups = None if self.groups is None else self.groups.part(chosen, len(self))
        return MeasuringRows(self.rows.part(chosen), by_range, groups)

    def of_class(self, place: int) -> MeasuringRows:
        """The same with the answers for one of several classes."""
        return MeasuringRows(
            self.rows.of_class(place),
            {name: part.of_class(place) for name, part in self.by_range.items()},
            None if self.groups is None else self.groups.of_class(place),
        )


def _promised(ranges: Iterable[str]) -> str:
    known = [name for name in ranges if name != ANY and int(name) <= PROMISED]
    return max(known, key=int) if known else ANY
