"""How many threads do the work, and who may start them."""

from __future__ import annotations

import os
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import numba
import torch
from threadpoolctl import threadpool_limits

__all__ = ["compiled", "every_library_on_one_thread", "in_parallel", "one_thread"]

P = ParamSpec("P")
R = TypeVar("R")


class _Callers:
    """Who may run parallel code: one at a time, since where numba has no OpenMP two would end the process."""

    def __init__(self) -> None:
        self.begin(forked=False)
        if hasattr(os, "register_at_fork"):
            # GNU's OpenMP ends a forked process that uses it, and another thread may have held the lock.
            os.register_at_fork(after_in_child=lambda: self.begin(forked=True))

    def begin(self, forked: bool) -> None:
        self.one, self.forked = threading.Lock(), forked


_CALLERS = _Callers()


def compiled(work: Callable[P, R]) -> Callable[P, R]:
    """Compile a function, and keep what was compiled for other processes where that can be written somewhere.

    Examples
    --------
    >>> compiled(lambda number: number + 1)(1)
    2
    """
    return _compile(work, parallel=False)


def in_parallel(work: Callable[P, None]) -> Callable[P, None]:
    """Compile a function whose loops over ``prange`` are run by all threads; of several callers one at a time.

    In a forked process one thread runs them.

    Examples
    --------
    >>> import numpy as np
    >>> from numba import prange
    >>> @in_parallel
    ... def double(values):
    ...     for place in prange(len(values)):
    ...         values[place] *= 2
    >>> values = np.arange(3.0)
    >>> double(values)
    >>> values.tolist()
    [0.0, 2.0, 4.0]
    """
    together = _compile(work, parallel=True)
    # Under a name of its own, by which numba keeps what it compiled.
    twin = types.FunctionType(work.__code__, work.__globals__, f"{work.__name__}_alone")
    twin.__qualname__ = f"{work.__qualname__}_alone"
    alone = _compile(twin, parallel=False)

    @wraps(work)
    def call(*args: P.args, **options: P.kwargs) -> None:
        with _CALLERS.one:
            (alone if _CALLERS.forked else together)(*args, **options)

    return call


def _compile(work: Callable[P, R], parallel: bool) -> Callable[P, R]:
    try:
        return numba.njit(parallel=parallel, cache=True, nogil=True)(work)
    except RuntimeError:  # nothing can be written, or there is no file to keep it beside
        return numba.njit(parallel=parallel, nogil=True)(work)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread. Small products are done sooner by it: several wait for each other longer than they work.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def every_library_on_one_thread() -> Iterator[None]:
    """The same for all that this thread calls, black boxes included: of few rows, threads cost more than they do.

    Examples
    --------
    >>> with every_library_on_one_thread():
    ...     numba.get_num_threads()
    1
    """
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with one_thread(), threadpool_limits(limits=1):
            yield
    finally:
        numba.set_num_threads(before)
