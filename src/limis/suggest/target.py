"""Where a row's output should get to: another class, beyond a level, or some way up or down."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from limis.blackbox import Ahead, BlackBox
from limis.columns import show_apart, show_exact, show_number
from limis.errors import InputError
from limis.labels import find_class

_LEVEL = re.compile(r"\s*(>=|<=|>|<)\s*(\S+)\s*")
MOST_DIGITS = 8  # of a percentage
MOST_EXPONENT = 700  # beyond it exp overflows
_CURE = 'write a level such as "> 100" or "<= 3", or "up" or "down"'


class Target(Protocol):
    """A wished outcome of every row. Outputs are asked about with the row that each belongs to."""

    def reached(self, outputs: np.ndarray, rows: np.ndarray | int) -> np.ndarray:
        """Whether these outputs are what is wished for these rows."""
        ...

    def gap(self, outputs: np.ndarray, rows: np.ndarray | int) -> np.ndarray:
        """How far they are from it, in units of the outputs; negative once beyond."""
        ...

    def goal(self, row: int) -> str:
        """What is wished for one row, in words."""
        ...

    def probability(self, output: float, row: int) -> float | None:
        """How probable an output makes the class that is wished for a row; None where it alone does not tell."""
        ...

    def says(self, row: int, *outputs: float) -> tuple[str, ...]:
        """Outputs of a row in words, which differ where the outputs do."""
        ...

    def wish(self, output: float, row: int) -> str:
        """What the black box says of a row and what is wished, in a sentence."""
        ...


@dataclass(eq=False)
class Beyond:
    """For each row a level that its output should be above or below."""

    level: np.ndarray  # (rows,)
    above: np.ndarray  # (rows,) bool
    inclusive: np.ndarray  # (rows,) bool: the level itself will do
    goals: list[str]
    black_box: BlackBox

    def reached(self, outputs: np.ndarray, rows: np.ndarray | int) -> np.ndarray:
        """Whether these outputs are what is wished for these rows."""
        gap = self.gap(outputs, rows)
        return (gap < 0) | (self.inclusive[rows] & (gap == 0))

    def gap(self, outputs: np.ndarray, rows: np.ndarray | int) -> np.ndarray:
        """How far they are from it; negative once beyond."""
        return np.where(self.above[rows], self.level[rows] - outputs, outputs - self.level[rows])

    def goal(self, row: int) -> str:
        """What is wished for one row, in words."""
        return self.goals[row]

    def probability(self, output: float, row: int) -> float | None:
        """The probability of the wished class; None where outputs are plain values or tell of several classes."""
        if not self.black_box.is_classifier or isinstance(self.black_box.view, Ahead):
            return None
        second = float(self.black_box.to_probability(np.array(output)))
        return second if self.above[row] else 1 - second

    def says(self, row: int, *outputs: float) -> tuple[str, ...]:
        """Values, probabilities of the wished class, or how it compares with the likeliest of several others."""
        if not self.black_box.is_classifier:
            # Beside the level: what is beyond it should look so.
            return show_apart(*outputs, float(self.level[row]))[: len(outputs)]
        if not isinstance(self.black_box.view, Ahead):
            return _percentages([self.probability(output, row) or 0.0 for output in outputs])
        if self.black_box.scale == "probability":
            return tuple(
                f"{100 * abs(output):.1f} points {'less' if output < 0 else 'more'} than the likeliest other class"
                for output in outputs
            )
        times = show_apart(*(math.exp(min(output, MOST_EXPONENT)) for output in outputs))
        return tuple(f"{number} times the likeliest other class" for number in times)

    def wish(self, output: float, row: int) -> str:
        """What the black box says of a row and what is wished, in a sentence."""
        if self.black_box.is_classifier:
            return f"the model gives {self.goal(row)}, which is wished, {self.says(row, output)[0]}"
        return f"the model says {self.says(row, output)[0]}; wished is {self.goal(row)}"


def _percentages(probabilities: list[float]) -> tuple[str, ...]:
    """With one digit behind the point, or as many as it takes for different ones to look different."""
    told = [tuple(f"{one:.{digits}%}" for one in probabilities) for digits in range(1, MOST_DIGITS)]
    return next((texts for texts in told if len(set(texts)) == len(set(probabilities))), told[0])


def read_target(target: Any, black_box: BlackBox, outputs: np.ndarray, step: float) -> Target:
    """What the user wishes for rows with these outputs.

    ``step`` is how far "up" and "down" lead at least.
    """
    if isinstance(black_box.view, Ahead):
        return _ahead_target(black_box, len(outputs))
    if black_box.is_classifier:
        return _class_target(target, black_box, outputs)
    return _level_target(target, black_box, outputs, step)


def _ahead_target(black_box: BlackBox, n_rows: int) -> Beyond:
    """Of several classes one, which must be ahead of all others."""
    assert black_box.classes is not None
    nowhere = np.zeros(n_rows, dtype=bool)
    return Beyond(np.zeros(n_rows), ~nowhere, nowhere, [f"class {black_box.classes[1]}"] * n_rows, black_box)


def _class_target(target: Any, black_box: BlackBox, outputs: np.ndarray) -> Beyond:
    classes = [0, 1] if black_box.classes is None else black_box.classes
    boundary = 0.0 if black_box.scale == "logit" else 0.5
    # By default the class that the row does not have.
    second = outputs <= boundary if target is None else np.full(len(outputs), _place_of(target, classes) == 1)
    return Beyond(
        level=np.full(len(outputs), boundary),
        above=second,
        inclusive=~second,  # at even odds a classifier says its first class
        goals=[f"class {classes[int(wished)]}" for wished in second],
        black_box=black_box,
    )


def _place_of(target: Any, classes: list[Any]) -> int:
    """Which class the user names."""
    place = find_class(target, classes)
    if place is None:
        words = ", ".join(map(str, classes))
        raise InputError(f"target {target!r} is not a class of the model; its classes are {words}")
    return place


def _level_target(target: Any, black_box: BlackBox, outputs: np.ndarray, step: float) -> Beyond:
    if target is None:
        raise InputError(f"the model's outputs are values, so a target is needed: {_CURE}")
    if isinstance(target, str) and target in ("up", "down"):
        above = target == "up"
        level = outputs + step if above else outputs - step
        way = f"{target} by more than {show_number(step)}"
        goals = [
            f"an output {'above' if above else 'below'} {show_apart(said, own)[1]} ({way})"
            for said, own in zip(outputs.tolist(), level.tolist(), strict=True)
        ]
        inclusive = False
    else:
        sign, number = _read_level(target)
        above, inclusive = ">" in sign, "=" in sign
        level = np.full(len(outputs), number)
        goals = [f"an output {sign} {show_exact(number)}"] * len(outputs)
    everywhere = np.ones(len(outputs), dtype=bool)
    return Beyond(level, everywhere & above, everywhere & inclusive, goals, black_box)


def _read_level(target: Any) -> tuple[str, float]:
    match = _LEVEL.fullmatch(target) if isinstance(target, str) else None
    if match is None:
        raise InputError(f"target {target!r} cannot be read; the model's outputs are values: {_CURE}")
    sign, text = match.groups()
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"target {target!r} has no number after {sign}; {_CURE}")
    return sign, number
