"""Types of options that several commands have."""

from __future__ import annotations

from argparse import ArgumentTypeError


def seed(text: str) -> int:
    """A seed that every library used here takes."""
    return _whole_number(text, 0, 2**31 - 1)


def positive(text: str) -> int:
    """A number of things, of which there is at least one."""
    return _whole_number(text, 1, 2**31 - 1)


def _whole_number(text: str, least: int, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ArgumentTypeError(f"a whole number is expected, not {text!r}") from None
    if not least <= value <= most:
        raise ArgumentTypeError(f"a number from {least} to {most} is expected, not {value}")
    return value
