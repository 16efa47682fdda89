"""Pages on one row: its explanation, what if it had other values, and suggestions."""

from __future__ import annotations

from functools import partial

import pandas as pd
from fastapi import APIRouter, Request, Response
from starlette.datastructures import QueryParams

from limis.serve.fields import fields_of, read_changes
from limis.serve.rendering import page
from limis.serve.row_page import Comparison, SuggestionsView, compare, suggest_for, view_row
from limis.serve.site import Site
from limis.serve.what_if import both


def make_looking(site: Site) -> APIRouter:
    """The routes; those of parts of a page are for its script."""
    router = APIRouter(include_in_schema=False, prefix="/tables/{key}/rows/{row}")
    desk, training = site.desk, site.training

    async def compared(own: pd.DataFrame, query: QueryParams) -> Comparison | None:
        changes = read_changes(training, fields_of(training, own), query)
        if not changes:
            return None
        changed = site.reader.changed(own, changes)
        return await desk.explain(both(own, changed), partial(compare, changed=changed))

    async def suggested(own: pd.DataFrame, query: QueryParams) -> SuggestionsView:
        return await desk.do(
            partial(suggest_for, desk.explainer, own, query.get("target") or None, query.getlist("keep"))
        )

    @router.get("")
    async def row(request: Request, key: str, row: str) -> Response:
        table, query = site.table(key), request.query_params
        number, own = site.row(table, row)
        view = await desk.explain(own, view_row)
        return page(
            "row.html",
            site.shared,
            table=table,
            row=number,
            view=view,
            given={field.key: query.get(field.key, field.value) for field in view.fields},
            comparison=await compared(own, query),
            suggested=await suggested(own, query) if "suggest" in query else None,
            keep=query.getlist("keep"),
            target=query.get("target", ""),
        )

    @router.get("/what-if")
    async def what_if(request: Request, key: str, row: str) -> Response:
        _, own = site.row(site.table(key), row)
        return page("what_if.html", comparison=await compared(own, request.query_params))

    @router.get("/suggestions")
    async def suggestions(request: Request, key: str, row: str) -> Response:
        table = site.table(key)
        number, own = site.row(table, row)
        return page("suggestions.html", suggested=await suggested(own, request.query_params), table=table, row=number)

    return router
