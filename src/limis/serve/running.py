"""Serving an app until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from limis.errors import InputError

MOST_CONNECTIONS = 900  # of the 1,024 files that a process may usually have open


def run(app: Any, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve ``app`` until the process is interrupted; ``ready`` is told the address once requests are heard.

    Parameters
    ----------
    app : ASGI app
        From `make_app`.
    host, port : str, int
        Where to listen; port 0 takes any that is free.
    ready : callable
        Called with the address, such as ``http://127.0.0.1:8000``.

    Raises
    ------
    InputError
        If the port is taken or the host is not one of this machine's.
    """
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=75,  # longer than clients keep connections: one closed while it is used again is an error
    )
    ready(f"http://{shown}:{listening.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot listen on {host}, port {port}: {why}; choose others with --host and --port") from None
