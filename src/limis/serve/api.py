"""The REST interface: explain, what-if, suggest, neighbours, metadata, health."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pandas as pd
from fastapi import APIRouter, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from limis import __version__
from limis.errors import InputError
from limis.kinds import plain
from limis.serve import schema
from limis.serve.desk import Desk
from limis.serve.reading import RowReader, plain_row
from limis.serve.settings import Settings
from limis.serve.what_if import WhatIf, both
from limis.serve.words import Explained, as_json, finite, neighbour_data

EXPLAINED_TOGETHER, SUGGESTED_TOGETHER = 100, 8  # rows: between them others have their turn
HAS_TARGET = "it has the target already"
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": schema.Problems, "description": why}
    for status, why in {
        400: "the body is not JSON",
        401: "a token is needed",
        403: "the request comes from the page of another site",
        413: "too many rows, or too large a body",
        415: "the body is not application/json",
        421: "the server is called by a name that is not its own",
        422: "a field is missing, unknown or cannot be used",
        503: "too many requests are waiting",
    }.items()
}


def make_api(desk: Desk, reader: RowReader, settings: Settings) -> APIRouter:
    """All routes under /api."""
    bodies = schema.requests_for(reader.training, settings)
    router = APIRouter(prefix="/api", responses=_REFUSALS)

    def frame_from(rows: list[BaseModel]) -> pd.DataFrame:
        return reader.frame([plain_row(row) for row in rows], [f"rows.{row}" for row in range(len(rows))])

    @router.get("/health", summary="Whether the server answers")
    async def health() -> schema.Health:
        return schema.Health(status="ok")

    @router.get("/metadata", summary="What is explained, and how well")
    async def metadata() -> schema.Metadata:
        return _metadata(desk, settings)

    @router.post("/explain", response_model=schema.Explained, summary="Explain rows")
    async def explain(body: bodies.explain) -> Response:  # type: ignore[name-defined]
        told = await _in_parts(frame_from(body.rows), EXPLAINED_TOGETHER, desk.data)
        return _json(await _as_json({"explanations": told}, len(told)))

    @router.post("/neighbours", response_model=schema.Neighbours, summary="The training rows that speak for rows")
    async def neighbours(body: bodies.neighbours) -> Response:  # type: ignore[name-defined]
        near = partial(desk.explain, tell=partial(_tell_neighbours, k=body.k))
        told = await _in_parts(frame_from(body.rows), EXPLAINED_TOGETHER, near)
        return _json(await _as_json({"neighbours": told}, len(told)))

    @router.post("/what-if", response_model=schema.Changed, summary="What a changed row gets")
    async def what_if(body: bodies.what_if) -> Response:  # type: ignore[name-defined]
        row = reader.frame([plain_row(body.row)], ["row"])
        changed = reader.changed(row, plain_row(body.changes))
        tell = partial(_tell_what_if, changed=changed)
        return _json(await desk.explain(both(row, changed), tell))

    @router.post("/suggest", response_model=schema.Suggested, summary="Changes for which the model says something else")
    async def suggest(body: bodies.suggest) -> Response:  # type: ignore[name-defined]
        async def of_part(part: pd.DataFrame) -> list[Any]:
            return await desk.do(partial(_suggest, desk, part, body))

        told = await _in_parts(frame_from(body.rows), SUGGESTED_TOGETHER, of_part)
        return _json(as_json({"suggestions": told}))

    return router


def _json(text: bytes) -> Response:
    return Response(text, media_type="application/json")


async def _in_parts(
    frame: pd.DataFrame, size: int, ask: Callable[[pd.DataFrame], Coroutine[Any, Any, list[Any]]]
) -> list[Any]:
    """What is told of all rows, asked for a few at a time."""
    told = []
    for start in range(0, len(frame), size):
        told += await ask(frame.iloc[start : start + size])
    return told


async def _as_json(data: Any, n_rows: int) -> bytes:
    """JSON text; that of many rows is made where it keeps nobody waiting."""
    return as_json(data) if n_rows <= EXPLAINED_TOGETHER else await run_in_threadpool(as_json, data)


def _tell_neighbours(found: Explained, k: int) -> list[list[dict[str, Any]]]:
    return [neighbour_data(one, k) for one in found]


def _tell_what_if(found: Explained, changed: pd.DataFrame) -> bytes:
    return as_json(WhatIf(found, changed).to_dict())


def _suggest(desk: Desk, part: pd.DataFrame, body: Any) -> list[dict[str, Any]]:
    options = {
        "immutable": body.immutable,
        "ranges": body.ranges,
        "directions": body.directions,
        "n": body.n,
        "max_queries": body.max_queries,
    }
    try:
        return [row.to_dict() for row in desk.explainer.suggest(part, body.target, **options)]
    except InputError as error:
        if "there is nothing to suggest" not in str(error):
            raise
        # Rows that have the target already are no error where each row has an answer of its own.
        return [{"row": plain(label), "suggestions": [], "reason": HAS_TARGET} for label in part.index]


def _metadata(desk: Desk, settings: Settings) -> schema.Metadata:
    explainer = desk.explainer
    training = explainer.training_
    box = training.black_box
    classes = list(explainer.by_class_) if explainer.by_class_ else box.classes
    kind = explainer.surrogate if isinstance(explainer.surrogate, str) else type(explainer.surrogate).__name__
    return schema.Metadata(
        version=__version__,
        surrogate=kind,
        scale=box.scale,
        classes=None if classes is None else [plain(label) for label in classes],
        training_rows=len(training),
        skill=finite(getattr(explainer, "skill_", None)),
        nse=finite(getattr(explainer, "nse_", None)),
        has_model=box.can_be_asked,
        columns=[
            schema.ColumnInfo(
                name=column.name,
                kind=column.kind,
                levels=column.levels if column.is_category else None,
                sources=column.sources,
            )
            for column in training.table.columns
        ],
        limits={
            "rows": settings.most_rows,
            "suggest_rows": schema.SUGGEST_ROWS,
            "json_bytes": settings.most_json,
            "upload_bytes": settings.most_upload,
            "upload_rows": settings.upload_rows,
        },
    )
