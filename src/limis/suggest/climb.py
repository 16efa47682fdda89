"""Climbing the local tree, as the paper does: from the row's leaf to the nearest one that has the other outcome."""

from __future__ import annotations

import numpy as np

from limis.blackbox import Ahead
from limis.columns import MISSING
from limis.explanation import Explanation
from limis.suggest.case import Case, Change
from limis.table import Table
from limis.trees.fits import TreeFits
from limis.trees.view import Node, Side, nodes

MOST_CHANGES = 8
NEXT_BEST = 3


def from_tree(case: Case) -> list[Change]:
    """For each leaf with the wished outcome, the nearest first, two changes that lead there.

    Near are leaves with few edges between: up from the row's own leaf to the node where the ways part, and down again.
    Where the row does not meet a condition on the way down, one change takes the nearest value that does, as in the
    paper, and the other the middle one: black boxes are ragged where they jump. A leaf that no allowed change leads to
    is passed over. Where no leaf has the wished outcome, those that come nearest to it stand in.
    """
    if not isinstance(case.explained.fits, TreeFits):
        return []
    tree = nodes(Explanation(case.explained, case.row))
    own = max(place for place, node in tree.items() if node.on_path)
    leaves = [place for place, node in tree.items() if node.sides is None and place != own]
    answers = np.array([tree[place].value for place in leaves])
    if isinstance(case.explained.training.black_box.view, Ahead):
        # The tree tells of the class alone, the target of how far it is ahead of the others: steps are what they share.
        answers = case.output + answers - tree[own].value
    gaps = case.target.gap(answers, case.row).tolist() if leaves else []
    near = sorted((_edges(own, place), place) for place, gap in zip(leaves, gaps, strict=True) if gap < 0)
    chosen = [place for _, place in near or sorted(zip(gaps, leaves, strict=True))[:NEXT_BEST]]
    changes = [change for place in chosen for change in _changes(case, _conditions(tree, place))]
    return list(dict.fromkeys(change for change in changes if change))[:MOST_CHANGES]


def _edges(one: int, other: int) -> int:
    """Edges between two nodes of a tree in heap order."""
    count = 0
    while one != other:
        one, other, count = min(one, other), (max(one, other) - 1) // 2, count + 1
    return count


def _conditions(tree: dict[int, Node], place: int) -> list[Side]:
    """What holds in a node, from the root down."""
    sides: list[Side] = []
    while place:
        parent = (place - 1) // 2
        both = tree[parent].sides
        assert both is not None
        sides.append(both[0] if place == 2 * parent + 1 else both[1])
        place = parent
    return sides[::-1]


def _changes(case: Case, conditions: list[Side]) -> list[Change]:
    """The nearest and the middle one of the allowed options that meet all conditions; nothing where there are none."""
    table = case.explained.training.table
    place = {name: j for j, name in enumerate(table.names)}
    nearest, middle = [], []
    for number, own in enumerate(case.options):
        here = [side for side in conditions if place[side.column] in own.unit.columns]
        if all(bool(_meets(table, side, case.values[[place[side.column]]])[0]) for side in here):
            continue
        will_do = own.allowed.copy()
        for side in here:
            column = list(own.unit.columns).index(place[side.column])
            will_do &= _meets(table, side, own.unit.values[:, column])
        options = np.flatnonzero(will_do)
        if len(options) == 0:
            return []
        options = options[np.argsort(own.distance[options], kind="stable")]
        nearest.append((number, int(options[0])))
        middle.append((number, int(options[len(options) // 2])))
    met = {j for own in case.options for j in own.unit.columns}
    others = [side for side in conditions if place[side.column] not in met]
    if not all(bool(_meets(table, side, case.values[[place[side.column]]])[0]) for side in others):
        return []  # a column that must not change stands in the way
    return [tuple(nearest), tuple(middle)]


def _meets(table: Table, side: Side, values: np.ndarray) -> np.ndarray:
    """Whether values of a column meet a condition."""
    column = table.columns[table.names.index(side.column)]
    if column.is_category:
        features = column.features(values)
        return (features[:, column.feature_levels.index(str(side.level))] > 0) == side.is_level
    missing = np.isnan(values)
    if side.level == MISSING:
        return missing == side.is_level
    return np.where(missing, side.or_missing, (values > side.low) & (values <= side.high))
