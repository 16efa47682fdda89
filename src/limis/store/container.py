"""The file itself: members in a zip archive, written all or not at all, and read only when they are whole."""

from __future__ import annotations

import hashlib
import os
import uuid
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from limis.errors import StoreError
from limis.store.plain import checked, from_json, one_line, to_json

FORMAT = "limis explainer"
VERSION = 4  # raised with every change that an older limis could not read
OLDEST = 4  # that this one still reads
MANIFEST = "manifest.json"

_ZIP_START = b"PK\x03\x04"


@dataclass
class Manifest:
    """What ``manifest.json`` holds."""

    limis: str  # the version that saved the file
    parameters: dict[str, Any]
    table: dict[str, Any]
    frame: list[dict[str, Any]]  # the type of each column of the training frame
    label: list[dict[str, Any]]  # the type of the training rows' labels
    black_box: dict[str, Any]
    global_fit: dict[str, float]
    weighting: dict[str, Any]
    bound: dict[str, Any] | None
    trust: dict[str, Any] | None
    measured: dict[str, float]  # skill_ and nse_, where they are known
    choices: list[dict[str, Any]]
    training_log: list[dict[str, Any]]
    skills: dict[str, float] = field(default_factory=dict)  # skill on changes by range, where it is known
    by_class: list[dict[str, Any]] = field(default_factory=list)  # bound and measures of each of several classes
    curve_facts: dict[str, float] = field(default_factory=dict)  # how curves were learned
    members: dict[str, str] = field(default_factory=dict)  # SHA-256 of every other member


def target_of(path: Any) -> Path:
    """The file that saving to ``path`` writes; refused before any work where it cannot be."""
    target = Path(os.path.realpath(path))  # a link stays a link: what it points to is replaced
    if target.is_dir():
        raise StoreError(f"{path} is a folder; name a file in it, such as {Path(path) / 'explainer.limis'}")
    if not target.parent.is_dir():
        raise StoreError(f"the folder {target.parent} does not exist; make it first")
    return target


def write(target: Path, manifest: Manifest, members: dict[str, bytes]) -> None:
    """Write beside the target and move into place: until the last moment the old file is whole."""
    manifest.members = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    try:
        text = to_json({"format": FORMAT, "version": VERSION, **asdict(manifest)}, indent=1)
    except TypeError as error:
        raise StoreError(f"the explainer cannot be saved: its options or classes hold {error}") from error
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                for name, data in {MANIFEST: text.encode(), **members}.items():
                    # ZipInfo has a fixed date, so equal explainers give equal files.
                    archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, compresslevel=1)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror or error}; what was there is unchanged") from error
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Any, wanted: tuple[str, ...]) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest and, of the wanted members, those that the file has; every byte checked."""
    with _open(Path(path)) as archive:
        if MANIFEST not in archive.namelist():
            raise _not_limis(path)
        text = _member(archive, MANIFEST, path)
        try:
            data = from_json(text)
        except Exception as error:  # a value of any kind may be unreadable
            raise damaged(path, f"{MANIFEST} cannot be read") from error
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise _not_limis(path)
        _check_version(path, data.pop("version", None), data.get("limis"))
        try:
            manifest = Manifest(**checked(Manifest, data))
        except TypeError as error:
            raise damaged(path, f"{MANIFEST} is not as limis writes it ({one_line(error)})") from error
        digests = manifest.members
        return manifest, {name: _member(archive, name, path, digests[name]) for name in wanted if name in digests}


def damaged(path: Any, what: str) -> StoreError:
    """The error of a file that is a saved explainer, but not a whole one."""
    return StoreError(f"{path} is damaged: {what}; take another copy or save the explainer again")


def _not_limis(path: Any) -> StoreError:
    return StoreError(f"{path} is not a saved explainer; load takes files written by LimisExplainer.save")


def _open(path: Path) -> zipfile.ZipFile:
    if path.is_dir():
        raise StoreError(f"{path} is a folder; name the file in it that was saved")
    try:
        with path.open("rb") as file:
            start = file.read(len(_ZIP_START))
    except FileNotFoundError as error:
        raise StoreError(f"there is no file {path}; check the path, or save an explainer there first") from error
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}; check who may read it") from error
    if start != _ZIP_START:
        raise _not_limis(path)
    try:
        return zipfile.ZipFile(path)
    except Exception as error:  # damage makes zipfile fail in a dozen ways
        raise damaged(path, "it is cut short, or its end was changed") from error


def _member(archive: zipfile.ZipFile, name: str, path: Any, digest: str | None = None) -> bytes:
    try:
        data = archive.read(name)
    except Exception as error:  # as above
        raise damaged(path, f"{name} cannot be read") from error
    if digest is not None and hashlib.sha256(data).hexdigest() != digest:
        raise damaged(path, f"{name} is not what was saved")
    return data


def _check_version(path: Any, version: Any, made_by: Any) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise damaged(path, f"{MANIFEST} has no format version")
    if version < OLDEST:
        raise StoreError(f"{path} was made by an older limis ({made_by}, format {version}); fit and save it again")
    if version > VERSION:
        raise StoreError(
            f"{path} was made by a newer limis ({made_by}, format {version}; this one reads up to {VERSION}); "
            "upgrade with: pip install --upgrade limis-xai"
        )
