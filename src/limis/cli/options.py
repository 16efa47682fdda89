"""Types of options that several commands have."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any, get_args

from limis.against import ALL
from limis.explanation import Kind


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


def add_questions(parser: ArgumentParser) -> None:
    """The options of `LimisExplainer.explain` about questions to the model, and about whom reasons compare with."""
    parser.add_argument(
        "--queries",
        type=positive,
        default=0,
        metavar="N",
        help="ask the model N more questions about changes of each row itself (0)",
    )
    parser.add_argument(
        "--reason-queries",
        type=positive,
        default=0,
        metavar="N",
        help="and N about its reasons, which are then unbiased (0)",
    )
    parser.add_argument(
        "--until-trusted",
        type=positive,
        default=0,
        metavar="N",
        help="or up to N about each row that is not trusted, to mend it and measure what that brought (0)",
    )
    parser.add_argument(
        "--reference",
        default=ALL,
        metavar="WHOM",
        help='whom reasons compare each row with: "all" training rows, those of a condition such as "age > 40", '
        '"other outcome" or "near threshold" (all)',
    )
    parser.add_argument(
        "--reasons",
        choices=get_args(Kind),
        default="curves",
        help='what reasons are: what "curves" learned of the model, or exact "shapley" values of its trees (curves)',
    )


def questions_of(args: Namespace) -> dict[str, Any]:
    """Those options, as `explain` takes them."""
    names = ("queries", "reason_queries", "until_trusted", "reference", "reasons")
    return {name: getattr(args, name) for name in names}
