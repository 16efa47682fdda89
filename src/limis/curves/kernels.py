"""Walks down the trees of a taught model, compiled: what it says of rows, and of rows with some columns replaced.

Values come as cells: in each column the number of the model's own thresholds that lie below the value, and -1 where it
is missing. Two values in one cell are the same to every tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from limis.threads import compiled, in_parallel

AT_ONCE = 64  # others that a unit may take the cells of in one walk: a bit each
MOST_WAYS = 256  # that may be open in one column of a tree: more than its leaves
MOST_DEEP = 60  # splits above a leaf: in sets of the units that they are about each is a bit


class Trees(NamedTuple):
    """Binary trees, one after another in the same arrays; a leaf has no column."""

    roots: np.ndarray  # (trees,) where each tree begins
    column: np.ndarray  # (nodes,) the column split on; -1 in a leaf
    cell: np.ndarray  # (nodes,) the last cell that goes left
    missing_left: np.ndarray  # (nodes,) bool
    left: np.ndarray  # (nodes,)
    right: np.ndarray  # (nodes,)
    value: np.ndarray  # (nodes,) of a leaf


@compiled
def deepest(left: np.ndarray, right: np.ndarray, is_leaf: np.ndarray) -> int:
    """How many splits stand above the deepest leaf; children come after their parents."""
    depth = np.zeros(len(left), dtype=np.int64)
    for node in range(len(left)):
        if not is_leaf[node]:
            depth[left[node]] = depth[right[node]] = depth[node] + 1
    return depth.max() if len(depth) else 0


@compiled
def is_left(trees: Trees, node: int, cell: int) -> bool:
    """Whether a value, given by its cell, goes left at a node."""
    return trees.missing_left[node] if cell < 0 else cell <= trees.cell[node]


@in_parallel
def predict_cells(trees: Trees, cells: np.ndarray, found: np.ndarray) -> None:
    """Add what the trees say of each row, (rows, columns) cells, to ``found``: (rows,)."""
    for row in prange(len(cells)):
        total = 0.0
        for root in trees.roots:
            node = root
            while trees.column[node] >= 0:
                goes_left = is_left(trees, node, cells[row, trees.column[node]])
                node = trees.left[node] if goes_left else trees.right[node]
            total += trees.value[node]
        found[row] += total


@in_parallel
def replace_units(
    trees: Trees, own: np.ndarray, rows: np.ndarray, cells: np.ndarray, unit_of: np.ndarray, found: np.ndarray
) -> None:
    """Write what the trees' answer for a row changes by when each unit alone takes its new cells.

    own : (rows, columns) cells of the rows. rows : (questions,) the row of each question, cells : (questions, columns)
    its new cells. unit_of : (columns,) the unit of each column. found : (questions, units), zeroed.

    Each tree is walked once: where the row and its new cells part, the way of that unit leaves the row's own.
    """
    for question in prange(len(rows)):
        here, there = own[rows[question]], cells[question]
        done = np.full(found.shape[1], -1)  # the last tree in which a unit's way has left
        leaves, units = np.empty(found.shape[1]), np.empty(found.shape[1], dtype=np.int64)
        for tree, root in enumerate(trees.roots):
            node, n_left = root, 0
            while trees.column[node] >= 0:
                column = trees.column[node]
                own_left = is_left(trees, node, here[column])
                unit = unit_of[column]
                if done[unit] != tree and is_left(trees, node, there[column]) != own_left:
                    done[unit] = tree
                    units[n_left] = unit
                    other = trees.right[node] if own_left else trees.left[node]
                    leaves[n_left] = _follow(trees, other, here, there, unit_of, unit)
                    n_left += 1
                node = trees.left[node] if own_left else trees.right[node]
            for place in range(n_left):
                found[question, units[place]] += leaves[place] - trees.value[node]


@in_parallel
def replace_one_unit(trees: Trees, own: np.ndarray, members: np.ndarray, others: np.ndarray, found: np.ndarray) -> None:
    """Add what the answer for each row changes by when one unit takes each of at most 64 other cells: (rows, others).

    own : (rows, columns). members : (columns,) bool, those of the unit. others : (others, columns) cells, of which the
    unit's count. All others go down a tree together, and part where it splits on the unit.
    """
    for row in prange(len(own)):
        nodes, sets = np.empty(MOST_WAYS, dtype=np.int64), np.empty(MOST_WAYS, dtype=np.uint64)
        for root in trees.roots:
            leaf, n_open = _leave(trees, root, own[row], members, others, nodes, sets)
            while n_open:
                n_open = _arrive(trees, own[row], members, others, nodes, sets, n_open)
                moved = trees.value[nodes[n_open]] - trees.value[leaf]
                for other in range(len(others)):
                    if sets[n_open] & (np.uint64(1) << np.uint64(other)) != np.uint64(0):
                        found[row, other] += moved


@in_parallel
def mean_with_others(
    trees: Trees, own: np.ndarray, rows: np.ndarray, changed: np.ndarray, to_left: np.ndarray, n: int, found: np.ndarray
) -> None:
    """Add what the trees say on average as groups of columns take the cells of at most 64 others: (groups,).

    own : (rows, columns). rows : (groups,) the row of each. changed : (groups, columns) bool. to_left : (nodes,) which
    of the others go left at each node, a bit each; n : how many there are. All others go down a tree together, and part
    where it splits on a changed column.
    """
    for group in prange(len(rows)):
        here, replaced = own[rows[group]], changed[group]
        nodes, sets = np.empty(MOST_WAYS, dtype=np.int64), np.empty(MOST_WAYS, dtype=np.uint64)
        everybody = ~np.uint64(0) >> np.uint64(AT_ONCE - n)
        total = 0.0
        for root in trees.roots:
            nodes[0], sets[0], n_open = root, everybody, 1
            while n_open:
                n_open -= 1
                node, some = nodes[n_open], sets[n_open]
                while trees.column[node] >= 0:
                    column = trees.column[node]
                    left = some & to_left[node]
                    right = some & ~to_left[node]
                    if not replaced[column]:
                        goes_left = is_left(trees, node, here[column])
                        left, right = (some, np.uint64(0)) if goes_left else (np.uint64(0), some)
                    if left == np.uint64(0):
                        node = trees.right[node]
                        continue
                    if right != np.uint64(0):
                        nodes[n_open], sets[n_open] = trees.right[node], right
                        n_open += 1
                    node, some = trees.left[node], left
                total += trees.value[node] * _how_many(some)
        found[group] += total / n


@compiled
def _how_many(some: np.uint64) -> int:
    """Of how many bits a set is."""
    n = 0
    while some != np.uint64(0):
        some &= some - np.uint64(1)
        n += 1
    return n


@compiled
def _leave(
    trees: Trees,
    node: int,
    here: np.ndarray,
    members: np.ndarray,
    others: np.ndarray,
    nodes: np.ndarray,
    sets: np.ndarray,
) -> tuple[int, int]:
    """Go a row's own way to its leaf; where others leave it, write the node they go to and which they are."""
    nobody, n_open = np.uint64(0), 0
    along = nobody
    for other in range(len(others)):
        along |= np.uint64(1) << np.uint64(other)
    while trees.column[node] >= 0:
        goes_left = is_left(trees, node, here[trees.column[node]])
        child, away = trees.left[node], trees.right[node]
        if not goes_left:
            child, away = away, child
        if along != nobody and members[trees.column[node]]:
            to_left = _those_left(trees, node, others, along)
            stay = to_left if goes_left else along & ~to_left
            if stay != along:
                nodes[n_open], sets[n_open] = away, along & ~stay
                n_open += 1
                along = stay
        node = child
    return node, n_open


