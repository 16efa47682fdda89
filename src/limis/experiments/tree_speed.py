"""How much faster trees for many rows at once are than scikit-learn's, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from limis.surrogate import fit_local_trees

# Of 100 features: how many are numbers in 255 bins; the others are levels of categories.
TABLES = {"90 levels and 10 numbers": 10, "100 levels": 0, "100 numbers": 100}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rows: int = 20_000
    queries: int = 1000
    candidates: int = 512
    features: int = 100
    scikit_queries: int = 100  # of the queries, those that scikit-learn gets; its time is for all
    rounds: int = 5


def measure_trees(size: Size) -> list[dict[str, float | str]]:
    """Seconds of both for trees of depth 3 on the same weighted rows, a line a kind of table.

    Rounds of the two take turns, and the medians are compared: other work on the machine then meets both.
    """
    lines: list[dict[str, float | str]] = []
    for name, numbers in TABLES.items():
        bins, targets, rows, weights = _table(size, min(numbers, size.features))
        candidates = bins.astype(np.float32)

        def ours(bins: np.ndarray = bins, data: tuple = (targets, rows, weights)) -> None:
            fit_local_trees(bins, *data, depth=3)

        def theirs(seen: np.ndarray = candidates, data: tuple = (targets, rows, weights)) -> None:
            targets, rows, weights = data
            for query in range(size.scikit_queries):
                tree = DecisionTreeRegressor(max_depth=3)
                tree.fit(seen[rows[query]], targets[rows[query]], sample_weight=weights[query])

        ours()  # compiles, or reads what was compiled before
        seconds = np.array([(_seconds(ours), _seconds(theirs)) for _ in range(size.rounds)])
        own, scikit = np.median(seconds, axis=0) * (1, size.queries / size.scikit_queries)
        lines.append({"table": name, "seconds": own, "scikit_learn_seconds": scikit, "times_faster": scikit / own})
    return lines


def _table(size: Size, numbers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    share = rng.uniform(0.02, 0.5, size.features)
    bins = (rng.random((size.rows, size.features)) < share).astype(np.uint8)
    bins[:, :numbers] = rng.integers(0, 255, (size.rows, numbers))
    targets = bins[:, 0] / 255 + bins[:, 1] * bins[:, -1] / 255 + 0.3 * rng.normal(size=size.rows)
    rows = rng.integers(0, size.rows, (size.queries, size.candidates))
    return bins, targets, rows, rng.random(rows.shape)


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
