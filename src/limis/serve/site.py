"""What all pages of one server share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from fastapi import HTTPException

from limis.blackbox import BlackBox
from limis.report.words import Numbers
from limis.rows import TrainingRows
from limis.serve.choosing import Choice, summary
from limis.serve.desk import Desk
from limis.serve.reading import RowReader
from limis.serve.tables import HeldTable, Tables

LONGEST_NUMBER = 10  # digits


@dataclass
class Site:
    """The explainer's desk, the tables, the way from values to rows, and what is known of all."""

    desk: Desk
    tables: Tables
    reader: RowReader

    @property
    def training(self) -> TrainingRows:
        """The training rows."""
        return self.desk.explainer.training_

    @property
    def box(self) -> BlackBox:
        """The black box."""
        return self.training.black_box

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return bool(self.desk.explainer.by_class_)

    @cached_property
    def classes(self) -> list[str]:
        """The names of all classes; none where there are values."""
        return [str(label) for label in (self.desk.explainer.by_class_ or self.box.classes or [])]

    @cached_property
    def numbers(self) -> Numbers:
        """The format of outputs."""
        parts = list(self.desk.explainer.by_class_.values())
        return Numbers.of(parts[0].training if parts else self.training)

    @property
    def shared(self) -> dict[str, Any]:
        """What every template is told."""
        return {
            "can_ask": self.box.can_be_asked,
            "with_curves": self.desk.explainer.surrogate == "curves",
            "classes": self.classes,
            "columns": self.training.table.names,
        }

    def table(self, key: str) -> HeldTable:
        """A table, or an answer that there is none."""
        found = self.tables.get(key)
        if found is None:
            raise HTTPException(
                404, "there is no such table; an uploaded one is forgotten when it was not used for long"
            )
        return found

    def row(self, table: HeldTable, row: str) -> tuple[int, pd.DataFrame]:
        """The number that an address has, and that row as a table; or an answer that there is none."""
        known = row.isascii() and row.isdecimal() and len(row) <= LONGEST_NUMBER and int(row) < len(table)
        if not known:
            raise HTTPException(404, f"{table.name} has {len(table):,} rows, counted from 0, and no such row")
        return int(row), table.features.iloc[[int(row)]]

    def chosen(self, table: HeldTable, choice: Choice) -> pd.DataFrame:
        """A line for each of the rows that a visitor asked for."""
        return choice.rows(summary(table.told(), self.box), self.box.is_classifier)
