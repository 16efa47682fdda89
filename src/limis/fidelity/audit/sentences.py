"""What an audit comes to, in plain sentences; what speaks against the explanations comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from limis.fidelity.audit.figures import BY_BAR

if TYPE_CHECKING:
    from limis.fidelity.audit.result import Audit

BASELINES = ("nothing changes", "blind answer")
SHORT = 0.02  # how far below its promise a bound may hold and still be called kept: rows are few


def sentences(audit: Audit) -> list[str]:
    """One or a few a method, and what they rest on."""
    found = [text for name in audit.methods if name not in BASELINES for text in _of_method(audit, name)]
    facts = audit.facts
    of_all = "" if facts["rows"] == facts["rows_given"] else f", the first of {facts['rows_given']:,}"
    told = facts["plan"]["reason_rows"]
    of_reasons = "" if told == facts["rows"] else f", {told:,} of them about reasons"
    asked = (
        f"{facts['questions']:,} questions to the model about {facts['rows']:,} rows{of_all}{of_reasons}, by two laws: "
        "A takes values from training rows, B from held-out rows and otherwise; nothing here was fitted to B."
    )
    return [*found, asked]


def _of_method(audit: Audit, name: str) -> list[str]:
    """What was measured of one method; bad news before good."""
    bad: list[str] = []
    good: list[str] = []
    for text, is_bad in (
        *_on_changes(audit, name),
        *_on_reasons(audit, name),
        *_on_bounds(audit, name),
        *_on_intervals(audit, name),
        *_on_trust(audit, name),
    ):
        (bad if is_bad else good).append(text)
    return [*bad, *good]


def _on_changes(audit: Audit, name: str) -> list[tuple[str, bool]]:
    own = audit.skills[(audit.skills["method"] == name) & (audit.skills["subset"] == "all")]
    own = own[own["family"].isin(("single", "joint"))].dropna(subset="skill")
    if own.empty:
        return []
    worst, best = own.iloc[int(own["skill"].argmin())], own.iloc[int(own["skill"].argmax())]
    if worst["skill"] < 0:
        text = f"{name} is worse than saying that nothing changes on {_asked(worst)}: skill {worst['skill']:.2f}"
    else:
        text = f"{name} foresees {_percent(worst['skill'])} of what the model does on {_asked(worst)}, its weakest"
    if best["skill"] - worst["skill"] < 0.005:
        return [(f"{name} has a skill of {worst['skill']:.2f} on all changes.", bool(worst["skill"] < 0))]
    return [(f"{text}; at best {best['skill']:.2f}, on {_asked(best)}.", bool(worst["skill"] < 0))]


def _on_reasons(audit: Audit, name: str) -> list[tuple[str, bool]]:
    own = audit.skills[(audit.skills["method"] == name) & (audit.skills["family"] == "reasons")].dropna(subset="skill")
    if own.empty:
        return []
    worst, best = own["skill"].min(), own["skill"].max()
    strongest = audit.strongest[(audit.strongest["method"] == name) & (audit.strongest["by"] == BY_BAR)]
    text = f"{name}'s reasons score {worst:.2f} to {best:.2f} against sharing the prediction evenly among all columns"
    if len(strongest):
        line = strongest.iloc[0]
        if line["rows"] > 0:
            text += (
                f"; where one column is clearly the strongest ({line['rows']:,} rows), they name it in "
                f"{_percent(line['same_column'])}, and its sign in {_percent(line['same_sign'])}"
            )
    return [(text + ".", bool(worst < 0))]


def _on_bounds(audit: Audit, name: str) -> list[tuple[str, bool]]:
    # Beyond the promised range nothing is promised.
    own = audit.coverage[(audit.coverage["method"] == name) & (audit.coverage["sort"] == "all rows")].dropna()
    own = own[own["rows"] > 0]
    if own.empty:
        return []
    worst, best = own.iloc[int(own["kept"].argmin())], own["kept"].max()
    broken = bool(worst["kept"] < worst["promised"] - SHORT)
    text = (
        f"{name}'s bound on the error on changes, promised for {_percent(worst['promised'])} of rows, "
        f"{'holds only' if broken else 'holds'} for {_span(worst['kept'], best)}, fewest on {_range(worst['range'])}, "
        f"law {worst['law']}."
    )
    return [(text, broken)]


def _on_intervals(audit: Audit, name: str) -> list[tuple[str, bool]]:
    own = audit.intervals[audit.intervals["method"] == name]
    if own.empty:
        return []
    worst, best = own.iloc[int(own["kept"].argmin())], own["kept"].max()
    broken = bool(worst["kept"] < worst["promised"] - SHORT)
    text = (
        f"{name}'s intervals of single changes, promised for {_percent(worst['promised'])} of them, "
        f"{'hold only' if broken else 'hold'} for {_span(worst['kept'], best)}, fewest on {_range(worst['range'])}, "
        f"law {worst['law']}"
    )
    if own["moving"].sum() > 0:
        text += f"; where the model's answer moves at all, for {_percent(own['moving_kept'].min())} or more"
    return [(text + ".", broken)]


def _on_trust(audit: Audit, name: str) -> list[tuple[str, bool]]:
    own = audit.trust[(audit.trust["method"] == name) & (audit.trust["sort"] == "all rows")]
    if own.empty or not (own["trusted"] > 0).any():
        return [] if own.empty else [(f"{name} calls no row trusted.", False)]
    worst = own.iloc[int(own["foresee"].fillna(2).argmin())]
    if np.isnan(worst["foresee"]):
        return []
    text = (
        f"Of the rows that {name} calls trusted ({_percent(worst['trusted'])}, where the model is not flat), "
        f"{_percent(worst['foresee'])} foresee at least half of what changes do (law {worst['law']})"
    )
    hold = own["reasons_hold"].dropna()
    if len(hold):
        told = own.iloc[int(own["reasons_hold"].fillna(2).argmin())]
        text += f", and the reasons of {_percent(told['reasons_hold'])} miss at most half of what groups of columns do"
        text += f" (law {told['law']})"
    return [(text + ".", bool(worst["foresee"] < 0.95))]


def _asked(line: pd.Series) -> str:
    if line["family"] == "joint":
        size, where = str(line["kind"]).split(", ")
        columns = "half of the columns" if size == "half" else f"{size} columns at once"
        return f"{columns} {'from near rows' if where == 'near' else 'from any row'} (law {line['law']})"
    return f"{_range(str(line['kind']))} (law {line['law']})"


def _range(kind: str) -> str:
    return "single changes to any row's value" if kind == "any" else f"single changes within the {kind} nearest rows"


def _span(low: float, high: float) -> str:
    return _percent(low) if _percent(low) == _percent(high) else f"{_percent(low)} to {_percent(high)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
