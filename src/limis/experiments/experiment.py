"""What an experiment is: the runs it needs, the table they make, and how that is shown and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from limis.experiments.methods import Method
from limis.experiments.protocol import Scope
from limis.experiments.runs import Run, SyntheticRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Experiment:
    """One table and one figure.

    Parameters
    ----------
    name : str
        What ``limis reproduce`` knows it by.
    description : str
        What it shows, in one line.
    runs : callable
        From a `Scope` to the runs needed; several experiments may need the same.
    tabulate : callable
        From the runs' outcomes to a tidy table, which is all that is kept as the result.
    show : callable
        From that table to a small one of texts, for a screen or a page.
    draw : callable
        From that table to a matplotlib figure.
    note : str, default=""
        What to know when reading it.
    seeds : int, default=10
        How many independent runs it has unless told otherwise.
    synthetic : bool, default=True
        Whether it is about synthetic data.
    cell : tuple of str, default=()
        Columns of the table that name one part of it, all of whose runs were made on one machine. Parts that a result
        on disk has, and whose runs are not in the cache, stay in it.
    """

    name: str
    description: str
    runs: Callable[[Scope], Sequence[Run]]
    tabulate: Callable[[list[Any]], pd.DataFrame]
    show: Callable[[pd.DataFrame], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Figure]
    note: str = ""
    seeds: int = 10
    synthetic: bool = True
    cell: tuple[str, ...] = ()


def grid(methods: Iterable[Method], data: Iterable[str], sizes: Iterable[int], scope: Scope) -> list[Run]:
    """Every method on every data set at every size, for every seed."""
    return [
        SyntheticRun(method, name, rows, seed, scope.tests, scope.quick)
        for rows in sizes
        for name in data
        for method in methods
        for seed in range(scope.seeds)
    ]
