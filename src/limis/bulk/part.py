"""One part: its rows are read, explained and written, and all that happened fits into a few words."""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from limis import errors, store
from limis.bulk.plan import Part
from limis.bulk.source import UNREADABLE, in_schema, own_columns, read_rows
from limis.class_explanations import ClassExplanations
from limis.errors import InputError, LimisError
from limis.lines import explained_lines
from limis.table_files import as_seen, frame_of

EXPLAINER = "_explainer.limis"
ROW_NUMBER = "row_number"
LOADING = "loading"
UNFINISHED = ".tmp"
NOTE = b"limis"  # under which a part's counts stand in its file
# What so many workers died at is given up: a part that kills every worker must not go on forever.
ATTEMPTS = 3
CURE = "use fewer rows_a_part or fewer workers"


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know, beside the explainer's file in the output folder."""

    source: Path
    output: Path
    parts: dict[int, Part]
    schema: pa.Schema  # of the input's own columns in the output
    options: dict[str, Any]  # outputs, one_class, and those of `explain` about questions
    memory_limit: float  # GiB for each worker
    model: bytes | None  # pickled, where the explainer's file does not hold it
    search_path: list[str] = field(default_factory=lambda: [str(Path(place).absolute()) for place in sys.path])


@dataclass(frozen=True)
class Outcome:
    """A part that was explained, or what went wrong: plain values, which travel between processes by any road."""

    number: int
    rows: int = 0
    error: str = ""  # the name of its class
    message: str = ""
    trace: str = ""

    def check(self) -> Outcome:
        """Raise here what was raised where the part was explained."""
        if not self.error:
            return self
        kind = getattr(errors, self.error, None)
        if kind is not None:
            raise kind(self.message)
        failed = RuntimeError(self.message)
        failed.add_note(self.trace)
        raise failed


