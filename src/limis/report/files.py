"""Writing a finished page to disk."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from limis.errors import InputError


def write_text(path: str | os.PathLike[str], html: str) -> None:
    """Write a page to a file: whole, or not at all.

    Parameters
    ----------
    path : str or path
        Where to write; a file that is there is replaced.
    html : str
        What to write.

    Raises
    ------
    InputError
        If the folder does not exist, or ``path`` cannot be written.
    """
    target = Path(path)
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"cannot write {target.name!r}: the folder {str(folder)!r} does not exist; make it first")
    if target.is_dir():
        raise InputError(f"cannot write {str(target)!r}: it is a folder; give the name of a file in it")
    # Beside the target, because only within one file system is replacing a file a single step.
    draft = folder / f".limis-{uuid4().hex}.tmp"
    try:
        draft.write_text(html, encoding="utf-8", newline="\n")
        draft.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {str(target)!r}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
