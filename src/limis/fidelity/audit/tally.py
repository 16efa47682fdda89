"""What each method got right and wrong, row by row: all figures of an audit are sums over this table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from limis.fidelity.audit.exam import Changes, Exam, Removals
from limis.fidelity.audit.methods import Method

KEYS = ["law", "family", "kind", "subset", "method"]
# Sums over a row's questions. size: ΣΔf²; missed: Σ(Δf − Δg)²; moved: what a blind answer misses, which is ΣΔf² of
# changes; the same in absolute values and in probabilities; crossed: changes over the threshold, claimed: those that
# the method says cross, hit: both.
SUMS = [
    "questions", "size", "missed", "moved", "missed_abs", "moved_abs", "missed_p", "moved_p", "crossed", "claimed",
    "hit",
]  # fmt: skip


def tally(exam: Exam, methods: list[Method]) -> pd.DataFrame:
    """A line a law, kind of question, subset of questions, method and row."""
    parts = []
    for asked in exam.changes:
        for method in methods:
            if method.foresee is not None:
                parts += _changes(exam, asked, method)
    for removed in exam.removals:
        for method in methods:
            parts += _reasons(removed, method)
    return pd.concat(parts, ignore_index=True)


def _changes(exam: Exam, asked: Changes, method: Method) -> list[pd.DataFrame]:
    own = asked.rows < method.n
    rows, answers = asked.rows[own], asked.answers[own]
    assert method.foresee is not None
    foreseen = method.foresee(rows, asked.frame[own]) if len(rows) else np.empty(0)
    sums = {
        "questions": np.ones(len(rows)),
        "size": answers**2,
        "missed": (answers - foreseen) ** 2,
        "moved": answers**2,
        "missed_abs": np.abs(answers - foreseen),
        "moved_abs": np.abs(answers),
        **_in_probability(exam, rows, answers, foreseen),
    }
    head = {"law": asked.law, "family": asked.family, "kind": asked.kind, "method": method.name}
    subsets = {"all": np.ones(len(rows), dtype=bool), **{name: chosen[own] for name, chosen in asked.subsets.items()}}
    return [_by_row({**head, "subset": name}, rows, sums, chosen) for name, chosen in subsets.items() if chosen.any()]


def _in_probability(exam: Exam, rows: np.ndarray, answers: np.ndarray, foreseen: np.ndarray) -> dict[str, np.ndarray]:
    """Errors in probability and on crossing the threshold, for a method that starts at f(x) as its reader does."""
    start = exam.outputs[rows]
    found = {}
    if exam.box.probability is not None:
        before, after, said = (exam.box.probability(x) for x in (start, start + answers, start + foreseen))
        found = {"missed_p": (after - np.clip(said, 0, 1)) ** 2, "moved_p": (after - before) ** 2}
    if exam.box.threshold is not None:
        over = start > exam.box.threshold
        crossed = (start + answers > exam.box.threshold) != over
        claimed = (start + foreseen > exam.box.threshold) != over
        found |= {"crossed": crossed, "claimed": claimed, "hit": crossed & claimed}
    return found


def _reasons(removed: Removals, method: Method) -> list[pd.DataFrame]:
    own = removed.rows < method.n
    rows, truth, blind = removed.rows[own], removed.truth[own], removed.blind[own]
    said = blind if method.blind else method.say(rows, removed.units[own])
    if said is None:
        return []
    sums = {
        "questions": np.ones(len(rows)),
        "size": truth**2,
        "missed": (truth - said) ** 2,
        "moved": (truth - blind) ** 2,
        "missed_abs": np.abs(truth - said),
        "moved_abs": np.abs(truth - blind),
    }
    head = {"law": removed.law, "family": "reasons", "kind": removed.kind, "subset": "all", "method": method.name}
    return [_by_row(head, rows, sums, np.ones(len(rows), dtype=bool))]


def _by_row(head: dict[str, str], rows: np.ndarray, sums: dict[str, np.ndarray], chosen: np.ndarray) -> pd.DataFrame:
    rows = rows[chosen]
    known, place = np.unique(rows, return_inverse=True)
    columns = {
        name: np.bincount(place, weights=sums[name][chosen], minlength=len(known)) if name in sums else np.nan
        for name in SUMS
    }
    return pd.DataFrame({**{key: head[key] for key in KEYS}, "row": known, **columns})
