"""What an audit found: tables, sentences, a page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd

from limis.fidelity.audit.sentences import sentences


@dataclass
class Audit:
    """Explanations of one black box held against its own answers.

    Attributes
    ----------
    skills : DataFrame
        A line a law, kind of question, subset of questions and method. ``family`` is "single", "joint" or "reasons";
        ``kind`` how far a change goes ("10" … "any"), how many columns ("2, near"), or how large groups are. ``skill``
        is 1 − Σ(Δf − Δg)²/ΣΔf², of reasons against the blind answer, with its 95% interval ``low`` to ``high``;
        ``median`` and ``below_zero`` are over rows; ``absolute`` and ``probability`` are the same share in absolute
        values and in probabilities; ``recall`` and ``precision`` are of changes that cross the decision threshold.
    strongest : DataFrame
        How often the truly strongest column, and its sign, are named: the one whose replacement alone changes most, by
        what is said of that and by the largest bar, and the one with the largest Shapley value of the model.
    at_row : DataFrame
        Error of the local models at the rows themselves.
    coverage : DataFrame
        For how many rows each promised bound holds.
    intervals : DataFrame
        How many single changes lie within the intervals told of them (curves have some).
    trust : DataFrame
        Of the rows called trusted, how many keep what is promised of them: all, and in sensitive groups. ``flat``
        rows, where changes hardly move the model, count in no other figure. ``foresee`` at least half of what changes
        do; ``reasons_hold``: they miss at most half of what groups of columns do; ``keep_both`` of ``asked_both``.
    stability : DataFrame
        How alike reasons are when asked again.
    by_row : DataFrame
        The sums behind all of these, a line a row: for figures and tests of one's own.
    facts : dict
        What was audited, and how.
    """

    skills: pd.DataFrame
    strongest: pd.DataFrame
    at_row: pd.DataFrame
    coverage: pd.DataFrame
    intervals: pd.DataFrame
    trust: pd.DataFrame
    stability: pd.DataFrame
    by_row: pd.DataFrame
    facts: dict[str, Any]

    _TABLES = ("skills", "strongest", "at_row", "coverage", "intervals", "trust", "stability")

    @property
    def methods(self) -> list[str]:
        """Who was audited."""
        return list(dict.fromkeys(self.skills["method"]))

    def summary(self) -> list[str]:
        """What it comes to, in plain sentences, what speaks against the explanations first."""
        return sentences(self)

    def table(self, family: str = "single", *, value: str = "skill") -> pd.DataFrame:
        """A line a method and law, a column a kind of question."""
        own = self.skills[(self.skills["family"] == family) & (self.skills["subset"] == "all")]
        kinds, methods = list(dict.fromkeys(own["kind"])), list(dict.fromkeys(own["method"]))
        found = own.pivot(index=["method", "law"], columns="kind", values=value)
        order = pd.MultiIndex.from_product([methods, list(dict.fromkeys(own["law"]))], names=["method", "law"])
        return found.reindex(index=order, columns=kinds)

    def __repr__(self) -> str:
        return f"<audit of {', '.join(self.methods)} on {self.facts['rows']:,} rows>"

    def __str__(self) -> str:
        tables = [
            (title, self.table(family))
            for family, title in (
                ("single", "Skill on single changes, by how many training rows are nearer"),
                ("joint", "Skill on joint changes"),
                ("reasons", "Skill of reasons, by size of the group of columns (the blind answer is 0)"),
            )
        ]
        texts = [f"{title}\n{table.round(2).to_string(na_rep='')}" for title, table in tables if len(table)]
        return "\n\n".join(["\n".join(self.summary()), *texts])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data: the facts, the sentences, and the lines of each table; what is unknown is None."""
        tables = {name: _records(getattr(self, name)) for name in self._TABLES}
        return {"facts": self.facts, "summary": self.summary(), **tables}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    def to_html(self, path: Any = None, *, title: str = "Audit of explanations") -> str:
        """One self-contained page; also written to ``path`` where one is given."""
        from limis.report.audit_page import audit_page
        from limis.report.files import write_text

        html = audit_page(self, title)
        if path is not None:
            write_text(path, html)
        return html

    def _repr_html_(self) -> str:
        return self.to_html()


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    lines = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in line.items()} for line in lines]
