"""What rows may become: the options of suggestions, alike in all commands that make them."""

from __future__ import annotations

import argparse
from typing import Any

from limis.cli.options import positive
from limis.errors import InputError
from limis.explainer import LimisExplainer
from limis.table import Table


def add_wishes(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add what is wished and what may change to a parser, or to a group of its options."""
    parser.add_argument(
        "--target",
        metavar="WISH",
        help="a class, needed where there are more than two, else by default the one a row does not have; or for "
        'values a level such as "> 100", up or down',
    )
    parser.add_argument(
        "--immutable", action="append", default=[], metavar="NAMES", help="columns that may not change, as in age,sex"
    )
    parser.add_argument(
        "--range",
        action="append",
        default=[],
        dest="ranges",
        metavar="NAME=RANGE",
        help="where a column may move to: hours=20:60 (an end may be left out; .. for : where ends have colons), or "
        "job=clerk,sales for categories",
    )
    parser.add_argument(
        "--direction",
        action="append",
        default=[],
        dest="directions",
        metavar="NAME=WAY",
        help="which way a number may move: age=up or weight=down",
    )
    parser.add_argument(
        "--together",
        action="append",
        default=[],
        metavar="NAMES",
        help="columns that change only together, as in city,country; found from the data when not given; none: none do",
    )
    parser.add_argument("-n", type=positive, default=3, metavar="N", help="suggestions a row (3)")
    parser.add_argument(
        "--max-queries", type=positive, default=1000, metavar="N", help="questions to the model a row, at most (1000)"
    )


def read_wishes(args: argparse.Namespace, table: Table) -> dict[str, Any]:
    """The options as `suggest` takes them."""
    return {
        "target": args.target,
        "immutable": [name for text in args.immutable for name in names(text, table)],
        "ranges": _ranges(args.ranges, table),
        "directions": _directions(args.directions, table),
        "together": _together(args.together, table),
        "n": args.n,
        "max_queries": args.max_queries,
    }


def is_wished(args: argparse.Namespace) -> bool:
    """Whether an option was given that only suggestions have a use for."""
    return bool(args.target or args.immutable or args.ranges or args.directions or args.together)


def need_model(explainer: LimisExplainer, path: Any) -> None:
    """Refuse to suggest where there is no model to ask."""
    if not explainer.training_.black_box.can_be_asked:
        raise InputError(f"suggestions are checked on the model, which is not inside {path}; give --model")


def names(text: str, table: Table) -> list[str]:
    """Names with commas between them; one that has a comma of its own is taken whole."""
    return [text] if text in table.names else [name.strip() for name in text.split(",")]


def _named(text: str, table: Table, option: str) -> tuple[str, str]:
    """A column and what is said of it; the name may itself have an equals sign."""
    parts = text.split("=")
    for place in range(1, len(parts)):
        name = "=".join(parts[:place]).strip()
        if name in table.names:
            return name, "=".join(parts[place:]).strip()
    if len(parts) == 1:
        raise InputError(
            f"{option} {text} is incomplete: write {option} NAME=..., such as {option} {table.names[0]}=..."
        )
    return parts[0].strip(), "=".join(parts[1:]).strip()


def _ranges(texts: list[str], table: Table) -> dict[str, Any]:
    ranges: dict[str, Any] = {}
    for text in texts:
        name, given = _named(text, table, "--range")
        column = next((column for column in table.columns if column.name == name), None)
        if column is not None and column.is_category:
            levels = [given] if given in column.words else [level.strip() for level in given.split(",") if level]
            ranges.setdefault(name, []).extend(levels)
            continue
        if name in ranges:
            raise InputError(f"--range {name} is given twice; give it once")
        # Times of day have colons of their own.
        low, between, high = given.partition(".." if ".." in given else ":")
        if not between or (between == ":" and ":" in high):
            raise InputError(
                f"--range {text} is not a range: write {name}=LOW:HIGH, such as {name}=20:60 or {name}=20:, "
                f"with two dots where the ends have colons, as in {name}=06:00..07:30"
            )
        ranges[name] = (low.strip() or None, high.strip() or None)
    return ranges


def _directions(texts: list[str], table: Table) -> dict[str, str]:
    directions: dict[str, str] = {}
    for text in texts:
        name, way = _named(text, table, "--direction")
        if name in directions:
            raise InputError(f"--direction {name} is given twice; give it once")
        directions[name] = way
    return directions


def _together(texts: list[str], table: Table) -> Any:
    if not texts:
        return "auto"
    return [] if texts == ["none"] else [tuple(names(text, table)) for text in texts]
