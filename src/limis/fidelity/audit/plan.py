"""How many questions of each kind are asked, within what the user allows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

from limis.errors import InputError
from limis.fidelity.audit.law_b import matched_donors
from limis.fidelity.drawing import GROUP_SIZES, JOINT_SIZES

SHRINKING = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03)
FEWEST_ROWS = 5
REASON_ROWS = 100  # at most: reasons cost thousands of questions a row, changes a hundred or two


@dataclass(frozen=True)
class Plan:
    """Questions a row, the same for both laws."""

    rows: int  # asked about changes
    reason_rows: int  # the first of them, asked about reasons too
    singles: int = 12  # a range
    joints: int = 8  # a size, near and anywhere
    groups: int = 6  # of units, a size
    references: int = 500  # rows that replace a group
    removals: int = 200  # rows that replace one unit, to see which is the strongest
    orders: int = 50  # of units, there and back, for Shapley values

    _LEAST: ClassVar[dict[str, int]] = {
        "singles": 6,
        "joints": 3,
        "groups": 3,
        "references": 60,
        "removals": 20,
        "orders": 5,
    }

    def questions(self, n_units: int, n_ranges: int) -> int:
        """How many questions that makes, at most."""
        changes, reasons = self.a_row(n_units, n_ranges)
        return 2 * self.references + self.rows * changes + self.reason_rows * reasons

    def a_row(self, n_units: int, n_ranges: int) -> tuple[int, int]:
        """How many questions are about changes of a row, and how many about its reasons."""
        changes = 2 * (n_ranges * self.singles + 2 * len(JOINT_SIZES) * self.joints)
        groups = len(GROUP_SIZES) * self.groups * (self.references + matched_donors(self.references))
        return 1 + changes, groups + n_units * (self.removals + 2 * self.orders)

    def shrunk(self, factor: float) -> Plan:
        """The same with fewer questions of each kind, as far as they still tell something; changes cost least."""
        least = self._LEAST
        shares = {name: max(factor, 0.5) if name in ("singles", "joints") else factor for name in least}
        return replace(self, **{name: max(least[name], round(getattr(self, name) * shares[name])) for name in least})

    @classmethod
    def within(cls, max_questions: int, n_rows: int, n_units: int, n_ranges: int, n_references: int) -> Plan:
        """As many questions as are allowed: first fewer a row, then fewer rows; ``n_references`` are to be had."""
        for factor in SHRINKING:
            plan = cls(n_rows, min(n_rows, REASON_ROWS)).shrunk(factor)
            plan = replace(plan, references=min(plan.references, n_references))
            if plan.questions(n_units, n_ranges) <= max_questions:
                return plan
        each, left = sum(plan.a_row(n_units, n_ranges)), max_questions - 2 * plan.references
        rows, fewest = left // each, min(FEWEST_ROWS, n_rows)
        if rows < fewest:
            raise InputError(
                f"max_questions={max_questions:,} is too few for a table of {n_units} columns: "
                f"{fewest} rows need {fewest * each + 2 * plan.references:,}"
            )
        rows = int(min(rows, plan.reason_rows))
        return replace(plan, rows=rows, reason_rows=rows)

    def to_dict(self) -> dict[str, int]:
        """In plain numbers."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
