"""The model as a whole, as the reasons of many rows show it, and the leading reasons of each in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from limis.errors import InputError
from limis.local_view import Reason

if TYPE_CHECKING:
    from limis.explanation import Explanations

TOWARDS = {"higher": 1.0, "lower": -1.0}


def importances(found: Explanations) -> pd.Series:
    """Mean size of each column's contribution over the rows, the largest first."""
    sizes = found.column_contributions.abs().mean()
    return sizes.sort_values(ascending=False, kind="stable").rename("importance").rename_axis("column")


def dependence(found: Explanations, column: str) -> pd.DataFrame:
    """One column's contribution beside its value in each row, and the value of the column it does most with."""
    names, table = [*map(str, found.column_contributions.columns)], found.training.table
    if str(column) not in names:
        raise InputError(f"there is no contribution of {column!r}; there are {', '.join(map(repr, names))}")
    lines = pd.DataFrame({"value": _words_or_numbers(found, str(column))}, index=found.index)
    lines["contribution"] = found.column_contributions[str(column)].to_numpy()
    if not found.fits.has_curves:
        return lines
    pairs = strongest_pairs(found, n=None)
    unit = str(column) if str(column) in found.units.names else _unit_of(found, str(column))
    own = pairs[(pairs["first"] == unit) | (pairs["second"] == unit)]
    if len(own):
        first, second = own.iloc[0][["first", "second"]]
        partner = second if first == unit else first
        lines["partner"] = partner
        members = found.units.members[found.units.names.index(partner)]
        lines["partner_value"] = _words_or_numbers(found, table.names[int(members[0])])
    return lines


def strongest_pairs(found: Explanations, n: int | None = 10) -> pd.DataFrame:
    """The pairs of columns that do most together: mean size over the rows of what they do beyond each alone."""
    told = found.interactions
    told = told.assign(value=told["value"].abs())
    summed = told.groupby(["first", "second"], sort=False)["value"].sum() / max(1, len(found))
    ranked = summed.sort_values(ascending=False, kind="stable").rename("importance").reset_index()
    return ranked if n is None else ranked.head(n)


def removed(found: Explanations, columns: Sequence[str]) -> pd.Series:
    """What each row's output loses as columns, or groups that are one reason, take the reference's values."""
    if not found.fits.has_curves:
        raise InputError('what columns take away is told of curves alone; fit with surrogate="curves"')
    names, units = found.training.table.names, found.units
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise InputError(f"columns is a list of names, as [{str(columns)!r}] is")
    columns = [*map(str, columns)]
    unknown = [name for name in columns if name not in names and name not in units.names]
    if unknown:
        raise InputError(f"there is no column {unknown[0]!r}; there are {', '.join(map(repr, names))}")
    group = np.zeros(len(units), dtype=bool)
    for unit, (name, members) in enumerate(zip(units.names, units.members, strict=True)):
        own = [names[place] for place in members]
        lacking = [one for one in own if one not in columns]
        group[unit] = name in columns or not lacking
        if not group[unit] and len(lacking) < len(own):
            raise InputError(f"{', '.join(own)} are one reason and go together; name all of them, or use unfolded()")
    lost = found.all_reasons.removed(np.arange(len(found)), np.tile(group, (len(found), 1)))
    return pd.Series(lost, index=found.index, name="removed")


def reason_codes(found: Explanations, n: int, towards: str | None) -> pd.DataFrame:
    """The leading reasons of each row in words: row, rank, reason, columns and contribution.

    towards : "higher" or "lower" outputs; where not given, the side of the reference on which the row stands.
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InputError(f"n is how many reasons are named, 1 or more, not {n!r}")
    if towards is not None and (not isinstance(towards, str) or towards not in TOWARDS):
        raise InputError(f'towards is "higher" or "lower", or left out, not {towards!r}')
    if not found.fits.has_contributions:
        raise InputError("these local models say nothing of single columns, so they name no reasons")
    least = 1e-9 * found.training.output_deviation
    lines = []
    for one in found:
        side = np.sign(one.local_prediction - one.base_value) if towards is None else TOWARDS[towards]
        leading = [reason for reason in one.reasons() if side * reason.contribution > least][:n]
        lines += [
            {"row": one.label, "rank": rank + 1, "reason": _sentence(reason), "columns": reason.columns,
             "contribution": reason.contribution}
            for rank, reason in enumerate(leading)
        ]  # fmt: skip
    return pd.DataFrame(lines, columns=["row", "rank", "reason", "columns", "contribution"])


def _sentence(reason: Reason) -> str:
    return f"{reason.words} {'raises' if reason.contribution > 0 else 'lowers'} the prediction"


def _unit_of(found: Explanations, column: str) -> str:
    place = found.training.table.names.index(column)
    return next(name for name, members in zip(found.units.names, found.units.members, strict=True) if place in members)


def _words_or_numbers(found: Explanations, column: str) -> np.ndarray:
    """The rows' values of a column or group: numbers where they are, else words."""
    table = found.training.table
    if column in table.names:
        place = table.names.index(column)
        if not table.columns[place].is_category:
            return found.values[:, place]
        members = [place]
    else:
        members = found.units.members[found.units.names.index(column)].tolist()
    shown = [", ".join(table.columns[j].show(found.frame, row) for j in members) for row in range(len(found))]
    return np.array(shown, dtype=object)
