"""The whole work: plan, go on where it stopped, have the parts explained, and count what is there."""

from __future__ import annotations

import copy
import hashlib
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import cloudpickle

from limis.against import ALL
from limis.bulk.on_ray import run_on_ray
from limis.bulk.part import EXPLAINER, ROW_NUMBER, UNFINISHED, Job, clear_traces, counts_of
from limis.bulk.plan import PLAN, Part, Plan
from limis.bulk.processes import run_in_processes
from limis.bulk.source import Source, look_at
from limis.class_explanations import place_of_class
from limis.errors import InputError, StoreError, require
from limis.explainer import LimisExplainer
from limis.lines import line_names
from limis.progress import progress
from limis.store.models import MODEL_MEMBERS


@dataclass(frozen=True)
class BulkResult:
    """What is in the output folder now.

    Attributes
    ----------
    folder : Path
        Where the parts are, as ``part-000000.parquet`` and so on.
    rows : int
        How many rows were explained, each once.
    trusted : int
        Of how many of them the explanation is trusted; of several classes, that of the predicted one.
    parts : int
        In how many files.
    parts_found : int
        How many of these were there already, from a run before.
    """

    folder: Path
    rows: int
    trusted: int
    parts: int
    parts_found: int


def explain_dataset(
    explainer: LimisExplainer,
    source: Any,
    output: Any,
    *,
    cluster: str | None = None,
    workers: int = 2,
    rows_a_part: int = 5000,
    outputs: str | None = None,
    one_class: Any = None,
    questions: dict[str, Any] | None = None,
) -> BulkResult:
    """Explain Parquet files of any size; see `LimisExplainer.explain_dataset`."""
    _check_count("workers", workers)
    _check_count("rows_a_part", rows_a_part)
    if cluster is not None:
        require("ray", "ray")
    nothing: dict[str, Any] = {
        "queries": 0,
        "reason_queries": 0,
        "until_trusted": 0,
        "reference": ALL,
        "reasons": "curves",
    }
    questions = nothing | (questions or {})
    if not isinstance(questions["reference"], (str, dict)):
        raise InputError("a reference of rows in parts is a condition or a group of training rows, not rows")
    options = {"outputs": outputs, "one_class": _class_label(explainer, one_class), **questions}
    if questions != nothing:
        explainer.explain(explainer.training_.frame.iloc[:1], **questions)  # says at once where it cannot
    names = explainer.training_.table.source_names
    rows = look_at(Path(source), needed=[*names, *([] if outputs is None else [outputs])])
    folder = Path(output)
    _check_names(rows, explainer, several=bool(explainer.by_class_) and one_class is None)
    _check_places(Path(source), folder)
    with _alone_in(folder):
        saved = folder / EXPLAINER
        try:
            model = _save(explainer, saved)
            plan = Plan(rows.files, int(rows_a_part), _digest(saved), options)
            parts = plan.parts()
            found = _take_up(plan, folder)
            job = Job(
                rows.folder.absolute(),
                folder.absolute(),
                {part.number: part for part in parts if part.number not in found},
                rows.schema,
                options,
                explainer.memory_limit / workers,  # which is meant for the whole machine
                model,
            )
            _run(job, rows.rows, cluster, int(workers), show=bool(explainer.verbose))
        finally:
            # It holds training rows, which whoever reads the results need not see.
            saved.unlink(missing_ok=True)
            clear_traces(folder)
        return _counted(folder, parts, len(found))


def _run(job: Job, rows: int, cluster: str | None, workers: int, show: bool) -> None:
    if not job.parts:
        return
    outcomes = run_in_processes(job, workers) if cluster is None else run_on_ray(job, workers, cluster)
    left = sum(part.stop - part.start for part in job.parts.values())
    with progress(rows, "explaining rows", show) as bar:
        bar.update(rows - left)
        try:
            for outcome in outcomes:
                bar.update(outcome.check().rows)
        finally:
            outcomes.close()  # ends the workers, also where one of them had bad news


