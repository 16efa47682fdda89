"""What each unit, and each pair, adds to a taught model's answer against reference rows: exact, from its leaves.

A leaf is reached by a mixture of a row and a reference row if the row's own values meet some of the conditions on the
way and the reference row's the others. Which reference rows meet which conditions is counted once, a leaf's pattern at
a time; a row then walks each tree once, whatever the number of reference rows.

Singles are Shapley values, pairs those of the Faith-Shap index of order two: the values nearest to what all groups of
units add (least squares by the Shapley kernel) that sum up to the whole. The singles nearest to those are Shapley
values again, so that a unit's Shapley value is what it does alone and half of each of its pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange
from scipy.special import beta

from limis.curves.kernels import MOST_DEEP, MOST_WAYS, Trees, is_left
from limis.threads import compiled, in_parallel

LEAVES_AT_ONCE = 4096
BETA = np.array([[0.0 if 0 in (p, q) else beta(p, q) for q in range(MOST_DEEP + 3)] for p in range(MOST_DEEP + 3)])


class LeafPatterns(NamedTuple):
    """For each leaf, in the order of a walk that goes left first, which of its units' conditions other rows miss."""

    first_leaf: np.ndarray  # (trees,)
    starts: np.ndarray  # (leaves + 1,)
    missed: np.ndarray  # (patterns,) a bit a unit, in the order of the way to the leaf
    share: np.ndarray  # (patterns,) of the reference rows


def leaf_patterns(trees: Trees, cells: np.ndarray, unit_of: np.ndarray) -> LeafPatterns:
    """Count reference rows, given by their cells: (reference rows, columns)."""
    n_leaves = np.diff(np.append(trees.roots, len(trees.column)))
    n_leaves = (n_leaves + 1) // 2  # of a binary tree
    first_leaf = np.cumsum(n_leaves) - n_leaves
    counts, missed, share = [], [], []
    start = 0
    while start < len(trees.roots):
        stop = start + max(1, int(np.searchsorted(np.cumsum(n_leaves[start:]), LEAVES_AT_ONCE)))
        own = int(n_leaves[start:stop].sum())
        patterns, shares = np.zeros((own, len(cells)), dtype=np.int64), np.zeros((own, len(cells)))
        n_patterns = np.zeros(own, dtype=np.int64)
        firsts = first_leaf[start:stop] - first_leaf[start]
        _count_patterns(trees, trees.roots[start:stop], firsts, cells, unit_of, patterns, shares, n_patterns)
        kept = np.arange(len(cells)) < n_patterns[:, None]
        counts.append(n_patterns)
        missed.append(patterns[kept])
        share.append(shares[kept])
        start = stop
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return LeafPatterns(first_leaf, starts, np.concatenate(missed), np.concatenate(share))


@in_parallel
def _count_patterns(
    trees: Trees,
    roots: np.ndarray,
    firsts: np.ndarray,
    cells: np.ndarray,
    unit_of: np.ndarray,
    patterns: np.ndarray,
    shares: np.ndarray,
    n_patterns: np.ndarray,
) -> None:
    """patterns, shares : (leaves, reference rows), of which each leaf fills the first ``n_patterns``."""
    n = len(cells)
    for tree in prange(len(roots)):
        way = np.empty(MOST_DEEP, dtype=np.int64)
        nodes = np.empty(MOST_WAYS, dtype=np.int64)
        lengths = np.empty(MOST_WAYS, dtype=np.int64)
        missed = np.zeros((MOST_WAYS, n), dtype=np.int64)
        here = np.empty(n, dtype=np.int64)
        nodes[0], lengths[0], n_open, leaf = roots[tree], 0, 1, firsts[tree]
        while n_open:
            n_open -= 1
            node, length = nodes[n_open], lengths[n_open]
            here[:] = missed[n_open]
            while trees.column[node] >= 0:
                column = trees.column[node]
                slot = _slot_of(way, length, unit_of[column])
                length = max(length, slot + 1)
                nodes[n_open], lengths[n_open] = trees.right[node], length
                for row in range(n):
                    missed[n_open, row] = here[row]
                    if is_left(trees, node, cells[row, column]):
                        missed[n_open, row] |= 1 << slot
                    else:
                        here[row] |= 1 << slot
                n_open += 1
                node = trees.left[node]
            ordered = np.sort(here)
            place = 0
            for row in range(n):
                if row > 0 and ordered[row] != ordered[row - 1]:
                    place += 1
                patterns[leaf, place] = ordered[row]
                shares[leaf, place] += 1.0 / n
            n_patterns[leaf] = place + 1
            leaf += 1


