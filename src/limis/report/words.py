"""Numbers and names as a reader sees them, alike in cards, pages and plots."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from limis.rows import TrainingRows

MINUS = "\N{MINUS SIGN}"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# Control characters, lone surrogates and overrides of the reading direction: they break files, fonts or lines.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


@dataclass
class Numbers:
    """Outputs and their parts in one format, so that the numbers of a card visibly add up.

    Examples
    --------
    >>> numbers = Numbers(decimals=2)
    >>> numbers.show(-1234.5), numbers.show(-0.001), numbers.signed(0.5), numbers.signed(0.001)
    ('−1,234.50', '0.00', '+0.50', '0.00')
    """

    decimals: int | None  # None: scientific

    @classmethod
    def of(cls, training: TrainingRows) -> Numbers:
        """Three digits of the outputs' spread."""
        size = training.output_deviation or abs(training.overall_mean) or 1.0
        place = int(np.floor(np.log10(size)))
        return cls(max(0, 2 - place) if -4 <= place <= 8 else None)

    def show(self, value: float) -> str:
        """The number, with a true minus sign."""
        if self.decimals is None or abs(value) >= 1e12:
            text = f"{value:.3g}"
        else:
            text = f"{value:,.{self.decimals}f}"
        return (text.removeprefix("-") if is_zero(text) else text).replace("-", MINUS)

    def signed(self, value: float) -> str:
        """The number as a step up or down."""
        text = self.show(value)
        return text if text.startswith(MINUS) or is_zero(text) else f"+{text}"


def is_zero(text: str) -> bool:
    """Whether a shown number was rounded to zero, which has no sign."""
    return not any(digit in text for digit in "123456789")


def percent(share: float) -> str:
    """A share in percent, never rounded to an impossible or a certain 100%.

    Examples
    --------
    >>> percent(0.8534), percent(0.0001), percent(0.99999), percent(0.0), percent(1.0)
    ('85.3%', '<0.1%', '>99.9%', '0%', '100%')
    """
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{share:.0%}" if share in (0, 1) else f"{share:.1%}"


def count(n: int, one: str, many: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> count(1, "row", "rows"), count(1200, "row", "rows")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {one if n == 1 else many}"


def printable(text: str) -> str:
    """The text with everything that is not meant to be seen replaced by a mark."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def shorten(text: str, most: int) -> str:
    """The text, cut to ``most`` characters with an ellipsis.

    Examples
    --------
    >>> shorten("marital-status", 8), shorten("age", 8)
    ('marital…', 'age')
    """
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS


def shorten_condition(text: str, column: str, most: int) -> str:
    """Words about a column in at most so many letters; its name, which they begin with, is cut before what is said.

    Examples
    --------
    >>> shorten_condition("months since the last payment > 7.5", "months since the last payment", 24)
    'months since the … > 7.5'
    """
    if len(text) <= most:
        return text
    rest = text.removeprefix(column)
    name = shorten(column, max(most - len(rest), most // 3))
    return name + shorten(rest, most - len(name))
