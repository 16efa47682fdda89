"""Probe rows: held out from selection, they choose, stop and measure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from limis.changes import ask_moved
from limis.perturb import MovedRows, Moves, draw_moves, moved_values
from limis.rows import TrainingRows
from limis.table import Table

MIN_PROBES, MAX_PROBES = 100, 2000
PROBE_SHARE = 0.1


@dataclass
class AnsweredRows:
    """Rows with the black box's outputs, before it is asked about their changes."""

    frame: pd.DataFrame
    outputs: np.ndarray  # (rows,)
    every: np.ndarray | None = None  # (rows, classes) outputs for each of several classes

    def __len__(self) -> int:
        return len(self.frame)

    def part(self, chosen: np.ndarray) -> AnsweredRows:
        """Some of the rows."""
        every = None if self.every is None else self.every[chosen]
        return AnsweredRows(self.frame.iloc[chosen], self.outputs[chosen], every)


@dataclass
class AskedMoves:
    """Moves of the probe rows and what the black box answered."""

    moves: Moves
    values: np.ndarray  # (moves, columns) after the move
    changes: np.ndarray  # (moves,) f(moved) − f(row)
    every: np.ndarray | None = None  # (moves, classes) the same for each of several classes
    _moved: MovedRows | None = field(default=None, init=False, repr=False, compare=False)

    def moved(self, table: Table) -> MovedRows:
        """The rows after the move; their features are asked for again and again, and worked out once."""
        if self._moved is None or self._moved.table is not table:
            self._moved = MovedRows(table, self.values)
        return self._moved

    @property
    def rows(self) -> np.ndarray:
        """The probe row each move starts from."""
        return self.moves.rows


@dataclass
class ProbeRows:
    """Held-out rows with the black box's outputs and, where it can be asked, its answers to moves."""

    values: np.ndarray  # (rows, columns)
    outputs: np.ndarray  # (rows,)
    asked: AskedMoves | None = None
    every: np.ndarray | None = None  # (rows, classes) outputs for each of several classes

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def ask(
        cls,
        training: TrainingRows,
        frame: pd.DataFrame,
        outputs: np.ndarray,
        rng: np.random.Generator,
        every: np.ndarray | None = None,
    ) -> ProbeRows:
        """Draw moves of the rows and ask the black box about them, if it can be asked.

        ``every`` are the outputs for each of several classes.
        """
        table = training.table
        values = table.values(frame)
        if not training.black_box.can_be_asked or len(values) == 0:
            return cls(values, outputs, None, every)
        return cls.asked_about(training, frame, outputs, draw_moves(table, values, training.values, rng), every)

    @classmethod
    def asked_about(
        cls,
        training: TrainingRows,
        frame: pd.DataFrame,
        outputs: np.ndarray,
        moves: Moves,
        every: np.ndarray | None = None,
    ) -> ProbeRows:
        """The rows with the black box's answers to these moves, which it is asked for."""
        values = training.table.values(frame)
        if len(moves) == 0:
            return cls(values, outputs, None, every)
        every_answer, answers = ask_moved(training, frame, moves)
        moved = moved_values(values, training.values, moves)
        every_change = None if every_answer is None or every is None else every_answer - every[moves.rows]
        return cls(values, outputs, AskedMoves(moves, moved, answers - outputs[moves.rows], every_change), every)

    def of_class(self, place: int) -> ProbeRows:
        """The same rows and moves with the answers for one of several classes."""
        assert self.every is not None
        asked = self.asked
        if asked is not None:
            assert asked.every is not None
            asked = replace(asked, changes=asked.every[:, place], every=None)
        return ProbeRows(self.values, self.every[:, place], asked)

    def part(self, chosen: np.ndarray) -> ProbeRows:
        """Some of the rows, with their moves."""
        values, outputs = self.values[chosen], self.outputs[chosen]
        every = None if self.every is None else self.every[chosen]
        if self.asked is None:
            return ProbeRows(values, outputs, None, every)
        place = np.full(len(self), -1)
        place[chosen] = np.arange(len(chosen))
        asked, moves = self.asked, self.asked.moves
        kept = place[moves.rows] >= 0
        moves = Moves(place[moves.rows[kept]], moves.donors[kept], moves.changed[kept])
        changes = None if asked.every is None else asked.every[kept]
        return ProbeRows(values, outputs, AskedMoves(moves, asked.values[kept], asked.changes[kept], changes), every)


def split_probes(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and probe rows when the user gives none: a tenth, within bounds, never most rows."""
    n_probes = int(np.clip(round(n_rows * PROBE_SHARE), MIN_PROBES, MAX_PROBES))
    n_probes = min(n_probes, n_rows // 4)
    order = rng.permutation(n_rows)
    return np.sort(order[n_probes:]), np.sort(order[:n_probes])
