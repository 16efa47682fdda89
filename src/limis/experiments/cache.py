"""Finished runs on disk: a run that was made once is never made again, and a killed command goes on where it was."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import numpy as np

from limis.experiments.runs import Arrays, Run


@dataclass(frozen=True)
class Cache:
    """A folder with a file a run. It ignores itself in git."""

    folder: Path

    def prepare(self) -> None:
        """Make the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / ".gitignore").write_text("*\n", encoding="utf-8")

    def path(self, run: Run) -> Path:
        """Where a run is kept."""
        return self.folder / f"{run.key}.npz"

    def missing(self, runs: list[Run]) -> list[Run]:
        """Those of the runs that are still to be made, each once, the longest first."""
        absent = {run.key: run for run in runs if not self.path(run).exists()}
        return sorted(absent.values(), key=lambda run: -run.cost)

    def finished(self, runs: Iterable[Run]) -> list[Run]:
        """Those of the runs that were made."""
        return [run for run in runs if self.path(run).exists()]

    def load(self, run: Run) -> dict[str, np.ndarray]:
        """What a finished run found."""
        with np.load(self.path(run), allow_pickle=False) as stored:
            return dict(stored)

    def store(self, run: Run, found: Arrays, device: str = "cpu") -> None:
        """Keep what a run found, and where it was made: whole, or not at all."""
        target = self.path(run)
        draft = target.with_name(f".{uuid4().hex}.tmp")
        try:
            with draft.open("wb") as file:
                np.savez_compressed(file, allow_pickle=False, **found, machine=np.array(machine(device)))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


def machine(device: str = "cpu") -> str:
    """What kind of machine this is, and the versions that numbers depend on most."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "torch"))
    where = platform.machine() if device == "cpu" else f"{platform.machine()} and {device}"
    return f"{where}, {os.cpu_count()} cores, Python {platform.python_version()}, {packages}"
