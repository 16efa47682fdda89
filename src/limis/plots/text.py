"""Names as matplotlib must be given them."""

from __future__ import annotations

from limis.report.words import printable


def as_it_stands(text: str) -> str:
    """The text as matplotlib must be given it to draw it as it stands: an escaped $ begins no formula."""
    return printable(text).replace("$", r"\$")
