"""Workers as actors of Ray, on this machine or on many.

Ray Data streams the *numbers* of the parts through the actors, and each actor reads, explains and writes its part. That
Ray Data itself read and wrote the tables would be shorter, but which rows it puts into which file depends on timing: a
run could not be taken up, nor a part be done again without telling its rows twice. Only numbers and counts pass through
Ray's memory, however large the tables are.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import ModuleType
from typing import Any

import numpy as np

from limis.bulk.part import Job, Outcome, PartExplainer
from limis.errors import InputError, require

OBJECT_STORE = 128 * 2**20  # bytes beside the model: what passes through it is tiny
# Ray takes its time over every block; many parts share one where there are very many.
MOST_BLOCKS = 2000


class PartActor:
    """What Ray keeps in each worker: the explainer, loaded once."""

    def __init__(self, job: Any) -> None:
        import ray

        self.explainer = PartExplainer(ray.get(job))

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list[Any]]:
        """Explain the parts of these numbers."""
        outcomes = [asdict(self.explainer.explain(int(number))) for number in batch["item"]]
        return {name: [outcome[name] for outcome in outcomes] for name in outcomes[0]}


def run_on_ray(job: Job, workers: int, cluster: str) -> Generator[Outcome, None, None]:
    """Explain the parts of a job on Ray; outcomes come as they are ready."""
    ray = require("ray", "ray")
    data = require("ray.data", "ray")
    with _connected(ray, cluster, workers, OBJECT_STORE + 2 * len(job.model or b"")):
        shared = ray.put(job)
        numbers = data.from_items(list(job.parts), override_num_blocks=min(len(job.parts), MOST_BLOCKS))
        outcomes = numbers.map_batches(
            PartActor,
            fn_constructor_args=(shared,),
            batch_size=1,
            # One part at a time, so that none waits for a busy worker while another is idle. Ray Data restarts actors
            # that die, and has their parts done again.
            compute=data.ActorPoolStrategy(size=min(workers, len(job.parts)), max_tasks_in_flight_per_actor=1),
            num_cpus=1,
        )
        outcomes.context.enable_progress_bars = False
        try:
            for outcome in outcomes.iter_rows():
                yield Outcome(**outcome)
        except ray.exceptions.RayError as error:
            raise InputError(f"Ray stopped the work: {_first_line(error)}; run the same again to go on") from error


@contextmanager
def _connected(ray: ModuleType, cluster: str, workers: int, object_store: int) -> Iterator[None]:
    """Ray as it is in this process or at an address; else one of our own, for as long as it is needed."""
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if cluster == "auto" and not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked for reports on this machine
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what it warns of is how Ray Data itself uses it
        ray.init("local", num_cpus=workers, object_store_memory=object_store, include_dashboard=False, **quiet)
    else:
        address = os.environ["RAY_ADDRESS"] if cluster == "auto" else cluster
        try:
            _check_answers(address)
            ray.init(address, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(
                f"there is no Ray to join at {address}: {_first_line(error)}; start one with `ray start --head`, or "
                "give auto to have one on this machine"
            ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Find out in seconds what Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