@compiled
def _slot_of(way: np.ndarray, length: int, unit: int) -> int:
    """Where a unit stands on a way, at whose end it is put where it was not there before."""
    for slot in range(length):
        if way[slot] == unit:
            return slot
    way[length] = unit
    return length


class Drawn(NamedTuple):
    """What each unit of each row does against the reference rows, zeroed before it is drawn."""

    shapley: np.ndarray  # (rows, units)
    alone: np.ndarray  # (rows, units) what is lost where the unit alone takes the reference rows' values
    pairs: np.ndarray  # (rows, most pairs, 2) the strongest first; of a unit with itself where there are no more
    together: np.ndarray  # (rows, most pairs) what a pair does beyond each of the two

    @classmethod
    def empty(cls, n_rows: int, n_units: int, most_pairs: int) -> Drawn:
        """Nothing yet."""
        singles, pairs = (n_rows, n_units), (n_rows, most_pairs)
        return cls(np.zeros(singles), np.zeros(singles), np.zeros((*pairs, 2), dtype=np.int64), np.zeros(pairs))


class Leaf(NamedTuple):
    """A leaf as one row sees it."""

    place: int
    value: float
    missed: int  # a bit a unit whose conditions the row does not meet: the leaf is reached with others' values of it
    way: np.ndarray  # (units on the way,) which units these are
    length: int  # how many


class Room(NamedTuple):
    """Arrays to work in: places on the way that have to be the row's own, or others', and sums for each place."""

    mine: np.ndarray
    theirs: np.ndarray
    sums: np.ndarray  # (3, places) of Shapley values, of pairs with one of theirs, and of what is lost alone


class Sums(NamedTuple):
    """What is added up for one row; of each pair one half of the matrix is filled."""

    shapley: np.ndarray  # (units,)
    alone: np.ndarray  # (units,)
    whole: np.ndarray  # (units, units)


@in_parallel
def draw_reasons(
    trees: Trees, patterns: LeafPatterns, own: np.ndarray, unit_of: np.ndarray, tables: np.ndarray, drawn: Drawn
) -> None:
    """Write what each unit and the strongest pairs do in each row, given by its cells: (rows, columns).

    tables : `BETA`.
    """
    n_units = drawn.shapley.shape[1]
    for row in prange(len(own)):
        whole = np.zeros((n_units, n_units))
        way = np.empty(MOST_DEEP, dtype=np.int64)
        nodes, lengths = np.empty(MOST_WAYS, dtype=np.int64), np.empty(MOST_WAYS, dtype=np.int64)
        missed = np.empty(MOST_WAYS, dtype=np.int64)
        room = Room(np.empty(MOST_DEEP, dtype=np.int64), np.empty(MOST_DEEP, dtype=np.int64), np.empty((3, MOST_DEEP)))
        for tree in range(len(trees.roots)):
            nodes[0], lengths[0], missed[0], n_open = trees.roots[tree], 0, 0, 1
            leaf = patterns.first_leaf[tree]
            while n_open:
                n_open -= 1
                node, length, here = nodes[n_open], lengths[n_open], missed[n_open]
                while trees.column[node] >= 0:
                    column = trees.column[node]
                    slot = _slot_of(way, length, unit_of[column])
                    length = max(length, slot + 1)
                    bit = 1 << slot
                    left = is_left(trees, node, own[row, column])
                    nodes[n_open], lengths[n_open] = trees.right[node], length
                    missed[n_open] = here | bit if left else here
                    if not left:
                        here |= bit
                    n_open += 1
                    node = trees.left[node]
                found = Leaf(leaf, trees.value[node], here, way, length)
                _add_leaf(patterns, found, tables, room, Sums(drawn.shapley[row], drawn.alone[row], whole))
                leaf += 1
        _strongest(whole, drawn.pairs[row], drawn.together[row])


