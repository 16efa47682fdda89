"""Who may ask, and with how much: looked at before anything of a request is read."""

from __future__ import annotations

import hmac
import json
import secrets
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limis.serve.settings import Settings

COOKIE = "limis-session"  # and the port: browsers share cookies among all ports of a machine
OPEN_PATHS = ("/api/health", "/login", "/static/")  # nothing there tells of the data
LOGIN_BYTES = 10_000  # anyone may send them
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not "no-referrer": browsers would then no longer say where a form was sent from.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """An ASGI layer that refuses: other names of this machine, forms of other sites, strangers, and large bodies.

    Every answer that passes gets headers that forbid the browser to load or run anything from elsewhere.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings
        # A browser keeps this instead of the token, for as long as the server runs.
        self.session = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it pass."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope.setdefault("state", {})["guard"] = self
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, send)
            return
        limit = self._limit(scope["path"])
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limit:
            await _Refusal(413, _too_large(limit))(scope, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(message)
            await send(message)

        await self.app(scope, _counted(receive, limit), sending)

    def _limit(self, path: str) -> int:
        if path == "/login":
            return LOGIN_BYTES
        return self.settings.most_upload if path == "/tables" else self.settings.most_json

    def knows(self, token: str) -> bool:
        """Whether this is the token, in a time that says nothing about how near it is."""
        assert self.settings.token is not None
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.settings.token.encode())

    def _refusal(self, scope: Scope, headers: Headers) -> _Refusal | None:
        host = headers.get("host", "")
        if self.settings.hosts is not None and _name(host) not in self.settings.hosts:
            # A page elsewhere may have its name point here; it still cannot change what the browser calls us.
            return _Refusal(421, f"this server is not called {_name(host)!r}")
        if scope["method"] not in ("GET", "HEAD"):
            if not _same_origin(headers, host):
                return _Refusal(403, "this request comes from the page of another site")
            if scope["path"].startswith("/api/") and not _is_json(headers):
                return _Refusal(415, "the body must be application/json")
        if self.settings.token is None or scope["path"].startswith(OPEN_PATHS):
            return None
        return self._stranger(scope, headers)

    def _stranger(self, scope: Scope, headers: Headers) -> _Refusal | None:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.knows(given.strip()):
            return None
        if hmac.compare_digest(_cookie(headers, _cookie_name(scope)).encode("utf-8", "replace"), self.session.encode()):
            return None
        if scope["path"].startswith("/api/") or scope["path"] == "/openapi.json":
            return _Refusal(401, "a token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        path = quote(scope["path"])
        if any(name == "token" and self.knows(value) for name, value in query) and scope["method"] == "GET":
            # The token leaves the address at once: addresses are kept in histories and logs.
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            return _Refusal(
                303, "", {"Location": path + (f"?{rest}" if rest else ""), "Set-Cookie": self.cookie(scope)}
            )
        return _Refusal(303, "", {"Location": f"/login?next={path}"})

    def cookie(self, scope: Scope) -> str:
        """The cookie that lets a browser in."""
        secure = "; Secure" if Headers(scope=scope).get("x-forwarded-proto") == "https" else ""
        return f"{_cookie_name(scope)}={self.session}; HttpOnly; SameSite=Lax; Path=/{secure}"


class _Refusal:
    """A short answer instead of what was asked for."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.message = message
        self.headers = headers or {}

    async def __call__(self, scope: Scope, send: Send) -> None:
        body = json.dumps({"detail": [{"field": "", "message": self.message}]}).encode()
        kind = "application/json"
        if not scope["path"].startswith("/api/"):
            body, kind = self.message.encode(), "text/plain; charset=utf-8"
        start: Message = {"type": "http.response.start", "status": self.status, "headers": []}
        _add_headers(start)
        headers = MutableHeaders(raw=start["headers"])
        headers.update({"Content-Type": kind, "Content-Length": str(len(body)), **self.headers})
        if self.status == 413:
            headers["Connection"] = "close"  # what is still on its way is not read
        await send(start)
        await send({"type": "http.response.body", "body": body})


def _add_headers(message: Message) -> None:
    headers = MutableHeaders(raw=message["headers"])
    for name, value in HEADERS.items():
        headers.setdefault(name, value)


def _counted(receive: Receive, limit: int) -> Receive:
    """Receive a body, and stop where it is longer than it may be: one sent in chunks does not say how long it is."""
    read = 0

    async def counted() -> Message:
        nonlocal read
        message = await receive()
        if message["type"] == "http.request":
            read += len(message.get("body", b""))
            if read > limit:
                raise HTTPException(413, _too_large(limit), {"Connection": "close"})
        return message

    return counted


def _too_large(limit: int) -> str:
    return f"the body is larger than {limit:,} bytes, which is the limit"


def _name(host: str) -> str:
    """The host without its port, and without the brackets of IPv6."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()


def _same_origin(headers: Headers, host: str) -> bool:
    """Whether a request was sent by one of our own pages, or by no page at all."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.partition("://")[2] == host
    return headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def _is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _cookie_name(scope: Scope) -> str:
    server = scope.get("server") or ("", 0)
    return f"{COOKIE}-{server[1]}"


def _cookie(headers: Headers, name: str) -> str:
    return cookie_parser(headers.get("cookie", "")).get(name, "")
