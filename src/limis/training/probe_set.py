"""Probe rows as the trainer uses them: what the estimator sees, what the surrogate is judged by, who may not speak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch

from limis.perturb import near_rows
from limis.rows import TrainingRows
from limis.table import QUANTILES, Table
from limis.training.probes import ProbeRows
from limis.training.terms import Changes, Models, ProbeFits, Term

NUDGE = 0.02  # how far a number goes at most, as a share of the training rows it passes
NEAR_HELD_OUT = 8


def needed(terms: Sequence[Term]) -> set[str]:
    """What the terms need beyond the surrogate at the row."""
    return {term.needs for term in terms if hasattr(term, "needs")}


@dataclass
class ProbeSet:
    """Probe rows as tensors."""

    inputs: list[torch.Tensor]  # (probes, inputs) of the rows and, where needed, of the same rows nudged
    features: torch.Tensor  # (probes, features)
    targets: torch.Tensor  # (probes,)
    twins: sp.csr_array  # (probes, training rows): rows equal to a probe, which must not speak for it
    row_weight: torch.Tensor  # (training rows,) how much each counts, at most 1
    feature_deviation: torch.Tensor  # (features,)
    changes: _PackedChanges | None

    def __len__(self) -> int:
        return len(self.targets)

    @classmethod
    def prepare(
        cls,
        training: TrainingRows,
        probes: ProbeRows,
        see: Callable[[np.ndarray], torch.Tensor],
        needs: set[str],
        near: ProbeRows,
        rng: np.random.Generator,
    ) -> ProbeSet:
        """Make the tensors; ``see`` gives the estimator's inputs of rows given by their values.

        ``near`` holds the rows that stand for changes where the black box was not asked.
        """
        table = training.table
        inputs = [see(probes.values)]
        if "nudged" in needs:
            inputs.append(see(nudge(table, probes.values, rng)))
        weight = np.ones(len(training)) if training.sample_weight is None else training.sample_weight
        return cls(
            inputs=inputs,
            features=torch.as_tensor(table.features(probes.values), dtype=torch.float32),
            targets=torch.as_tensor((probes.outputs - training.overall_mean) / training.unit, dtype=torch.float32),
            twins=training.twins(probes.values),
            row_weight=torch.as_tensor(weight / weight.max(), dtype=torch.float32),
            feature_deviation=torch.as_tensor(training.feature_deviation, dtype=torch.float32),
            changes=_PackedChanges.of(training, probes, near) if "changes" in needs else None,
        )

    def on(self, device: str) -> ProbeSet:
        """The same with its tensors on another device."""
        tensors = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, torch.Tensor)}
        changes = None if self.changes is None else self.changes.on(device)
        return replace(self, **tensors, inputs=[part.to(device) for part in self.inputs], changes=changes)

    def allowed(self, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """How much the training rows may count for these probes: (probes, rows)."""
        equal = torch.as_tensor(self.twins[places.numpy()].toarray(), dtype=torch.float32)
        return ((1 - equal.to(self.row_weight.device)) * self.row_weight)[:, rows]

    def fits(self, places: torch.Tensor, weights: torch.Tensor, models: Models, nudged: Models | None) -> ProbeFits:
        """What the terms judge."""
        return ProbeFits(
            features=self.features[places],
            targets=self.targets[places],
            weights=weights,
            models=models,
            feature_deviation=self.feature_deviation,
            changes=None if self.changes is None else self.changes.of_probes(places),
            nudged=nudged,
        )


@dataclass
class _PackedChanges:
    """The changes of all probes one after another, in the order of the probes."""

    steps: torch.Tensor  # (changes, features)
    answers: torch.Tensor  # (changes,)
    starts: torch.Tensor  # (probes + 1,)

    @classmethod
    def of(cls, training: TrainingRows, probes: ProbeRows, near: ProbeRows) -> _PackedChanges:
        """The probes' own moves where they were asked, otherwise the way to near held-out rows."""
        if probes.asked is not None:
            rows, answers = probes.asked.rows, probes.asked.changes
            features = training.table.features(probes.asked.values)
        else:
            rows, features, answers = _ways_to_near_rows(training, probes, near)
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        steps = features[order] - training.table.features(probes.values)[rows]
        return cls(
            torch.as_tensor(steps, dtype=torch.float32),
            torch.as_tensor(answers[order] / training.unit, dtype=torch.float32),
            torch.as_tensor(np.searchsorted(rows, np.arange(len(probes) + 1))),
        )

    def on(self, device: str) -> _PackedChanges:
        """The same on another device."""
        return _PackedChanges(*(part.to(device) for part in (self.steps, self.answers, self.starts)))

    @property
    def unit(self) -> float:
        """Root mean square of the answers, or 1 where the black box never answered otherwise."""
        return float(self.answers.square().mean().sqrt()) if bool(self.answers.any()) else 1.0

    def of_probes(self, places: torch.Tensor) -> Changes:
        """The changes of some probes, side by side."""
        starts, counts = self.starts[places], self.starts[places + 1] - self.starts[places]
        slots = torch.arange(int(counts.max()) if len(counts) else 0, device=counts.device)
        known = slots < counts[:, None]
        at = torch.where(known, starts[:, None] + slots, 0)
        return Changes(self.steps[at], self.answers[at], known.float(), self.unit)


def _ways_to_near_rows(
    training: TrainingRows, probes: ProbeRows, near: ProbeRows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """From each probe to held-out rows near it: (probe, features there, change of output), one entry a way."""
    table = training.table
    # One more than needed: one of them may be the probe itself.
    found = near_rows(table.ranks(probes.values), table.ranks(near.values), table.is_category, NEAR_HELD_OUT + 1)
    rows, at = np.repeat(np.arange(len(probes)), found.shape[1]), found.ravel()
    features = table.features(near.values)[at]
    other = (features != table.features(probes.values)[rows]).any(axis=1)
    return rows[other], features[other], (near.outputs[at] - probes.outputs[rows])[other]


def nudge(table: Table, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows with every number moved a little among the values that exist; categories and missing stay."""
    moved, ranks = values.copy(), table.ranks(values)
    grid = np.linspace(0, 1, QUANTILES)
    for j in table.number_columns:
        known = np.isfinite(ranks[:, j])
        goal = ranks[known, j] + rng.uniform(-NUDGE, NUDGE, known.sum())
        moved[known, j] = np.interp(goal.clip(0, 1), grid, table.quantiles[j])
    return moved
