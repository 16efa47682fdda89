"""From explanations to suggestions: what could change in each row for the black box to say something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from limis.blackbox import Ahead
from limis.class_explanations import ClassExplanations, place_of_class
from limis.errors import InputError
from limis.explanation import Explanations
from limis.progress import progress
from limis.suggest.case import Case, Change
from limis.suggest.changed import ChangedRows
from limis.suggest.constraints import Constraints, read_constraints
from limis.suggest.evidence import near_with_outcome
from limis.suggest.questions import converse
from limis.suggest.result import Suggestions
from limis.suggest.search import search
from limis.suggest.target import Target, read_target
from limis.suggest.telling import Teller
from limis.suggest.together import Together, read_together
from limis.suggest.units import Unit, make_units, seen_from

# Rows searched at once: many, as each time that the black box is asked has its price, whatever it is asked.
MOST_ROWS = 512
# Of arrays that grow with the rows: rows × options, and changed rows × columns.
MOST_CELLS = 4_000_000
# Of the questions a row may cost, the part that is kept for making smaller what was found.
KEPT_BACK = 1 / 5


def suggest(
    explained: Explanations | ClassExplanations,
    target: Any = None,
    *,
    immutable: Iterable[Any] | str = (),
    ranges: Mapping[Any, Any] | None = None,
    directions: Mapping[Any, str] | None = None,
    together: Together = "auto",
    n: int = 3,
    max_queries: int = 1000,
    show: bool = False,
) -> Suggestions:
    """Suggest changes of explained rows; see `LimisExplainer.suggest`. ``show`` is for a progress bar."""
    if isinstance(explained, ClassExplanations):
        explained = _ahead_of_others(explained, target)
    training = explained.training
    _check_count(n, "n", "suggestions")
    _check_count(max_queries, "max_queries", "questions")
    if not training.black_box.can_be_asked or explained.outputs is None:
        raise InputError(
            "suggestions are checked on the model, and there is none to ask; pass it to LimisExplainer or to limis.load"
        )
    constraints = read_constraints(training.table, immutable, ranges, directions)
    groups = read_together(together, training.table, training.values)
    units = make_units(training, constraints, groups)
    wished = read_target(target, training.black_box, explained.outputs, explained.tolerance)
    there = wished.reached(explained.outputs, np.arange(len(explained)))
    _refuse_if_all(there, explained, wished)
    changed = ChangedRows.of(training, explained.frame)
    seeker = _Seeker(explained, wished, constraints, units, changed, n, max_queries)
    teller = Teller(explained, changed)
    size = max(1, min(MOST_ROWS, MOST_CELLS // max(1, sum(len(unit.values) for unit in units))))
    told = []
    with progress(len(explained), "suggesting", show) as bar:
        for start in range(0, len(explained), size):
            rows = np.arange(start, min(start + size, len(explained)))
            told.append(teller.tell(seeker.seek(rows, there[rows]), there))
            bar.update(len(rows))
    return replace(Suggestions.join(told), from_polars=explained.from_polars)


def _ahead_of_others(explained: ClassExplanations, target: Any) -> Explanations:
    """The explanations of one of several classes, whose outputs are how far it is ahead of the best other class."""
    if target is None:
        names = ", ".join(map(repr, map(str, explained.classes)))
        raise InputError(f"the model has {len(explained.classes)} classes, so a target is needed: one of {names}")
    place = place_of_class(target, explained.classes)
    part = explained.parts[place]
    training, view = part.training, Ahead(place)
    if part.outputs is None or training.every is None:
        return part  # refused for having no model to ask
    ahead = replace(training, black_box=replace(training.black_box, view=view), outputs=view(training.every))
    said = np.column_stack([one.outputs for one in explained.parts if one.outputs is not None])
    return replace(part, training=ahead, outputs=view(said), chances=None)


@dataclass(eq=False)
class _Seeker:
    """All that the search of any row needs."""

    explained: Explanations
    target: Target
    constraints: Constraints
    units: Sequence[Unit]
    changed: ChangedRows
    n: int
    max_queries: int

    def seek(self, rows: np.ndarray, there: np.ndarray) -> list[tuple[Case, list[Change]]]:
        """Search one block of rows; nothing where they already are there."""
        cases = self._cases(rows)
        sought = [case for case, reached in zip(cases, there, strict=True) if not reached]
        found = iter(converse(sought, partial(search, n=self.n), self._ask))
        return [(case, [] if reached else next(found)) for case, reached in zip(cases, there, strict=True)]

    def _cases(self, rows: np.ndarray) -> list[Case]:
        explained, training = self.explained, self.explained.training
        assert explained.outputs is not None
        values = explained.values[rows]
        near = near_with_outcome(training, values, rows, self.target)
        by_unit = [seen_from(values, unit, training.table, self.constraints) for unit in self.units]
        return [
            Case(
                explained=explained,
                row=row,
                values=values[place],
                output=float(explained.outputs[row]),
                target=self.target,
                options=[seen[place] for seen in by_unit],
                near=near[place],
                left=self.max_queries,
                kept_back=int(self.max_queries * KEPT_BACK),
            )
            for place, row in enumerate(rows.tolist())
        ]

    def _ask(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        size = max(1, MOST_CELLS // values.shape[1])
        parts = []
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            frame = self.changed.frame(rows[part], self.explained.values[rows[part]], values[part])
            parts.append(self.explained.training.black_box.outputs(frame))
        return np.concatenate(parts)


def _check_count(count: Any, name: str, things: str) -> None:
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        raise InputError(f"{name} is a number of {things} a row, 1 or more, not {count!r}")


def _refuse_if_all(there: np.ndarray, explained: Explanations, target: Target) -> None:
    """Rows that have what is wished are left alone; if all have it, the target was hardly meant."""
    if there.all():
        which = f"row {explained.index.tolist()[0]!r} has" if len(there) == 1 else f"all {len(there)} rows have"
        raise InputError(f"there is nothing to suggest: {which} the target already, {target.goal(0)}")
