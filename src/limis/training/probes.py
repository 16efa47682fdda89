"""Probe rows: held out from selection, they choose, stop and measure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from limis.perturb import Moves, draw_moves, moved_frame, moved_values
from limis.rows import TrainingRows

MIN_PROBES, MAX_PROBES = 100, 2000
PROBE_SHARE = 0.1


@dataclass
class AskedMoves:
    """Moves of the probe rows and what the black box answered."""

    moves: Moves
    values: np.ndarray  # (moves, columns) after the move
    changes: np.ndarray  # (moves,) f(moved) − f(row)

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

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def ask(
        cls, training: TrainingRows, frame: pd.DataFrame, outputs: np.ndarray, rng: np.random.Generator
    ) -> ProbeRows:
        """Draw moves of the rows and ask the black box about them, if it can be asked."""
        table = training.table
        values = table.values(frame)
        if not training.black_box.can_be_asked or len(values) == 0:
            return cls(values, outputs)
        moves = draw_moves(table, values, training.values, rng)
        if len(moves) == 0:
            return cls(values, outputs)
        answers = training.black_box.outputs(moved_frame(table, frame, training.frame, moves))
        moved = moved_values(values, training.values, moves)
        return cls(values, outputs, AskedMoves(moves, moved, answers - outputs[moves.rows]))

    def part(self, chosen: np.ndarray) -> ProbeRows:
        """Some of the rows, with their moves."""
        values, outputs = self.values[chosen], self.outputs[chosen]
        if self.asked is None:
            return ProbeRows(values, outputs)
        place = np.full(len(self), -1)
        place[chosen] = np.arange(len(chosen))
        moves = self.asked.moves
        kept = place[moves.rows] >= 0
        moves = Moves(place[moves.rows[kept]], moves.donors[kept], moves.changed[kept])
        return ProbeRows(values, outputs, AskedMoves(moves, self.asked.values[kept], self.asked.changes[kept]))


def split_probes(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and probe rows when the user gives none: a tenth, within bounds, never most rows."""
    n_probes = int(np.clip(round(n_rows * PROBE_SHARE), MIN_PROBES, MAX_PROBES))
    n_probes = min(n_probes, n_rows // 4)
    order = rng.permutation(n_rows)
    return np.sort(order[n_probes:]), np.sort(order[:n_probes])
