"""Costly things that several runs share, fitted once and kept in a folder under a digest of what decides them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import joblib

from limis.datasets.files import cache_folder

Kept = TypeVar("Kept")


def folder() -> Path:
    """Where they are: ``LIMIS_CACHE``, else a folder of the user's cache."""
    given = os.environ.get("LIMIS_CACHE")
    return Path(given) if given else cache_folder() / "black-boxes"


def digest(*decisive: Any) -> str:
    """A name for all that decides a result."""
    return hashlib.blake2b(joblib.hash(decisive).encode(), digest_size=10).hexdigest()


def kept(name: str, decisive: str, make: Callable[[], Kept]) -> Kept:
    """What was kept under a name and a digest, or what ``make`` gives, which is kept from now on."""
    path = folder() / f"{name}-{decisive}.joblib"
    if path.exists():
        found: Kept = joblib.load(path)
        return found
    made = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{uuid4().hex}.tmp")
    try:
        joblib.dump(made, draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return made
