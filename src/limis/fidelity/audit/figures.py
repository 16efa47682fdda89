"""From the tally to the figures of an audit, with intervals over rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from limis.fidelity.audit.exam import Exam
from limis.fidelity.audit.methods import NOTHING, Method, Take
from limis.fidelity.audit.tally import KEYS
from limis.fidelity.ground import ANY

DRAWS = 500  # of rows, with replacement, for an interval
TRUST_RANGE = 200  # the range that trust is about, or the widest below it that the table is long enough for
FLAT = 0.05  # a model whose answers to changes stay below so many deviations of f is flat there
FORESIGHT, WHY_ERROR = 0.5, 0.5  # what is promised of trusted rows: at least, and at most
QUINTILES = 5
TINY = 1e-300
REMOVAL, BY_BAR, SHAPLEY = "single removal", "single removal, its bar", "Shapley values of f"


def skills(tally: pd.DataFrame, random_state: int = 0) -> pd.DataFrame:
    """A line a law, kind of question, subset and method: skill pooled over questions, its interval, and by row."""
    rng = np.random.default_rng(random_state)
    lines = []
    for keys, part in tally.groupby(KEYS, sort=False):
        missed, moved = part["missed"].to_numpy(), part["moved"].to_numpy()
        low, high = interval(missed, moved, rng)
        by_row = share_explained(missed, moved)
        lines.append(
            {
                **dict(zip(KEYS, keys, strict=True)),
                "rows": len(part),
                "questions": int(part["questions"].sum()),
                "skill": pooled(missed, moved),
                "low": low,
                "high": high,
                "median": float(np.nanmedian(by_row)) if np.isfinite(by_row).any() else np.nan,
                "below_zero": float(np.mean(by_row[np.isfinite(by_row)] < 0)) if np.isfinite(by_row).any() else np.nan,
                "absolute": pooled(part["missed_abs"], part["moved_abs"]),
                "probability": pooled(part["missed_p"], part["moved_p"]),
                "recall": _ratio(part["hit"], part["crossed"]),
                "precision": _ratio(part["hit"], part["claimed"]),
            }
        )
    return pd.DataFrame(lines)


def pooled(missed: np.ndarray | pd.Series, moved: np.ndarray | pd.Series) -> float:
    """1 − Σ missed / Σ moved; NaN where nothing moved, or nothing is known."""
    total = float(np.sum(moved))
    return 1 - float(np.sum(missed)) / total if total > 0 else float("nan")


def share_explained(missed: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """The same for each row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(moved > 0, 1 - missed / moved, np.nan)


