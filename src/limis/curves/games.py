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
from numba import get_num_threads, prange
from scipy.special import beta

from limis.curves.kernels import MOST_DEEP, MOST_WAYS, Trees, is_left
from limis.threads import compiled, in_parallel

LEAVES_AT_ONCE = 4096
ROWS_AT_ONCE, PAIRS_AT_ONCE = 256, 4_000_000  # that go down the trees together, and rows × units² of them
SLOTS, SCATTER = 1024, 40_503  # of a table of rows, several times as many as rows; an odd number spreads them
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
                slot = _slot_of(way, length, unit_of[trees.column[node]])
                length = max(length, slot + 1)
                nodes[n_open], lengths[n_open] = trees.right[node], length
                _part_ways(trees, node, cells, 1 << slot, here, missed[n_open])
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
    """A leaf as some rows see it."""

    place: int
    value: float
    missed: int  # a bit a unit whose conditions the rows do not meet: it is reached with others' values of these
    length: int  # how many units are on the way


class Effect(NamedTuple):
    """What a leaf does to the units on the way to it, by their places there, and room to work in."""

    shapley: np.ndarray  # (places,)
    alone: np.ndarray  # (places,)
    pairs: np.ndarray  # (places, places), each pair under its later place
    mine: np.ndarray  # (places,) places that have to be the row's own
    theirs: np.ndarray  # (places,) and others'
    sums: np.ndarray  # (3, places) of Shapley values, of pairs with one of theirs, and of what is lost alone


class Alike(NamedTuple):
    """Rows that miss the same conditions of a leaf, each linked to the one before it; a table by what they miss."""

    slots: np.ndarray  # (slots,) the last row, -1 where there is none
    used: np.ndarray  # (rows,) slots that have rows
    before: np.ndarray  # (rows,)


