"""Rows that measure a finished fit, by law A: changes to values of training rows at several distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from limis.fidelity.ground import ANY, Ground
from limis.fidelity.law_a import single_changes
from limis.fidelity.units import Units, find_units
from limis.rows import TrainingRows
from limis.training.probes import ProbeRows

CHANGES = 6  # of each row and range
PROMISED = 200  # the range that bounds hold for, or the widest below it that the table is long enough for


@dataclass
class MeasuringRows:
    """Rows that chose nothing, with the black box's answers to their changes, by range: the k nearest rows, or any."""

    rows: ProbeRows
    by_range: dict[str, ProbeRows]  # the same rows, each with the changes of one range

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
    ) -> MeasuringRows:
        """Draw changes by law A and ask the black box about them, if it can be asked.

        ``units`` are the training rows', where they are known already.
        """
        rows = ProbeRows(training.table.values(frame), outputs, None, every)
        if not training.black_box.can_be_asked or len(rows) == 0:
            return cls(rows, {})
        units = units or find_units(training.table, training.values)
        ground = Ground.of(training.table, units, rows.values, training.values, rng)
        drawn = single_changes(ground, CHANGES, rng)
        return cls(
            rows,
            {
                name: ProbeRows.asked_about(training, frame, outputs, moves, every)
                for name, moves in drawn.items()
                if len(moves)
            },
        )

    @property
    def n_questions(self) -> int:
        """How many changed rows the black box was asked about."""
        return sum(len(part.asked.moves) for part in self.by_range.values() if part.asked is not None)

    @property
    def promised_range(self) -> str:
        """The range that bounds are learned on."""
        known = [name for name in self.by_range if name != ANY and int(name) <= PROMISED]
        return max(known, key=int) if known else ANY

    @property
    def promised(self) -> ProbeRows:
        """The rows with the changes that bounds are learned on."""
        return self.by_range.get(self.promised_range, self.rows)

    def part(self, chosen: np.ndarray) -> MeasuringRows:
        """Some of the rows, with their changes."""
        return MeasuringRows(self.rows.part(chosen), {name: part.part(chosen) for name, part in self.by_range.items()})

    def of_class(self, place: int) -> MeasuringRows:
        """The same with the answers for one of several classes."""
        return MeasuringRows(
            self.rows.of_class(place), {name: part.of_class(place) for name, part in self.by_range.items()}
        )
