"""What the black box said, kept on disk batch by batch: a fit that was stopped asks only what it had not asked yet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa

from limis.errors import InputError

BATCH = 5_000  # questions that are lost, at most, when a process dies
MARK = "model.txt"
DIGITS = 9  # of the outputs that tell one model from another: rounding may differ between machines


@dataclass(frozen=True)
class AnswerFolder:
    """A folder of Arrow files, each under a digest of the rows that it answers for. It is of one model alone."""

    path: Path

    @classmethod
    def open(cls, path: Any, frame: pd.DataFrame, outputs: np.ndarray) -> AnswerFolder:
        """The folder for a model, known by its outputs on training rows; one of another model is refused."""
        folder = cls(Path(path))
        mark = _digest(frame) + _of_bytes(np.array([f"{one:.{DIGITS}g}" for one in np.ravel(outputs)]).tobytes())
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise InputError(
                f"answers={str(path)!r} is a file; name a folder, which is made where it is missing"
            ) from None
        known = folder.path / MARK
        if not known.exists():
            _write(known, mark.encode())
        elif known.read_text(encoding="utf-8") != mark:
            raise InputError(
                f"{folder.path} holds the answers of another model, about other rows, or on another scale (output=); "
                "name a new folder"
            )
        return folder

    def find(self, frame: pd.DataFrame) -> np.ndarray | None:
        """What was said of these rows, (rows,) or (rows, classes); None where they were not asked about."""
        path = self._path(frame)
        if not path.exists():
            return None
        try:
            with pa.OSFile(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid:  # damaged: asked about again
            return None
        found = np.stack([column.to_numpy() for column in table.columns], axis=1)
        return found[:, 0] if table.column_names == ["output"] else found

    def keep(self, frame: pd.DataFrame, outputs: np.ndarray) -> None:
        """Write what was said of these rows: whole, or not at all."""
        columns = (
            {"output": outputs} if outputs.ndim == 1 else {f"class {i}": outputs[:, i] for i in range(outputs.shape[1])}
        )
        table = pa.table(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        _write(self._path(frame), sink.getvalue().to_pybytes())

    def _path(self, frame: pd.DataFrame) -> Path:
        return self.path / f"{_digest(frame)}.arrow"


def _digest(frame: pd.DataFrame) -> str:
    """A name for the content of rows."""
    return _of_bytes(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes() + repr(list(frame)).encode())


def _of_bytes(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _write(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{uuid4().hex}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
