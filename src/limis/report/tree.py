"""A local tree drawn from left to right: where its branches, conditions and answers stand, for a template to place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.explanation import Explanation
from limis.report.words import Numbers, percent, shorten_condition
from limis.trees.view import Node, nodes, words

LETTER, BOLD_LETTER = 6.7, 7.6  # width of a letter, about, at the size the drawing has
LINE = 40.0  # height of a leaf
GAP = 26.0  # before and after the words of a branch
MARGIN = 8.0
LONGEST = 44  # letters of a condition that are shown; the whole of it is said in its title


@dataclass
class Branch:
    """The way from a node to one of its children, with its condition above."""

    start: tuple[float, float]
    bend: tuple[float, float]  # where the curve from the start ends, and a straight line begins
    end: tuple[float, float]
    words: str
    whole: str  # the words, not cut
    x: float
    y: float
    on_path: bool

    @property
    def path(self) -> str:
        """The branch as SVG draws it."""
        (x, y), (bend, level), (end, _) = self.start, self.bend, self.end
        return f"M{x:.0f} {y:.0f} C{bend:.0f} {y:.0f} {x:.0f} {level:.0f} {bend:.0f} {level:.0f} H{end:.0f}"


@dataclass
class Answer:
    """A leaf: what the tree says there."""

    words: str
    x: float
    y: float
    on_path: bool


@dataclass
class Drawing:
    """All parts of a tree and the room they take."""

    branches: list[Branch]
    answers: list[Answer]
    width: float
    height: float
    told: str  # the same for those who hear the drawing


def draw(one: Explanation, numbers: Numbers, longest: int = LONGEST) -> Drawing:
    """Place the tree of an explanation; conditions are cut to ``longest`` letters."""
    tree, columns = nodes(one), one.all.training.table.columns
    leaves = _leaves_in_order(tree, 0)
    height = {place: MARGIN + LINE * (k + 0.5) for k, place in enumerate(leaves)}
    for place in sorted(set(tree) - set(leaves), reverse=True):
        height[place] = sum(height[child] for child in tree[place].children) / 2
    told = {
        child: (words(side, columns), side.column)
        for node in tree.values()
        if node.sides is not None
        for child, side in zip(node.children, node.sides, strict=True)
    }
    depth = {place: (place + 1).bit_length() - 1 for place in tree}
    left = [MARGIN]
    for level in range(1, max(depth.values()) + 1):
        widths = [
            min(len(text), longest) * (BOLD_LETTER if tree[place].on_path else LETTER)
            for place, (text, _) in told.items()
            if depth[place] == level
        ]
        left.append(left[-1] + max(widths) + 1.5 * GAP)
    branches = []
    for place, (text, column) in told.items():
        parent = (place - 1) // 2
        x, y, end, above = left[depth[parent]], height[parent], left[depth[place]], height[place]
        branches.append(
            Branch(
                (x, y),
                (x + GAP, above),
                (end, above),
                shorten_condition(text, column, longest),
                text,
                x + GAP,
                above - 5,
                tree[place].on_path,
            )
        )
    answers = [_answer(one, tree[place], left[depth[place]], height[place], numbers) for place in leaves]
    width = max(answer.x + BOLD_LETTER * (1 + len(answer.words)) for answer in answers)
    # What is on the row's way is drawn last, over the rest.
    branches.sort(key=lambda branch: branch.on_path)
    said = "; ".join(str(rule).strip() for rule in one.rules())
    return Drawing(branches, answers, width + MARGIN, 2 * MARGIN + LINE * len(leaves), said)


def _leaves_in_order(tree: dict[int, Node], place: int) -> list[int]:
    if tree[place].sides is None:
        return [place]
    return [leaf for child in tree[place].children for leaf in _leaves_in_order(tree, child)]


def _answer(one: Explanation, node: Node, x: float, y: float, numbers: Numbers) -> Answer:
    box = one.all.training.black_box
    chance = f" ({percent(float(box.to_probability(np.asarray(node.value))))})" if box.scale == "logit" else ""
    return Answer(f"{numbers.show(node.value)}{chance}{' · this row' if node.on_path else ''}", x, y, node.on_path)
