"""One run of the bench: every method on the same fitted model and rows, taking turns, so that noise meets all alike."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_info

from limis import __version__
from limis.errors import InputError, require
from limis.experiments.bench.memory import rise
from limis.experiments.bench.methods import METHODS, NEEDED, Limis, Method, Setup, Size, Told, timed
from limis.experiments.bench.stages import cpu_of_fit, profile
from limis.experiments.cache import machine
from limis.experiments.real_problem import RealProblem
from limis.metrics import nse
from limis.training import judge
from limis.walk import LocalFits

DATA = {"adult": "Adult", "facebook": "Facebook"}
BOX, SEED = "XGBoost", 0
BASE = "LIMIS ridge"  # what all others are compared with
CURVES = "LIMIS curves"
LIME_EXPLANATIONS = 400  # that a fit may take as long as
SMALL_FIT, SMALL_FIT_SECONDS = 1000, 5.0  # rows, and the CPU time without the black box's that is wanted of their fit
QUICK = Size(
    rows=40,
    rounds=2,
    alone=3,
    peer_rows=6,
    lime_rows=4,
    kernel_rows=3,
    lime_samples=200,
    background=10,
    kernel_samples=50,
    quick=True,
)
VERSIONS = ("numpy", "scipy", "scikit-learn", "torch", "xgboost", "numba", "lime", "shap")


@dataclass(frozen=True)
class Comparison:
    """A quotient of two measures, and how large it is wanted on Adult."""

    words: str
    slower: tuple[str, str]  # method, measure
    faster: tuple[str, str]
    wanted: float | None
    times: float = 1.0  # how many of the slower one's, in the faster one's unit


COMPARISONS = (
    Comparison("LIME / LIMIS ridge", ("LIME", "ms"), (BASE, "ms"), 200),
    Comparison("TreeSHAP / LIMIS ridge", ("TreeSHAP", "ms"), (BASE, "ms"), 4),
    Comparison("KernelSHAP / LIMIS ridge", ("KernelSHAP", "ms"), (BASE, "ms"), 2000),
    Comparison("LIME / LIMIS tree", ("LIME", "ms"), ("LIMIS tree", "ms"), 50),
    Comparison(
        "LIME / LIMIS ridge, one row, without the black box's time", ("LIME", "alone_ms"), (BASE, "alone_ms"), 20
    ),
    Comparison(
        "LIME, encoded / LIMIS ridge, one row, without the black box's time",
        ("LIME, encoded", "alone_ms"),
        (BASE, "alone_ms"),
        20,
    ),
    Comparison(
        f"{LIME_EXPLANATIONS} explanations by LIME / fit of LIMIS ridge",
        ("LIME", "ms"),
        (BASE, "fit_seconds"),
        1,
        LIME_EXPLANATIONS / 1000,
    ),
    Comparison(f"LIME / {CURVES}", ("LIME", "ms"), (CURVES, "ms"), 100),
    Comparison(f"TreeSHAP / {CURVES}", ("TreeSHAP", "ms"), (CURVES, "ms"), 4),
    Comparison(f"LIME / {CURVES}, written out", ("LIME", "ms"), (CURVES, "with_curves_ms"), None),
    Comparison(f"TreeSHAP / {CURVES}, written out", ("TreeSHAP", "ms"), (CURVES, "with_curves_ms"), None),
    Comparison(f"TreeSHAP, reference / {CURVES}, reasons", ("TreeSHAP, reference", "ms"), (CURVES, "reasons_ms"), 1),
    Comparison(f"KernelSHAP / {CURVES}, reasons", ("KernelSHAP", "ms"), (CURVES, "reasons_ms"), 1000),
    Comparison(
        f"LIME / {CURVES}, one row, without the black box's time", ("LIME", "alone_ms"), (CURVES, "alone_ms"), None
    ),
    Comparison(
        f"{LIME_EXPLANATIONS} explanations by LIME / fit of {CURVES}",
        ("LIME", "ms"),
        (CURVES, "fit_seconds"),
        1,
        LIME_EXPLANATIONS / 1000,
    ),
)


def measure(
    data: str,
    size: Size | None = None,
    methods: Iterable[str] = METHODS,
    *,
    profiled: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure methods side by side.

    Parameters
    ----------
    data : {"adult", "facebook"}
        Whose rows are explained; the black box is XGBoost with the settings of the paper's appendix.
    size : Size, default=None
        How much is measured.
    methods : iterable of str, default=METHODS
        Which ones; LIMIS with ridges, which all are compared with, is always among them.
    profiled : bool, default=False
        Whether to tell, too, where the time of LIMIS goes.
    say : callable, default=None
        Told what is being done.

    Returns
    -------
    dict
        JSON-ready: ``results``, a line a method; ``ratios``; ``profiles``; and what it was measured on.

    Raises
    ------
    InputError
        If there is no such data set or method, or if there are fewer rows than rounds need.
    MissingExtraError
        If a package that a method needs is not installed.
    """
    size = size or Size()
    names = _check(data, size, list(methods))
    problem = RealProblem(DATA[data], BOX, SEED, size.rows, quick=size.quick)
    say(f"the black box: {problem}")
    _ = problem.model, problem.answers
    size = size.with_rows(len(problem.test))
    setup = Setup(problem, size)
    turns = []
    for name in names:
        say(f"fitting {name}")
        turns.append(_Turns.begin(name, setup))
    for number in range(size.rounds):
        say(f"round {number + 1} of {size.rounds}")
        for turn in turns:
            turn.take(number, setup)
    results = [turn.result(setup) for turn in turns]
    found: dict[str, Any] = {
        "data": DATA[data],
        "black_box": BOX,
        "training_rows": len(problem.train),
        "columns": problem.train.shape[1],
        "size": asdict(size),
        "results": results,
        "ratios": ratios(results, wanted=data == "adult" and not size.quick),
    }
    if CURVES in names:
        say(f"fitting {CURVES} to few rows")
        found["small_fit"] = _small_fit(problem)
    if profiled:
        found["profiles"] = _profiles(turns, setup, say)
    return {**surroundings(problem), **found}