def interval(missed: np.ndarray, moved: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """95% interval of the pooled skill, rows drawn with replacement."""
    if len(missed) < 2 or moved.sum() <= 0:
        return float("nan"), float("nan")
    drawn = rng.integers(len(missed), size=(DRAWS, len(missed)))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 1 - missed[drawn].sum(axis=1) / moved[drawn].sum(axis=1)
    found = found[np.isfinite(found)]  # a draw may hold rows alone in which nothing moves
    if len(found) == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def _ratio(some: pd.Series, of: pd.Series) -> float:
    return float(some.sum() / of.sum()) if of.sum() > 0 else float("nan")


# --- the strongest column ---------------------------------------------------------------------------------------------


def strongest(exam: Exam, methods: list[Method]) -> pd.DataFrame:
    """How often a method names the strongest column, and its sign, in rows where it is clear which one that is.

    Clear: by two standard errors ahead of the next one. Attributions that are all zero, or tied at the top, name none.
    Importances, mean sizes over the rows, are held against those of the model itself by rank.
    By single removal, what a method says of the removal counts; by its bar, the largest attribution, pairs or not.
    """
    lines = []
    for by, truth in ((REMOVAL, exam.removed), (BY_BAR, exam.removed), (SHAPLEY, exam.shapley)):
        top, clear = truth.clear()
        for method in methods:
            if method.attributions is None:
                continue
            n = min(method.n, len(top))  # the rows whose reasons were asked about
            said, own, rows = method.attributions[:n], slice(n), np.arange(n)
            if by == REMOVAL and method.take is not None:
                said = _of_each_alone(method.take, n, said.shape[1])
            signs = np.sign(said[rows, top[own]]) == np.sign(truth.values[rows, top[own]])
            lines.append(
                {
                    "by": by,
                    "method": method.name,
                    "rows": int(clear[own].sum()),
                    "clear": _mean(clear[own]),
                    "same_column": _mean((named(said) == top[own])[clear[own]]),
                    "same_sign": _mean(signs[clear[own]]),
                    "importances": _rank_correlation(np.abs(said).mean(axis=0), np.abs(truth.values[own]).mean(axis=0)),
                }
            )
    return pd.DataFrame(lines, columns=["by", "method", "rows", "clear", "same_column", "same_sign", "importances"])


def _of_each_alone(take: Take, n_rows: int, n_units: int) -> np.ndarray:
    """What a method says that each unit adds, the others left as they are: (rows, units)."""
    rows, alone = np.repeat(np.arange(n_rows), n_units), np.tile(np.eye(n_units, dtype=bool), (n_rows, 1))
    return take(rows, alone).reshape(n_rows, n_units)


def named(attributions: np.ndarray) -> np.ndarray:
    """The unit with the largest attribution in each row; -1 where all are zero or two are the largest: (rows,)."""
    sizes = np.abs(attributions)
    largest = sizes.max(axis=1)
    alone = (sizes == largest[:, None]).sum(axis=1) == 1
    return np.where(alone & (largest > 0), sizes.argmax(axis=1), -1)


def _mean(found: np.ndarray) -> float:
    return float(found.mean()) if len(found) else float("nan")


# --- at the row -------------------------------------------------------------------------------------------------------


def at_row(exam: Exam, methods: list[Method]) -> pd.DataFrame:
    """How far the local models are from f at the rows themselves; not of those that start at f(x)."""
    lines = []
    for method in methods:
        if method.predictions is None:
            continue
        f = exam.outputs[: method.n]
        missed = np.abs(f - method.predictions)
        lines.append(
            {
                "method": method.name,
                "rows": method.n,
                "mean_error": float(missed.mean()),
                "nse": pooled(missed**2, (f - f.mean()) ** 2),
            }
        )
    return pd.DataFrame(lines, columns=["method", "rows", "mean_error", "nse"])


# --- promises ---------------------------------------------------------------------------------------------------------


def coverage(tally: pd.DataFrame, methods: list[Method], groups: dict[str, np.ndarray]) -> pd.DataFrame:
    """For how many rows a promised bound holds: by range, by quintile of the bound, and in groups of rows.

    A bound is on the root mean square error over a row's single changes, up to a range; beyond it nothing is promised.
    """
    lines = []
    for method in methods:
        if method.bound is None:
            continue
        sorts = {"all rows": np.ones(method.n, dtype=bool), **_quintiles(method.bound)}
        sorts |= {name: chosen[: method.n] for name, chosen in groups.items()}
        own = tally[(tally["method"] == method.name) & (tally["family"] == "single") & (tally["subset"] == "all")]
        for (law, kind), part in own.groupby(["law", "kind"], sort=False):
            rows = part["row"].to_numpy()
            error = np.sqrt(part["missed"].to_numpy() / part["questions"].to_numpy())
            kept = error <= method.bound[rows]
            known = np.isfinite(method.bound[rows])
            for sort, chosen in sorts.items():
                here = chosen[rows] & known
                lines.append(
                    {
                        "method": method.name,
                        "law": law,
                        "range": kind,
                        "sort": sort,
                        "rows": int(here.sum()),
                        "promised": method.promised if is_within(str(kind), method.reach) else np.nan,
                        "kept": _mean(kept[here]),
                    }
                )
    return pd.DataFrame(lines, columns=["method", "law", "range", "sort", "rows", "promised", "kept"])


def intervals(exam: Exam, methods: list[Method]) -> pd.DataFrame:
    """How many single changes lie within the intervals told of them: of all, and of those that move f at all.

    Those move it by more than `FLAT` deviations; an interval around nothing is easily kept.
    """
    lines = []
    for method in methods:
        for asked in exam.changes:
            if method.widths is None or method.foresee is None or asked.family != "single":
                continue
            own = asked.rows < method.n
            rows, frame, answers = asked.rows[own], asked.frame[own], asked.answers[own]
            widths = method.widths(rows, frame)
            known = np.isfinite(widths)
            if not known.any():
                continue
            kept = np.abs(answers - method.foresee(rows, frame)) <= widths
            moves = known & (np.abs(answers) > FLAT * exam.output_deviation[rows])
            lines.append(
                {
                    "method": method.name,
                    "law": asked.law,
                    "range": asked.kind,
                    "changes": int(known.sum()),
                    "promised": 0.95,
                    "kept": _mean(kept[known]),
                    "moving": int(moves.sum()),
                    "moving_kept": _mean(kept[moves]),
                    "half_width": float(np.median(widths[known] / exam.output_deviation[rows[known]])),
                }
            )
    columns = ["method", "law", "range", "changes", "promised", "kept", "moving", "moving_kept", "half_width"]
    return pd.DataFrame(lines, columns=columns)


def is_within(kind: str, reach: str) -> bool:
    """Whether changes of a range are among those that a bound is promised for."""
    return reach == ANY or (kind != ANY and int(kind) <= int(reach))


def _quintiles(bound: np.ndarray) -> dict[str, np.ndarray]:
    if not np.isfinite(bound).any():
        return {}
    edges = np.quantile(bound[np.isfinite(bound)], np.arange(1, QUINTILES) / QUINTILES)
    place = np.searchsorted(edges, bound)
    return {f"trust quintile {number + 1}": place == number for number in range(QUINTILES)}


def trust(
    tally: pd.DataFrame, exam: Exam, methods: list[Method], groups: dict[str, np.ndarray] | None = None
) -> pd.DataFrame:
    """Of the rows called trusted, how many keep what is promised of them: all, and in groups.

    Promised: at least half of what changes do is foreseen, and reasons miss at most half of what groups of columns do.
    Rows where the model is flat are counted apart: there is nothing to foresee.
    """
    kind = str(max([k for k in exam.ground.ranges if k != ANY and int(k) <= TRUST_RANGE], default=ANY, key=int))
    lines = []
    judged = [method for method in methods if method.trusted is not None]
    if all(method.name == NOTHING for method in judged):  # who stands there to be compared with, and nobody else
        judged = []
    for method in judged:
        assert method.trusted is not None
        for law in dict.fromkeys(tally["law"]):
            own = tally[(tally["method"] == method.name) & (tally["law"] == law) & (tally["subset"] == "all")]
            foresight, flat = _foresight(own[(own["family"] == "single") & (own["kind"] == kind)], exam, method.n)
            missed = _reasons_missed(own[own["family"] == "reasons"], exam, method.n)
            for sort, chosen in {"all rows": np.ones(method.n, dtype=bool), **(groups or {})}.items():
                known = np.isfinite(foresight) & chosen[: method.n]
                moving = known & ~flat
                called = moving & method.trusted
                both = called & np.isfinite(missed)
                lines.append(
                    {
                        "method": method.name,
                        "law": law,
                        "range": kind,
                        "sort": sort,
                        "rows": int(known.sum()),
                        "flat": _mean(flat[known]),
                        "trusted": _mean(method.trusted[moving]),
                        "foresee": _mean(foresight[called] >= FORESIGHT),
                        "others_foresee": _mean(foresight[moving & ~method.trusted] >= FORESIGHT),
                        "reasons_hold": _mean(missed[both] <= WHY_ERROR),
                        "asked_both": int(both.sum()),
                        "keep_both": int(((foresight >= FORESIGHT) & (missed <= WHY_ERROR))[both].sum()),
                    }
                )
    columns = [
        "method", "law", "range", "sort", "rows", "flat", "trusted", "foresee", "others_foresee", "reasons_hold",
        "asked_both", "keep_both",
    ]  # fmt: skip
    return pd.DataFrame(lines, columns=columns)


def _foresight(asked: pd.DataFrame, exam: Exam, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The share of changes that is foreseen, NaN where none were asked about, and where f is flat: (n,) both."""
    foresight, flat = np.full(n, np.nan), np.zeros(n, dtype=bool)
    rows, moved = asked["row"].to_numpy(), asked["moved"].to_numpy()
    least = asked["questions"].to_numpy() * (FLAT * exam.output_deviation[rows]) ** 2
    foresight[rows] = 1 - asked["missed"].to_numpy() / np.maximum(np.maximum(moved, least), TINY)
    flat[rows] = moved < least
    return foresight, flat


def _reasons_missed(asked: pd.DataFrame, exam: Exam, n: int) -> np.ndarray:
    """What reasons miss of what groups do (root mean squares), NaN where none were asked about: (n,)."""
    found = np.full(n, np.nan)
    sums = asked.groupby("row")[["missed", "size", "questions"]].sum()
    rows = sums.index.to_numpy()
    least = sums["questions"].to_numpy() * (FLAT * exam.output_deviation[rows]) ** 2
    found[rows] = np.sqrt(sums["missed"] / np.maximum(np.maximum(sums["size"], least), TINY))
    return found


# --- stability --------------------------------------------------------------------------------------------------------


def stability(methods: list[Method], again: dict[str, dict[str, Method]]) -> pd.DataFrame:
    """How alike a method's reasons are when it is asked again: the same strongest column, rank correlation."""
    lines = []
    for method in methods:
        for why, other in again.get(method.name, {}).items():
            if method.attributions is None or other.attributions is None:
                continue
            n = min(method.n, other.n)
            one, two = method.attributions[:n], other.attributions[:n]
            told = (named(one) >= 0) & (named(two) >= 0)
            lines.append(
                {
                    "method": method.name,
                    "asked_again": why,
                    "rows": n,
                    "same_strongest": _mean((named(one) == named(two))[told]),
                    "rank_correlation": _mean(
                        np.array(
                            [_rank_correlation(*map(np.abs, pair)) for pair in zip(one[told], two[told], strict=True)]
                        )
                    ),
                }
            )
    return pd.DataFrame(lines, columns=["method", "asked_again", "rows", "same_strongest", "rank_correlation"])


def _rank_correlation(one: np.ndarray, two: np.ndarray) -> float:
    one, two = np.abs(one), np.abs(two)
    if np.ptp(one) == 0 or np.ptp(two) == 0:
        return 1.0 if np.array_equal(one, two) else 0.0
    return float(spearmanr(one, two).statistic)
