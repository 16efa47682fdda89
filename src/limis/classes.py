"""Several classes: one neighbourhood for all of them, and a local model for each.

What decides which rows are near, and every choice, is made once, on the direction in which the outputs of all classes
vary most. The classes then differ in nothing but their outputs. Their outputs sum to zero in every row, so what the
local ridges say of them does too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from limis.any_surrogate import AnySurrogate
from limis.blackbox import OTHERS, Along, BlackBox, leading_direction
from limis.changes import RecordedChanges
from limis.one_output import OneOutput
from limis.rows import TrainingRows
from limis.trees.carried import CarriedChanges
from limis.trees.fits import TreeModel
from limis.two_scales import TwoScales
from limis.walk import GlobalFit, LocalModel


def leading_view(black_box: BlackBox, every: np.ndarray) -> BlackBox:
    """The same model seen along the direction in which the classes' outputs vary most."""
    return replace(black_box, view=Along(leading_direction(every)))


def parts_of_classes(
    training: TrainingRows, model_of: Callable[[TrainingRows, int], LocalModel]
) -> dict[Any, OneOutput]:
    """What explains each class, from what was fitted along the leading direction; empty without classes.

    model_of : the local model of a class, given its training rows and its place.
    """
    if training.every is None:
        return {}
    assert training.black_box.classes is not None
    parts = {}
    for place, label in enumerate(training.black_box.classes):
        own = training.of_class(place)
        parts[label] = OneOutput(own, GlobalFit.of(own), model_of(own, place))
    return parts


def class_model(model: LocalModel, recorded: RecordedChanges | None, training: TrainingRows, place: int) -> LocalModel:
    """The same ridges or trees with the outputs of one class, of which these are the training rows."""
    changes = None if recorded is None else recorded.of_class(training, place)
    return model_of_class(model, training, changes, place)


def pooled(shares: Sequence[float | None], totals: np.ndarray) -> float:
    """One share of all, from the shares of totals; a class whose outputs never vary has no part in it."""
    varying = np.flatnonzero(totals > 0)
    known = np.array(shares, dtype=np.float64)[varying]
    return float(np.average(known, weights=totals[varying])) if len(varying) else float("nan")


def model_of_class(model: LocalModel, training: TrainingRows, recorded: RecordedChanges | None, place: int) -> Any:
    """The same local model with the outputs of one class; ``training`` and ``recorded`` are already the class's."""
    if isinstance(model, TwoScales):
        assert recorded is not None
        assert model.copies.every is not None
        outputs = (model.copies.every[:, place] - training.overall_mean) / training.unit
        return replace(
            model,
            systems=recorded.systems(training.table, training.values, training.sample_weight),
            copies=replace(model.copies, outputs=outputs),
        )
    if isinstance(model, TreeModel):
        carried = model.carried
        if carried is not None:
            assert recorded is not None
            told = recorded.counted(training, recorded.start, carried.told_share)
            carried = CarriedChanges.of(training, model.inputs, told)
        return replace(model, base=model_of_class(model.base, training, recorded, place), carried=carried)
    if isinstance(model, AnySurrogate):
        return replace(model, base=model_of_class(model.base, training, recorded, place))
    return model


def rename_classes(by_class: dict[Any, OneOutput], training: TrainingRows, classes: list[Any]) -> dict[Any, OneOutput]:
    """The same parts under the names that the classes really have, where the model itself only counts them."""
    training.black_box.classes = list(classes)
    for label, part in zip(classes, by_class.values(), strict=True):
        part.training.black_box.classes = [OTHERS, label]
    return dict(zip(classes, by_class.values(), strict=True))
