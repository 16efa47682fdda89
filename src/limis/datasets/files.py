"""Where the raw files of data sets are found, and whether they are the right ones.

Looked for in the folder ``LIMIS_DATA``, else in ``../shared/data`` if there is such a folder, else in a folder of the
user's cache, into which they are downloaded. A file may lie there as it was published, compressed with gzip, or
inside the archive that its publisher offers; what is checked is the SHA-256 of its contents.
"""

import gzip
import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from limis.errors import InputError, require

__all__ = ["RawFile", "data_folder", "read_numbers", "read_raw", "whole_numbers"]

SHARED = Path("../shared/data")


@dataclass(frozen=True)
class RawFile:
    """A file as its publisher made it.

    Attributes
    ----------
    name : str
        Its path below the data folder.
    sha256 : tuple of str
        Of the contents, uncompressed: any of these will do.
    url : str, default=""
        Where it, or the archive with it, is published; nothing can be downloaded where empty.
    archives : tuple of str, default=()
        Paths of zip archives that may hold it, below the data folder; the last one is what ``url`` leads to.
    by_hand : str, default=""
        How to get it where there is no address.
    """

    name: str
    sha256: tuple[str, ...]
    url: str = ""
    archives: tuple[str, ...] = ()
    by_hand: str = ""

    @property
    def published(self) -> str:
        """What is saved of ``url``: the last archive, or the file itself."""
        return self.archives[-1] if self.archives else self.name


def data_folder() -> Path:
    """Where data sets are that limis does not bring along.

    Returns
    -------
    Path
        ``LIMIS_DATA``, else ``../shared/data`` if it is there, else a folder of the user's cache.
    """
    given = os.environ.get("LIMIS_DATA")
    if given:
        return Path(given).expanduser()
    return SHARED if SHARED.is_dir() else cache_folder()


def read_raw(file: RawFile, folder: str | os.PathLike[str] | None = None) -> bytes:
    """Read a raw file and check that it is the right one.

    Parameters
    ----------
    file : RawFile
        Which one.
    folder : path, default=None
        Where to look; nothing is downloaded into it. `data_folder` where not given.

    Returns
    -------
    bytes
        The contents, uncompressed.

    Raises
    ------
    InputError
        If the file is not there, damaged or another one, or cannot be downloaded.
    MissingExtraError
        If it has to be downloaded and pooch is not installed.
    """
    where = data_folder() if folder is None else Path(folder)
    found = _find(file, where)
    if found is None and file.url and folder is None and where == cache_folder():
        _download(file, where)
        found = _find(file, where)
    if found is None:
        raise InputError(f"there is no {where / file.name} (or {Path(file.name).name}.gz): {_cure(file, where)}")
    place, contents = found
    digest = hashlib.sha256(contents).hexdigest()
    if digest not in file.sha256:
        expected = " or ".join(file.sha256)
        raise InputError(
            f"{place} is not the file that limis knows: its SHA-256 is {digest}, not {expected}; "
            f"move it away, then {_cure(file, where)}"
        )
    return contents


def read_numbers(raw: bytes, columns: Sequence[str]) -> pd.DataFrame:
    r"""A table from lines of numbers without names; columns of whole numbers become integers.

    Examples
    --------
    >>> read_numbers(b"1.0,0.5\n2.0,3.0\n", ["count", "mean"])
       count  mean
    0      1   0.5
    1      2   3.0
    """
    return whole_numbers(pd.read_csv(io.BytesIO(raw), header=None, names=list(columns)))


def whole_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """The table of numbers, with columns that have nothing behind the point as integers."""
    whole = (frame % 1 == 0).all()
    return frame.astype(dict.fromkeys(frame.columns[whole], "int64"))


def cache_folder() -> Path:
    """A folder of the user for what can be made or fetched again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "limis"


def _find(file: RawFile, where: Path) -> tuple[str, bytes] | None:
    """Where the file is, in words, and its contents; None where it is not."""
    for name in (file.name, f"{file.name}.gz", *file.archives):
        path = where / name
        if not path.is_file():
            continue
        try:
            contents = _member(path, file.name) if name in file.archives else path.read_bytes()
            if contents is not None and path.suffix == ".gz":
                contents = gzip.decompress(contents)
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
            raise InputError(f"{path} cannot be read ({error}): move it away, then {_cure(file, where)}") from error
        if contents is not None:
            return f"{file.name} in {path}" if name in file.archives else str(path), contents
    return None


def _member(archive: Path, name: str) -> bytes | None:
    """The contents of the archive's file of this name, in whatever folder of it."""
    with zipfile.ZipFile(archive) as opened:
        for member in opened.namelist():
            if PurePosixPath(member).name == PurePosixPath(name).name:
                return opened.read(member)
    return None


def _download(file: RawFile, where: Path) -> None:
    pooch = require("pooch", extra="data")
    target = where / file.published
    # The hash of an archive is not known: its members are checked when they are read.
    known = None if file.archives else file.sha256[0]
    try:
        pooch.retrieve(file.url, known_hash=known, fname=target.name, path=target.parent)
    except (OSError, ValueError) as error:
        raise InputError(f"{file.url} could not be downloaded ({error}): {_cure(file, where)}") from error


def _cure(file: RawFile, where: Path) -> str:
    """What to do to have the file there."""
    get = f"save {file.url} as {where / file.published}" if file.url else file.by_hand
    return f"{get}, or set LIMIS_DATA to the folder that holds {file.name}"
