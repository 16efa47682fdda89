"""Reading one local model: what is fixed or unknown here, what sets the neighbourhood apart, and the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.columns import MISSING
from limis.curves.model import CurveFits
from limis.curves.view import curve_dicts
from limis.reference import EVERYBODY
from limis.rows import TrainingRows
from limis.table import Table
from limis.walk import LocalFits

if TYPE_CHECKING:
    from limis.explanation import Explanation

FIXED, UNKNOWN_HERE = "fixed here", "unknown here"
# A number is fixed when its spread here is below this share of its spread overall; a category when one level has
# all but this share of the weight.
FIXED_SHARE = 0.02
TOGETHER = 0.9  # correlation above which two columns' parts cannot be told apart
_ROWS_FOR_CORRELATION = 256


@dataclass
class Reason:
    """One or more columns and what they add to the prediction."""

    columns: list[str]
    words: str
    contribution: float
    status: str


def promise_words(one: Explanation) -> str:
    """What may be expected of an explanation by curves, and what is promised of those trusted; nothing of others."""
    trust, fidelity = one.all.trust, one.fidelity
    if trust is None:
        return ""
    foresight, missed = max(0.0, float(fidelity["foresight"])), float(fidelity["why_error"])
    return (
        f"it is expected to foresee {foresight:.0%} of what changes of a value do, and its reasons to miss "
        f"{missed:.0%} of what groups of columns do. {trust.promise}{_measured_against(one)}"
    )


def _measured_against(one: Explanation) -> str:
    """What is promised of reasons was measured of those that one is given unless one asks for others."""
    others = one.all.groups is not None or one.all.kind != "curves" or one.reference.name != EVERYBODY
    return " What is promised of reasons was measured against all training rows, column by column." if others else ""


def words(table: Table, frame: pd.DataFrame, row: int) -> dict[str, str]:
    """A row's values in words, a column each."""
    return {column.name: column.show(frame, row) for column in table.columns}


def status(training: TrainingRows, values: np.ndarray, fits: LocalFits) -> np.ndarray:
    """(rows, columns) of words: fixed here, unknown here, or nothing."""
    table = training.table
    result = np.full(values.shape, "", dtype=object)
    if fits.has_curves:  # what other values would do was seen, whatever the rows that speak hold
        return result
    overall = training.feature_deviation
    owner = table.feature_column
    for j, column in enumerate(table.columns):
        own = np.flatnonzero(owner == j)
        if column.is_category:
            fixed = (fits.features[:, own] * fits.feature_means[:, own]).sum(axis=1) >= 1 - FIXED_SHARE
            unknown = ~((fits.features[:, own] > 0) & ~fits.unknown[:, own]).any(axis=1)
        else:
            alike = FIXED_SHARE * overall[own[0]]
            fixed = fits.feature_spread[:, own[0]] <= alike
            missing = np.isnan(values[:, j])
            unlike = np.abs(fits.features[:, own[0]] - fits.feature_means[:, own[0]]) > alike + 1e-6
            unknown = np.where(missing, fits.unknown[:, own[-1]] if column.has_missing else True, fixed & unlike)
        result[fixed & ~fits.empty, j] = FIXED
        result[unknown, j] = UNKNOWN_HERE
    return result


def neighbourhood(training: TrainingRows, weights: pd.Series) -> pd.DataFrame:
    """Each column here and overall, by how far apart they are (in standard deviations, or share of the weight)."""
    columns = ["column", "here", "overall", "apart"]
    if weights.empty:
        return pd.DataFrame(columns=columns)
    lines = []
    share = (weights / weights.sum()).to_numpy()
    for j, column in enumerate(training.table.columns):
        here, overall = training.values[weights.index, j], training.values[:, j]
        if column.is_category:
            levels = len(column.levels)
            shares_here = np.bincount(here.astype(int), weights=share, minlength=levels)
            shares_overall = np.bincount(overall.astype(int), minlength=levels) / len(overall)
            top = int((shares_here - shares_overall).argmax())
            line = (f"{shares_here[top]:.0%} {column.level_word(top)}", f"{shares_overall[top]:.0%}")
            apart = float(np.abs(shares_here - shares_overall).sum() / 2)
        else:
            known = ~np.isnan(here)
            if np.isnan(overall).all():
                line, apart = (MISSING, MISSING), 0.0
            elif not known.any():
                line, apart = (MISSING, column.show_mean(float(np.nanmean(overall)))), 1.0
            else:
                mean = float(np.average(here[known], weights=share[known]))
                with np.errstate(over="ignore"):  # squares of huge numbers: nothing is then told to be apart
                    whole, deviation = float(np.nanmean(overall)), float(np.nanstd(overall))
                line = (column.show_mean(mean), column.show_mean(whole))
                apart = abs(mean - whole) / deviation if deviation > 0 else 0.0
        lines.append((column.name, *line, apart))
    found = pd.DataFrame(lines, columns=columns)
    return found.sort_values("apart", ascending=False, kind="stable").reset_index(drop=True)


