"""A worker process: it reads a job and then numbers of parts from its input, and answers with a line of JSON each."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
from dataclasses import asdict
from queue import SimpleQueue
from typing import BinaryIO

from limis.bulk.part import PartExplainer


def main() -> None:
    """Work until there is no more input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever stops the driver stops its workers through it
    # The model may print: that must not end up among the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    job = pickle.load(sys.stdin.buffer)  # noqa: S301 - the driver that started this process wrote it
    numbers: SimpleQueue[int] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, numbers), daemon=True).start()
    explainer = PartExplainer(job)
    while True:
        answers.write(json.dumps(asdict(explainer.explain(numbers.get()))) + "\n")
        answers.flush()


def _listen(source: BinaryIO, numbers: SimpleQueue[int]) -> None:
    """Pass numbers on, and end the process with its driver, even where that was killed."""
    for line in source:
        numbers.put(int(line))
    os._exit(0)


if __name__ == "__main__":
    main()
