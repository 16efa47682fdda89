"""The table of all rows on a page: one line a card, with its place in every order that a reader may choose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limis.explanation import Explanation
from limis.report.card import Card


@dataclass
class Entry:
    """One row in the table, and where it stands when rows are sorted."""

    card: Card
    # The level of rows like it and its own largest reason, the larger first, with what they add; or its way in a tree,
    # or the two values that do most.
    reasons: list[tuple[str, str]]
    change: str  # the first confirmed suggestion
    by_output: int
    by_doubt: int
    by_error: int


def entries(shown: list[Explanation], cards: list[Card]) -> list[Entry]:
    """A line a card, in the cards' order."""
    # What is said without asking about the row: curves stand at what the black box says of it.
    expected = {id(one.all): one.all.fits.predictions() for one in shown}
    local = np.array([expected[id(one.all)][one.row] for one in shown])
    asked = bool(shown) and shown[0].all.outputs is not None
    outputs = np.array([one.model_output for one in shown]) if asked else local
    bounds = [float(one.fidelity.get("change_error_bound", np.inf)) for one in shown]
    doubts = np.array([(not one.trusted, bound) for one, bound in zip(shown, bounds, strict=True)]).reshape(-1, 2)
    places = [_places(-outputs), _places(-doubts[:, 1], -doubts[:, 0]), _places(-np.abs(outputs - local))]
    return [
        Entry(card, _reasons(one, card), _change(card), *(int(own[place]) for own in places))
        for place, (one, card) in enumerate(zip(shown, cards, strict=True))
    ]


def _places(*keys: np.ndarray) -> np.ndarray:
    """Where each row stands when sorted by the last key, and by those before it where that is equal."""
    return np.argsort(np.lexsort(keys), kind="stable")


def _reasons(one: Explanation, card: Card) -> list[tuple[str, str]]:
    if card.tree is not None:
        way = next(rule.conditions for rule in one.rules() if rule.holds)
        return [(" and ".join(way) or "always", "")]
    own = [(bar.words, bar.value) for bar in card.bars[: 2 if card.steps is None else 1]]
    if card.steps is None or card.steps.neighbourhood is None:
        return own
    apart = card.steps.apart
    level = ("rows like it" + (f" ({apart[0].here})" if apart else ""), card.steps.shift)
    larger = not own or abs(one.neighbourhood_shift) >= one.contributions.abs().max()
    return [level, *own] if larger else [*own, level]


def _change(card: Card) -> str:
    told = card.suggested
    confirmed = [] if told is None else [change for change in told.changes if change.confirmed]
    return ", ".join(f"{name}: {before} → {after}" for name, before, after in confirmed[0].moves) if confirmed else ""