def reasons(one: Explanation) -> list[Reason]:
    """One row's reasons, largest first."""
    contributions, status_words = one.contributions.to_numpy(), one.status.to_dict()
    values, chosen = one.values, one.all.groups
    place = {name: j for j, name in enumerate(one.all.training.table.names)}
    found = []
    for number, group in enumerate(_columns_together(one)):
        text = ", ".join(f"{name} = {values[name]}" for name in group)
        if chosen is not None and len(group) > 1:
            text = f"{chosen.names[number]} ({text})"
        state = next((status_words[name] for name in group if status_words[name]), "") if len(group) == 1 else ""
        own = [place[name] for name in group] if chosen is None else [number]
        found.append(Reason(group, text, float(contributions[own].sum()), state))
    return sorted(found, key=lambda reason: -abs(reason.contribution))


def _columns_together(one: Explanation) -> list[list[str]]:
    """Columns grouped by how their parts of the prediction go together over the weighted rows; of curves, the units."""
    training, fits = one.all.training, one.all.fits
    names = training.table.names
    if isinstance(fits, CurveFits):
        return [[names[j] for j in members] for members in one.all.units.members]
    top = one.weights.iloc[:_ROWS_FOR_CORRELATION]
    if len(top) < 3 or not fits.has_coefficients:
        return [[name] for name in names]
    parts = training.features[top.index.to_numpy().copy()].double().numpy() * fits.coefficients[one.row]
    starts = np.flatnonzero(np.diff(training.table.feature_column, prepend=-1))
    by_column = np.add.reduceat(parts, starts, axis=1)
    share = (top / top.sum()).to_numpy()
    centred = (by_column - share @ by_column) * np.sqrt(share)[:, None]
    length = np.sqrt((centred**2).sum(axis=0))
    moving = length > 1e-9
    unit = np.divide(centred, length, out=np.zeros_like(centred), where=moving)
    together = np.abs(unit.T @ unit) > TOGETHER
    groups: list[list[str]] = []
    placed: set[int] = set()
    for j in range(len(names)):
        if j in placed:
            continue
        members = [j, *(k for k in np.flatnonzero(together[j]).tolist() if k > j and k not in placed)]
        placed.update(members)
        groups.append([names[k] for k in members])
    return groups


def as_dict(one: Explanation) -> dict[str, Any]:
    """One explanation as JSON-ready data."""
    label = one.label.item() if isinstance(one.label, np.generic) else one.label
    known = {} if one.all.outputs is None else {"model_output": one.model_output}
    fidelity = {key: value.item() if isinstance(value, np.generic) else value for key, value in one.fidelity.items()}
    top = one.weights.iloc[:10]
    finite = {k: v for k, v in fidelity.items() if not (isinstance(v, float) and not np.isfinite(v))}
    return {
        "row": label if isinstance(label, (int, str)) else str(label),
        "values": one.values,
        **known,
        "local_prediction": one.local_prediction,
        "base_value": one.base_value,
        **_readings(one),
        "status": {str(name): word for name, word in one.status.items() if word},
        "fidelity": finite,
        "training_rows": [
            {"row": int(row), "weight": float(weight)}
            for row, weight in zip(top.index.to_numpy(), top.to_numpy(), strict=True)
        ],
    }


def _readings(one: Explanation) -> dict[str, Any]:
    """All that this kind of local model can be read by."""
    fits = one.all.fits
    found: dict[str, Any] = {}
    if fits.has_curves:
        found = {
            "reference": one.reference.name,
            "interactions": one.interactions.to_dict("records"),
            "curves": curve_dicts(one),
            "stand_in": fits.has_stand_in,
        }
    else:
        found["neighbourhood_shift"] = one.neighbourhood_shift
    if fits.has_contributions:
        found["contributions"] = {str(name): float(value) for name, value in one.contributions.items()}
    if fits.has_rules:
        found["rules"] = [vars(rule) for rule in one.rules()]
    if fits.has_coefficients:
        found["coefficients"] = [
            {"column": column, "level": level, "value": float(value)}
            for (column, level), value in zip(one.all.training.table.feature_names, one.coefficients, strict=True)
            if np.isfinite(value)
        ]
        found["intercept"] = float(one.all.intercepts.iloc[one.row])
    return found
