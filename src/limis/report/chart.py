"""Which reasons are drawn, and the bars of the drawing."""

from __future__ import annotations

from dataclasses import dataclass

from limis.explanation import Explanation
from limis.local_view import Reason
from limis.report.words import Numbers, count, is_zero

MOST_REASONS = 7


@dataclass
class Bar:
    """One reason as a bar from the middle of the drawing, in percent of its width."""

    words: str
    value: str
    status: str
    way: str  # for those who hear the drawing
    rises: bool
    start: float
    length: float
    is_rest: bool


def shown_reasons(one: Explanation, most: int = MOST_REASONS) -> tuple[list[Reason], Reason | None]:
    """The largest reasons, and all others as one (None where there are no others)."""
    found = one.reasons()
    if len(found) <= most + 1:  # a single other reason takes the line that its sum would take
        return found, None
    others = found[most:]
    columns = [name for reason in others for name in reason.columns]
    total = sum(reason.contribution for reason in others)
    return found[:most], Reason(columns, count(len(columns), "other column", "other columns"), total, "")


def bars(shown: list[Reason], rest: Reason | None, numbers: Numbers, least: float) -> list[Bar]:
    """A bar a reason; the longest reaches the edge, unless it is below ``least``: then all are too small to matter."""
    lines = [*shown, *([rest] if rest else [])]
    edge = max([least, *(abs(reason.contribution) for reason in lines)])
    return [_bar(reason, edge, numbers, is_rest=reason is rest) for reason in lines]


def step(reason: Reason, numbers: Numbers) -> str:
    """What a reason adds; nothing where a zero beside "fixed here" would read as "no effect", which nobody saw."""
    value = numbers.signed(reason.contribution)
    return "" if reason.status and is_zero(value) else value


def _bar(reason: Reason, edge: float, numbers: Numbers, is_rest: bool) -> Bar:
    length = 50 * abs(reason.contribution) / edge if edge > 0 else 0.0
    rises = reason.contribution >= 0
    value = step(reason, numbers)
    return Bar(
        words=reason.words,
        value=value,
        status=reason.status,
        way="effect not seen" if not value else "raises it" if rises else "lowers it",
        rises=rises,
        start=round(50.0 if rises else 50.0 - length, 2),
        length=round(length, 2),
        is_rest=is_rest,
    )
