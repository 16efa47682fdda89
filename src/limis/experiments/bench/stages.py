"""Where the time of an explanation goes: encode, black box, retrieve, weigh, fit, check, result.

While a profile is taken, functions of the stages are wrapped from outside; otherwise nothing is there that could cost.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from typing import Any

import numpy as np
import pandas as pd

from limis import walk
from limis.blackbox import BlackBox
from limis.changes import ColumnSystems
from limis.curves.model import CurveModel
from limis.experiments.bench.methods import whole
from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.one_output import OneOutput
from limis.retrieval.forest import Forest
from limis.retrieval.index import LeafIndex
from limis.retrieval.levels import LevelMeans
from limis.retrieval.retriever import Retriever
from limis.rows import TrainingRows
from limis.surrogate import tree as surrogate_tree
from limis.table import Table
from limis.trees import fits as tree_fits
from limis.trees.carried import CarriedChanges
from limis.trees.inputs import TreeInputs
from limis.two_scales import TwoScales
from limis.weighting.learned import LearnedSlopes
from limis.weighting.level import LevelMetric

OTHER = "other"
STAGES = ("encode", "black box", "retrieve", "weigh", "fit", "check", "result", OTHER)

# Where each stage's work is done. Of one that calls another, each has the time that is its own.
PLACES: tuple[tuple[str, Any, str], ...] = (
    *(("encode", Table, name) for name in ("read", "values", "features", "ranks")),
    ("encode", TrainingRows, "in_training_types"),
    ("encode", LevelMeans, "inputs"),
    ("encode", TreeInputs, "bins_of"),
    ("black box", BlackBox, "every_output"),
    ("retrieve", TrainingRows, "twins"),
    ("retrieve", Forest, "_walk"),
    ("retrieve", LeafIndex, "proximity"),
    ("retrieve", Retriever, "each_nearest"),
    ("retrieve", Retriever, "proximity"),
    ("retrieve", Retriever, "by_origin"),
    ("retrieve", TwoScales, "rows"),
    ("retrieve", tree_fits.TreeModel, "_near"),
    ("weigh", LearnedSlopes, "weights"),
    ("weigh", LevelMetric, "places"),
    ("weigh", LevelMetric, "shares"),
    ("fit", ColumnSystems, "slopes"),
    ("fit", TwoScales, "_with_level"),
    ("fit", TwoScales, "fit"),
    ("fit", walk.OneScale, "fit"),
    ("fit", CarriedChanges, "carry"),
    ("fit", tree_fits, "fit_local_trees"),
    ("fit", surrogate_tree.LocalTrees, "apply"),
    ("fit", tree_fits, "_left_out"),
    ("fit", tree_fits.TreeModel, "grow"),
    ("retrieve", CurveModel, "near"),
    ("weigh", CurveModel, "shares"),
    ("fit", CurveModel, "fit"),
    ("check", Explanations, "fidelity"),
    ("result", OneOutput, "fits"),  # puts the blocks together
    ("result", Explanations, "contributions"),
)


class Watch:
    """Seconds by stage and function, while `watching`."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or time.perf_counter
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)
        self._inner: list[float] = []  # of every call that is running, the seconds of those within it

    def watched(self, stage: str, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, whose own time is added up."""

        @wraps(work)
        def call(*args: Any, **options: Any) -> Any:
            self._inner.append(0.0)
            started = self._clock()
            try:
                return work(*args, **options)
            finally:
                spent = self._clock() - started
                self.seconds[stage, name] += spent - self._inner.pop()
                if self._inner:
                    self._inner[-1] += spent

        return call


@contextmanager
def watching(clock: Callable[[], float] | None = None) -> Iterator[Watch]:
    """Wrap the functions of all stages; afterwards they are as they were. ``clock``: another than that on the wall."""
    watch = Watch(clock)
    before = [(owner, name, vars(owner)[name]) for _, owner, name in PLACES]
    try:
        for (stage, owner, name), (_, _, held) in zip(PLACES, before, strict=True):
            said = f"{owner.__name__.rpartition('.')[2]}.{name}"
            if isinstance(held, cached_property):
                new: Any = cached_property(watch.watched(stage, said, held.func))
                new.__set_name__(owner, name)
            else:
                new = watch.watched(stage, said, held)
            setattr(owner, name, new)
        yield watch
    finally:
        for owner, name, held in before:
            setattr(owner, name, held)


def profile(explainer: LimisExplainer, frame: pd.DataFrame, *, alone: int, repeats: int) -> list[dict[str, Any]]:
    """Shares of the stages in explaining rows together, and in explaining rows one at a time.

    Parameters
    ----------
    explainer : LimisExplainer
        Fitted.
    frame : DataFrame
        Rows to explain; a black box that can be asked is asked about them.
    alone : int
        How many of them are explained one at a time.
    repeats : int
        How often all are explained together.

    Returns
    -------
    list of dict
        Two: ``rows`` at once, ``ms`` a row, ``shares`` of the stages, which sum to 1, and ``functions`` with the
        milliseconds a row that each spends itself.
    """
    single = [frame.iloc[[place]] for place in range(min(alone, len(frame)))]
    return [_profile(explainer, [frame] * repeats), _profile(explainer, single)]


def cpu_of_fit(model: Any, frame: pd.DataFrame, surrogate: str, seed: int) -> dict[str, float]:
    """CPU seconds of a fit, on all cores together: without the black box's answers, and those."""
    explainer = LimisExplainer(model, surrogate=surrogate, random_state=seed)
    with watching(time.process_time) as watch:
        started = time.process_time()
        explainer.fit(frame)
        total = time.process_time() - started
    asking = sum(seconds for (stage, _), seconds in watch.seconds.items() if stage == "black box")
    return {"cpu_seconds": total - asking, "black_box_cpu_seconds": asking}


def _profile(explainer: LimisExplainer, frames: list[pd.DataFrame]) -> dict[str, Any]:
    whole(explainer.explain(frames[0]))  # what is worked out once is not counted
    with watching() as watch:
        started = time.perf_counter()
        for frame in frames:
            whole(explainer.explain(frame))
        total = time.perf_counter() - started
    rows = sum(map(len, frames))
    shares = dict.fromkeys(STAGES, 0.0)
    for (stage, _), seconds in watch.seconds.items():
        shares[stage] += seconds / total
    shares[OTHER] = 1 - sum(shares.values())
    functions = sorted(watch.seconds.items(), key=lambda item: -item[1])
    return {
        "rows": len(frames[0]),
        "ms": 1000 * total / rows,
        "shares": shares,
        "functions": [
            {"function": name, "stage": stage, "ms": 1000 * seconds / rows} for (stage, name), seconds in functions
        ],
    }


def stages_of(profiles: list[dict[str, Any]]) -> pd.DataFrame:
    """Shares of the stages, a column a profile."""
    columns = {f"{one['surrogate']}, {one['rows']:,} at once": one["shares"] for one in profiles}
    return pd.DataFrame(columns, index=list(STAGES)).astype(np.float64)
