"""From what a search found to what is told of it, in the user's own columns and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from limis.columns import Column
from limis.explanation import Explanations
from limis.perturb import gower_distance
from limis.suggest.case import SEARCH, Case, Change, moved
from limis.suggest.changed import ChangedRows
from limis.suggest.result import Evidence, RowSuggestions, Suggestion, Suggestions

DIGITS = 6  # of a distance, which has no more


@dataclass(eq=False)
class Teller:
    """Tells of changes of explained rows."""

    explained: Explanations
    changed: ChangedRows

    def tell(self, found: list[tuple[Case, list[Change]]], there: np.ndarray) -> Suggestions:
        """The suggestions for all rows; ``there`` says which of them have what is wished as they are."""
        asked = self._asked([(case, change) for case, changes in found for change in changes])
        labels = self.explained.training.table.source_labels
        changed = asked.set_axis(pd.Index(labels, tupleize_cols=False), axis=1)
        rows, first = [], 0
        for case, changes in found:
            rows.append(
                RowSuggestions(
                    label=self.explained.index[case.row],
                    goal=case.target.goal(case.row),
                    output=case.output,
                    probability=case.target.probability(case.output, case.row),
                    wish=case.target.wish(case.output, case.row),
                    suggestions=[
                        self._suggestion(case, change, asked, place) for place, change in enumerate(changes, first)
                    ],
                    has_goal=bool(there[case.row]),
                    reason=self._reason(case, bool(there[case.row])),
                    queries=len(case.outputs),
                    proposed={
                        source: (len(proposed), len(case.confirmed.intersection(proposed)))
                        for source, proposed in case.proposed.items()
                    },
                    evidence=None if there[case.row] else self._evidence(case),
                    changed=changed,
                    first=first,
                )
            )
            first += len(changes)
        return Suggestions(rows, changed)

    def _asked(self, told: list[tuple[Case, Change]]) -> pd.DataFrame:
        """The changed rows as the black box was asked about them."""
        rows = np.array([case.row for case, _ in told], dtype=np.int64)
        before = after = self.explained.values[rows]
        if told:
            units = [own.unit for own in told[0][0].options]
            after = moved(units, before, [change for _, change in told])
        return self.changed.frame(rows, before, after)

    def _suggestion(self, case: Case, change: Change, asked: pd.DataFrame, place: int) -> Suggestion:
        """One suggestion, which is in a line of the changed rows."""
        frame, columns, target = self.explained.frame, self._columns(case, change), case.target
        before, after = case.output, case.outputs[change]
        return Suggestion(
            changes={c.name: (_value(c, frame, case.row), _value(c, asked, place)) for c in columns},
            words={c.name: c.show_apart(frame, case.row, asked, place) for c in columns},
            output_before=before,
            output_after=after,
            probability_before=target.probability(before, case.row),
            probability_after=target.probability(after, case.row),
            says=target.says(case.row, before, after),
            confirmed=change in case.confirmed,
            source=case.sources.get(change, SEARCH),
            distance=round(case.distance(change), DIGITS),
        )

    def _columns(self, case: Case, change: Change) -> list[Column]:
        return [self.explained.training.table.columns[j] for j in sorted(case.columns(change))]

    def _reason(self, case: Case, there: bool) -> str:
        """Why nothing is confirmed; nothing where something is."""
        goal = case.target.goal(case.row)
        if there:
            return f"it has {goal} as it is"
        if case.confirmed:
            return ""
        if not any(own.allowed.any() for own in case.options):
            return "no column may change"
        if not case.outputs:
            return "nothing that may change was worth asking about"
        nearest = min(case.outputs, key=case.by_gap)
        if case.gaps[nearest] >= float(case.target.gap(np.array(case.output), case.row)):
            came = "none came nearer to it than the row as it is"
        else:
            words = self._suggestion(case, nearest, self._asked([(case, nearest)]), 0)
            came = f"the nearest, {words.text}, got to {words.says[1]}"
        return f"none of {len(case.outputs):,} changes asked about reached {goal}; {came}"

    def _evidence(self, case: Case) -> Evidence | None:
        """The nearest training row that has what is wished."""
        if len(case.near) == 0:
            return None
        training, position = self.explained.training, int(case.near[0])
        table, theirs = training.table, training.values[position]
        differs = (case.values != theirs) & ~(np.isnan(case.values) & np.isnan(theirs))
        ranks = table.ranks(np.stack([case.values, theirs]))
        distance = gower_distance(ranks[:1], ranks[1:], table.is_category)[0, 0] * len(table.columns)
        return Evidence(
            label=training.frame.index[position],
            position=position,
            output=float(training.outputs[position]),
            distance=round(float(distance), DIGITS),
            differences={
                column.name: column.show_apart(self.explained.frame, case.row, training.frame, position)
                for column, differ in zip(table.columns, differs.tolist(), strict=True)
                if differ
            },
        )


def _value(column: Column, frame: pd.DataFrame, row: int) -> Any:
    """A value as the user's table has it; several dummies are told by the word for them."""
    if column.is_group:
        return column.show(frame, row)
    value = frame[column.sources[0]].iloc[row]
    # Among its numbers numpy counts durations, which would lose their unit.
    is_number = isinstance(value, (np.number, np.bool_)) and not isinstance(value, np.timedelta64)
    return value.item() if is_number else value