@compiled
def _places(bits: int, found: np.ndarray) -> int:
    """Write which bits are set; how many there are."""
    n, place = 0, 0
    while bits:
        if bits & 1:
            found[n] = place
            n += 1
        bits >>= 1
        place += 1
    return n


@compiled
def _add_leaf(patterns: LeafPatterns, leaf: Leaf, tables: np.ndarray, room: Room, into: Sums) -> None:
    """Add what one leaf does to the units and pairs of a row.

    It is reached where the units that a reference row misses are the row's own, and those that the row misses the
    reference row's. Its value counts by how likely that is among all groups of units, for each pattern of misses.
    """
    mine, theirs, sums = room
    n_theirs = _places(leaf.missed, theirs)
    sums[:, : leaf.length] = 0.0
    of_theirs = of_their_pairs = lost = 0.0
    touched = 0
    for place in range(patterns.starts[leaf.place], patterns.starts[leaf.place + 1]):
        other = patterns.missed[place]
        if other & leaf.missed or not other | leaf.missed:
            continue
        touched |= other
        n_mine = _places(other, mine)
        amount = leaf.value * patterns.share[place]
        lost += amount
        of_theirs -= amount * tables[n_theirs, n_mine + 1]
        of_their_pairs += amount * 6 * tables[n_theirs, n_mine + 2]
        of_mine, of_mixed = amount * tables[n_theirs + 1, n_mine], -amount * 6 * tables[n_theirs + 1, n_mine + 1]
        of_my_pairs = amount * 6 * tables[n_theirs + 2, n_mine]
        for first in range(n_mine):
            sums[0, mine[first]] += of_mine
            sums[1, mine[first]] += of_mixed
            sums[2, mine[first]] += amount
            unit = leaf.way[mine[first]]
            for second in range(first):
                into.whole[unit, leaf.way[mine[second]]] += of_my_pairs
    if touched or of_theirs != 0.0:
        _add_theirs(leaf, theirs[:n_theirs], of_theirs, of_their_pairs, lost, into)
        _add_mine(leaf, theirs[:n_theirs], touched, sums, into)


@compiled
def _add_theirs(leaf: Leaf, theirs: np.ndarray, each: float, each_pair: float, lost: float, into: Sums) -> None:
    if len(theirs) == 1:
        into.alone[leaf.way[theirs[0]]] -= lost
    for first in range(len(theirs)):
        unit = leaf.way[theirs[first]]
        into.shapley[unit] += each
        for second in range(first):
            into.whole[unit, leaf.way[theirs[second]]] += each_pair


@compiled
def _add_mine(leaf: Leaf, theirs: np.ndarray, touched: int, sums: np.ndarray, into: Sums) -> None:
    for slot in range(leaf.length):
        if touched >> slot & 1:
            unit = leaf.way[slot]
            into.shapley[unit] += sums[0, slot]
            if len(theirs) == 0:
                into.alone[unit] += sums[2, slot]
            for first in range(len(theirs)):
                into.whole[unit, leaf.way[theirs[first]]] += sums[1, slot]


@compiled
def _strongest(whole: np.ndarray, pairs: np.ndarray, together: np.ndarray) -> None:
    """The strongest pairs, one after another."""
    n_units = len(whole)
    for first in range(n_units):
        for second in range(first):
            whole[first, second] += whole[second, first]
    for place in range(len(together)):
        best, one, two = 0.0, 0, 0
        for first in range(n_units):
            for second in range(first):
                if abs(whole[first, second]) > best:
                    best, one, two = abs(whole[first, second]), second, first
        pairs[place, 0], pairs[place, 1] = one, two
        together[place] = whole[two, one] if best > 0 else 0.0
        whole[two, one] = 0.0
