"""Making a change that reaches the target smaller: fewer units, and numbers nearer to where they were."""

from __future__ import annotations

import numpy as np

from limis.suggest.case import SEARCH, Case, Change
from limis.suggest.questions import Questions

STEPS, PARTS = 3, 4  # of the search for a nearer option: 4 parts a step leave 1 of 64


def smaller(case: Case, change: Change) -> Questions[Change]:
    """A confirmed change without what it can do without."""
    source = case.sources.get(change, SEARCH)
    change = yield from _with_fewer_units(case, change)
    for unit, _ in sorted(change, key=lambda step: (-case.distance((step,)), step)):
        change = yield from _nearer(case, change, unit)
    case.sources.setdefault(change, source)
    return change


def _with_fewer_units(case: Case, change: Change) -> Questions[Change]:
    while len(change) > 1:
        without = [change[:place] + change[place + 1 :] for place in range(len(change))]
        yield without
        enough = [less for less in without if less in case.confirmed]
        if not enough:
            break
        change = min(enough, key=case.cost)
    return change


def _nearer(case: Case, change: Change, unit: int) -> Questions[Change]:
    """The change with the unit's option as near to the row's own value as the answers allow."""
    others = tuple(step for step in change if step[0] != unit)
    options = [*_on_the_way(case, unit, dict(change)[unit]), dict(change)[unit]]

    def to(place: int) -> Change:
        return tuple(sorted((*others, (unit, options[place]))))

    low, high = 0, len(options) - 1  # what is at high is confirmed; below low nothing was
    for _ in range(STEPS):
        places = [low + (high - low) * part // PARTS for part in range(PARTS)] if low < high else []
        yield [to(place) for place in dict.fromkeys(places)]
        reached = [place for place in places if to(place) in case.confirmed]
        high = min([high, *reached])
        low = max([low, *(place + 1 for place in places if place < high)])
    return to(high)


def _on_the_way(case: Case, unit: int, option: int) -> list[int]:
    """Options nearer than this one, nearest first; of a number those between the row's own value and it."""
    own = case.options[unit]
    nearer = np.flatnonzero(own.allowed & (own.distance < own.distance[option]))
    if own.unit.is_number:
        above = own.unit.values[:, 0] > own.own[0]
        nearer = nearer[above[nearer] == above[option]]
    return nearer[np.lexsort((own.distance[nearer], own.changed[nearer].sum(axis=1)))].tolist()
