"""Pages on many rows: the list, to filter and sort, and groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from limis.report.words import Numbers, percent
from limis.serve.choosing import PAGE_ROWS, SORTS, Choice
from limis.serve.downloads import MOST_CARDS
from limis.serve.groups_page import MOST_ROWS, view_groups
from limis.serve.rendering import page
from limis.serve.site import Site
from limis.serve.tables import FIRST, HeldTable

SHOWN_COLUMNS = 4


def make_browsing(site: Site) -> APIRouter:
    """The routes."""
    router = APIRouter(include_in_schema=False)
    desk, table_of, in_percent = site.desk, site.table, site.box.is_classifier
    by_name = {column.name: column for column in site.training.table.columns}

    @router.get("/")
    async def home() -> Response:
        return RedirectResponse(f"/tables/{FIRST}", 303)

    @router.get("/tables/{key}")
    async def rows(request: Request, key: str) -> Response:
        table, choice = table_of(key), Choice.read(request.query_params)
        lines = site.chosen(table, choice)
        shown = lines.iloc[(choice.page - 1) * PAGE_ROWS :][:PAGE_ROWS]
        names = telling_columns(table, site.training.table.names)
        return page(
            "rows.html",
            site.shared,
            table=table,
            choice=choice,
            rows=[_line(line, site.numbers, in_percent) for line in shown.itertuples(index=False)],
            values=[[by_name[name].show(table.features, int(row)) for name in names] for row in shown["row"]],
            value_names=names,
            n_found=len(lines),
            n_pages=max(1, -(-len(lines) // PAGE_ROWS)),
            in_percent=in_percent,
            sorts=SORTS,
            most_cards=MOST_CARDS,
        )

    @router.get("/tables/{key}/groups")
    async def groups(request: Request, key: str) -> Response:
        table, query = table_of(key), request.query_params
        by, sensitive = query.get("by", ""), query.getlist("sensitive")
        label = query.get("class", "") or (site.classes[-1] if site.classes else "")
        has_coefficients = desk.explainer.surrogate == "ridge"
        measure = query.get("measure", "") or ("coefficients" if has_coefficients else "contributions")
        view = None
        if by:
            part = table.features.iloc[:: -(-len(table) // MOST_ROWS)]
            view = await desk.do(lambda: view_groups(desk.explainer.explain(part), by, measure, label, sensitive))
        return page(
            "groups.html",
            site.shared,
            table=table,
            view=view,
            by=by,
            measure=measure,
            has_coefficients=has_coefficients,
            label=label,
            sensitive=sensitive,
            several=site.several,
        )

    return router


@dataclass
class RowLine:
    """A row in the list, in words."""

    row: int
    prediction: str
    predicted: str
    local: str
    error: str
    bound: str
    trusted: bool


def _line(line: Any, numbers: Numbers, in_percent: bool) -> RowLine:
    def said(value: float) -> str:
        return percent(value) if in_percent and 0 <= value <= 1 else numbers.show(value)

    error, bound = (numbers.show(value) if np.isfinite(value) else "" for value in (line.error, line.bound))
    return RowLine(
        int(line.row), said(line.prediction), line.predicted or "", said(line.local), error, bound, bool(line.trusted)
    )


def telling_columns(table: HeldTable, names: list[str]) -> list[str]:
    """The columns that weigh most in the table, in their own order."""
    told = table.told()
    weights = {name: told[f"contribution: {name}"].abs().mean() for name in names if f"contribution: {name}" in told}
    heaviest = sorted(weights, key=lambda name: -weights[name])[:SHOWN_COLUMNS]
    return [name for name in names if name in heaviest] or names[:SHOWN_COLUMNS]
