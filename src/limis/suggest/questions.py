"""Searches as conversations: each asks a few questions at a time, and those of many are put to the black box at once.

A search is a generator that yields the changes it wants to know about; when it goes on, the answers are in its case.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

import numpy as np

from limis.suggest.case import Case, Change, moved

Found = TypeVar("Found")
Questions = Generator[list[Change], None, Found]

# From the values of changed rows, and the rows they were changed from, to what the black box says of them.
Ask = Callable[[np.ndarray, np.ndarray], np.ndarray]


def at_once(searches: Sequence[Questions[Found]]) -> Questions[list[Found]]:
    """Several searches for the same case as one, each step of it a step of all."""
    found: dict[int, Found] = {}
    live = dict(enumerate(searches))
    while live:
        wanted: list[Change] = []
        for place, one in list(live.items()):
            try:
                wanted += next(one)
            except StopIteration as end:
                found[place] = end.value
                del live[place]
        if live:
            yield wanted
    return [found[place] for place in range(len(searches))]


def converse(cases: Sequence[Case], search: Callable[[Case], Questions[Found]], ask: Ask) -> list[Found]:
    """Run the search of every case to its end, with the questions of all cases in common batches."""
    searches = [search(case) for case in cases]
    found: dict[int, Found] = {}
    live = list(range(len(cases)))
    while live:
        wanted: dict[int, list[Change]] = {}
        for place in live:
            try:
                wanted[place] = _new(cases[place], searches[place])
            except StopIteration as end:
                found[place] = end.value
        live = list(wanted)
        _answer([(cases[place], changes) for place, changes in wanted.items()], ask)
    return [found[place] for place in range(len(cases))]


def _new(case: Case, search: Questions[Found]) -> list[Change]:
    """The next questions of a search that were not asked yet, as many as the case may still ask."""
    while True:
        new = [change for change in dict.fromkeys(next(search)) if change not in case.outputs]
        wanted = new[: max(0, case.left - case.kept_back) if case.confirmed else case.left]
        if wanted:
            case.left -= len(wanted)
            return wanted


def _answer(wanted: list[tuple[Case, list[Change]]], ask: Ask) -> None:
    """Ask about all wanted changes at once and tell the cases."""
    if not wanted:
        return
    counts = [len(changes) for _, changes in wanted]
    before = np.repeat([case.values for case, _ in wanted], counts, axis=0)
    units = [own.unit for own in wanted[0][0].options]
    after = moved(units, before, [change for _, changes in wanted for change in changes])
    rows = np.repeat([case.row for case, _ in wanted], counts)
    outputs, target = ask(after, rows), wanted[0][0].target
    gaps, reached = target.gap(outputs, rows), target.reached(outputs, rows)
    answers = zip(outputs.tolist(), gaps.tolist(), reached.tolist(), strict=True)
    for case, changes in wanted:
        for change in changes:
            case.note(change, *next(answers))
