"""The training rows as every later stage sees them: their numbers, their outputs, and which of them are equal."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from limis.blackbox import BlackBox
from limis.cell_types import in_type_of
from limis.keyed_rows import KeyedRows
from limis.table import Table


@dataclass(eq=False)
class TrainingRows:
    """Rows that may be selected, with what the black box says of them."""

    table: Table
    black_box: BlackBox
    frame: pd.DataFrame
    values: np.ndarray  # (rows, columns)
    outputs: np.ndarray  # (rows,)
    sample_weight: np.ndarray | None = None
    # Where there are several classes: the outputs of all, and what weightings look at, so that all classes rest on the
    # same rows.
    every: np.ndarray | None = None  # (rows, classes)
    seen: np.ndarray | None = field(default=None, repr=False)  # (rows,) standardised
    features: torch.Tensor = field(init=False)  # (rows, features) float32
    targets: torch.Tensor = field(init=False)  # (rows,) float32: outputs less their mean, in deviations
    seen_targets: torch.Tensor = field(init=False, repr=False)  # (rows,) float32: what weightings look at
    unit: float = field(init=False)  # of the targets, in the outputs' own units
    standard_outputs: np.ndarray = field(init=False, repr=False)  # (rows,) the targets in float64

    def __post_init__(self) -> None:
        self.features = torch.as_tensor(self.table.features(self.values), dtype=torch.float32)
        self.unit = self.output_deviation or 1.0
        # Outputs far from zero, or very small or large, would spend float32's digits on their mean and size.
        self.standard_outputs = (self.outputs - self.overall_mean) / self.unit
        self.targets = torch.as_tensor(self.standard_outputs, dtype=torch.float32)
        self.seen_targets = torch.as_tensor(self.seen_outputs, dtype=torch.float32)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def seen_outputs(self) -> np.ndarray:
        """What weightings look at: (rows,), standardised."""
        return self.standard_outputs if self.seen is None else self.seen

    def standardised(self, every: np.ndarray) -> np.ndarray:
        """Outputs of all classes in the deviations of the training rows' outputs: (rows, classes)."""
        assert self.every is not None
        deviation = self.every.std(axis=0)
        return (every - self.every.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)

    def of_class(self, place: int) -> TrainingRows:
        """The same rows with the outputs of one of several classes; weightings look at what they did before."""
        assert self.every is not None
        return replace(
            self, black_box=self.black_box.of_class(place), outputs=self.every[:, place], seen=self.seen_outputs
        )

    def part(self, places: np.ndarray) -> TrainingRows:
        """Some of the rows."""
        weight, every, seen = (
            None if held is None else held[places] for held in (self.sample_weight, self.every, self.seen)
        )
        return replace(
            self,
            frame=self.frame.iloc[places],
            values=self.values[places],
            outputs=self.outputs[places],
            sample_weight=weight,
            every=every,
            seen=seen,
        )

    def with_model(self, model: Any) -> TrainingRows:
        """The same rows with another model to ask, on the same scale."""
        other = copy.copy(self)
        other.black_box = replace(self.black_box, model=model)
        return other

    def on(self, device: str) -> TrainingRows:
        """The same rows with their tensors on another device."""
        other = copy.copy(self)
        for name in ("features", "targets", "seen_targets"):
            setattr(other, name, getattr(self, name).to(device))
        return other

    def with_jumps(self, jumps: Sequence[Sequence[float]]) -> TrainingRows:
        """The same rows with these jumps, given for each column, among the features."""
        return replace(self, table=self.table.with_jumps(jumps))

    def without_jumps(self) -> TrainingRows:
        """The same rows with no feature but the numbers and levels themselves."""
        return self.with_jumps([[]] * len(self.table.columns)) if any(c.jumps for c in self.table.columns) else self

    def in_training_types(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The same rows with text and missing values in the types of the training table, as the model knows them.

        A table read from a file has text where training had categories, and numbers where a text is missing in all.
        """
        if frame.dtypes.tolist() == self._dtypes:
            return frame
        return pd.DataFrame({name: in_type_of(frame[name], seen) for name, seen in self.frame.items()}, frame.index)

    @cached_property
    def _dtypes(self) -> list[Any]:
        return self.frame.dtypes.tolist()

    @cached_property
    def overall_mean(self) -> float:
        """Mean output over the training rows."""
        return float(np.average(self.outputs, weights=self.sample_weight))

    @cached_property
    def output_deviation(self) -> float:
        """Standard deviation of the outputs: the yardstick of every tolerance."""
        largest = float(np.abs(self.outputs).max())
        deviation = float((self.outputs / (largest or 1.0)).std())  # squares of very large outputs would overflow
        # What is left of a constant is rounding.
        return deviation * largest if deviation > 8 * np.finfo(np.float64).eps else 0.0

    @cached_property
    def numbers(self) -> np.ndarray:
        """Features of the numbers alone, NaN where missing: (rows, numbers) float32."""
        found = self.features[:, self.table.number_features].cpu().numpy()
        return np.where(np.isfinite(self.values[:, self.table.number_columns]), found, np.float32(np.nan))

    @cached_property
    def feature_deviation(self) -> np.ndarray:
        """Standard deviation of every feature over the training rows."""
        return self.features.double().numpy().std(axis=0)

    @cached_property
    def _keyed(self) -> KeyedRows:
        return KeyedRows.of(self.values)

    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """One place of each distinct row, and for every row which of them it equals."""
        return self._distinct

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        return self._keyed.distinct()

    @property
    def group(self) -> np.ndarray:
        """Which of the distinct rows each row is: (rows,)."""
        return self.distinct()[1]

    def group_of(self, values: np.ndarray) -> np.ndarray:
        """Which of the distinct training rows equals each given row, -1 where none does: (rows,)."""
        places = self._keyed.first_equal_to(values)
        return np.where(places >= 0, self.group[places], -1)

    @cached_property
    def group_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Sum of the rounded outputs that weightings look at, and count, of the rows of each group."""
        weights = np.ones(len(self)) if self.sample_weight is None else self.sample_weight
        outputs = self.seen_outputs.round(6)
        return np.bincount(self.group, weights=weights * outputs), np.bincount(self.group, weights=weights)

    def twins(self, values: np.ndarray) -> sp.csr_array:
        """Which training rows equal each given row in all columns: (rows, training rows) of ones."""
        starts, places = self._keyed.equal_to(values)
        return sp.csr_array((np.ones(len(places)), places, starts), shape=(len(values), len(self)))
