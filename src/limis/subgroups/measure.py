"""How much each column weighs in each row's local model, and what else is known of that row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from limis.errors import InputError
from limis.explanation import Explanations
from limis.labels import find_class
from limis.subgroups.groups import aligned
from limis.walk import LocalFits

Measure = Literal["coefficients", "contributions"]


def usual_measure(fits: LocalFits) -> Measure:
    """The paper's, where local models have coefficients."""
    return "coefficients" if fits.has_coefficients else "contributions"


@dataclass(eq=False)
class RowNumbers:
    """All that groups are made of, row by row."""

    weight: pd.DataFrame  # (rows, columns) how much a column weighs, NaN where it is not known
    local: np.ndarray  # (rows,) g at the row, as expected without asking about it
    trusted: np.ndarray  # (rows,) bool
    effective_rows: np.ndarray  # (rows,)
    outputs: np.ndarray | None = None  # (rows,) f; None where it was not asked
    errors: np.ndarray | None = None  # (rows,) the model's own; None without labels

    @classmethod
    def of(cls, explanations: Explanations, measure: Measure, y: Any = None) -> RowNumbers:
        """What finished explanations say."""
        return cls(
            column_weights(explanations, measure),
            explanations.fits.predictions(),
            explanations.fidelity["trusted"].to_numpy(),
            explanations.fidelity["effective_rows"].to_numpy(),
            explanations.outputs,
            None if y is None else model_errors(explanations, y),
        )


def column_weights(explanations: Explanations, measure: Measure) -> pd.DataFrame:
    """How much each original column weighs in each row: (rows, columns), in units of the output."""
    if measure not in get_args(Measure):
        raise InputError(f'measure is "coefficients" or "contributions", not {measure!r}')
    fits, names = explanations.fits, explanations.training.table.names
    if not fits.has_contributions:
        raise InputError(
            "these local models say nothing of single columns; fit the explainer with curves, ridges or trees"
        )
    if measure == "contributions":
        return explanations.column_contributions.abs()
    if not fits.has_coefficients:
        raise InputError(
            'these local models have no coefficients, as curves and trees have none; use measure="contributions"'
        )
    return pd.DataFrame(_scaled_coefficients(explanations), index=explanations.index, columns=names)


def _scaled_coefficients(explanations: Explanations) -> np.ndarray:
    table, fits = explanations.training.table, explanations.fits
    owner = table.feature_column
    shares = explanations.training.features.double().mean(dim=0).numpy()  # of levels: of the training rows
    weights = np.empty((len(explanations), len(table.columns)))
    for j, column in enumerate(table.columns):
        own = np.flatnonzero(owner == j)
        if column.is_category:
            weights[:, j] = _between_levels(fits.coefficients[:, own], ~fits.unknown[:, own], shares[own])
        else:
            span = float(table.quantiles[j, -1] - table.quantiles[j, 0])
            missing = own[-1] if column.has_missing else None
            known = own if missing is None else own[:-1]
            # A unit of a jump is the whole jump; one of the number is `scale` of the user's units.
            units = np.where(table.is_jump[known], 1.0, span / column.scale)
            weights[:, j] = np.abs(fits.coefficients[:, known] * units).sum(axis=1)
            if missing is not None:
                weights[:, j] = _with_missing(weights[:, j], fits, int(missing), float(shares[missing]))
    return weights


def _between_levels(coefficients: np.ndarray, known: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Mean absolute difference between two levels drawn as in training, given that they differ; NaN without two."""
    weight = np.where(known, np.maximum(shares, 1e-12), 0.0)  # (rows, levels)
    order = np.argsort(coefficients, axis=1)
    value = np.take_along_axis(coefficients, order, axis=1)
    weight = np.take_along_axis(weight, order, axis=1)
    # Between neighbours in order lie all pairs with one level on each side.
    below = np.cumsum(weight, axis=1)
    total = below[:, -1:]
    apart = (np.diff(value, axis=1) * (below * (total - below))[:, :-1]).sum(axis=1)
    pairs = (total[:, 0] ** 2 - (weight**2).sum(axis=1)) / 2
    return np.divide(apart, pairs, out=np.full(len(value), np.nan), where=known.sum(axis=1) > 1)


def _with_missing(travelled: np.ndarray, fits: LocalFits, feature: int, share: float) -> np.ndarray:
    """The number's weight and that of its absence, each by its share of the training rows."""
    absent = np.abs(fits.coefficients[:, feature])
    return np.where(fits.unknown[:, feature], travelled, (1 - share) * travelled + share * absent)


def model_errors(explanations: Explanations, y: Any) -> np.ndarray:
    """What the black box itself gets wrong: 1 or 0 a row of classes, the absolute error of numbers."""
    if explanations.outputs is None:
        raise InputError("y is held against the black box's outputs, which are not known; explain with outputs=")
    box = explanations.training.black_box
    labels = aligned(y, explanations.index, "y")
    if labels.isna().any():
        raise InputError(f"y is missing in row {labels.index[labels.isna()][0]!r}; leave such rows out")
    if not box.is_classifier and box.classes is None:
        try:
            return np.abs(labels.to_numpy(dtype=np.float64) - explanations.outputs)
        except ValueError:
            raise InputError("the black box answers with numbers, so y must hold numbers too") from None
    chances = explanations.chances
    if chances is None:
        if box.has_several_classes:
            raise InputError("the classes' probabilities are not known, so y has nothing to be held against")
        chances = box.to_probability(explanations.outputs)
    return ((chances > 0.5) != _is_second(labels, box.classes, box.has_several_classes)).astype(np.float64)


def _is_second(labels: pd.Series, classes: list[Any] | None, one_of_several: bool) -> np.ndarray:
    """Whether a label is the class that probabilities are of."""
    known = [0, 1] if classes is None else classes
    places = {label: find_class(label, known) for label in labels.unique()}
    strange = [label for label, place in places.items() if place is None]
    if strange and not one_of_several:
        raise InputError(f"y holds {strange[0]!r}, which is none of the classes {', '.join(map(repr, known))}")
    return np.array([places[label] == 1 for label in labels])
