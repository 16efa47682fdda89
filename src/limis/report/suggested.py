"""What a card tells of suggestions: the changes for which the black box says something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from limis.errors import InputError
from limis.suggest import RowSuggestions, Suggestion, Suggestions


@dataclass
class Change:
    """One suggestion: which columns change, and what the black box said of the changed row."""

    moves: list[tuple[str, str, str]]  # column, from, to
    before: str
    after: str
    is_chance: bool  # of the wished class
    confirmed: bool


@dataclass
class Suggested:
    """What would change one row's prediction."""

    goal: str
    has_goal: bool  # the row has it as it is
    reason: str  # why no change is confirmed
    changes: list[Change]
    evidence: str  # the nearest training row that has it


def suggested(own: RowSuggestions) -> Suggested:
    """All that the card of one row says of its suggestions."""
    return Suggested(
        goal=own.goal,
        has_goal=own.has_goal,
        reason=own.reason,
        changes=[_change(one) for one in own],
        evidence="" if own.evidence is None else str(own.evidence),
    )


def _change(one: Suggestion) -> Change:
    before, after = one.says
    return Change(
        moves=[(name, *words) for name, words in one.words.items()],
        before=before,
        after=after,
        is_chance=one.probability_after is not None,
        confirmed=one.confirmed,
    )


def fitting(suggestions: Suggestions | None, labels: Sequence[Any]) -> list[RowSuggestions | None]:
    """Suggestions beside their rows; refused where they are of other rows."""
    if suggestions is None:
        return [None] * len(labels)
    if len(suggestions) != len(labels):
        raise InputError(
            f"there are suggestions for {len(suggestions)} rows, but {len(labels)} rows are explained; "
            "suggest for the same rows"
        )
    wrong = [own.label for own, label in zip(suggestions, labels, strict=True) if str(own.label) != str(label)]
    if wrong:
        raise InputError(
            f"suggestions are for other rows than those explained, such as {wrong[0]!r}; use the same rows"
        )
    return list(suggestions)
