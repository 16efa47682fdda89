"""Uploads and downloads."""

from __future__ import annotations

import re

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from starlette.datastructures import UploadFile

from limis.errors import InputError, LimisError
from limis.serve.choosing import Choice
from limis.serve.downloads import csv_of, html_of, json_parts
from limis.serve.errors import words
from limis.serve.rendering import page
from limis.serve.site import Site
from limis.serve.tables import HeldTable
from limis.table_files import read_csv_bytes

LONGEST_NAME = 100
_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)


def make_exchange(site: Site) -> APIRouter:
    """The routes."""
    router = APIRouter(include_in_schema=False)
    desk, training = site.desk, site.training

    def chosen(request: Request, key: str) -> tuple[HeldTable, list[int]]:
        table = site.table(key)
        if not table.finished:
            # A file of some of the rows would look like one of all.
            told = f"{table.n_explained:,} of {len(table):,} rows are explained so far; download them when all are"
            raise HTTPException(503, told, {"Retry-After": "5"})
        return table, site.chosen(table, Choice.read(request.query_params))["row"].tolist()

    @router.get("/tables/{key}/explained.csv")
    async def explained_csv(request: Request, key: str) -> Response:
        table, rows = chosen(request, key)
        text = await run_in_threadpool(csv_of, table, rows, training.table.names)
        return Response(text, media_type="text/csv", headers=_attached(table, "csv"))

    @router.get("/tables/{key}/explained.json")
    async def explained_json(request: Request, key: str) -> Response:
        table, rows = chosen(request, key)
        parts = await json_parts(desk, table, rows)
        return StreamingResponse(parts, media_type="application/json", headers=_attached(table, "json"))

    @router.get("/tables/{key}/explained.html")
    async def explained_html(request: Request, key: str) -> Response:
        table, rows = chosen(request, key)
        return HTMLResponse(await html_of(desk, table, rows), headers=_attached(table, "html"))

    @router.get("/upload")
    async def form() -> Response:
        return page("upload.html", site.shared, problem="")

    @router.post("/tables")
    async def upload(request: Request) -> Response:
        try:
            name, data = await _uploaded(request)
            site.tables.check_text(data, name)
            rows = await run_in_threadpool(read_csv_bytes, data, name, training.frame)
            table = await site.tables.add(name, rows)
        except LimisError as error:
            return page("upload.html", site.shared, status=422, problem=words(error))
        return RedirectResponse(f"/tables/{table.key}", 303)

    return router


async def _uploaded(request: Request) -> tuple[str, bytes]:
    async with request.form(max_files=1, max_fields=10) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise InputError("no file was sent; choose a CSV file first")
        name = re.split(r"[/\\]", file.filename)[-1][:LONGEST_NAME]
        return name, await file.read()


def _attached(table: HeldTable, extension: str) -> dict[str, str]:
    """Headers that have a browser save an answer as a file."""
    stem = _UNSAFE.sub("-", table.name.removesuffix(".csv")).strip("-.") or "rows"
    return {"Content-Disposition": f'attachment; filename="{stem}-explained.{extension}"'}
