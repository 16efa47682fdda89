"""What a server allows: who may ask, and how much."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from limis.errors import InputError

MIB = 2**20
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
LEAST_TOKEN = 16  # characters: fewer could be guessed


@dataclass(frozen=True)
class Settings:
    """Limits of one server; the defaults suit a machine of one person.

    Attributes
    ----------
    token : str or None
        What whoever asks must know; None asks for nothing.
    hosts : tuple of str or None
        Names that the server may be called by. None: any, which is only safe with a token.
    most_rows : int
        Rows in one request.
    most_json, most_upload : int
        Bytes of a JSON body, and of an uploaded file.
    upload_rows, most_uploads, upload_seconds : int
        Rows of a file, files held at once (the one not used for longest goes first), and how long one is held unused.
    most_waiting : int
        Requests that may wait for the explainer; more are told to come back later.
    """

    token: str | None = None
    hosts: tuple[str, ...] | None = LOOPBACK_NAMES
    most_rows: int = 1000
    most_json: int = 8 * MIB
    most_upload: int = 32 * MIB
    upload_rows: int = 10_000
    most_uploads: int = 20
    upload_seconds: int = 3600
    most_waiting: int = 1000

    def __post_init__(self) -> None:
        if self.token is not None and (len(self.token) < LEAST_TOKEN or not self.token.isascii()):
            raise InputError(f"a token has at least {LEAST_TOKEN} characters, all of them ASCII")
        if self.hosts is None and self.token is None:
            raise InputError("a server that others can reach needs a token")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that is bound to ``host``.

    Examples
    --------
    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
