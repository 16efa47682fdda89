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
    # The level of rows like it (of curves, what columns do together) and its own largest reason, the larger first, with
    # what they add; or its way in a tree.
    reasons: list[tuple[str, str]]
    change: str  # the first confirmed suggestion
    by_output: int
    by_doubt: int
    by_error: int


def entries(shown: list[Explanation], cards: list[Card]) -> list[Entry]:
    """A line a card, in the cards' order."""
    local = np.array([one.local_prediction for one in shown])
    asked = bool(shown) and shown[0].all.outputs is not None
    outputs = np.array([one.model_output for one in shown]) if asked else local
    bounds = [float(one.fidelity.get("change_error_bound", np.inf)) for one in shown]
    doubts = np.array([(not one.trusted, bound) for one, bound in zip(shown, bounds, strict=True)]).reshape(-1, 2)
    errors = np.array([float(one.fidelity["error"]) for one in shown]) if asked else np.zeros(len(shown))
    places = [_places(-outputs), _places(-doubts[:, 1], -doubts[:, 0]), _places(-errors)]
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
    own = [(card.bars[0].words, card.bars[0].value)] if card.bars else []
    if card.neighbourhood is None:
        return own
    alike = "rows like it" + (f" ({card.apart[0].here})" if card.apart else "")
    level = ("columns together" if card.curves else alike, card.shift)
    larger = not own or abs(one.neighbourhood_shift) >= one.contributions.abs().max()
    return [level, *own] if larger else [*own, level]


def _change(card: Card) -> str:
    told = card.suggested
    confirmed = [] if told is None else [change for change in told.changes if change.confirmed]
    return ", ".join(f"{name}: {before} → {after}" for name, before, after in confirmed[0].moves) if confirmed else ""
