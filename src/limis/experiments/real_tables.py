"""From what methods say of test rows to tables: means over seeds, paired intervals over test rows, and who wins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from limis.experiments.paper_real import TABLES, Key
from limis.experiments.real_methods import OF_LABELS, SAMPLED
from limis.experiments.real_runs import Told
from limis.metrics import apr, lmae, mae, nse

DEFAULT = "LIMIS (default)"
CELL = ["data", "box", "surrogate"]
RESAMPLES = 1000
PEERS = ("LIME", "SILO", "MAPLE")
# The methods that have another name where the paper's numbers are.
PAPER_NAMES = {"LIMIS (paper)": "LIMIS", SAMPLED: "LIMIS, sampled", OF_LABELS: "global"}


def measures(one: Told) -> dict[str, float]:
    """Everything that is one number: a method on the test rows of one seed."""
    return {
        "error": apr(one.labels, one.local) if one.problem.classifies else mae(one.labels, one.local),
        "nse": nse(one.outputs, one.local),
        "lmae": lmae(one.outputs, one.local),
        "skill": 1 - float(one.missed.sum() / one.moved.sum()),
        "near_lmae": float(one.near_error.mean()),
        "near_mae": float(one.near_label_error.mean()),
        "fit_seconds": one.fit_seconds,
        "explain_ms": one.explain_ms,
    }


MEASURES = ("error", "nse", "lmae", "skill", "near_lmae", "near_mae", "fit_seconds", "explain_ms")


def _nse(one: Told, times: np.ndarray) -> np.ndarray:
    f, count = one.outputs - one.outputs.mean(), times.sum(axis=1)
    spread = times @ f**2 - (times @ f) ** 2 / count
    return 1 - times @ (one.outputs - one.local) ** 2 / spread


def _skill(one: Told, times: np.ndarray) -> np.ndarray:
    return 1 - times @ one.missed / (times @ one.moved)


def _near(one: Told, times: np.ndarray) -> np.ndarray:
    return -(times @ one.near_error) / times.sum(axis=1)


# What is compared with the default's row by row: from how often each row is drawn, (draws, rows), to numbers that
# should be high.
_PAIRED = {"nse": _nse, "skill": _skill, "near_lmae": _near}


def tidy(outcomes: Iterable[Sequence[Told]]) -> pd.DataFrame:
    """One line a cell and method: means over seeds, how it compares with the default, and the paper's numbers."""
    every = sorted((one for group in outcomes for one in group), key=_cell)
    lines: list[dict[str, Any]] = []
    for _, members in groupby(every, key=_cell):
        lines += _cell_lines(list(members))
    return pd.DataFrame(lines)


def _cell(one: Told) -> tuple[str, str, str]:
    return one.problem.data, one.problem.box, one.surrogate


def _cell_lines(cell: list[Told]) -> list[dict[str, Any]]:
    data, box, surrogate = _cell(cell[0])
    own = {one.problem.seed: one for one in cell if one.method == DEFAULT}
    lines = [_original(cell, data, box, surrogate)]
    for method in dict.fromkeys(one.method for one in cell):
        seeds = [one for one in cell if one.method == method]
        found = pd.DataFrame([measures(one) for one in seeds]).mean()
        line: dict[str, Any] = {"data": data, "box": box, "surrogate": surrogate, "method": method}
        line |= {
            "seeds": len(seeds),
            "tests": min(len(one.local) for one in seeds),
            **{str(name): float(value) for name, value in found.items()},
        }
        for measure in _PAIRED:
            line |= _behind(measure, seeds, own)
            line[f"{measure} paper"] = _paper(data, box, surrogate, method, measure)
        for measure in ("error", "lmae", "near_mae"):
            line[f"{measure} paper"] = _paper(data, box, surrogate, method, measure)
        lines.append({**line, "options": " / ".join(dict.fromkeys(one.options for one in seeds))})
    return lines


