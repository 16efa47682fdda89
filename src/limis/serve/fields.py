"""The fields of the what-if form: one a column, with the row's own value, and what a changed one means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from limis.columns import NONE_OF_THESE, UNKNOWN, Column
from limis.rows import TrainingRows
from limis.serve.reading import FieldError, json_value

# A comma is a decimal point to many: only where it can but stand between thousands is it left out.
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
OWN = "own"  # the choice of a value that no training row has: the row's own


@dataclass
class Field:
    """An input of the form; categories have options, of which the value is the position among the levels."""

    key: str
    name: str
    kind: str
    value: str
    options: list[tuple[str, str]]
    hint: str

    @property
    def is_choice(self) -> bool:
        """Whether there are options to choose from."""
        return bool(self.options)


def fields_of(training: TrainingRows, row: pd.DataFrame) -> list[Field]:
    """A field for each column, holding the values of a table's only row."""
    values = training.table.values(row)[0]
    return [_field(training, j, column, row, float(values[j])) for j, column in enumerate(training.table.columns)]


def _field(training: TrainingRows, j: int, column: Column, row: pd.DataFrame, value: float) -> Field:
    if column.is_category:
        options = [(str(code), word) for code, word in enumerate(column.words)]
        known = int(value) != UNKNOWN
        if not known:
            options.insert(0, (OWN, column.show(row, 0)))
        return Field(f"c{j}", column.name, "choice", str(int(value)) if known else OWN, options, "")
    cell = json_value(row[column.sources[0]].iloc[0])
    low, high = training.table.quantiles[j, [0, -1]]
    hint = f"{column.show_amount(float(low))} to {column.show_amount(float(high))} in training"
    return Field(f"c{j}", column.name, column.kind, "" if cell is None else _text(cell), [], hint)


def _text(cell: Any) -> str:
    """A cell as one would type it, with every digit that counts."""
    return str(cell).removesuffix(" 00:00:00") if isinstance(cell, str) else str(cell).removesuffix(".0")


def read_changes(training: TrainingRows, fields: list[Field], given: Mapping[str, str]) -> dict[str, Any]:
    """What differs between a form and the row: a value for each of the columns that the user's table has."""
    changes: dict[str, Any] = {}
    for column, field in zip(training.table.columns, fields, strict=True):
        text = given.get(field.key, field.value).strip()
        if text == field.value:
            continue
        if column.is_category:
            changes |= _level(column, field, text)
        elif not text:
            changes[column.sources[0]] = None
        else:
            changes[column.sources[0]] = _number(field, text) if column.kind == "number" else text
    return changes


def _level(column: Column, field: Field, text: str) -> dict[str, Any]:
    if text not in {code for code, _ in field.options}:
        raise FieldError(column.name, f"there is no choice {text[:40]!r}")
    level = column.levels[int(text)]
    if not column.is_group:
        return {column.sources[0]: level}
    if level is None:
        return dict.fromkeys(column.sources)
    chosen = None if level == NONE_OF_THESE else level
    return {source: float(source == chosen) for source in column.sources}


def _number(field: Field, text: str) -> float:
    try:
        number = np.nan if "_" in text else float(text.replace(",", "") if _THOUSANDS.fullmatch(text) else text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise FieldError(field.name, f"a number is expected, not {text[:40]!r}")
    return number


def query_for(training: TrainingRows, fields: list[Field], changed: pd.DataFrame) -> dict[str, str]:
    """The form's values for a changed row, where they differ from the row's own."""
    other = fields_of(training, changed)
    return {new.key: new.value for new, old in zip(other, fields, strict=True) if new.value != old.value}
