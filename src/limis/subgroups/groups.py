"""Who belongs together: a column cut into groups, labels, or rules, as one mask a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from limis.columns import UNKNOWN, Column, learn_column, roundest
from limis.errors import InputError
from limis.explanation import Explanations
from limis.table import as_frame

Masks = dict[str, np.ndarray]  # name → (rows,) bool

MOST_LEVELS = 12  # of a category; the others share a group
FEW_VALUES = 5  # a number with no more of them has a group a value
RARE, RARE_SHARE = 10, 0.05  # a level is rare with fewer rows than both
_NAMES_SHOWN = 12


def read_groups(explanations: Explanations, by: Any, data: Any = None, bins: Sequence[Any] | None = None) -> Masks:
    """The groups that ``by`` makes of the explained rows, none of them empty."""
    extra = None if data is None else _extra_columns(explanations, data)
    if isinstance(by, Mapping):
        if bins is not None:
            raise InputError("bins cut a column of numbers, but by holds rules; write the borders into the rules")
        return _by_rules(explanations, by, extra)
    if isinstance(by, (str, int, np.integer)):
        return _by_column(explanations, str(by), extra, bins)
    series = aligned(by, explanations.index, "by")
    name = "" if series.name is None else str(series.name)
    series = series.rename(name or "group")
    column = learn_column(series, str(series.name), False, "none")
    if bins is None and not column.is_category and series.nunique() <= MOST_LEVELS:
        column = learn_column(series, column.name, True, "none")  # so few numbers are names
    return _cut(column, series.to_frame(), name, bins)


def aligned(values: Any, index: pd.Index, what: str) -> pd.Series:
    """One value an explained row: a series by its row labels where they fit, all else by position."""
    if isinstance(values, pd.DataFrame) or np.ndim(values) != 1:
        raise InputError(f"{what} must hold one value a row, not a table of shape {np.shape(values)}")
    series = values if isinstance(values, pd.Series) else pd.Series(values)
    if len(series) != len(index):
        raise InputError(f"{what} has {len(series)} values, but {len(index)} rows are explained; give one a row")
    if not isinstance(values, pd.Series) or series.index.equals(index):
        return series.set_axis(index)
    if index.is_unique and series.index.is_unique and index.isin(series.index).all():
        return series.reindex(index)
    if isinstance(series.index, pd.RangeIndex):
        return series.set_axis(index)
    raise InputError(
        f"{what} has other row labels than the explained rows; if it is in their order, pass {what}.to_numpy()"
    )


def _extra_columns(explanations: Explanations, data: Any) -> pd.DataFrame:
    frame = as_frame(data)
    if frame.shape[1] == 0:
        return pd.DataFrame(index=explanations.index)
    return pd.concat([aligned(frame[name], explanations.index, f"data[{name!r}]") for name in frame], axis=1)


# --- rules --------------------------------------------------------------------------------------------


def _by_rules(explanations: Explanations, rules: Mapping[Any, Any], extra: pd.DataFrame | None) -> Masks:
    if not rules:
        raise InputError("by holds no rule; give at least one: {'young': lambda rows: rows['age'] < 30}")
    frame = explanations.frame if extra is None else explanations.frame.assign(**{str(n): extra[n] for n in extra})
    masks = {}
    for name, rule in rules.items():
        found = rule(frame) if callable(rule) else rule
        mask = aligned(found, explanations.index, f"by[{name!r}]")
        if mask.isna().any() or not mask.isin([True, False]).all():
            raise InputError(f"by[{name!r}] must say true or false of every row, and says {_strange(mask)!r} of one")
        masks[str(name)] = mask.to_numpy(dtype=bool)
        if not masks[str(name)].any():
            raise InputError(f"group {str(name)!r} is empty: its rule holds for no explained row; widen or drop it")
    return masks


def _strange(mask: pd.Series) -> Any:
    return mask[mask.isna() | ~mask.isin([True, False])].iloc[0]


# --- columns ------------------------------------------------------------------------------------------


def _by_column(explanations: Explanations, name: str, extra: pd.DataFrame | None, bins: Sequence[Any] | None) -> Masks:
    if extra is not None and name in extra:
        return _cut(learn_column(extra[name], name, False, "none"), extra, name, bins)
    for column in explanations.training.table.columns:
        if column.name == name:
            return _cut(column, explanations.frame, name, bins)
    names = [*explanations.training.table.names, *([] if extra is None else extra)]
    listed = ", ".join(map(repr, names[:_NAMES_SHOWN]))
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    raise InputError(
        f"there is no column {name!r} to group by; there are {listed}{more}. A column that the model does not see goes "
        "into data="
    )


def _cut(column: Column, frame: pd.DataFrame, name: str, bins: Sequence[Any] | None) -> Masks:
    values = column.values(frame)
    if not column.is_category:
        return _by_number(column, values, name or column.name, bins)
    if bins is not None:
        raise InputError(f"bins cut numbers, but {column.name!r} is a category; leave bins out")
    return _by_level(column, values.astype(int), name)


def _by_number(column: Column, values: np.ndarray, name: str, bins: Sequence[Any] | None) -> Masks:
    known = values[np.isfinite(values)]
    distinct = np.unique(known)
    if bins is None and len(distinct) <= FEW_VALUES:
        masks = {f"{name} = {column.show_border(float(value))}": values == value for value in distinct}
    else:
        edges = _quartiles(known) if bins is None else _given(column, bins)
        if bins is None and column.kind == "number":
            above = distinct[np.searchsorted(distinct, edges, side="right")]
            edges = np.array([roundest(*ends) for ends in zip(edges.tolist(), above.tolist(), strict=True)])
        masks = _between(column, values, name, edges)
    for group, mask in masks.items():
        if not mask.any():
            raise InputError(f"group {group!r} is empty: no explained row lies there; move or drop that border of bins")
    if len(known) < len(values):
        masks[f"{name} is missing"] = ~np.isfinite(values)
    return masks


def _between(column: Column, values: np.ndarray, name: str, edges: np.ndarray) -> Masks:
    """Groups up to and with each edge, and one above the last."""
    words = [column.show_border(float(edge)) for edge in edges]
    masks = {f"{name} ≤ {words[0]}": values <= edges[0]}
    for place in range(1, len(edges)):
        inside = (values > edges[place - 1]) & (values <= edges[place])
        masks[f"{words[place - 1]} < {name} ≤ {words[place]}"] = inside
    return {**masks, f"{name} > {words[-1]}": values > edges[-1]}


def _quartiles(known: np.ndarray) -> np.ndarray:
    """Observed values, so that no group between two of them is empty."""
    edges = np.unique(np.quantile(known, [0.25, 0.5, 0.75], method="inverted_cdf"))
    inner = edges[edges < known.max()]
    return inner if len(inner) else np.array([known[known < known.max()].max()])


def _given(column: Column, bins: Sequence[Any]) -> np.ndarray:
    if np.ndim(bins) != 1 or len(bins) == 0:
        raise InputError(f"bins is a list of borders such as [25, 45, 65], not {bins!r}")
    edges = column.values(pd.DataFrame({column.sources[0]: list(bins)}))
    if not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        raise InputError(f"bins must be known values that rise, not {list(bins)}")
    return edges


def _by_level(column: Column, codes: np.ndarray, name: str) -> Masks:
    """A group a level in the levels' order; where several are rare, they share one."""
    levels, counts = np.unique(codes, return_counts=True)
    least = min(RARE, RARE_SHARE * len(codes))
    frequent = [code for code in levels[np.argsort(-counts, kind="stable")] if counts[levels == code][0] >= least]
    rare = set(levels.tolist()) - set(frequent[: MOST_LEVELS - 1])
    if len(rare) < 2:
        rare = set()
    start = f"{name} = " if name else ""
    masks = {
        f"{start}{'never seen' if code == UNKNOWN else column.level_word(code)}": codes == code
        for code in levels.tolist()
        if code not in rare
    }
    if rare:
        masks[f"{start}{len(rare)} other levels"] = np.isin(codes, list(rare))
    return masks
