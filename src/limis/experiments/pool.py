"""Making the runs that are missing, one after another or in several processes of one thread each."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context

import torch
from threadpoolctl import threadpool_limits

from limis.experiments.cache import Cache
from limis.experiments.runs import Run
from limis.progress import progress
from limis.threads import one_thread


def make_missing(runs: list[Run], cache: Cache, *, jobs: int = 1, device: str = "cpu", show: bool = False) -> int:
    """Make the runs that are not in the cache.

    Parameters
    ----------
    runs : list of Run
        What is needed; the same run may be there more than once.
    cache : Cache
        Where finished runs are kept.
    jobs : int, default=1
        Processes to make them in.
    device : str, default="cpu"
        Where networks are trained, as torch names it.
    show : bool, default=False
        Whether progress is shown.

    Returns
    -------
    int
        How many had to be made.
    """
    cache.prepare()
    missing = cache.missing(runs)
    with progress(len(missing), "runs", show and bool(missing)) as bar:
        for run in _one_by_one(missing, cache, device) if jobs == 1 else _in_processes(missing, cache, jobs, device):
            bar.set_postfix_str(str(run), refresh=False)
            bar.update()
    return len(missing)


def _make(run: Run, cache: Cache, device: str) -> None:
    cache.store(run, run.execute(device), device)


def _one_by_one(runs: list[Run], cache: Cache, device: str) -> Iterator[Run]:
    # Seconds are then those of one core, whatever machine the runs are made on.
    with one_thread(), threadpool_limits(1):
        for run in runs:
            _make(run, cache, device)
            yield run


def _in_processes(runs: list[Run], cache: Cache, jobs: int, device: str) -> Iterator[Run]:
    # Spawned, because a process that already has threads cannot safely be forked.
    pool = ProcessPoolExecutor(min(jobs, max(1, len(runs))), get_context("spawn"), _use_one_thread)
    try:
        waiting = {pool.submit(_make, run, cache, device): run for run in runs}
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
                yield waiting.pop(future)
    finally:
        pool.shutdown(cancel_futures=True)


def _use_one_thread() -> None:
    """In a process of its own: for good."""
    torch.set_num_threads(1)
    threadpool_limits(1)
