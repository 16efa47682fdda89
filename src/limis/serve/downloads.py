"""Explained tables as files: CSV, JSON, and the report as a page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pandas as pd
from fastapi.concurrency import run_in_threadpool

from limis.errors import InputError
from limis.lines import line_names
from limis.report import page as report_page
from limis.serve.desk import Desk
from limis.serve.tables import TOGETHER, HeldTable
from limis.serve.words import Explained, as_json, explanation_data

MOST_CARDS = 100


def csv_of(table: HeldTable, rows: list[int], columns: list[str]) -> str:
    """The rows with all their columns, and beside them what is told of them, as `limis explain` writes it."""
    told = table.told()
    own = table.rows.loc[told.index]
    twice = [name for name in own.columns if name in line_names(columns, "class" in told)]
    if twice:
        raise InputError(f"{table.name} has a column {twice[0]!r}, and so would the CSV; rename it, or download JSON")
    lines = pd.concat([own.reset_index(drop=True), told.reset_index(drop=True)], axis=1)
    by_row = {row: place for place, row in enumerate(rows)}
    places = pd.Series(told.index).map(by_row)
    kept = places.dropna().sort_values(kind="stable").index
    return str(lines.loc[kept].to_csv(index=False))


async def json_parts(desk: Desk, table: HeldTable, rows: list[int]) -> AsyncIterator[str]:
    """A list of explanations, a few at a time.

    The first are made before this returns and may be refused; after that an answer is on its way.
    """

    async def part(start: int) -> str:
        asked = table.features.loc[rows[start : start + TOGETHER]]
        return await desk.explain(asked, _list_items, begun=start > 0)

    async def parts(first: str) -> AsyncIterator[str]:
        yield "[\n" + first
        for start in range(TOGETHER, len(rows), TOGETHER):
            yield ",\n" + await part(start)
        yield "\n]\n"

    return parts(await part(0) if rows else "")


def _list_items(found: Explained) -> str:
    return ",\n".join(as_json(one).decode() for one in explanation_data(found))


async def html_of(desk: Desk, table: HeldTable, rows: list[int]) -> str:
    """A self-contained report of the first rows of a choice."""
    if not rows:
        raise InputError("no row is chosen, so there is nothing to report; choose others")
    title = f"Explanations of {table.name}"
    if len(rows) > MOST_CARDS:
        title += f": the first {MOST_CARDS} of {len(rows):,} rows"
    found = await desk.explain(table.features.loc[rows[:MOST_CARDS]], _as_it_is)
    # Drawing takes longer than explaining, and needs the explainer no more.
    return await run_in_threadpool(partial(report_page, found, title=title))


def _as_it_is(found: Explained) -> Explained:
    return found
