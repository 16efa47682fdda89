"""The whole server as one ASGI app: pages, REST, and the guard before both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pandas as pd
from fastapi import APIRouter, FastAPI, HTTPException, Response
from starlette.middleware import Middleware

from limis import __version__
from limis.explainer import LimisExplainer
from limis.report import style
from limis.serve.api import make_api
from limis.serve.browse import make_browsing
from limis.serve.desk import Desk
from limis.serve.docs_page import operations
from limis.serve.errors import add_error_answers
from limis.serve.exchange import make_exchange
from limis.serve.guard import Guard
from limis.serve.login import make_login
from limis.serve.look import make_looking
from limis.serve.reading import RowReader
from limis.serve.rendering import STATIC, card, page, static_file
from limis.serve.settings import Settings
from limis.serve.site import Site
from limis.serve.tables import FIRST, Tables, hold

SAMPLE_ROWS = 200
DESCRIPTION = "Explains the predictions of a tabular model, one row at a time, and says how far to trust it."


def make_app(
    explainer: LimisExplainer, rows: pd.DataFrame | None = None, name: str = "", settings: Settings | None = None
) -> FastAPI:
    """A server for one fitted explainer.

    Parameters
    ----------
    explainer : LimisExplainer
        Fitted, with its model where suggestions and what-ifs are wished.
    rows : DataFrame, default=None
        Rows to browse; a sample of the training rows when None.
    name : str, default=""
        What to call them.
    settings : Settings, default=None
        Who may ask, and how much: by default this machine alone.

    Returns
    -------
    FastAPI
        Explains from a thread of its own while it runs.
    """
    settings = settings or Settings()
    training = explainer.training_
    if rows is None:
        rows, name = _sample(training.frame), "a sample of the training rows"
    desk = Desk(explainer, settings.most_waiting)
    tables = Tables(desk, settings)
    tables.check_size(rows, name)
    first = hold(FIRST, name, rows.reset_index(drop=True), training)
    # The first explanation also takes the time that later ones do not: tables of the model, compiled code.
    card(explainer.explain(first.features.iloc[:1]))

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        desk.open()
        tables.start_with(first)
        yield
        desk.close()

    app = FastAPI(
        title="limis",
        version=__version__,
        description=DESCRIPTION,
        lifespan=running,
        docs_url=None,  # FastAPI's own pages load their scripts from elsewhere
        redoc_url=None,
        middleware=[Middleware(Guard, settings=settings)],
    )
    add_error_answers(app)
    reader = RowReader(training)
    app.include_router(make_api(desk, reader, settings))
    site = Site(desk, tables, reader)
    for router in (make_browsing(site), make_looking(site), make_exchange(site), make_login(), _make_files(style())):
        app.include_router(router)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return page("docs.html", operations=operations(app.openapi()), has_token=settings.token is not None)

    return app


def _make_files(card_css: str) -> APIRouter:
    """The routes of scripts and styles."""
    router = APIRouter(include_in_schema=False, prefix="/static")
    known = {name: (static_file(name), kind) for name, kind in STATIC.items()} | {"card.css": (card_css, "text/css")}

    @router.get("/{name}")
    async def file(name: str) -> Response:
        if name not in known:
            raise HTTPException(404, "there is no such file")
        text, kind = known[name]
        return Response(text, media_type=kind, headers={"Cache-Control": "no-cache"})

    return router


def _sample(frame: pd.DataFrame) -> pd.DataFrame:
    """Training rows, evenly from the first to the last."""
    return frame.iloc[:: max(1, -(-len(frame) // SAMPLE_ROWS))]
