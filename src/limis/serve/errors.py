"""Errors become answers that name the field, and never show a stack trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from limis.errors import LimisError
from limis.report.words import printable
from limis.serve.desk import BusyError
from limis.serve.reading import FieldError
from limis.serve.rendering import page

MOST_PROBLEMS = 20
LONGEST_MESSAGE = 500
_HEADINGS = {404: "Not found", 413: "Too large", 503: "Not yet"}
# How deep fields lie; below them are the types that they were held against.
_DEEPEST = {"rows": 3, "row": 2, "changes": 2, "target": 1, "ranges": 3}
FAULT = "this is a fault in limis; the server's log says more"
BUSY = "too many requests are waiting; try again in a few seconds"


def add_error_answers(app: FastAPI) -> None:
    """Teach an app what to answer when something is wrong."""

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        # A field that may be of several types has a problem with each of them, and is told of once.
        by_field: dict[str, list[str]] = {}
        for one in error.errors():
            by_field.setdefault(_path(one["loc"]), []).append(one["msg"])
        problems = [(field, "; or: ".join(messages)) for field, messages in by_field.items()]
        return answer(request, 422, problems[:MOST_PROBLEMS])

    @app.exception_handler(LimisError)
    async def _refused(request: Request, error: LimisError) -> Response:
        field = error.field if isinstance(error, FieldError) else ""
        return answer(request, 422, [(field, words(error))])

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        return answer(request, error.status_code, [("", str(error.detail))], error.headers)

    @app.exception_handler(BusyError)
    async def _busy(request: Request, _: BusyError) -> Response:
        return answer(request, 503, [("", BUSY)], {"Retry-After": "2"})

    @app.exception_handler(Exception)
    async def _fault(request: Request, _: Exception) -> Response:
        # The server writes where it happened to its log; whoever asked is told no more than that it did.
        return answer(request, 500, [("", FAULT)])


def words(error: BaseException) -> str:
    """An error's first line: what libraries add after it are stack traces."""
    return printable(str(error).partition("\n")[0])[:LONGEST_MESSAGE]


def answer(request: Request, status: int, problems: Sequence[tuple[str, str]], headers: Any = None) -> Response:
    """JSON for programs, a page for people."""
    if request.url.path.startswith("/api/") or request.url.path == "/openapi.json":
        detail = [{"field": printable(field), "message": printable(message)} for field, message in problems]
        return JSONResponse({"detail": detail}, status_code=status, headers=headers)
    told = [f"{field}: {message}" if field else message for field, message in problems]
    return page(
        "problem.html",
        status=status,
        headers=headers,
        heading=_HEADINGS.get(status, "That did not work"),
        problems=told,
    )


def _path(places: Sequence[Any]) -> str:
    """Where in the request, as in rows.0.age."""
    inside = places[1:] if places and places[0] in ("body", "query", "path") else places
    deepest = _DEEPEST.get(inside[0]) if inside else None
    return ".".join(map(str, inside[:deepest]))[:LONGEST_MESSAGE]