def draw_reasons(
    trees: Trees, patterns: LeafPatterns, own: np.ndarray, unit_of: np.ndarray, n_units: int, n_pairs: int
) -> Drawn:
    """What each unit and the strongest pairs do in each row, given by its cells: (rows, columns)."""
    drawn = Drawn.empty(len(own), n_units, n_pairs)
    for_each_core = -(-len(own) // get_num_threads())
    at_once = max(1, min(ROWS_AT_ONCE, PAIRS_AT_ONCE // n_units**2, for_each_core))
    _draw_reasons(trees, patterns, own, unit_of, BETA, at_once, drawn)
    return drawn


@in_parallel
def _draw_reasons(
    trees: Trees,
    patterns: LeafPatterns,
    own: np.ndarray,
    unit_of: np.ndarray,
    tables: np.ndarray,
    at_once: int,
    drawn: Drawn,
) -> None:
    """Let rows go down the trees together, so many at once. tables : `BETA`.

    Those that miss the same conditions of a leaf share what it does, which is worked out once.
    """
    n_units = drawn.shapley.shape[1]
    for block in prange((len(own) + at_once - 1) // at_once):
        part = slice(block * at_once, min((block + 1) * at_once, len(own)))
        cells, whole = own[part], np.zeros((part.stop - part.start, n_units, n_units))
        into = Drawn(drawn.shapley[part], drawn.alone[part], drawn.pairs[part], drawn.together[part])
        _draw_block(trees, patterns, cells, unit_of, tables, whole, into)
        for row in range(len(cells)):
            _strongest(whole[row], into.pairs[row], into.together[row])


@compiled
def _draw_block(
    trees: Trees,
    patterns: LeafPatterns,
    cells: np.ndarray,
    unit_of: np.ndarray,
    tables: np.ndarray,
    whole: np.ndarray,
    into: Drawn,
) -> None:
    """Add what all leaves do to some rows; whole : (rows, units, units), of which each pair has one or both places."""
    rows = len(cells)
    way, missed = np.empty(MOST_DEEP, dtype=np.int64), np.empty((MOST_WAYS, rows), dtype=np.int64)
    nodes, lengths = np.empty(MOST_WAYS, dtype=np.int64), np.empty(MOST_WAYS, dtype=np.int64)
    here = np.empty(rows, dtype=np.int64)
    places, others = np.empty(MOST_DEEP, dtype=np.int64), np.empty(MOST_DEEP, dtype=np.int64)
    by_place, between = np.empty((5, MOST_DEEP)), np.empty((MOST_DEEP, MOST_DEEP))
    effect = Effect(by_place[0], by_place[1], between, places, others, by_place[2:])
    alike = Alike(np.full(SLOTS, -1), np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64))
    for tree in range(len(trees.roots)):
        nodes[0], lengths[0], n_open = trees.roots[tree], 0, 1
        missed[0] = 0
        leaf = patterns.first_leaf[tree]
        while n_open:
            n_open -= 1
            node, length = nodes[n_open], lengths[n_open]
            here[:] = missed[n_open]
            while trees.column[node] >= 0:
                slot = _slot_of(way, length, unit_of[trees.column[node]])
                length = max(length, slot + 1)
                nodes[n_open], lengths[n_open] = trees.right[node], length
                _part_ways(trees, node, cells, 1 << slot, here, missed[n_open])
                n_open += 1
                node = trees.left[node]
            for place in range(_find_alike(here, alike)):
                last = alike.slots[alike.used[place]]
                if _work_out(patterns, Leaf(leaf, trees.value[node], here[last], length), tables, effect):
                    row = last
                    while row >= 0:
                        _add(effect, way, length, into.shapley[row], into.alone[row], whole[row])
                        row = alike.before[row]
                alike.slots[alike.used[place]] = -1
            leaf += 1


@compiled
def _part_ways(trees: Trees, node: int, cells: np.ndarray, bit: int, to_left: np.ndarray, to_right: np.ndarray) -> None:
    """Write what rows miss on the way to either side of a node, from what they missed on the way to it."""
    column = trees.column[node]
    for row in range(len(cells)):
        to_right[row] = to_left[row]
        if is_left(trees, node, cells[row, column]):
            to_right[row] |= bit
        else:
            to_left[row] |= bit


@compiled
def _find_alike(missed: np.ndarray, alike: Alike) -> int:
    """Link the rows that miss the same; how many kinds there are."""
    n = 0
    for row in range(len(missed)):
        slot = (missed[row] * SCATTER) % SLOTS
        while alike.slots[slot] >= 0 and missed[alike.slots[slot]] != missed[row]:
            slot = (slot + 1) % SLOTS
        if alike.slots[slot] < 0:
            alike.used[n] = slot
            n += 1
        alike.before[row] = alike.slots[slot]
        alike.slots[slot] = row
    return n


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
def _work_out(patterns: LeafPatterns, leaf: Leaf, tables: np.ndarray, into: Effect) -> bool:
    """Write what one leaf does to the units and pairs on its way; whether it does anything.

    It is reached where the units that a reference row misses are the row's own, and those that the row misses the
    reference row's. Its value counts by how likely that is among all groups of units, for each pattern of misses.
    """
    length = leaf.length
    n_theirs = _places(leaf.missed, into.theirs)
    into.shapley[:length] = 0.0
    into.alone[:length] = 0.0
    into.pairs[:length, :length] = 0.0
    into.sums[:, :length] = 0.0
    of_theirs = of_their_pairs = lost = 0.0
    touched = 0
    for place in range(patterns.starts[leaf.place], patterns.starts[leaf.place + 1]):
        other = patterns.missed[place]
        if other & leaf.missed or not other | leaf.missed:
            continue
        touched |= other
        n_mine = _places(other, into.mine)
        amount = leaf.value * patterns.share[place]
        lost += amount
        of_theirs -= amount * tables[n_theirs, n_mine + 1]
        of_their_pairs += amount * 6 * tables[n_theirs, n_mine + 2]
        of_mine, of_mixed = amount * tables[n_theirs + 1, n_mine], -amount * 6 * tables[n_theirs + 1, n_mine + 1]
        of_my_pairs = amount * 6 * tables[n_theirs + 2, n_mine]
        for first in range(n_mine):
            slot = into.mine[first]
            into.sums[0, slot] += of_mine
            into.sums[1, slot] += of_mixed
            into.sums[2, slot] += amount
            for second in range(first):  # places come in order
                into.pairs[slot, into.mine[second]] += of_my_pairs
    if not touched and of_theirs == 0.0:
        return False
    _write_theirs(into.theirs[:n_theirs], of_theirs, of_their_pairs, lost, into)
    for slot in range(length):
        if touched >> slot & 1:
            into.shapley[slot] += into.sums[0, slot]
            if n_theirs == 0:
                into.alone[slot] += into.sums[2, slot]
            for first in range(n_theirs):
                other = into.theirs[first]
                into.pairs[max(slot, other), min(slot, other)] += into.sums[1, slot]
    return True


@compiled
def _write_theirs(theirs: np.ndarray, each: float, each_pair: float, lost: float, into: Effect) -> None:
    if len(theirs) == 1:
        into.alone[theirs[0]] -= lost
    for first in range(len(theirs)):
        into.shapley[theirs[first]] += each
        for second in range(first):
            into.pairs[theirs[first], theirs[second]] += each_pair


@compiled
def _add(
    effect: Effect, way: np.ndarray, length: int, shapley: np.ndarray, alone: np.ndarray, whole: np.ndarray
) -> None:
    """Add what a leaf does to the units and pairs of a row."""
    for slot in range(length):
        unit = way[slot]
        shapley[unit] += effect.shapley[slot]
        alone[unit] += effect.alone[slot]
        for other in range(slot):
            whole[unit, way[other]] += effect.pairs[slot, other]


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
