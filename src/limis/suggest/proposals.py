"""What the explanation itself proposes, before anything is searched: changes that its local model says will do.

Each way to read proposals off an explanation is a function from a case to changes, cheapest first, under the word that
suggestions give as their source.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from limis.suggest.case import Case, Change
from limis.suggest.climb import from_tree
from limis.trees.fits import TreeFits

Proposer = Callable[[Case], list[Change]]

MOST_PROPOSED = 8
# Options of each unit that count: the cheapest that are expected to do, the strongest to make pairs of.
OPTIONS_A_UNIT = 2
MOST_PARTNERS = 24


def from_slopes(case: Case) -> list[Change]:
    """Changes that slopes, or another model without rules and curves, expect to do; a tree is climbed instead."""
    fits = case.explained.fits
    return [] if isinstance(fits, TreeFits) or fits.has_curves else _expected(case)


def from_curves(case: Case) -> list[Change]:
    """Changes that curves expect to do."""
    return _expected(case) if case.explained.fits.has_curves else []


def _expected(case: Case) -> list[Change]:
    """Changes of one unit, then of two, that the local model expects to reach the target."""
    singles = sorted((change for change, gap in case.singles.items() if gap < 0), key=case.cost)
    enough = {change[0][0] for change in singles}
    others = [change for change in case.singles if change[0][0] not in enough]
    strongest = few_a_unit(sorted(others, key=lambda change: (case.singles[change], change)), OPTIONS_A_UNIT)
    chosen = combinations(strongest[:MOST_PARTNERS], 2)
    together = [tuple(sorted(one + other)) for one, other in chosen if one[0][0] != other[0][0]]
    gaps = case.foreseen_gaps(together).tolist()
    pairs = sorted((pair for pair, gap in zip(together, gaps, strict=True) if gap < 0), key=case.cost)
    return [*few_a_unit(singles, OPTIONS_A_UNIT), *pairs][:MOST_PROPOSED]


def few_a_unit(singles: list[Change], most: int) -> list[Change]:
    """Of changes of one unit the first few of each unit, in their order."""
    counts: dict[int, int] = {}
    kept = []
    for change in singles:
        unit = change[0][0]
        counts[unit] = counts.get(unit, 0) + 1
        if counts[unit] <= most:
            kept.append(change)
    return kept


PROPOSERS: dict[str, Proposer] = {"tree": from_tree, "slopes": from_slopes, "curves": from_curves}