def _counted(folder: Path, parts: list[Part], found: int) -> BulkResult:
    """Count what the files themselves say, rather than what workers reported."""
    counts = _finished(folder, parts)
    missing = [part for part in parts if part.number not in counts]
    if missing:
        raise InputError(f"{folder} lacks {missing[0]}, which was written: was it removed? Run the same again")
    rows, trusted = (sum(count) for count in zip(*counts.values(), strict=True))
    return BulkResult(folder, rows, trusted, len(parts), found)


def _finished(folder: Path, parts: list[Part]) -> dict[int, tuple[int, int]]:
    there = {part.number: counts_of(folder / part.output_name, part) for part in parts}
    return {number: counts for number, counts in there.items() if counts is not None}


# --- before the work ------------------------------------------------------------------------------------


def _take_up(plan: Plan, folder: Path) -> set[int]:
    """The numbers of the parts that are there; what was begun and never finished is removed."""
    before = Plan.read(folder)
    found: set[int] = set()
    if before is not None:
        found = set(_finished(folder, before.parts()))
        plan.check_goes_on(before, found, folder)
    clear_traces(folder)
    # Parts of a longer input than it is now have no place among the results.
    numbers = {part.output_name for part in plan.parts()}
    for path in folder.glob("part-*.parquet"):
        if path.name not in numbers:
            path.unlink()
    unfinished = folder / f".{PLAN}{UNFINISHED}"
    unfinished.write_text(plan.to_json(), encoding="utf-8")
    unfinished.replace(folder / PLAN)
    return found


def _save(explainer: LimisExplainer, path: Path) -> bytes | None:
    """Write the explainer for the workers; the model comes back, pickled, where the file does not hold it.

    A pickle passes between processes of one user, and is never written.
    """
    plain = copy.copy(explainer)
    # What changes no result must not make a run that goes on look like another one.
    plain.verbose, plain.n_jobs, plain.memory_limit = 0, None, 1.0
    try:
        plain.save(path)
    except StoreError as error:
        raise InputError(f"the explainer cannot be sent to workers: {error}") from error
    model = explainer.training_.black_box.model
    with zipfile.ZipFile(path) as archive:
        if model is None or set(MODEL_MEMBERS) & set(archive.namelist()):
            return None
    try:
        return cloudpickle.dumps(model)
    except Exception as error:  # pickling runs code of the model, so it may raise anything
        raise InputError(
            f"the model, a {type(model).__name__}, cannot be sent to workers: {type(error).__name__}: {error}; wrap it "
            "in a function that makes or loads what cannot be pickled when it is first asked"
        ) from error


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} is a number of at least 1, not {value!r}")


def _class_label(explainer: LimisExplainer, one_class: Any) -> str | None:
    """The text of a class, which finds it and can be written down."""
    if one_class is None:
        return None
    if not explainer.by_class_:
        raise InputError("one_class is for models of more than two classes, and this one has not so many")
    classes = list(explainer.by_class_)
    return str(classes[place_of_class(one_class, classes)])


def _check_names(source: Source, explainer: LimisExplainer, several: bool) -> None:
    own = line_names(explainer.training_.table.names, several) | {ROW_NUMBER}
    twice = [name for name in source.schema.names if name in own]
    if twice:
        raise InputError(f"{source.folder} has a column {twice[0]!r}, and so would the output; rename it")


def _check_places(path: Path, folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; results in parts need a folder")
    inside, outside = folder.absolute().resolve(), path.absolute().resolve()
    if path.is_dir() and inside.is_relative_to(outside):
        raise InputError(f"{folder} is inside {path}, where results would be taken for rows; name another folder")
    if folder.is_dir() and not (folder / PLAN).exists():
        others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
        if others:
            raise InputError(f"{folder} holds something else, such as {others[0]}; name an empty or a new folder")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Make the folder, and keep a second run out of it for as long as this one lives, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK):
        raise InputError(f"the folder {folder} cannot be written to")
    try:
        import fcntl
    except ImportError:  # Windows: parts are whole there too, only done twice
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network drives have no locks
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"another run is writing to {folder}; wait for it, or name another folder") from None
        yield
    finally:
        os.close(held)
