"""What all plots share: colours, words as matplotlib must be given them, and axes to draw on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from limis.class_explanations import ClassExplanations
from limis.errors import InputError, require
from limis.explanation import Explanation, Explanations
from limis.kinds import plain as plain_value
from limis.report.words import Numbers, percent, printable, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Legible on white and on black; none of them is ever the only sign of what it stands for.
RAISES, LOWERS, LEVEL = "#1a66c9", "#b54708", "#6b7580"
LONGEST_NAME = 48
_SPACE = re.compile(r"\s+")


def plain(text: str, most: int | None = None) -> str:
    r"""The text on one line, as matplotlib must be given it to draw it as it stands: an escaped $ begins no formula.

    Examples
    --------
    >>> print(plain("price in $\nand more"))
    price in \$ and more
    >>> plain("marital-status", most=8)
    'marital…'
    """
    line = _SPACE.sub(" ", text)
    return printable(line if most is None else shorten(line, most)).replace("$", r"\$")


def row_name(one: Explanation) -> str:
    """What the explained row is called."""
    return plain(f"Row {one.label}", LONGEST_NAME)


def scale_words(found: Explanations) -> str:
    """What the outputs are."""
    box = found.training.black_box
    if box.scale == "value":
        return "output"
    one_class = str(box.classes[1]) if box.classes is not None else "class 1"
    scale = "centred log-probability" if box.scale == "centred" else box.scale
    return f"{scale} of {plain(one_class, LONGEST_NAME)}"


def with_chance(found: Explanations, numbers: Numbers, output: float) -> str:
    """An output as a number and, where that is a logit, as a probability too."""
    box = found.training.black_box
    chance = f" ({percent(float(box.to_probability(np.asarray(output))))})" if box.scale == "logit" else ""
    return numbers.show(output) + chance


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes given, or new ones of this size in inches."""
    if ax is not None:
        return ax
    plt = require("matplotlib.pyplot", "plots")
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def only_floor(ax: Axes) -> None:
    """Leave the axes the line they stand on."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def without_frame(ax: Axes) -> None:
    """Leave the axes nothing but what is drawn on them."""
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)


def line_below(ax: Axes, text: str) -> None:
    """A line of small print under the axes, below a label that stands there already."""
    above = ax.get_xlabel()
    if above:
        ax.set_xlabel(f"{above}\n{text}")
    else:
        ax.set_xlabel(text, fontsize="small", loc="left")


def room(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points, as they will be once the figure is laid out."""
    engine = ax.figure.get_layout_engine()
    if engine is not None:
        engine.execute(ax.figure.figure)
    extent, points = ax.get_window_extent(), 72 / ax.figure.dpi
    return extent.width * points, extent.height * points


def one_row(explanation: Any, name: str) -> Explanation:
    """The explanation of one row, or an InputError that says how to choose one."""
    if isinstance(explanation, (Explanations, ClassExplanations)):
        raise InputError(f"{name} draws the explanation of one row; choose one: {name}(found[0])")
    if not isinstance(explanation, Explanation):
        raise InputError(f"{name} draws an explanation, such as explainer.explain(X)[0], not {_kind(explanation)}")
    return explanation


def many_rows(explanations: Any, name: str) -> Explanations:
    """The explanations of some rows, or an InputError that says where to find them."""
    if isinstance(explanations, Explanation):
        raise InputError(f"{name} draws the explanations of many rows: give it all of them, as explain returns them")
    if isinstance(explanations, ClassExplanations):
        first = plain_value(explanations.classes[0])
        raise InputError(f"{name} draws one class at a time; choose one: {name}(found.for_class({first!r}))")
    if not isinstance(explanations, Explanations):
        raise InputError(f"{name} draws what explainer.explain(X) returns, not {_kind(explanations)}")
    if len(explanations) == 0:
        raise InputError(f"{name} was given no explanations: there is nothing to draw")
    return explanations


def chosen(option: str, value: Any, among: tuple[Any, ...]) -> None:
    """Refuse a value that an option does not have."""
    if value not in among:
        raise InputError(f"{option} is {' or '.join(map(repr, among))}, not {value!r}")


def _kind(given: Any) -> str:
    return f"a {type(given).__name__}"