@compiled
def _arrive(
    trees: Trees,
    here: np.ndarray,
    members: np.ndarray,
    others: np.ndarray,
    nodes: np.ndarray,
    sets: np.ndarray,
    n_open: int,
) -> int:
    """Follow the last set of others to a leaf and write it there; those that part from it on the way come before it."""
    at, some = nodes[n_open - 1], sets[n_open - 1]
    n_open -= 1
    while trees.column[at] >= 0:
        if not members[trees.column[at]]:
            at = trees.left[at] if is_left(trees, at, here[trees.column[at]]) else trees.right[at]
            continue
        to_left = _those_left(trees, at, others, some)
        to_right = some & ~to_left
        if to_left == np.uint64(0):
            at = trees.right[at]
            continue
        if to_right != np.uint64(0):
            nodes[n_open], sets[n_open] = trees.right[at], to_right
            n_open += 1
        at, some = trees.left[at], to_left
    nodes[n_open], sets[n_open] = at, some
    return n_open


@compiled
def _those_left(trees: Trees, node: int, others: np.ndarray, some: np.uint64) -> np.uint64:
    """Which of a set of others, a bit each, go left at a node."""
    found = np.uint64(0)
    for other in range(len(others)):
        bit = np.uint64(1) << np.uint64(other)
        if some & bit != np.uint64(0) and is_left(trees, node, others[other, trees.column[node]]):
            found |= bit
    return found