class PartExplainer:
    """An explainer, loaded once, that explains part after part; whatever goes wrong is told, never raised."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.trouble: Exception | None = None
        torch.set_num_threads(1)  # the workers share the cores
        try:
            sys.path += [place for place in job.search_path if place not in sys.path]
            if died_too_often(job.output, LOADING):
                raise keeps_dying("loading the explainer")
            with begun(job.output, LOADING):
                model = None if job.model is None else _unpickled(job.model)
                self.explainer = store.load(job.output / EXPLAINER, model=model)
            self.explainer.memory_limit = job.memory_limit
        except Exception as error:  # noqa: BLE001 - a model may raise anything, and the driver is to hear of it
            self.trouble = error

    def explain(self, number: int) -> Outcome:
        """Explain a part and write its file, unless that is done."""
        part = self.job.parts[number]
        if self.trouble is not None:
            return Outcome(number, error=_kind(self.trouble), message=str(self.trouble))
        folder = self.job.output
        try:
            # A worker that died may have finished this part before anyone heard of it.
            if counts_of(folder / part.output_name, part) is None:
                if died_too_often(folder, part.output_name):
                    raise keeps_dying(part)
                with begun(folder, part.output_name) as unfinished:
                    self._explain(part, unfinished)
        except LimisError as error:
            return Outcome(number, error=_kind(error), message=_named(error, self.job.source / part.file.name))
        except MemoryError:
            return Outcome(number, error="InputError", message=f"there is not enough memory for {part}; {CURE}")
        except Exception as error:  # noqa: BLE001 - as above
            message = f"{part} failed with {type(error).__name__}: {error}"
            return Outcome(number, error="RuntimeError", message=message, trace=traceback.format_exc())
        return Outcome(number, part.stop - part.start)

    def _explain(self, part: Part, unfinished: Path) -> None:
        job, path = self.job, self.job.source / part.file.name
        table = read_rows(path, part.start, part.stop, batch_rows=part.stop - part.start)
        if len(table) != part.stop - part.start:
            raise InputError(f"{path} was changed while it was explained; run the same again")
        told = self._told(table, part, path)
        own = in_schema(table.select(own_columns(table.schema)), job.schema, path)
        with unfinished.open("wb") as file:
            pq.write_table(_beside(own, told, part), file)
            file.flush()
            os.fsync(file.fileno())
        # Whole or not at all: a reader, or a run that goes on, never sees half a part.
        unfinished.replace(job.output / part.output_name)

    def _told(self, table: pa.Table, part: Part, path: Path) -> pd.DataFrame:
        """What is told of the rows, without their own columns."""
        options, training = self.job.options, self.explainer.training_
        frame = frame_of(table, path)
        if frame.index.name is not None and frame.index.name not in frame.columns:
            frame = frame.reset_index()
        frame.index = pd.RangeIndex(part.start, part.stop)  # errors name a row by its place in the file
        outputs = None if options["outputs"] is None else frame[options["outputs"]]
        features = as_seen(frame, training.frame, path)
        questions = {name: value for name, value in options.items() if name not in ("outputs", "one_class")}
        found = self.explainer.explain(features, outputs=outputs, **questions)
        if options["one_class"] is not None:
            found = found.for_class(options["one_class"])
        told = explained_lines(found, pd.DataFrame(index=frame.index))
        if isinstance(found, ClassExplanations):
            told.attrs["classes"] = len(found.classes)
        return told


def counts_of(path: Path, part: Part) -> tuple[int, int] | None:
    """The rows of a finished part and how many of them are trusted; None where it is not finished."""
    try:
        note = json.loads((pq.read_schema(path).metadata or {})[NOTE])
        rows, trusted = int(note["rows"]), int(note["trusted"])
    except (*UNREADABLE, KeyError, TypeError):
        return None
    return (rows, trusted) if rows == part.stop - part.start else None


@contextmanager
def begun(folder: Path, name: str) -> Iterator[Path]:
    """A file to write to that is gone when the work on ``name`` is done or failed, and left only by a death.

    So deaths can be counted whoever restarts the workers; Ray does so without end.
    """
    trace = folder / f".{name}.{uuid.uuid4().hex}{UNFINISHED}"
    trace.touch()
    try:
        yield trace
    finally:
        trace.unlink(missing_ok=True)


def died_too_often(folder: Path, name: str) -> bool:
    """Whether to give up on ``name``."""
    return len(list(folder.glob(f".{name}.*{UNFINISHED}"))) >= ATTEMPTS


def clear_traces(folder: Path) -> None:
    """Forget the deaths of workers that are gone."""
    for trace in folder.glob(f".*{UNFINISHED}"):
        trace.unlink(missing_ok=True)


def keeps_dying(what: Part | str, how: str = "") -> InputError:
    """The error of work that no worker survives."""
    return InputError(
        f"{ATTEMPTS} workers died one after another at {what}{how}: most often there is not enough memory; {CURE}"
    )


def _beside(own: pa.Table, told: pd.DataFrame, part: Part) -> pa.Table:
    """The rows' own columns, their number in the input and what is told of them; of several classes a line each."""
    several = told.attrs.pop("classes", 1)
    numbers = pd.Series(range(part.first_row, part.first_row + len(own)), dtype="int64")
    own = own.append_column(ROW_NUMBER, pa.array(numbers))
    if several > 1:
        own = own.take(pa.array(pd.RangeIndex(len(own)).repeat(several)))
    trusted = told["trusted"] if several == 1 else told["trusted"] & told["predicted"]
    for name, values in zip(told.columns, pa.Table.from_pandas(told, preserve_index=False).columns, strict=True):
        own = own.append_column(str(name), values)
    return own.replace_schema_metadata(
        {NOTE: json.dumps({"rows": part.stop - part.start, "trusted": int(trusted.sum())})}
    )


def _unpickled(model: bytes) -> Any:
    try:
        return pickle.loads(model)  # noqa: S301 - the driver, which is the same user's, pickled it a moment ago
    except Exception as error:  # a pickle may run anything, so it may raise anything
        raise InputError(
            f"a worker cannot load the model: {type(error).__name__}: {error}; what the model needs must be "
            "installed, or in a folder that Python searches, wherever workers run"
        ) from error


def _kind(error: Exception) -> str:
    return type(error).__name__ if isinstance(error, LimisError) else "RuntimeError"


def _named(error: Exception, path: Path) -> str:
    return str(error) if str(path) in str(error) else f"{path}: {error}"
