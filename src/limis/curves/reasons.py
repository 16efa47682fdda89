"""Why a prediction is what it is and not that of others: what each unit, and the leading pairs, add to the difference.

Like curves, reasons are Σ wᵢ · recordedᵢ + (taught(x) − Σ wᵢ · taughtᵢ): the Shapley values of the taught model, exact,
and what the rows that speak add where they answered otherwise. What is left of the model's output at the row is the
rest: what is special about the very row, which nothing near it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from limis.curves.asked_reasons import AskedReasons
from limis.curves.games import Drawn, LeafPatterns, draw_reasons, leaf_patterns
from limis.curves.model import CurveFits, CurveGround
from limis.fidelity.units import Units
from limis.reference import Reference, References

MOST_PAIRS = 20  # of each row
REST_POWER = 0.6  # what is special about a row is soon lost: 44% of it where a quarter of what matters is replaced


@dataclass
class Reasons:
    """Of some rows: base + all that units add + rest is the model's output."""

    base: np.ndarray  # (rows,) mean output of the reference
    units: np.ndarray  # (rows, units)
    pairs: np.ndarray  # (rows, most pairs, 2) units
    together: np.ndarray  # (rows, most pairs) what each pair adds beyond its units; half of it is in each of these
    rest: np.ndarray  # (rows,)
    shares: np.ndarray  # (units,) of all that units do, on average over rows
    members: Units  # what the units are
    errors: np.ndarray | None = None  # (rows, units) standard errors, where the black box was asked

    def part(self, chosen: np.ndarray) -> Reasons:
        """Of some of the rows."""
        names = ("base", "units", "pairs", "together", "rest")
        errors = None if self.errors is None else self.errors[chosen]
        return replace(self, **{name: getattr(self, name)[chosen] for name in names}, errors=errors)

    def removed(self, rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """What is lost where groups of units take the reference rows' values: (groups,).

        A pair is lost with either of its units. The rest goes sooner than units do: with a power of their share.

        rows : (groups,) places; groups : (groups, units) bool.
        """
        lost = (self.units[rows] * groups).sum(axis=1) + self.rest[rows] * (groups @ self.shares) ** REST_POWER
        first, second = (np.take_along_axis(groups, self.pairs[rows, :, side], axis=1) for side in (0, 1))
        return lost + 0.5 * (self.together[rows] * (first ^ second)).sum(axis=1)

    def without_pairs(self) -> Reasons:
        """What is read from the bars alone."""
        return replace(self, together=np.zeros_like(self.together))


def reasons_of(
    fits: CurveFits,
    references: References,
    outputs: np.ndarray,
    units: Units | None = None,
    asked: AskedReasons | None = None,
) -> Reasons:
    """The reasons of all rows of some surrogates.

    outputs : (rows,) where they lead to; units : what counts as one reason, the surrogates' own where not given;
    asked : what the black box was asked about the reasons of these units, if it was.
    """
    merged = Merged.of(fits.ground, units or fits.ground.units)

    def draw(mine: np.ndarray, reference: Reference) -> tuple[Drawn, np.ndarray]:
        drawn, more = _drawn(fits.part(mine), reference, merged)
        return drawn, more if asked is None else np.where(asked.known[mine, None], asked.more[mine], more)

    found = reasons_by(draw, references, outputs, merged.units, merged.shares)
    return found if asked is None else replace(found, errors=asked.errors)


def reasons_by(
    draw: Callable[[np.ndarray, Reference], tuple[Drawn, np.ndarray]],
    references: References,
    outputs: np.ndarray,
    units: Units,
    shares: np.ndarray,
) -> Reasons:
    """The reasons of rows of which ``draw`` tells, against one reference at a time, what units do and what to add."""
    n, n_units = len(outputs), len(units)
    found, pairs = np.zeros((n, n_units)), np.zeros((n, MOST_PAIRS, 2), dtype=np.int64)
    together = np.zeros((n, MOST_PAIRS))
    for place, reference in enumerate(references.kinds):
        mine = np.flatnonzero(references.of_row == place)
        if len(mine):
            drawn, more = draw(mine, reference)
            found[mine], pairs[mine], together[mine] = drawn.shapley + more, drawn.pairs, drawn.together
    rest = outputs - references.means
    for unit in range(n_units):  # not a sum: its rounding would depend on how many rows are explained together
        rest = rest - found[:, unit]
    return Reasons(references.means, found, pairs, together, rest, shares, units)


@dataclass
class Merged:
    """Reasons' units, and what is known of them from that of the surrogates' own."""

    units: Units
    unit_of: np.ndarray  # (columns,)
    parts: np.ndarray  # (own units, units) how much of each own unit's columns each has
    shares: np.ndarray  # (units,)
    reliance: np.ndarray  # (units,)

    @classmethod
    def of(cls, ground: CurveGround, units: Units) -> Merged:
        """Of units that may hold several of the surrogates' own, or single columns of them."""
        n_columns = len(ground.table.columns)
        common = ground.units.matrix(n_columns).astype(float) @ units.matrix(n_columns).T
        parts = common / common.sum(axis=1, keepdims=True)
        reliance = (common / common.sum(axis=0)).T @ ground.reliance
        return cls(units, units.of_column(), parts, parts.T @ ground.unit_shares, reliance)

    def added(self, by_own: np.ndarray) -> np.ndarray:
        """What own units do, added up: (rows, units)."""
        found = np.zeros((len(by_own), len(self.units)))
        for own, unit in np.argwhere(self.parts):  # not a product: its rounding would depend on the rows beside
            found[:, unit] += by_own[:, own] * self.parts[own, unit]
        return found


def _drawn(fits: CurveFits, reference: Reference, merged: Merged) -> tuple[Drawn, np.ndarray]:
    """What the taught model says of some rows, and what the rows that speak add to each unit."""
    ground = fits.ground
    patterns, cells = _patterns(ground, reference, merged.unit_of), ground.taught.cells(fits.values)
    drawn = draw_reasons(ground.taught.trees, patterns, cells, merged.unit_of, len(merged.units), MOST_PAIRS)
    return drawn, merged.added(fits.corrected_removals(reference.values)) - (1 - merged.reliance) * drawn.alone


def _patterns(ground: CurveGround, reference: Reference, unit_of: np.ndarray) -> LeafPatterns:
    """Which leaves the reference rows reach; kept as long as the reference is."""
    kept: dict[bytes, LeafPatterns] = ground.patterns.setdefault(reference, {})
    key = unit_of.tobytes()
    if key not in kept:
        taught = ground.taught
        kept[key] = leaf_patterns(taught.trees, taught.cells(reference.values), unit_of)
    return kept[key]
