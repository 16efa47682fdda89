"""The page that asks for the token, where one is needed."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from limis.serve.rendering import page

LONGEST_TOKEN = 1000


def make_login() -> APIRouter:
    """The form, and what it sends."""
    router = APIRouter(include_in_schema=False)

    @router.get("/login")
    async def form(request: Request) -> Response:
        return page("login.html", wrong=False, next=_local(request.query_params.get("next", "/")))

    @router.post("/login")
    async def enter(request: Request) -> Response:
        guard = request.state.guard
        async with request.form(max_files=0, max_fields=4) as given:
            token, target = str(given.get("token", "")), _local(str(given.get("next", "/")))
        if guard.settings.token is None:
            return RedirectResponse(target, 303)
        if not guard.knows(token.strip()[:LONGEST_TOKEN]):
            return page("login.html", status=403, wrong=True, next=target)
        return RedirectResponse(target, 303, {"Set-Cookie": guard.cookie(request.scope)})

    return router


def _local(address: str) -> str:
    """An address on this server: a form may not lead anywhere else.

    Examples
    --------
    >>> [_local(address) for address in ("/tables/rows", "//elsewhere.example", "https://elsewhere.example")]
    ['/tables/rows', '/', '/']
    """
    plain = address.startswith("/") and not address.startswith("//") and "\\" not in address
    return address if plain and address.isprintable() else "/"
