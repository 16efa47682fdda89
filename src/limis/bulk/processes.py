"""Workers as processes of one machine, without any extra.

They are started as commands rather than by multiprocessing, which would run the user's own script once more in each.
And there is a pipe to each rather than a pool, which breaks as a whole where one process dies: here it costs the part
that this one was at, and it is known which part that was.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from queue import SimpleQueue

from limis.bulk.part import ATTEMPTS, Job, Outcome, keeps_dying

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def run_in_processes(job: Job, workers: int) -> Generator[Outcome, None, None]:
    """Explain the parts of a job in processes of one thread each; outcomes come as they are ready."""
    processes = [_Worker(job) for _ in range(min(workers, len(job.parts)))]
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for process in processes:
        idle.put(process)

    def explain(number: int) -> Outcome:
        process = idle.get()
        try:
            return process.explain(number)
        finally:
            idle.put(process)

    # A thread waits for each process.
    threads = ThreadPoolExecutor(len(processes))
    try:
        for done in as_completed([threads.submit(explain, number) for number in job.parts]):
            yield done.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.stop()
        threads.shutdown()


class _Worker:
    """One process at a time, replaced by another when it dies."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def explain(self, number: int) -> Outcome:
        how = ""
        for _ in range(ATTEMPTS):
            answer = self._ask(number)
            if answer:
                return Outcome(**json.loads(answer))
            how = self._bury()
            if self._stopped:
                break
        error = keeps_dying(self._job.parts[number], how)
        return Outcome(number, error=type(error).__name__, message=str(error))

    def stop(self) -> None:
        """End the process, whatever it is at: a part is written whole or not at all."""
        self._stopped = True
        self._bury()

    def _ask(self, number: int) -> bytes:
        """The answer of the process; nothing where it died."""
        try:
            if self._process is None:
                self._process = self._start()
                assert self._process.stdin is not None
                pickle.dump(self._job, self._process.stdin)
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(b"%d\n" % number)
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            return answer if answer.endswith(b"\n") else b""
        except (BrokenPipeError, ValueError):  # ValueError: stopped and closed meanwhile
            return b""

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            **dict.fromkeys(THREADS, "1"),
            "PYTHONPATH": os.pathsep.join(self._job.search_path),
        }
        # -P: the current folder is searched only where this process searches it.
        command = [sys.executable, "-P", "-m", "limis.bulk.worker"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)  # noqa: S603

    def _bury(self) -> str:
        """Make sure that the process is gone, and say how it ended."""
        process, self._process = self._process, None
        if process is None:
            return ""
        process.kill()
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # what it never read is of no use to anyone now
                pipe.close()
        return f" (signal {-code})" if code < 0 else f" (exit code {code})"