@compiled
def _follow(trees: Trees, node: int, here: np.ndarray, there: np.ndarray, unit_of: np.ndarray, unit: int) -> float:
    """The leaf below a node for a row whose one unit takes its new cells."""
    while trees.column[node] >= 0:
        column = trees.column[node]
        cell = there[column] if unit_of[column] == unit else here[column]
        node = trees.left[node] if is_left(trees, node, cell) else trees.right[node]
    return trees.value[node]


@in_parallel
def replace_pairs(
    trees: Trees,
    own: np.ndarray,
    rows: np.ndarray,
    cells: np.ndarray,
    unit_of: np.ndarray,
    pairs: np.ndarray,
    found: np.ndarray,
) -> None:
    """Write what the answer changes by when both units of a pair take their new cells: (questions, pairs).

    Pairs of which one stays as it is are left at zero.
    """
    for question in prange(len(rows)):
        here, there = own[rows[question]], cells[question]
        changed = np.zeros(unit_of.max() + 1, dtype=np.bool_)
        for column in range(len(here)):
            changed[unit_of[column]] |= here[column] != there[column]
        for pair in range(len(pairs)):
            first, second = pairs[pair]
            if not (changed[first] and changed[second]):
                continue
            total = 0.0
            for root in trees.roots:
                node, other = root, root
                while trees.column[node] >= 0:
                    column = trees.column[node]
                    node = trees.left[node] if is_left(trees, node, here[column]) else trees.right[node]
                while trees.column[other] >= 0:
                    column = trees.column[other]
                    replaced = unit_of[column] == first or unit_of[column] == second
                    cell = there[column] if replaced else here[column]
                    other = trees.left[other] if is_left(trees, other, cell) else trees.right[other]
                total += trees.value[other] - trees.value[node]
            found[question, pair] = total


@in_parallel
def draw_curves(trees: Trees, cells: np.ndarray, starts: np.ndarray, counts: np.ndarray, found: np.ndarray) -> None:
    """Write each row's response curves: what the answer changes by as one column takes each of its cells.

    cells : (rows, columns). starts, counts : (columns,) where a column's cells begin in a line of ``found``, and how
    many there are; the last of them stands for missing. found : (rows, all cells), zeroed.

    Each tree is walked once. Beside the row's own way, every node parts the cells of its column: those that go the
    other way are followed to their leaves.
    """
    for row in prange(len(cells)):
        own, line = cells[row], found[row]
        # Of each column the cells that still go the row's own way: a run of them, and whether missing does.
        low, high = np.empty(len(own), dtype=np.int64), np.empty(len(own), dtype=np.int64)
        missing = np.empty(len(own), dtype=np.bool_)
        ways = np.empty((MOST_WAYS, 4), dtype=np.int64)
        for root in trees.roots:
            node = root
            while trees.column[node] >= 0:
                node = trees.left[node] if is_left(trees, node, own[trees.column[node]]) else trees.right[node]
            base = trees.value[node]
            low[:] = 0
            high[:] = counts - 2
            missing[:] = True
            node = root
            while trees.column[node] >= 0:
                column, border = trees.column[node], trees.cell[node]
                missing_left = trees.missing_left[node]
                curve = line[starts[column] : starts[column] + counts[column]]
                if is_left(trees, node, own[column]):
                    other = (max(low[column], border + 1), high[column], missing[column] and not missing_left)
                    high[column], missing[column] = min(high[column], border), missing[column] and missing_left
                    away, node = trees.right[node], trees.left[node]
                else:
                    other = (low[column], min(high[column], border), missing[column] and missing_left)
                    low[column], missing[column] = max(low[column], border + 1), missing[column] and not missing_left
                    away, node = trees.left[node], trees.right[node]
                _spread(trees, away, own, column, other, base, ways, curve)
        for column in range(len(own)):
            _add_up(line[starts[column] : starts[column] + counts[column]])


