"""What comes out: suggestions for many rows, those for one row, and one suggestion."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
import pandas as pd

from limis.kinds import is_missing, plain
from limis.polars_frames import to_polars

MOST_DIFFERENCES = 5
ROWS_SHOWN = 3
LINE_COLUMNS = (
    *("rank", "changes", "n_changes", "distance", "output_before", "output_after", "probability_before"),
    *("probability_after", "confirmed", "source", "goal", "queries", "reason"),
)
_NOTHING = {"rank": 0, "changes": "", "n_changes": 0, "confirmed": False, "source": ""}


@dataclass(frozen=True)
class Suggestion:
    """A change of one row, and what the black box says of it."""

    changes: dict[str, tuple[Any, Any]]  # column → (from, to), as in the user's table; of dummies, in words
    words: dict[str, tuple[str, str]]  # the same in words
    output_before: float
    output_after: float
    probability_before: float | None  # of the wished class; None where there are no classes
    probability_after: float | None
    says: tuple[str, ...]  # both outputs in words
    confirmed: bool  # whether the black box, asked about the changed row, says what is wished
    source: str  # who thought of it: "tree", "slopes" or "curves" for the explanation, else "search"
    distance: float  # how far it leads: rank-space Gower distances of the columns, summed

    @property
    def n_changes(self) -> int:
        """How many columns change."""
        return len(self.changes)

    @property
    def text(self) -> str:
        """The changes in words."""
        return ", ".join(f"{name}: {before} -> {after}" for name, (before, after) in self.words.items())

    def __str__(self) -> str:
        before, after = self.says
        return f"{self.text} ({'confirmed' if self.confirmed else 'not confirmed'}: {before} -> {after})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        changes = [
            {"column": name, "from": _plain(before), "to": _plain(after), "words": list(self.words[name])}
            for name, (before, after) in self.changes.items()
        ]
        return {"changes": changes, "n_changes": self.n_changes, "distance": self.distance, **self._answer()}

    def line(self) -> dict[str, Any]:
        """The same as one line of a table."""
        return {"changes": self.text, "n_changes": self.n_changes, "distance": self.distance, **self._answer()}

    def _answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"output_before": self.output_before, "output_after": self.output_after}
        if self.probability_before is not None:
            answer |= {
                "probability_before": self.probability_before,
                "probability_after": self.probability_after,
            }
        return answer | {"confirmed": self.confirmed, "source": self.source}


@dataclass(frozen=True)
class Evidence:
    """The training row nearest to a row, in all columns, that already has the wished outcome."""

    label: Any
    position: int  # among the training rows
    output: float
    distance: float
    differences: dict[str, tuple[str, str]]  # column → (this row, the training row), in words

    def __str__(self) -> str:
        told = [f"{name} ({theirs}, here {own})" for name, (own, theirs) in self.differences.items()]
        more = len(told) - MOST_DIFFERENCES
        if not told:
            return f"training row {self.label} has the same values and the wished outcome"
        listed = ", ".join(told[:MOST_DIFFERENCES]) + (f" and {more} more" if more > 0 else "")
        return f"the nearest training row that has it, {self.label}, differs in {listed}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "row": _plain(self.label),
            "position": self.position,
            "output": self.output,
            "distance": self.distance,
            "differences": [
                {"column": name, "this_row": own, "training_row": theirs}
                for name, (own, theirs) in self.differences.items()
            ],
        }


@dataclass(eq=False)
class RowSuggestions(Sequence[Suggestion]):
    """Suggestions for one row, the best first: confirmed, of few columns, near."""

    label: Any
    goal: str  # what is wished, in words
    output: float  # what the black box says of the row as it is
    probability: float | None  # of the wished class
    wish: str  # both in a sentence
    suggestions: list[Suggestion]
    has_goal: bool  # whether the row has what is wished as it is, so that nothing was searched
    reason: str  # why there is none that is confirmed; empty where there is
    queries: int  # questions asked about changes of this row
    proposed: dict[str, tuple[int, int]]  # by source: what the explanation itself proposed, and what of it did
    evidence: Evidence | None
    changed: pd.DataFrame = field(repr=False)  # the changed rows of all suggestions made together
    first: int = field(repr=False)  # of these, where this row's begin

    @overload
    def __getitem__(self, key: int) -> Suggestion: ...
    @overload
    def __getitem__(self, key: slice) -> list[Suggestion]: ...
    def __getitem__(self, key: int | slice) -> Suggestion | list[Suggestion]:
        return self.suggestions[key]

    def __len__(self) -> int:
        return len(self.suggestions)

    @property
    def confirmed(self) -> bool:
        """Whether at least one suggestion is confirmed."""
        return any(one.confirmed for one in self.suggestions)

    def lines(self) -> list[str]:
        """All of it in plain sentences."""
        told = [f"row {self.label}: {self.wish}"]
        if self.reason:
            told.append(f"  {'left alone' if self.has_goal else 'not found'}: {self.reason}")
        told += [f"  {place}. {one}" for place, one in enumerate(self.suggestions, start=1)]
        if self.evidence is not None:
            told.append(f"  {self.evidence}")
        return told

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        from limis.report import suggestion_cards

        return suggestion_cards([self], total=1)

    def changed_rows(self) -> pd.DataFrame:
        """The changed rows, one a suggestion, as the black box was asked about them."""
        return self.changed.iloc[self.first : self.first + len(self)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "row": _plain(self.label),
            "goal": self.goal,
            "output": self.output,
            **({} if self.probability is None else {"probability": self.probability}),
            "suggestions": [one.to_dict() for one in self.suggestions],
            "reason": self.reason,
            "queries": self.queries,
            "evidence": None if self.evidence is None else self.evidence.to_dict(),
        }


@dataclass(eq=False)
class Suggestions:
    """Suggestions for some rows, made by `LimisExplainer.suggest`.

    Indexing with a number gives those of one row, with a slice or a list of numbers fewer of them. They say what the
    black box answers to changed rows, not what the change would do in the world.
    """

    rows: list[RowSuggestions]
    changed: pd.DataFrame
    from_polars: bool = False  # whether the rows came as a polars frame

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, key: int) -> RowSuggestions: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | np.ndarray) -> Suggestions: ...
    def __getitem__(self, key: int | slice | Sequence[int] | np.ndarray) -> RowSuggestions | Suggestions:
        if not isinstance(key, (int, np.integer)):
            return replace(self, rows=[self.rows[place] for place in np.arange(len(self))[key]])
        if not -len(self) <= key < len(self):
            raise IndexError(f"there are suggestions for {len(self)} rows, so there is no number {key}")
        return self.rows[key]

    def __iter__(self) -> Iterator[RowSuggestions]:
        return iter(self.rows)

    def __repr__(self) -> str:
        told = [f"suggestions for {len(self):,} rows, {sum(row.confirmed for row in self.rows):,} with a confirmed one"]
        told += [line for row in self.rows[:ROWS_SHOWN] for line in row.lines()]
        return "\n".join([*told, "..."] if len(self) > ROWS_SHOWN else told)

    def _repr_html_(self) -> str:
        from limis.report import suggestion_cards

        return suggestion_cards(self.rows[:ROWS_SHOWN], total=len(self))

    @staticmethod
    def join(parts: list[Suggestions]) -> Suggestions:
        """Those of several blocks of rows as one."""
        if len(parts) == 1:
            return parts[0]
        frames = [part.changed for part in parts if len(part.changed)] or [parts[0].changed]
        changed = pd.concat(frames)
        rows, first = [], 0
        for part in parts:
            rows += [replace(row, changed=changed, first=first + row.first) for row in part.rows]
            first += len(part.changed)
        return Suggestions(rows, changed)

    def changed_rows(self) -> pd.DataFrame:
        """The changed rows, one a suggestion in the order of `to_frame`, as the black box was asked about them."""
        places = [np.arange(row.first, row.first + len(row)) for row in self.rows]
        return self.changed.iloc[np.concatenate([np.empty(0, dtype=np.int64), *places])]

    def to_frame(self) -> Any:
        """One line a suggestion, under the label of its row; a row without any has one line, with the reason.

        Where the rows came as a polars frame it is one too, with the labels in the column "row".
        """
        return to_polars(self._lines()) if self.from_polars else self._lines()

    def _lines(self) -> pd.DataFrame:
        lines, labels = [], []
        for row in self.rows:
            told = [{"rank": rank, **one.line()} for rank, one in enumerate(row.suggestions, start=1)]
            for line in told or [{**_NOTHING, "output_before": row.output, "probability_before": row.probability}]:
                lines.append({**line, "goal": row.goal, "queries": row.queries, "reason": row.reason})
                labels.append(row.label)
        return pd.DataFrame(lines, columns=self._columns(), index=pd.Index(labels, name="row", tupleize_cols=False))

    def _columns(self) -> list[str]:
        classes = any(row.probability is not None for row in self.rows)
        return [name for name in LINE_COLUMNS if classes or not name.startswith("probability")]

    def to_json(self) -> str:
        """All rows as JSON: a list of objects, one a row."""
        return json.dumps([row.to_dict() for row in self.rows], ensure_ascii=False, indent=1)


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    return None if is_missing(value) else plain(value)
