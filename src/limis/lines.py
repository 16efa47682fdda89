"""Explanations as lines of a table, beside the rows that they explain."""

from __future__ import annotations

import numpy as np
import pandas as pd

from limis.class_explanations import ClassExplanations
from limis.explanation import Explanations
from limis.local_view import FIXED, UNKNOWN_HERE


def explained_lines(found: Explanations | ClassExplanations, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows' own columns, then all that is told of them; of several classes, a line a row and class."""
    return _class_lines(found, rows) if isinstance(found, ClassExplanations) else _lines(found, rows)


def with_curves(lines: pd.DataFrame, found: Explanations | ClassExplanations) -> pd.DataFrame:
    """The same lines with curves and interactions, as lists; values are texts, as columns are of many kinds."""
    parts = found.parts if isinstance(found, ClassExplanations) else [found]
    if not parts[0].fits.has_curves:
        return lines
    told = [part[row].to_dict() for row in range(len(found)) for part in parts]
    for curve in (curve for one in told for curve in one["curves"]):
        for line in curve["values"]:
            line["value"] = None if line["value"] is None else str(line["value"])
    more = {"curves": [one["curves"] for one in told], "interactions": [one["interactions"] for one in told]}
    return pd.concat([lines, pd.DataFrame(more, index=lines.index)], axis=1)


def line_names(columns: list[str], several: bool) -> set[str]:
    """What lines may have beside the rows' own columns, of which none may be called so."""
    own = {"model_output", "local_prediction", "base_value", "neighbourhood_shift", "error", "neighbourhood_error"}
    own |= {"change_error_bound", "gain", "effective_rows", "foresight", "why_error", "questions", "trusted", "doubts"}
    own |= {"fixed_here", "unknown_here"}
    own |= {"curves", "interactions", "contribution: rest", "contribution: the rest"}
    own |= {f"contribution: {name}" for name in columns}
    return own | ({"class", "predicted", "probability"} if several else set())


def _lines(found: Explanations, rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, found.to_frame(), _untold(found)], axis=1)


def _class_lines(found: ClassExplanations, rows: pd.DataFrame) -> pd.DataFrame:
    n = len(found.classes)
    told = found.to_frame().reset_index(drop=True)
    untold = pd.concat([_untold(part).assign(_case=range(len(found))) for part in found.parts], ignore_index=True)
    untold = untold.sort_values("_case", kind="stable").drop(columns="_case").reset_index(drop=True)
    own = rows.loc[rows.index.repeat(n)].reset_index(drop=True)
    return pd.concat([own, told, untold], axis=1)


def _untold(found: Explanations) -> pd.DataFrame:
    """The columns whose contribution of nearly zero does not mean that they have no effect."""
    status = found.status.to_numpy()  # (rows, columns) of words
    names = found.status.columns.to_numpy()
    # Many rows share the same few patterns: a text is put together once for each.
    lists = {}
    for word in (FIXED, UNKNOWN_HERE):
        patterns, own = np.unique(status == word, axis=0, return_inverse=True)
        texts = [", ".join(names[pattern]) for pattern in patterns]
        lists[word.replace(" ", "_")] = [texts[place] for place in own]
    return pd.DataFrame(lists, index=found.index)