@compiled
def _spread(
    trees: Trees,
    node: int,
    own: np.ndarray,
    column: int,
    cells: tuple[int, int, bool],
    base: float,
    ways: np.ndarray,
    curve: np.ndarray,
) -> None:
    """Follow a run of one column's cells, and perhaps missing, from a node to all of its leaves.

    Whole runs of cells get one value there, which is kept as a difference where the run begins and ends.
    """
    ways[0, 0], ways[0, 1], ways[0, 2], ways[0, 3] = node, cells[0], cells[1], cells[2]
    n_open = 1 if cells[0] <= cells[1] or cells[2] else 0
    while n_open:
        n_open -= 1
        at, first, last, lost = ways[n_open, 0], ways[n_open, 1], ways[n_open, 2], ways[n_open, 3] > 0
        while trees.column[at] >= 0:
            if trees.column[at] != column:
                at = trees.left[at] if is_left(trees, at, own[trees.column[at]]) else trees.right[at]
                continue
            edge, lost_left = trees.cell[at], trees.missing_left[at]
            to_left = first <= min(last, edge) or (lost and lost_left)
            to_right = max(first, edge + 1) <= last or (lost and not lost_left)
            if to_left and to_right:  # the right side is followed later
                ways[n_open, 0], ways[n_open, 1] = trees.right[at], max(first, edge + 1)
                ways[n_open, 2], ways[n_open, 3] = last, lost and not lost_left
                n_open += 1
            if to_left:
                at, last, lost = trees.left[at], min(last, edge), lost and lost_left
            else:
                at, first, lost = trees.right[at], max(first, edge + 1), lost and not lost_left
        moved = trees.value[at] - base
        if first <= last:
            curve[first] += moved
            curve[last + 1] -= moved
        if lost:
            curve[-1] += moved


@compiled
def _add_up(curve: np.ndarray) -> None:
    """From differences to values; the end of a run up to the last cell was kept where missing is."""
    total = 0.0
    for place in range(len(curve) - 1):
        total += curve[place]
        curve[place] = total
    curve[-1] += total


@in_parallel
def find_cells(
    ranks: np.ndarray,
    grid: np.ndarray,
    starts: np.ndarray,
    members: np.ndarray,
    member_starts: np.ndarray,
    is_category: np.ndarray,
    limits: np.ndarray,
    found: np.ndarray,
) -> None:
    """Write the cell of each unit whose values are nearest to a row's, -1 where none is: (rows, units).

    ranks : (rows, columns). grid : (cells, columns), of which each cell has its unit's. starts : (units + 1,) where
    each unit's cells begin; members, member_starts : the columns of each. limits : (units,) how far is too far.
    """
    for row in prange(len(ranks)):
        for unit in range(len(limits)):
            nearest, least = -1, limits[unit]
            columns = members[member_starts[unit] : member_starts[unit + 1]]
            for cell in range(starts[unit], starts[unit + 1]):
                total = 0.0
                for column in columns:
                    here, there = ranks[row, column], grid[cell, column]
                    if is_category[column]:
                        total += 0.0 if here == there else np.inf
                    elif not (np.isnan(here) and np.isnan(there)):
                        apart = np.abs(here - there)
                        total += np.inf if np.isnan(apart) else apart
                if total < least:
                    nearest, least = cell, total
            found[row, unit] = nearest


@in_parallel
def find_between(
    values: np.ndarray,
    grid: np.ndarray,
    starts: np.ndarray,
    column_of: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    share: np.ndarray,
) -> None:
    """Write the cells next below and next above each number, and how far it is from the one to the other.

    values : (rows, columns). grid : (cells,) numbers, NaN where a cell is none. starts : (units + 1,). column_of :
    (units,) the column of a unit that is one number, -1 of others, of which low and high stay as they are. low, high :
    (rows, units) the nearest cells, -1 where there is none; share : (rows, units), zeroed.
    """
    for row in prange(len(values)):
        for unit in range(len(column_of)):
            if column_of[unit] < 0 or low[row, unit] < 0 or np.isnan(values[row, column_of[unit]]):
                continue
            value, below, above = values[row, column_of[unit]], -1, -1
            for cell in range(starts[unit], starts[unit + 1]):
                if grid[cell] <= value and (below < 0 or grid[cell] > grid[below]):
                    below = cell
                if grid[cell] >= value and (above < 0 or grid[cell] < grid[above]):
                    above = cell
            below, above = (above if below < 0 else below), (below if above < 0 else above)  # beyond: flat
            low[row, unit], high[row, unit] = below, above
            if grid[above] > grid[below]:
                share[row, unit] = (value - grid[below]) / (grid[above] - grid[below])
