"""Reading one local tree: its nodes in original columns and units, its leaves as if-then rules, the row's own way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from limis.columns import MISSING, OTHER, UNKNOWN, Column, show_number
from limis.errors import InputError
from limis.trees.fits import TreeFits

if TYPE_CHECKING:
    from limis.explanation import Explanation


@dataclass(frozen=True)
class Side:
    """One side of a split, as a condition on an original column.

    Numbers have bounds (``low`` < value ≤ ``high``); categories have a level that they are, or are not.
    """

    column: str
    low: float = -math.inf
    high: float = math.inf
    level: str | None = None
    is_level: bool = True
    or_missing: bool = False
    is_new: bool = False  # the explained row's own level was never seen, and goes where no level is named


@dataclass
class Node:
    """One node of a tree: what g says there, and how it goes on."""

    place: int  # 0 is the root; the children of k are 2k + 1 and 2k + 2
    value: float
    share: float  # of all weight
    rows: int  # or changes, that it rests on
    on_path: bool
    sides: tuple[Side, Side] | None  # None: a leaf

    @property
    def children(self) -> tuple[int, int]:
        """Where the two sides lead."""
        return 2 * self.place + 1, 2 * self.place + 2


@dataclass
class Rule:
    """One leaf: conditions on the row, and what g says of rows that meet them."""

    conditions: list[str]
    value: float
    share: float
    rows: int
    holds: bool  # for the explained row

    def __str__(self) -> str:
        told = [f"({words})" if " or " in words else words for words in self.conditions]
        found = f"if {' and '.join(told)}" if len(told) > 1 else f"if {''.join(self.conditions)}" if told else "always"
        return f"{'→ ' if self.holds else '  '}{found}: {show_number(self.value)}"


def nodes(one: Explanation) -> dict[int, Node]:
    """The nodes of an explanation's tree, by place, from the root down."""
    fits, row = one.all.fits, one.row
    if not isinstance(fits, TreeFits):
        raise InputError('rules are read off the trees of surrogate="tree" alone')
    trees = fits.trees
    path = set(fits.paths()[row].tolist())
    columns = one.all.training.table.columns
    total = float(trees.weight[row, 0]) or 1.0
    found: dict[int, Node] = {}
    waiting = [0]
    while waiting:
        place = waiting.pop(0)
        feature = int(trees.feature[row, place]) if place < trees.feature.shape[1] else -1
        sides = None
        if feature >= 0:
            sides = _sides(columns, fits, feature, int(trees.bin[row, place]), one.all.values[row])
        node = Node(
            place,
            float(trees.value[row, place, 0]),
            float(trees.weight[row, place]) / total,
            int(trees.count[row, place]),
            place in path,
            sides,
        )
        found[place] = node
        if sides is not None:
            waiting += node.children
    return found


def rules(one: Explanation) -> list[Rule]:
    """A rule a leaf, from the left of the tree to its right."""
    found, all_nodes, columns = [], nodes(one), one.all.training.table.columns

    def descend(place: int, sides: list[Side]) -> None:
        node = all_nodes[place]
        if node.sides is None:
            found.append(Rule(_conditions(sides, columns), node.value, node.share, node.rows, node.on_path))
            return
        for child, side in zip(node.children, node.sides, strict=True):
            descend(child, [*sides, side])

    descend(0, [])
    return found


def words(side: Side, columns: list[Column]) -> str:
    """One condition in words."""
    return _conditions([side], columns)[0]


def _sides(columns: list[Column], fits: TreeFits, feature: int, split: int, values: np.ndarray) -> tuple[Side, Side]:
    """The left and the right side of a split, told to a row with these values."""
    j, place = fits.inputs.column[feature], fits.inputs.place[feature]
    column = columns[j]
    if column.is_category or place > 0:
        level = MISSING if not column.is_category else column.feature_levels[place]
        is_new = column.is_category and values[j] == UNKNOWN
        return Side(column.name, level=level, is_level=False, is_new=is_new), Side(column.name, level=level)
    threshold = float(fits.inputs.borders[feature, split])
    # A missing number stands at feature zero.
    missing_left = column.offset <= threshold
    can_miss = column.has_missing or bool(np.isnan(values[j]))
    return (
        Side(column.name, high=threshold, or_missing=can_miss and missing_left),
        Side(column.name, low=threshold, or_missing=can_miss and not missing_left),
    )


def _conditions(sides: list[Side], columns: list[Column]) -> list[str]:
    """All conditions of one way in words, those on one column together."""
    by_name = {column.name: column for column in columns}
    found: list[str] = []
    for name in dict.fromkeys(side.column for side in sides):
        column, own = by_name[name], [side for side in sides if side.column == name]
        levels = [side for side in own if side.level is not None]
        if column.is_category:
            found.append(_level_words(column, levels))
            continue
        bounds = [side for side in own if side.level is None]
        if bounds and not any(side.is_level for side in levels):
            found.append(_number_words(column, bounds, said=bool(levels)))
        elif levels:
            found.append(f"{name} is {MISSING if any(side.is_level for side in levels) else 'known'}")
    return found


def _level_words(column: Column, sides: list[Side]) -> str:
    """Which levels of a category are meant."""
    left_out = [side.level for side in sides if not side.is_level]
    named = [side.level for side in sides if side.is_level]
    left = named or [level for level in column.feature_levels if level not in left_out]
    if len(left) == 1 and (named or not any(side.is_new for side in sides)):
        return f"{column.name} is {_level_word(left[0])}"
    return f"{column.name} is not {' or '.join(map(_level_word, left_out))}"


def _level_word(level: str | None) -> str:
    return f"one of the {OTHER}" if level == OTHER else str(level)


def _number_words(column: Column, sides: list[Side], said: bool) -> str:
    """Between which borders a number is; ``said``: that it is not missing is already known."""
    low, high = max(side.low for side in sides), min(side.high for side in sides)
    if math.isinf(low):
        text = f"{column.name} ≤ {column.show_border(high)}"
    elif math.isinf(high):
        text = f"{column.name} > {column.show_border(low)}"
    else:
        text = f"{column.show_border(low)} < {column.name} ≤ {column.show_border(high)}"
    return f"{text} or {MISSING}" if all(side.or_missing for side in sides) and not said else text
