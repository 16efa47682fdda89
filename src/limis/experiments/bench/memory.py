"""How far the memory of this process rises while something is done."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass
class Rise:
    """Megabytes above what the process held before; NaN where the system does not tell."""

    megabytes: float = np.nan


@contextmanager
def rise() -> Iterator[Rise]:
    """Peak of the resident memory inside the block, less what was resident before it. Known on Linux alone.

    What the block finds already there, or takes from memory that Python had kept after earlier work, is not counted.
    """
    found = Rise()
    gc.collect()
    try:
        _RESET.write_text("5", encoding="ascii")  # the peak starts anew
        before = _resident("VmRSS")
    except OSError:
        yield found
        return
    yield found
    found.megabytes = max(0.0, _resident("VmHWM") - before)


def _resident(name: str) -> float:
    """A line of the process's status, in megabytes."""
    lines = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines() if ":" in line)
    return int(lines[name].split()[0]) * 1024 / 1e6