def ratios(results: Sequence[dict[str, Any]], *, wanted: bool) -> list[dict[str, Any]]:
    """The comparisons of which both methods were measured; ``wanted``: beside what is wanted of them."""
    by_name = {line["method"]: line for line in results}
    found = []
    for one in COMPARISONS:
        if one.slower[0] in by_name and one.faster[0] in by_name:
            slower, faster = by_name[one.slower[0]][one.slower[1]], by_name[one.faster[0]][one.faster[1]]
            line = {"ratio": one.words, "times": one.times * slower / faster}
            found.append({**line, "wanted": one.wanted} if wanted and one.wanted is not None else line)
    return found


def surroundings(problem: RealProblem) -> dict[str, Any]:
    """The machine, its threads and the versions."""
    return {
        "limis": __version__,
        "machine": machine(),
        "processor": _processor(),
        "threads": {
            "cores": os.cpu_count(),
            "torch": torch.get_num_threads(),
            "xgboost": problem.model[-1].get_params().get("n_jobs"),
            **{str(pool["internal_api"]): pool["num_threads"] for pool in threadpool_info()},
        },
        "versions": {name: _version(name) for name in VERSIONS},
    }


def _check(data: str, size: Size, methods: list[str]) -> list[str]:
    """The methods in their own order; anything that would fail later is refused now."""
    if data not in DATA:
        raise InputError(f"there is no data set {data!r} for the bench; there are: {', '.join(DATA)}")
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise InputError(f"there is no method {unknown[0]!r}; there are: {', '.join(METHODS)}")
    if size.rows < 2 * size.rounds:
        raise InputError(f"{size.rounds} rounds need at least {2 * size.rounds} rows, not {size.rows}; ask for more")
    names = [name for name in METHODS if name in (BASE, *methods)]
    for name in names:
        if name in NEEDED:
            require(*NEEDED[name])
    return names


