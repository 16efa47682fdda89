"""The one thread that asks the explainer. Rows that wait together are explained together.

A batch costs far less than its rows alone, and what is said of a row does not depend on the rows beside it.
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from limis.class_explanations import ClassExplanations
from limis.explainer import LimisExplainer
from limis.kinds import plain
from limis.serve.words import Explained, explanation_data
from limis.threads import every_library_on_one_thread

Data = list[dict[str, Any]]
T = TypeVar("T")

MOST_TOGETHER = 256  # rows
# Seconds between batches. Whoever asks alone never waits for it; many, who do, share what a batch costs.
GATHER = 0.02


class BusyError(RuntimeError):
    """Too many requests are waiting already."""


@dataclass(eq=False)
class _Errand:
    """Rows to explain, and what to tell of them; None: their data."""

    frame: pd.DataFrame
    tell: Callable[[Explained], Any] | None
    answer: Future = field(default_factory=Future)


@dataclass(eq=False)
class _Work:
    """Any other use of the explainer."""

    do: Callable[[], Any]
    answer: Future = field(default_factory=Future)


class Desk:
    """Takes requests from an event loop and answers them from a thread of its own, started by `open`.

    Between two batches of explanations at most one piece of other work is done, so neither waits for all of the other.

    Parameters
    ----------
    explainer : LimisExplainer
        Used by this thread only: a black box need not bear two callers at once.
    most_waiting : int
        More requests than these are refused with a `BusyError`.
    """

    def __init__(self, explainer: LimisExplainer, most_waiting: int) -> None:
        self.explainer = explainer
        self._most_waiting = most_waiting
        self._errands: deque[_Errand] = deque()
        self._work: deque[_Work] = deque()
        self._patient: deque[_Work] = deque()
        self._something = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="limis-desk", daemon=True)

    def open(self) -> None:
        """Start to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop after what is being done now."""
        with self._something:
            self._closed = True
            self._something.notify()
        if self._thread.is_alive():
            self._thread.join()

    async def explain(self, frame: pd.DataFrame, tell: Callable[[Explained], T], *, begun: bool = False) -> T:
        """What ``tell`` makes of the explanations of some rows; it runs in the desk's thread.

        What is ``begun``, and has an answer on its way already, is refused by a closed desk only.
        """
        return await self._wait(self._errands, _Errand(frame, tell), begun)

    async def data(self, frame: pd.DataFrame) -> Data:
        """The explanations of some rows as data, a row each; told of a whole batch at once, which is far quicker."""
        return await self._wait(self._errands, _Errand(frame, None))

    async def do(self, work: Callable[[], T]) -> T:
        """What ``work`` returns; it runs in the desk's thread, where it may use the explainer."""
        return await self._wait(self._work, _Work(work))

    def do_later(self, work: Callable[[], Any]) -> None:
        """Do ``work`` when nobody waits for anything else."""
        with self._something:
            self._patient.append(_Work(work))
            self._something.notify()

    async def _wait(self, line: deque, errand: Any, begun: bool = False) -> Any:
        with self._something:
            full = len(self._errands) + len(self._work) >= self._most_waiting
            if self._closed or (full and not begun):
                raise BusyError
            line.append(errand)
            self._something.notify()
        return await asyncio.wrap_future(errand.answer)

    # --- in the thread ------------------------------------------------------------------------------

    def _serve(self) -> None:
        with every_library_on_one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            last = -GATHER
            while True:
                time.sleep(max(0.0, last + GATHER - time.monotonic()))
                with self._something:
                    while not (self._closed or self._errands or self._work or self._patient):
                        self._something.wait()
                    if self._closed:
                        self._refuse_all()
                        return
                    batch = self._batch()
                    work = self._work.popleft() if self._work else None
                    if work is None and not batch and self._patient:
                        work = self._patient.popleft()
                if batch:
                    self._explain(batch)
                    last = time.monotonic()
                if work is not None:
                    _settle(work.answer, work.do)

    def _batch(self) -> list[_Errand]:
        """The errands that have waited longest and together have no more rows than a batch."""
        batch: list[_Errand] = []
        rows = 0
        while self._errands and (not batch or rows + len(self._errands[0].frame) <= MOST_TOGETHER):
            batch.append(self._errands.popleft())
            rows += len(batch[-1].frame)
        return batch

    def _explain(self, batch: list[_Errand]) -> None:
        """Explain together what has the same types: in one table with others, someone's numbers would become theirs."""
        alike: dict[Any, list[_Errand]] = {}
        for errand in batch:
            alike.setdefault(tuple(errand.frame.dtypes.items()), []).append(errand)
        for errands in alike.values():
            self._explain_alike(errands)

    def _explain_alike(self, batch: list[_Errand]) -> None:
        try:
            answers = self._together(batch) if len(batch) > 1 else None
        except Exception:  # noqa: BLE001 - whosever rows it was, they are told so below, where each is alone
            answers = None
        for place, errand in enumerate(batch):
            _settle(errand.answer, partial(self._alone, errand) if answers is None else answers[place])

    def _together(self, batch: list[_Errand]) -> list[Callable[[], Any]]:
        """What each errand is to be told, of rows that were explained as one table."""
        found = self.explainer.explain(pd.concat([errand.frame for errand in batch], ignore_index=True))
        ends = np.cumsum([len(errand.frame) for errand in batch])
        rows = [np.arange(end - len(errand.frame), end) for end, errand in zip(ends.tolist(), batch, strict=True)]
        as_data = [own for errand, own in zip(batch, rows, strict=True) if errand.tell is None]
        told = iter(explanation_data(found[np.concatenate(as_data)]) if as_data else [])
        answers: list[Callable[[], Any]] = []
        for errand, own in zip(batch, rows, strict=True):
            index = errand.frame.index
            if errand.tell is None:
                answers.append(partial(_relabelled, list(islice(told, len(own))), index))
            else:
                answers.append(partial(errand.tell, _labelled(found[own], index)))
        return answers

    def _alone(self, errand: _Errand) -> Any:
        return (errand.tell or explanation_data)(self.explainer.explain(errand.frame))

    def _refuse_all(self) -> None:
        for line in (self._errands, self._work):
            while line:
                answer = line.popleft().answer
                if answer.set_running_or_notify_cancel():
                    answer.set_exception(BusyError())


def _relabelled(told: Data, index: pd.Index) -> Data:
    """Data from a batch under the labels that their own table has."""
    for one, label in zip(told, index, strict=True):
        one["row"] = plain(label)
    return told


def _labelled(found: Explained, index: pd.Index) -> Explained:
    """Explanations from a batch under the labels that their own table has."""
    for part in found.parts if isinstance(found, ClassExplanations) else [found]:
        part.frame = part.frame.set_axis(index)
    return found


def _settle(answer: Future, work: Callable[[], Any]) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(work())
    except BaseException as error:  # noqa: BLE001 - whoever waits for the answer gets the error
        answer.set_exception(error)
