"""All questions of an audit and the black box's answers, asked once for all methods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from limis.blackbox import BlackBox, sigmoid
from limis.columns import UNKNOWN
from limis.errors import InputError
from limis.fidelity import law_a
from limis.fidelity.audit import law_b
from limis.fidelity.audit.plan import Plan
from limis.fidelity.drawing import Groups
from limis.fidelity.ground import Ground
from limis.fidelity.units import Units
from limis.perturb import Moves, gower_distance, moved_frame
from limis.progress import progress
from limis.table import Table

CELLS_AT_ONCE = 10_000_000
PLAUSIBLE = 0.95  # of the training rows are no farther from the nearest other one than a plausible question
PLAUSIBLE_POOL, PLAUSIBLE_ROWS = 10_000, 500
ROUNDING = 1e-12  # of the largest output: what is below that is no answer
RARE = 0.01  # of the training rows have a rare level


@dataclass
class Box:
    """The black box, asked for one number a row: of several classes, that of the class that each row is audited for."""

    box: BlackBox
    table: Table
    classes: np.ndarray | None = None  # (rows,) the class each row is audited for, where there are several
    asked: int = 0

    def outputs(self, frame: pd.DataFrame, rows: np.ndarray) -> np.ndarray:
        """f of frames made from these rows: (n,)."""
        self.asked += len(frame)
        found = self.box.outputs(frame)
        return found if self.classes is None else found[np.arange(len(found)), self.classes[rows]]

    def mean_outputs(self, frame: pd.DataFrame, n_rows: int) -> np.ndarray:
        """Mean of f over rows of a frame, for each of the rows audited: (rows,)."""
        self.asked += len(frame)
        found = self.box.outputs(frame).mean(axis=0)
        return np.full(n_rows, found) if self.classes is None else found[self.classes]

    @property
    def probability(self) -> Any:
        """From outputs to probabilities; None where there are none, or where all classes are needed for one."""
        if self.box.scale == "logit":
            return sigmoid
        return None if self.box.scale != "probability" else np.asarray

    @property
    def threshold(self) -> float | None:
        """The output at which the predicted class changes, where one number tells."""
        if self.classes is not None:
            return None
        return {"logit": 0.0, "probability": 0.5}.get(self.box.scale)


@dataclass
class Changes:
    """Changes of rows, of one kind and under one law, and what the black box did."""

    law: str
    family: str  # "single" or "joint"
    kind: str  # how far, or how many columns and how far
    rows: np.ndarray  # (questions,)
    frame: pd.DataFrame  # (questions, columns) the rows after the change
    answers: np.ndarray  # (questions,) f(changed) − f(row)
    subsets: dict[str, np.ndarray]  # questions of a special sort: (questions,) bool each


@dataclass
class Removals:
    """Groups of units that were replaced by those of other rows, and what that took away."""

    law: str
    kind: str
    rows: np.ndarray  # (groups,)
    units: np.ndarray  # (groups, units) bool
    truth: np.ndarray  # (groups,) f(row) − mean of f with the group replaced
    blind: np.ndarray  # (groups,) the share of f(row) − base that falls to so many units


@dataclass
class Estimate:
    """What each unit does to the output of each row whose reasons are asked about, from samples."""

    values: np.ndarray  # (rows, units)
    errors: np.ndarray  # (rows, units) standard errors

    def clear(self) -> tuple[np.ndarray, np.ndarray]:
        """The strongest unit of each row, and whether it is ahead of the next by two standard errors: (rows,) each."""
        sizes = np.abs(self.values)
        order = np.argsort(-sizes, axis=1, kind="stable")
        rows, top = np.arange(len(sizes)), order[:, 0]
        second = order[:, min(1, sizes.shape[1] - 1)]
        margin = sizes[rows, top] - (sizes[rows, second] if sizes.shape[1] > 1 else 0.0)
        error = np.sqrt(self.errors[rows, top] ** 2 + self.errors[rows, second] ** 2)
        return top, (margin > 2 * error) & (margin > 0)


@dataclass
class Exam:
    """Rows, questions and answers."""

    ground: Ground
    box: Box
    frame: pd.DataFrame  # the rows
    outputs: np.ndarray  # (rows,) f
    training: pd.DataFrame
    training_outputs: np.ndarray  # (training rows,); of several classes, a column each
    held_out: pd.DataFrame
    reference: pd.DataFrame  # the rows that all methods may know the population by
    plan: Plan
    random_state: int
    n_given: int  # rows that were given; the first of them, as many as the budget allows, are audited
    show: bool = False
    changes: list[Changes] = field(default_factory=list)
    removals: list[Removals] = field(default_factory=list)
    base: dict[str, np.ndarray] = field(default_factory=dict)  # (rows,) mean f over the reference rows of each law
    removed: Estimate = field(init=False)  # f(row) − mean f with the unit replaced
    shapley: Estimate = field(init=False)  # f's Shapley values

    @property
    def units(self) -> Units:
        """What counts as one column."""
        return self.ground.units

    @property
    def output_deviation(self) -> np.ndarray:
        """Standard deviation of f over the training rows, for each row's class: (rows,)."""
        deviation = self.training_outputs.std(axis=0)
        return np.full(len(self.frame), deviation) if self.box.classes is None else deviation[self.box.classes]

    def ask(self) -> None:
        """Draw all questions by both laws and ask the black box."""
        total = self.plan.questions(len(self.units), len(self.ground.ranges))
        with progress(total, "questions", enabled=self.show) as bar:
            self._bar = bar
            self._draw_and_ask()
        del self._bar

    def _draw_and_ask(self) -> None:
        rngs = [np.random.default_rng([self.random_state, part]) for part in range(6)]
        values = self.ground.table.values(self.held_out)
        held_out = law_b.HeldOut(
            self.ground, values, self._own_places(values), law_b.association_of(self.ground, self._one_output())
        )
        for family, n in (("single", self.plan.singles), ("joint", self.plan.joints)):
            drawn_a = getattr(law_a, f"{family}_changes")(self.ground, n, rngs[0])
            drawn_b = getattr(law_b, f"{family}_changes")(held_out, n, rngs[1])
            for law, donors, drawn in ((law_a.NAME, self.training, drawn_a), (law_b.NAME, self.held_out, drawn_b)):
                self.changes += [self._ask_changes(law, family, kind, moves, donors) for kind, moves in drawn.items()]
        references = self._reference_places(rngs[2])
        if len(self.units) == 1:  # the only column has all of the reasons: there is nothing to tell
            nothing = np.zeros((self.plan.reason_rows, 1))
            self.removed = self.shapley = Estimate(nothing, nothing)
            return
        few = replace(self.ground, values=self.ground.values[: self.plan.reason_rows])
        groups_a = law_a.group_removals(few, self.plan.groups, references[law_a.NAME], rngs[3])
        groups_b = law_b.group_removals(
            replace(held_out, ground=few), self.plan.groups, references[law_b.NAME], rngs[4]
        )
        for law, donors, groups in (
            (law_a.NAME, self.training, groups_a),
            (law_b.NAME, self.held_out, groups_b),
        ):
            self.base[law] = self.box.mean_outputs(donors.iloc[references[law]], len(self.frame))
            self._bar.update(len(references[law]))
            self.removals += [self._ask_groups(law, kind, one, donors) for kind, one in groups.items()]
        self._ask_strongest(references[law_a.NAME], rngs[5])

    def _one_output(self) -> np.ndarray:
        """An output a training row of the ground, to put categories in order by."""
        found = self.training_outputs[self.ground.training_places]
        return found if found.ndim == 1 else found[:, 0]

    def _own_places(self, values: np.ndarray) -> np.ndarray:
        """The rows are the first of the held-out rows."""
        n = len(self.frame)
        return np.arange(n) if len(values) >= n else np.full(n, -1)

    def _reference_places(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        n = self.plan.references
        return {
            law: np.sort(rng.permutation(len(rows))[:n])
            for law, rows in ((law_a.NAME, self.training), (law_b.NAME, self.held_out))
        }

    def ask_moves(self, moves: Moves, donors: pd.DataFrame) -> np.ndarray:
        """f of moved rows, few at a time: (moves,)."""
        answers = [np.empty(0)]
        for part in blocks(len(moves), self._at_once):
            taken = moves.taken(part)
            answers.append(self.box.outputs(moved_frame(self.ground.table, self.frame, donors, taken), taken.rows))
            self._bar.update(len(taken))
        return np.concatenate(answers)

    @property
    def _at_once(self) -> int:
        return max(1, CELLS_AT_ONCE // self.ground.values.shape[1])

    def _ask_changes(self, law: str, family: str, kind: str, moves: Moves, donors: pd.DataFrame) -> Changes:
        answers = self.ask_moves(moves, donors)
        changed = moved_frame(self.ground.table, self.frame, donors, moves)
        values = self.ground.table.values(changed)
        looked_at = moves.rows < self.plan.reason_rows  # a distance to thousands of rows each
        subsets = {"plausible": np.zeros(len(moves), dtype=bool)}
        subsets["plausible"][looked_at] = self._plausible(values[looked_at])
        if family == "single":
            subsets |= self._special(moves, values)
        answers = self._significant(answers - self.outputs[moves.rows])
        return Changes(law, family, kind, moves.rows, changed, answers, subsets)

    def _plausible(self, values: np.ndarray) -> np.ndarray:
        """Whether changed rows are as near to a training row as training rows are to one another."""
        if not hasattr(self, "_usual"):
            pool = self.ground.training_ranks
            rng = np.random.default_rng([self.random_state, 7])
            kept = rng.permutation(len(pool))[:PLAUSIBLE_POOL]
            self._pool = pool[kept]
            some = self._pool[:PLAUSIBLE_ROWS]
            apart = gower_distance(some, self._pool, self.ground.table.is_category)
            apart[np.arange(len(some)), np.arange(len(some))] = np.inf
            self._usual = float(np.quantile(apart.min(axis=1), PLAUSIBLE)) if len(self._pool) > 1 else np.inf
        nearest = [np.empty(0)]
        for part in blocks(len(values), 512):
            ranks = self.ground.table.ranks(values[part])
            nearest.append(gower_distance(ranks, self._pool, self.ground.table.is_category).min(axis=1))
        return np.concatenate(nearest) <= self._usual

    def _special(self, moves: Moves, values: np.ndarray) -> dict[str, np.ndarray]:
        """Which changes lead to or from missing, or to a rare level."""
        before, changed = self.ground.values[moves.rows], moves.changed
        rare = np.zeros_like(changed)
        for j in np.flatnonzero(self.ground.table.is_category):
            own = values[:, j].astype(np.int64)
            codes = self._all_values[:, j].astype(np.int64)
            shares = np.bincount(codes[codes >= 0], minlength=int(max(own.max(initial=0), 0)) + 1) / len(codes)
            rare[:, j] = (own == UNKNOWN) | (shares[np.maximum(own, 0)] < RARE)
        return {
            "to missing": (changed & self._missing(values) & ~self._missing(before)).any(axis=1),
            "from missing": (changed & ~self._missing(values) & self._missing(before)).any(axis=1),
            "to rare levels": (changed & rare).any(axis=1),
        }

    @cached_property
    def _all_values(self) -> np.ndarray:
        """All training rows, equal ones as often as they are there: (training rows, columns)."""
        return self.ground.table.values(self.training)

    def _missing(self, values: np.ndarray) -> np.ndarray:
        """Where values are missing: a number that is none, or the level that stands for missing."""
        missing = np.isnan(values)
        for j, column in enumerate(self.ground.table.columns):
            if column.is_category and column.levels and column.levels[0] is None:  # missing comes first
                missing[:, j] = values[:, j] == 0
        return missing

    def _ask_groups(self, law: str, kind: str, groups: Groups, donors: pd.DataFrame) -> Removals:
        truth = self._significant(self.outputs[groups.rows] - self._mean_replaced(groups, donors))
        share = groups.units.mean(axis=1)
        blind = self._significant(share * (self.outputs - self.base[law])[groups.rows])
        return Removals(law, kind, groups.rows, groups.units, truth, blind)

    def _replaced(self, groups: Groups, donors: pd.DataFrame) -> Iterator[tuple[slice, np.ndarray]]:
        """f with each group replaced by that of each donor: blocks of (groups, donors)."""
        n_donors = groups.donors.shape[1]
        for part in blocks(len(groups), max(1, self._at_once // n_donors)):
            rows, units = groups.rows[part], groups.units[part]
            changed = np.repeat(units @ self.ground.membership, n_donors, axis=0)
            moves = Moves(np.repeat(rows, n_donors), groups.donors[part].ravel(), changed)
            yield part, self.ask_moves(moves, donors).reshape(len(rows), n_donors)

    def _mean_replaced(self, groups: Groups, donors: pd.DataFrame) -> np.ndarray:
        """Mean of f over the donors that replace each group: (groups,)."""
        return np.concatenate([np.empty(0), *(found.mean(axis=1) for _, found in self._replaced(groups, donors))])

    def _ask_strongest(self, references: np.ndarray, rng: np.random.Generator) -> None:
        """What each unit alone takes away, and f's Shapley values by random orders of the units, there and back."""
        n, d = self.plan.reason_rows, len(self.units)
        alone = np.tile(np.eye(d, dtype=bool), (n, 1))
        some = rng.permutation(references)[: self.plan.removals]
        groups = Groups(np.repeat(np.arange(n), d), alone, np.tile(some, (n * d, 1)))
        found = list(self._replaced(groups, self.training))
        means, spread = (np.concatenate([of(part) for _, part in found]) for of in (_means, _standard_errors))
        self.removed = Estimate(self._significant(self.outputs[:n, None] - means.reshape(n, d)), spread.reshape(n, d))
        self.shapley = self._shapley(references, rng)

    def _shapley(self, references: np.ndarray, rng: np.random.Generator) -> Estimate:
        n, d, orders = self.plan.reason_rows, len(self.units), self.plan.orders
        total, squares = np.zeros((n, d)), np.zeros((n, d))
        rows = np.repeat(np.arange(n), d)
        for _ in range(orders):
            order, donors = rng.permutation(d), np.repeat(rng.choice(references, n), d)
            found = np.zeros((n, d))
            for way in (order, order[::-1]):
                # Step s: the first s units of the order are the row's own, the others the donor's.
                foreign = np.argsort(way)[None, :] >= np.arange(d)[:, None]  # (steps, units)
                changed = np.tile(foreign @ self.ground.membership, (n, 1))
                path = self.ask_moves(Moves(rows, donors, changed), self.training).reshape(n, d)
                found[:, way] += np.diff(np.column_stack([path, self.outputs[:n]]), axis=1) / 2
            total += found
            squares += found**2
        means = total / orders
        errors = np.sqrt(np.maximum(squares / orders - means**2, 0) / max(orders - 1, 1))
        return Estimate(self._significant(means), errors)

    def _significant(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers, with those that are rounding of the outputs alone as zeros."""
        return np.where(np.abs(numbers) <= ROUNDING * self._size, 0.0, numbers)

    @property
    def _size(self) -> float:
        return float(np.abs(self.training_outputs).max(initial=0.0))


def _means(found: np.ndarray) -> np.ndarray:
    return found.mean(axis=1)


def _standard_errors(found: np.ndarray) -> np.ndarray:
    return found.std(axis=1) / np.sqrt(max(found.shape[1] - 1, 1))


def blocks(n: int, size: int) -> Iterator[slice]:
    """Slices of so many."""
    for start in range(0, n, size):
        yield slice(start, start + size)


def check_rows(n_rows: int) -> None:
    """Refuse too few rows to say anything."""
    if n_rows < 2:
        raise InputError("an audit needs at least two rows; a hundred give narrow intervals")
