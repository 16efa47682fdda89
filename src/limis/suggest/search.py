"""The search of one row: what the explanation proposes, single changes, and what grows from the best answers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from limis.suggest.case import Case, Change
from limis.suggest.proposals import PROPOSERS, few_a_unit
from limis.suggest.questions import Questions, at_once
from limis.suggest.smaller import smaller


@dataclass(frozen=True)
class Breadth:
    """How many answers a search looks for at each step."""

    partners: int  # of each unit, the best single changes, to be combined
    beam: int  # changes that grow by one more unit
    asked: int  # changes of one size
    sizes: int  # units at most in a change


LEADING = 3  # options of each unit that are asked about first
MOST_SINGLES = 200
NARROW = Breadth(partners=3, beam=12, asked=40, sizes=3)
WIDE = Breadth(partners=4, beam=24, asked=120, sizes=8)


def search(case: Case, n: int) -> Questions[list[Change]]:
    """Up to ``n`` changes that reach the target, made as small as they get, or what the explanation proposed."""
    yield from _propose(case)
    singles = sorted(case.singles, key=lambda change: (case.singles[change], change))
    yield _leading(case, singles)
    if case.found(1) < n:
        yield singles[:MOST_SINGLES]
    yield from _grow(case, n, NARROW)
    if not case.confirmed:
        yield from _borrow(case)
    if not case.confirmed:
        yield from _grow(case, 1, WIDE)
    if not case.confirmed:
        return case.best(case.outputs.keys() & case.sources.keys(), n)
    case.kept_back = 0
    return (yield from _smallest(case, n))


def _propose(case: Case) -> Questions[None]:
    """What the explanation says will do."""
    for source, propose in PROPOSERS.items():
        case.proposed[source] = propose(case)
        for change in case.proposed[source]:
            case.sources.setdefault(change, source)
        yield case.proposed[source]


def _grow(case: Case, n: int, breadth: Breadth) -> Questions[None]:
    """Pairs of the single changes asked about, then triples, and so on, each made of the best answers before."""
    answered: list[Change] = sorted((change for change in case.outputs if len(change) == 1), key=case.by_gap)
    partners = few_a_unit(answered, breadth.partners)
    beam = partners
    for size in range(2, breadth.sizes + 1):
        if case.found(size) >= n or not beam:
            return
        grown = _grown(case, beam, partners, breadth.asked)
        yield grown
        beam = sorted((change for change in grown if change in case.outputs), key=case.by_gap)[: breadth.beam]


def _leading(case: Case, singles: list[Change]) -> list[Change]:
    """Of each unit the options that are expected to lead furthest, and both ends of a number."""
    ends: dict[int, list[Change]] = {}
    for change in sorted(singles):
        unit = change[0][0]
        if case.options[unit].unit.is_number:
            ends[unit] = [ends.get(unit, [change])[0], change]
    leading = {*few_a_unit(singles, LEADING), *chain.from_iterable(ends.values())}
    return [change for change in singles if change in leading][: MOST_SINGLES // 2]


def _grown(case: Case, beam: list[Change], partners: list[Change], most: int) -> list[Change]:
    """The beam with one more unit each: those first that would do if effects added up, of few columns before many."""
    before = np.array([case.outputs[change] for change in beam])
    effects = np.array([case.outputs[partner] for partner in partners]) - case.output
    expected = case.target.gap(before[:, None] + effects[None], case.row)  # (beam, partners)
    columns = np.add.outer([case.cost(change)[0] for change in beam], [case.cost(change)[0] for change in partners])
    taken = np.array([[unit in dict(change) for unit in range(len(case.options))] for change in beam])
    free = ~taken[:, [partner[0][0] for partner in partners]].ravel()
    order = np.lexsort((expected.ravel(), np.where(expected < 0, columns, np.inf).ravel()))
    enough = {frozenset(unit for unit, _ in change) for change in case.confirmed}
    grown: dict[Change, None] = {}
    for place in order[free[order]].tolist():
        change = tuple(sorted(beam[place // len(partners)] + partners[place % len(partners)]))
        # What includes a set of units that will do is not needed.
        if change not in grown and not any(few.issubset(dict(change)) for few in enough):
            grown[change] = None
            if len(grown) == most:
                break
    return list(grown)


def _borrow(case: Case) -> Questions[None]:
    """All that may change, from each near training row that has the wished outcome."""
    borrowed = []
    for donor in case.near.tolist():
        held = [int(own.unit.option_of_row[donor]) for own in case.options]
        borrowed.append(tuple((unit, to) for unit, to in enumerate(held) if to >= 0 and case.options[unit].allowed[to]))
    yield [change for change in borrowed if change]


def _smallest(case: Case, n: int) -> Questions[list[Change]]:
    """The best of what was confirmed, each made smaller, until none of the best can be."""
    done: set[Change] = set()
    while True:
        best = case.best(case.confirmed, n)
        large = [change for change in best if change not in done]
        if not large:
            return best
        done.update(large)
        done.update((yield from at_once([smaller(case, change) for change in large])))