@dataclass
class _Turns:
    """One method and what was measured of it."""

    name: str
    method: Method
    fit_seconds: float
    fit_megabytes: float
    explain_megabytes: float
    seconds: list[float]  # of each round
    alone: list[float]  # of each round, a row
    with_curves: list[float]  # of each round that wrote out curves, with explaining
    reasons: list[float]  # of each round that worked out reasons apart
    told: list[Told]

    @classmethod
    def begin(cls, name: str, setup: Setup) -> _Turns:
        """Fit it, and let it explain once: what is compiled or kept at first use is not timed."""
        with rise() as fitting:
            fit_seconds, method = timed(lambda: METHODS[name](setup))
        with rise() as explaining:
            method.explain(setup.problem.test.iloc[: method.rows])
        return cls(name, method, fit_seconds, fitting.megabytes, explaining.megabytes, [], [], [], [], [])

    def take(self, number: int, setup: Setup) -> None:
        """A round: other rows than in the rounds before, unless it explains all of them each time."""
        test, rows = setup.problem.test, self.method.rows
        start = 0 if rows == len(test) else number * rows
        told = self.method.explain(test.iloc[start : start + rows])
        self.seconds.append(told.seconds)
        if told.curves is not None:
            self.with_curves.append(told.seconds + told.curves)
        if told.reasons is not None:
            self.reasons.append(told.reasons)
        if told.alone is not None:
            self.alone.append(told.alone / rows)
        else:
            alone = setup.size.alone
            frames = [test.iloc[[place]] for place in range(number * alone, (number + 1) * alone)]
            outputs = setup.problem.answers.test.outputs[number * alone : (number + 1) * alone]
            self.alone.append(self.method.explain_alone(frames, outputs) / alone)
        if start or not self.told:  # the same rows again would say the same
            self.told.append(told)

    def result(self, setup: Setup) -> dict[str, Any]:
        """A line of the table."""
        rounds = [1000 * seconds / self.method.rows for seconds in self.seconds]
        alone = [1000 * seconds for seconds in self.alone]
        return {
            "method": self.name,
            "rows": sum(len(told.predictions) for told in self.told),
            "together": self.method.rows,
            "ms": float(np.median(rounds)),
            "ms_of_rounds": rounds,
            "alone_ms": float(np.median(alone)),
            "alone_ms_of_rounds": alone,
            "with_curves_ms": 1000 * float(np.median(self.with_curves)) / self.method.rows
            if self.with_curves
            else None,
            "reasons_ms": 1000 * float(np.median(self.reasons)) / self.method.rows if self.reasons else None,
            **self._fidelity(setup),
            "fit_seconds": self.fit_seconds,
            "fit_megabytes": self.fit_megabytes,
            "explain_megabytes": self.explain_megabytes,
            "settings": self.method.settings,
        }

    def _fidelity(self, setup: Setup) -> dict[str, float | None]:
        """NSE and, of methods that say something of changed rows, skill on changes, on the rows it explained."""
        predictions = np.concatenate([told.predictions for told in self.told])
        known = setup.problem.answers.test.part(np.arange(len(predictions)))
        fits, table = [told.fits for told in self.told if told.fits is not None], self.told[0].table
        if table is None or not fits:
            return {"nse": nse(known.outputs, predictions), "skill": None}
        judged = judge(table, LocalFits.join(fits), known)
        return {"nse": judged["nse"], "skill": judged["skill"]}


def _small_fit(problem: RealProblem) -> dict[str, Any]:
    """What a fit of curves to few rows takes of all cores together."""
    rows = problem.train.iloc[:SMALL_FIT]
    return {"rows": len(rows), "wanted": SMALL_FIT_SECONDS, **cpu_of_fit(problem.model, rows, "curves", problem.seed)}


def _profiles(turns: list[_Turns], setup: Setup, say: Callable[[str], None]) -> list[dict[str, Any]]:
    found = []
    for turn in turns:
        if isinstance(turn.method, Limis):
            say(f"where the time of {turn.name} goes")
            size, test = setup.size, setup.problem.test
            taken = profile(turn.method.explainer, test, alone=size.rounds * size.alone, repeats=size.rounds)
            found += [{"surrogate": turn.method.surrogate, **one} for one in taken]
    return found


def _processor() -> str:
    """The processor's name, as far as the system tells it."""
    told = Path("/proc/cpuinfo")
    if told.exists():
        for line in told.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
