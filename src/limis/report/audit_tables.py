"""The tables of an audit in words and numbers; what is not known is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.fidelity.audit.sentences import BASELINES, SHORT
from limis.report.words import Numbers, percent

if TYPE_CHECKING:
    from limis.fidelity.audit.result import Audit

QUINTILE = r"trust quintile \d+"
_WORDS = {"Method", "Law", "Range", "Change", "Group of columns", "Truth", "Asked again", "Which rows", "Questions of"}
_JOINT = {"2": "2 columns", "3": "3 columns", "half": "half of the columns"}
_FEW = "Of few rows a share says little."
_TWO = Numbers(2)


@dataclass
class Cell:
    """A number or name, and whether it speaks against a method."""

    words: str
    bad: bool = False


@dataclass
class Column:
    """The head of a column; numbers stand to the right."""

    name: str
    is_number: bool


@dataclass
class Table:
    """One table with what is said of it; those that few will read are folded."""

    heading: str
    note: str
    columns: list[Column]
    lines: list[list[Cell]]
    folded: bool = False


def tables(audit: Audit) -> list[Table]:
    """All tables that have something to tell."""
    found = [
        _singles(audit),
        _joints(audit),
        _reasons(audit),
        _strongest(audit),
        _at_row(audit),
        *_promises(audit),
        _trust(audit),
        _stability(audit),
        _special(audit),
        _measures(audit),
    ]
    return [table for table in found if table is not None]


# --- words for values -------------------------------------------------------------------------------------------------


def skill(value: float) -> str:
    """A skill with two digits; nothing where it is unknown."""
    return _TWO.show(value) if np.isfinite(value) else ""


def interval(low: float, high: float) -> str:
    """An interval of skills."""
    return f"{skill(low)} to {skill(high)}" if np.isfinite(low) and np.isfinite(high) else ""


def share(value: float) -> str:
    """A share in percent; nothing where it is unknown."""
    return percent(float(value)) if np.isfinite(value) else ""


def range_words(kind: str) -> str:
    """How far changes of one column go."""
    return "any row" if kind == "any" else f"nearest {kind}"


def kept_interval(kept: float, n: int) -> tuple[float, float]:
    """95% interval of a share of ``n`` rows (Wilson)."""
    z2 = 1.96**2
    centre = (kept + z2 / (2 * n)) / (1 + z2 / n)
    half = 1.96 * np.sqrt(kept * (1 - kept) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def _skill_cell(value: float) -> Cell:
    """A skill, bad below zero."""
    return Cell(skill(value), bad=bool(value < 0))


def _joint_words(kind: str) -> str:
    """How many columns change at once, and from where."""
    size, _, where = kind.partition(", ")
    return f"{_JOINT.get(size, size)}, {'near rows' if where == 'near' else 'any row'}"


def _change_words(line: pd.Series) -> str:
    """A change of one column or of several."""
    return f"1 column, {range_words(line['kind'])}" if line["family"] == "single" else _joint_words(line["kind"])


def _table(heading: str, note: str, lines: Iterable[dict[str, Any]], *, folded: bool = False) -> Table | None:
    """A table of lines that name their cells; columns in which nothing is known are left out."""
    told = [
        {name: cell if isinstance(cell, Cell) else Cell(str(cell)) for name, cell in line.items()} for line in lines
    ]
    names = [name for name in dict.fromkeys(name for line in told for name in line) if _any_known(told, name)]
    if not names:
        return None
    columns = [Column(name, name not in _WORDS) for name in names]
    return Table(heading, note, columns, [[line.get(name, Cell("")) for name in names] for line in told], folded)


def _any_known(lines: list[dict[str, Cell]], name: str) -> bool:
    """Whether a line has words in this column."""
    return any(line[name].words for line in lines if name in line)


# --- skill ------------------------------------------------------------------------------------------------------------


def _skills(audit: Audit, families: tuple[str, ...], *, special: bool = False) -> list[pd.Series]:
    """Lines of skills that are known, without those who know nothing, methods side by side."""
    own = audit.skills[audit.skills["family"].isin(families) & ~audit.skills["method"].isin(BASELINES)]
    own = own[((own["subset"] != "all") == special) & np.isfinite(own["skill"])]
    order = {name: place for place, name in enumerate(audit.methods)}
    keys = [
        own["law"],
        own["family"].map({name: place for place, name in enumerate(families)}),
        own["subset"] if special else pd.Series("", index=own.index),
        own["kind"].map({kind: place for place, kind in enumerate(dict.fromkeys(own["kind"]))}),
        own["method"].map(order),
    ]
    places = pd.concat(keys, axis=1).set_axis(range(len(keys)), axis=1).sort_values(list(range(len(keys)))).index
    return [line for _, line in own.loc[places].iterrows()]


def _skill_cells(line: pd.Series) -> dict[str, Any]:
    """Skill over all questions, and over rows."""
    return {
        "Method": line["method"],
        "Skill": _skill_cell(line["skill"]),
        "95% interval": interval(line["low"], line["high"]),
        "Median row": _skill_cell(line["median"]),
        "Rows below zero": share(line["below_zero"]),
        "Rows": f"{line['rows']:,}",
        "Questions": f"{line['questions']:,}",
    }


def _singles(audit: Audit) -> Table | None:
    """Single changes by range."""
    lines = [
        {"Law": line["law"], "Range": range_words(line["kind"]), **_skill_cells(line)}
        for line in _skills(audit, ("single",))
    ]
    note = (
        "One column of a row takes the value of another row, one of so many nearest or any. Skill is the share of the "
        "squared change of the output that is foreseen: 1 is all, 0 is saying that nothing changes. Median row and "
        "rows below zero are of the skill of each row by itself."
    )
    return _table("Single changes", note, lines)


def _joints(audit: Audit) -> Table | None:
    """Joint changes by number of columns."""
    lines = [
        {"Law": line["law"], "Change": _joint_words(line["kind"]), **_skill_cells(line)}
        for line in _skills(audit, ("joint",))
    ]
    note = "Several columns take the values of one other row at once, from near rows or from any. Skill as above."
    return _table("Joint changes", note, lines)


def _reasons(audit: Audit) -> Table | None:
    """Reasons by size of the group."""
    lines = [
        {"Law": line["law"], "Group of columns": line["kind"], **_skill_cells(line)}
        for line in _skills(audit, ("reasons",))
    ]
    note = (
        "A group of columns is replaced by those of other rows (law A: a random sample of the training rows), and the "
        "sum of its reasons is held against what the prediction loses. Skill 0 is the blind answer: the prediction "
        "shared evenly among all columns. Contributions of limis lead from the level of rows alike to the prediction; "
        "the way from the mean of all rows to that level is left out of them, and counts as missed."
    )
    return _table("Reasons", note, lines)


def _special(audit: Audit) -> Table | None:
    """Plausible questions, missing values, rare levels."""
    lines = []
    for line in _skills(audit, ("single", "joint"), special=True):
        cells = _skill_cells(line)
        kept = {name: cells[name] for name in ("Method", "Skill", "95% interval", "Rows", "Questions")}
        lines.append({"Law": line["law"], "Questions of": line["subset"], "Change": _change_words(line), **kept})
    note = (
        "Plausible: the changed row is as near to a training row as training rows are to one another. To and from "
        "missing: a value goes or comes. Rare levels: those of fewer than 1% of the training rows. Where questions are "
        "few, skill says little."
    )
    return _table("Special questions: plausible rows, missing values, rare levels", note, lines, folded=True)


def _measures(audit: Audit) -> Table | None:
    """The same changes in absolute values, in probability, and over the threshold."""
    lines = [
        {
            "Law": line["law"],
            "Change": _change_words(line),
            "Method": line["method"],
            "Skill, absolute": _skill_cell(line["absolute"]),
            "Skill in probability": _skill_cell(line["probability"]),
            "Recall of crossings": share(line["recall"]),
            "Precision of crossings": share(line["precision"]),
        }
        for line in _skills(audit, ("single", "joint"))
    ]
    heading, note = "Other measures", "Skill, absolute: with absolute instead of squared changes."
    if audit.skills["recall"].notna().any():
        heading += ": probability and the decision threshold"
        note += (
            " Crossings are changes that take the output over the decision threshold: recall is the share of them that "
            "was foreseen, precision the share of foreseen ones that came about."
        )
    return _table(heading, note, lines, folded=True)


# --- the rest ---------------------------------------------------------------------------------------------------------


def _strongest(audit: Audit) -> Table | None:
    """Whether the strongest column is named."""
    lines = [
        {
            "Truth": line["by"],
            "Method": line["method"],
            "Rows": f"{line['rows']:,}",
            "Same column": share(line["same_column"]),
            "Its sign": share(line["same_sign"]),
        }
        for _, line in audit.strongest[audit.strongest["rows"] > 0].iterrows()
    ]
    note = (
        "For how many rows a method names the truly strongest column, and gives that column the right sign: by what "
        "replacing one column takes away, and by the Shapley values of the model. Law A (training rows), any row."
    )
    return _table("The strongest column", note, lines)


def _at_row(audit: Audit) -> Table | None:
    """Error at the rows."""
    lines = [
        {
            "Method": line["method"],
            "Rows": f"{line['rows']:,}",
            "Mean error": f"{line['mean_error']:.3g}",
            "NSE": _skill_cell(line["nse"]),
        }
        for _, line in audit.at_row[audit.at_row["mean_error"].notna()].iterrows()
    ]
    note = (
        "How far local models are from the model’s output at the rows as they are, with no change and so of no law. "
        "NSE is the share of the differences between rows that they account for. Methods that begin at the model’s own "
        "output are left out."
    )
    return _table("At the row", note, lines)


def _promises(audit: Audit) -> list[Table | None]:
    """For how many rows bounds hold: all, by fifths, in groups."""
    own = audit.coverage[(audit.coverage["rows"] > 0) & audit.coverage["kept"].notna()]
    all_rows, fifth = own["sort"] == "all rows", own["sort"].str.fullmatch(QUINTILE).astype(bool)
    note = (
        "Share of rows whose error on single changes (root mean square) is within the bound, and of how many rows, by "
        "law and range."
    )
    by_fifth = "The same by fifths of the rows: quintile 1 has the smallest bounds, those most trusted. " + _FEW
    by_group = "The same in groups of rows with one value of a sensitive column. " + _FEW
    return [
        _table("Promises kept: all rows", note, _kept(own[all_rows])),
        _table("Promises kept: by trust", by_fifth, _kept(own[fifth])),
        _table("Promises kept: sensitive groups", by_group, _kept(own[~all_rows & ~fifth])),
        _intervals(audit),
    ]


def _intervals(audit: Audit) -> Table | None:
    """How many changes lie within the intervals told of them."""
    lines = [
        {
            "Method": line["method"],
            "Law": line["law"],
            "Range": range_words(line["range"]),
            "Changes": f"{line['changes']:,}",
            "Promised": share(line["promised"]),
            "Kept": Cell(share(line["kept"]), bad=bool(line["kept"] < line["promised"] - SHORT)),
            "Kept where the model moves": share(line["moving_kept"]),
            "Half width": f"{line['half_width']:.2f}",
        }
        for line in audit.intervals.to_dict("records")
    ]
    note = (
        "Share of single changes whose answer lies within the interval told of it; where the model moves: by more than "
        "a twentieth of its outputs' standard deviation. Half width: the median, in such deviations."
    )
    return _table("Intervals of single changes", note, lines)


def _kept(own: pd.DataFrame) -> list[dict[str, Any]]:
    """A line a method, law and sort of rows, a column a range."""
    found = []
    for (method, law, sort), part in own.groupby(["method", "law", "sort"], sort=False):
        line: dict[str, Any] = {"Method": method, "Law": law, "Which rows": sort}
        line["Promised"] = share(part["promised"].max())  # not of ranges beyond the promise
        for _, one in part.iterrows():
            words = f"{share(one['kept'])} of {one['rows']:,}"
            line[f"Kept, {range_words(one['range'])}"] = Cell(words, bad=bool(one["kept"] < one["promised"] - SHORT))
        found.append(line)
    return found


def _trust(audit: Audit) -> Table | None:
    """What being called trusted is worth."""
    lines = [
        {
            "Method": line["method"],
            "Law": line["law"],
            "Range": range_words(line["range"]),
            "Rows": f"{line['rows']:,}",
            "Which rows": line["sort"],
            "Called trusted": share(line["trusted"]),
            "Trusted foresee half": share(line["foresee"]),
            "Others foresee half": share(line["others_foresee"]),
            "Trusted reasons hold": share(line["reasons_hold"]),
            "Keep both": f"{line['keep_both']:,} of {line['asked_both']:,}",
            "Model flat": share(line["flat"]),
        }
        for _, line in audit.trust.iterrows()
    ]
    note = (
        "Of the rows called trusted, how many keep what is promised of them: they foresee at least half of what single "
        "changes do, and their reasons miss at most half of what groups of columns do. Rows where the model is flat "
        "(changes hardly move it) count in no other column: there is nothing to foresee. By law B groups take values "
        "of rows alike in what is kept, which no reasons against all training rows can foretell."
    )
    return _table("Trust", note, lines)


def _stability(audit: Audit) -> Table | None:
    """How alike reasons are when asked again."""
    lines = [
        {
            "Method": line["method"],
            "Asked again": line["asked_again"],
            "Rows": f"{line['rows']:,}",
            "Same strongest column": share(line["same_strongest"]),
            "Rank correlation": skill(line["rank_correlation"]),
        }
        for _, line in audit.stability.iterrows()
    ]
    note = (
        "Reasons held against those of the same rows asked again; the model is not asked, so there is no law or range."
    )
    return _table("Stability", note, lines)
