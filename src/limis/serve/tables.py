"""Tables held in memory: the rows that the server was started with, and uploads, which are forgotten after a while."""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import dataclass, field
from functools import partial

import pandas as pd

from limis.class_explanations import ClassExplanations
from limis.errors import InputError, LimisError
from limis.lines import explained_lines
from limis.rows import TrainingRows
from limis.serve.desk import Desk
from limis.serve.errors import FAULT
from limis.serve.reading import check_reach
from limis.serve.settings import Settings
from limis.serve.words import Explained
from limis.table_files import as_seen

logger = logging.getLogger(__name__)

FIRST = "rows"  # the name of the table that the server was started with
TOGETHER = 100  # rows explained at a time: between them others have their turn
MOST_COLUMNS = 10_000
LINES_A_ROW = 10  # that a row with texts of several lines may have


@dataclass(eq=False)
class HeldTable:
    """Rows and, as far as they are explained, what is told of each."""

    key: str
    name: str
    rows: pd.DataFrame  # as given, counted from 0
    features: pd.DataFrame  # the columns that the explainer knows, in its types
    lines: list[pd.DataFrame] = field(default_factory=list)  # what is told, beside no columns of the rows themselves
    problem: str = ""  # why no more rows are explained
    dropped: bool = False
    used: float = field(default_factory=time.monotonic)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_explained(self) -> int:
        """How many rows are explained so far."""
        return min(TOGETHER * len(self.lines), len(self))

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to come."""
        return bool(self.problem) or self.n_explained == len(self)

    def told(self) -> pd.DataFrame:
        """What is told of the rows explained so far: a line a row or, of several classes, a line a row and class."""
        return pd.concat(self.lines) if self.lines else pd.DataFrame()


def hold(key: str, name: str, rows: pd.DataFrame, training: TrainingRows) -> HeldTable:
    """Check a table against the training table.

    Raises
    ------
    InputError
        If columns are missing, or hold what cannot be read.
    """
    features = as_seen(rows, training.frame, name)
    features = training.table.read(rows if features.shape[1] == 0 else features)
    check_reach(features, training, [f"{name}, row {row}" for row in range(len(rows))])
    return HeldTable(key, name, rows, training.in_training_types(features))


class Tables:
    """All tables of one server."""

    def __init__(self, desk: Desk, settings: Settings) -> None:
        self._desk = desk
        self._settings = settings
        self._held: dict[str, HeldTable] = {}

    def get(self, key: str) -> HeldTable | None:
        """A table, unless it was never there or is forgotten."""
        self._forget()
        found = self._held.get(key)
        if found is not None:
            found.used = time.monotonic()
        return found

    def start_with(self, table: HeldTable) -> None:
        """Hold the table that the server was started with, for good."""
        self._held[FIRST] = table
        self._desk.do_later(partial(self._explain_next, table))

    def check_size(self, rows: pd.DataFrame, name: str) -> None:
        """Refuse more rows than may be held."""
        most = self._settings.upload_rows
        if len(rows) > most:
            raise InputError(f"{name} has {len(rows):,} rows, and at most {most:,} can be held at once; take fewer")

    def check_text(self, data: bytes, name: str) -> None:
        """Refuse, before it is read, a text of far more lines or columns than may be held."""
        lines, columns = data.count(b"\n"), data.partition(b"\n")[0].count(b",") + 1
        if columns > MOST_COLUMNS:
            raise InputError(f"{name} has {columns:,} columns, and at most {MOST_COLUMNS:,} are read")
        if lines > LINES_A_ROW * self._settings.upload_rows:
            most = self._settings.upload_rows
            raise InputError(f"{name} has {lines:,} lines, and at most {most:,} rows can be held; send fewer at a time")

    async def add(self, name: str, rows: pd.DataFrame) -> HeldTable:
        """Hold an upload under a key that cannot be guessed; its first rows are explained before this returns."""
        self.check_size(rows, name)
        table = await self._desk.do(lambda: hold(secrets.token_urlsafe(16), name, rows, self._desk.explainer.training_))
        await self._desk.do(partial(self._explain_some, table))
        self._forget()
        uploads = sorted((one for one in self._held.values() if one.key != FIRST), key=lambda one: one.used)
        for oldest in uploads[: max(0, len(uploads) + 1 - self._settings.most_uploads)]:
            self._drop(oldest)
        self._held[table.key] = table
        self._desk.do_later(partial(self._explain_next, table))
        return table

    def _forget(self) -> None:
        last = time.monotonic() - self._settings.upload_seconds
        for table in [one for one in self._held.values() if one.key != FIRST and one.used < last]:
            self._drop(table)

    def _drop(self, table: HeldTable) -> None:
        table.dropped = True
        del self._held[table.key]

    # --- in the desk's thread ----------------------------------------------------------------------------

    def _explain_some(self, table: HeldTable) -> None:
        start = table.n_explained
        part = table.features.iloc[start : start + TOGETHER]
        found = self._desk.explainer.explain(part)
        table.lines.append(lines_of(found))

    def _explain_next(self, table: HeldTable) -> None:
        if table.dropped or table.finished:
            return
        try:
            self._explain_some(table)
        except LimisError as error:
            table.problem = str(error).partition("\n")[0]
            return
        except Exception:
            logger.exception("rows of %s cannot be explained", table.name)
            table.problem = FAULT
            return
        self._desk.do_later(partial(self._explain_next, table))


def lines_of(found: Explained) -> pd.DataFrame:
    """All that is told of rows, under their numbers, without the rows' own columns."""
    n_lines = len(found.classes) if isinstance(found, ClassExplanations) else 1
    lines = explained_lines(found, pd.DataFrame(index=found.index))
    return lines.set_axis(found.index.repeat(n_lines))