def _original(cell: list[Told], data: str, box: str, surrogate: str) -> dict[str, Any]:
    """The black box itself."""
    first = {one.problem.seed: one for one in cell if len(one.local) == max(len(other.local) for other in cell)}
    score = apr if cell[0].problem.classifies else mae
    error = float(np.mean([score(one.labels, one.outputs) for one in first.values()]))
    line = {"data": data, "box": box, "surrogate": surrogate, "method": "Original", "seeds": len(first)}
    line |= {"tests": len(next(iter(first.values())).local), "error": error, "nse": 1.0, "skill": 1.0}
    return {**line, "error paper": _paper(data, box, surrogate, "Original", "error")}


def paper_key(data: str, box: str, surrogate: str, method: str, measure: Any) -> Key:
    """Where the paper's number for a cell and method is, if it has one."""
    return Key(data, box, surrogate, PAPER_NAMES.get(method, method), measure)


def _paper(data: str, box: str, surrogate: str, method: str, measure: str) -> float:
    return TABLES.get(paper_key(data, box, surrogate, method, measure), float("nan"))


def _behind(measure: str, seeds: list[Told], own: dict[int, Told]) -> dict[str, float]:
    """By how much a method is behind the default, with the ends of the paired 95% interval over test rows.

    A test row that several seeds share is drawn for all of them or for none.
    """
    pairs = [(one, own[one.problem.seed]) for one in seeds if one.problem.seed in own]
    if not pairs or pairs[0][0] is pairs[0][1]:
        return {}
    score = _PAIRED[measure]
    numbers = [min(len(one.local), len(ours.local)) for one, ours in pairs]
    pairs = [(one.first(n), ours.first(n)) for (one, ours), n in zip(pairs, numbers, strict=True)]
    rows = [_test_rows(one, several=len(pairs) > 1) for one, _ in pairs]
    every, places = np.unique(np.concatenate(rows), return_inverse=True)
    drawn = np.random.default_rng(0).multinomial(len(every), np.full(len(every), 1 / len(every)), RESAMPLES)
    middle, differences, start = 0.0, np.zeros(RESAMPLES), 0
    for (one, ours), n in zip(pairs, numbers, strict=True):
        times = drawn[:, places[start : start + n]].astype(np.float64)
        start += n
        middle += float((score(ours, np.ones((1, n))) - score(one, np.ones((1, n))))[0]) / len(pairs)
        with np.errstate(divide="ignore", invalid="ignore"):  # a draw of rows that are all alike says nothing
            differences += (score(ours, times) - score(one, times)) / len(pairs)
    low, high = np.percentile(differences[np.isfinite(differences)], [2.5, 97.5])
    return {f"{measure} behind": middle, f"{measure} behind low": float(low), f"{measure} behind high": float(high)}


def _test_rows(one: Told, several: bool) -> np.ndarray:
    """Which rows of the data set were explained; where there is but one seed any numbers do."""
    return one.problem.parts[2][: len(one.local)] if several else np.arange(len(one.local))


def verdicts(table: pd.DataFrame, measure: str, rivals: Sequence[str] | None = None) -> dict[tuple[str, ...], str]:
    """For each cell whether the default is best, tied with rivals, or behind some; nothing before all are known.

    Rivals are the peers, the local mean and the global model, unless others are given. The paper's own method is told
    of in the tables, and the booster is no explanation.
    """
    found = {}
    for cell, part in table.groupby(CELL, sort=False):
        wanted = rivals or (*PEERS, "local mean", f"global {part['surrogate'].iloc[0]}")
        seeds = part.set_index("method")["seeds"]
        absent = sorted(name for name in {DEFAULT, *wanted} if seeds.get(name, 0) < seeds.get(DEFAULT, 1))
        verdict = f"unfinished: {', '.join(absent)}" if absent else _verdict(part[part["method"].isin(wanted)], measure)
        found[tuple(map(str, cell))] = verdict
    return found


def _verdict(others: pd.DataFrame, measure: str) -> str:
    level = others[others[f"{measure} behind low"] <= 0]
    ahead = others[others[f"{measure} behind high"] < 0]
    names = ", ".join((ahead if len(ahead) else level)["method"])
    return f"behind {names}" if len(ahead) else f"tied with {names}" if len(level) else "best"
