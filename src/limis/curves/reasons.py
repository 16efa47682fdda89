"""Why a prediction is what it is and not that of others: what each unit, and the leading pairs, add to the difference.

Like curves, reasons are Σ wᵢ · recordedᵢ + (taught(x) − Σ wᵢ · taughtᵢ): the Shapley values of the taught model, exact,
and what the rows that speak add where they answered otherwise. What is left of the model's output at the row is the
rest: what is special about the very row, which nothing near it shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from limis.curves.games import BETA, Drawn, LeafPatterns, draw_reasons, leaf_patterns
from limis.curves.model import CurveFits, CurveGround
from limis.reference import Reference, References

MOST_PAIRS = 20  # of each row
REST_POWER = 0.7  # what is special about a row is soon lost: 38% of it where a quarter of what matters is replaced


@dataclass
class Reasons:
    """Of some rows: base + all that units add + rest is the model's output."""

    base: np.ndarray  # (rows,) mean output of the reference
    units: np.ndarray  # (rows, units)
    pairs: np.ndarray  # (rows, most pairs, 2) units
    together: np.ndarray  # (rows, most pairs) what each pair adds beyond its units; half of it is in each of these
    rest: np.ndarray  # (rows,)
    shares: np.ndarray  # (units,) of all that units do, on average over rows

    def part(self, chosen: np.ndarray) -> Reasons:
        """Of some of the rows."""
        names = ("base", "units", "pairs", "together", "rest")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def removed(self, rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """What is lost where groups of units take the reference rows' values: (groups,).

        A pair is lost with either of its units. The rest goes sooner than units do: with a power of their share.

        rows : (groups,) places; groups : (groups, units) bool.
        """
        lost = (self.units[rows] * groups).sum(axis=1) + self.rest[rows] * (groups @ self.shares) ** REST_POWER
        first, second = (np.take_along_axis(groups, self.pairs[rows, :, side], axis=1) for side in (0, 1))
        return lost + 0.5 * (self.together[rows] * (first ^ second)).sum(axis=1)

    def bars_removed(self, rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """The same by single units alone, of which each has its share of the rest."""
        return (self.units[rows] * groups).sum(axis=1) + self.rest[rows] * (groups @ self.shares)


def reasons_of(fits: CurveFits, references: References, outputs: np.ndarray) -> Reasons:
    """The reasons of all rows of some surrogates; outputs : (rows,) where they lead to."""
    ground, n = fits.ground, len(fits.values)
    units, pairs = np.zeros((n, len(ground.units))), np.zeros((n, MOST_PAIRS, 2), dtype=np.int64)
    together = np.zeros((n, MOST_PAIRS))
    for place, reference in enumerate(references.kinds):
        mine = np.flatnonzero(references.of_row == place)
        if len(mine):
            drawn, more = _drawn(fits.part(mine), reference)
            units[mine], pairs[mine], together[mine] = drawn.shapley + more, drawn.pairs, drawn.together
    base = references.means
    rest = outputs - base
    for unit in range(units.shape[1]):  # not a sum: its rounding would depend on how many rows are explained together
        rest = rest - units[:, unit]
    return Reasons(base, units, pairs, together, rest, ground.unit_shares)


def _drawn(fits: CurveFits, reference: Reference) -> tuple[Drawn, np.ndarray]:
    """What the taught model says of some rows, and what the rows that speak add to each unit."""
    ground = fits.ground
    drawn = Drawn.empty(len(fits.values), len(ground.units), MOST_PAIRS)
    patterns = _patterns(ground, reference)
    draw_reasons(ground.taught.trees, patterns, ground.taught.cells(fits.values), ground.unit_of, BETA, drawn)
    return drawn, fits.corrected_removals(reference.values) - (1 - ground.reliance) * drawn.alone


def _patterns(ground: CurveGround, reference: Reference) -> LeafPatterns:
    """Which leaves the reference rows reach; kept as long as the reference is."""
    held: LeafPatterns | None = ground.patterns.get(reference)
    if held is None:
        taught = ground.taught
        held = leaf_patterns(taught.trees, taught.cells(reference.values), ground.unit_of)
        ground.patterns[reference] = held
    return held
