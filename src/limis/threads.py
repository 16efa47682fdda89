"""How many threads do the work, and who may start them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec

import numba
import torch
from threadpoolctl import threadpool_limits

__all__ = ["every_library_on_one_thread", "in_parallel", "one_thread"]

P = ParamSpec("P")
# Where numba has no OpenMP, two threads that run parallel code at once would end the process.
_ONE_CALLER = threading.Lock()


def in_parallel(work: Callable[P, None]) -> Callable[P, None]:
    """Compile a function whose loops over ``prange`` are run by all threads; of several callers one at a time.

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
    compiled = numba.njit(parallel=True, cache=_has_file(work), nogil=True)(work)

    @wraps(work)
    def call(*args: P.args, **options: P.kwargs) -> None:
        with _ONE_CALLER:
            compiled(*args, **options)

    return call


def _has_file(work: Callable[..., object]) -> bool:
    return not work.__code__.co_filename.startswith("<")


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
