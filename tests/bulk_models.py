"""Models for tests of work in parts: worker processes import them, and some end or hold up the worker that asks."""

import os
import signal
import time
from pathlib import Path

import numpy as np

MARK = 99.0  # of the row that something happens at


def price(rows):
    print("a model that prints must not disturb anything")  # noqa: T201
    return 2 * rows["size"].fillna(0) + rows["colour"].map({"red": 3.0, "green": 0.0, "blue": -3.0}).astype(
        float
    ).fillna(1.0)


class Deadly:
    """Kills the process that asks it about a marked row, for as long as there are files in a folder: one a death."""

    def __init__(self, lives):
        self.lives = Path(lives)

    def predict(self, rows):
        lives = sorted(self.lives.iterdir())
        if lives and (rows["size"] == MARK).any():
            lives[0].unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return price(rows)


class Gated:
    """Writes down who asks about a marked row, and makes him wait for as long as there is a gate."""

    def __init__(self, gate):
        self.gate = Path(gate)

    def predict(self, rows):
        if self.gate.exists() and (rows["size"] == MARK).any():
            self.gate.with_name("waiting").write_text(str(os.getpid()))
            while self.gate.exists():
                time.sleep(0.05)
        return price(rows)


class Unsendable:
    """Holds what no pickle can."""

    def __init__(self):
        self.connection = (number for number in range(3))

    def predict(self, rows):
        return price(rows)


class Three:
    """A classifier of three classes."""

    classes_ = np.array(["low", "mid", "high"])

    def predict_proba(self, rows):
        score = np.column_stack([-price(rows), np.zeros(len(rows)), price(rows)]) / 2
        return np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
