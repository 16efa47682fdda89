"""Outputs and predictions as the pages and the REST answers tell them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from limis.blackbox import BlackBox
from limis.class_explanations import ClassExplanations
from limis.explanation import Explanation, Explanations
from limis.kinds import plain
from limis.report.words import Numbers, percent
from limis.rows import TrainingRows

Explained = Explanations | ClassExplanations


@dataclass
class Teller:
    """Tells outputs of one black box in words."""

    box: BlackBox
    numbers: Numbers

    @classmethod
    def of(cls, training: TrainingRows) -> Teller:
        """In the format that suits the outputs' spread."""
        return cls(training.black_box, Numbers.of(training))

    def output(self, value: float) -> str:
        """An output: logits with the probability they stand for, probabilities in percent, all else as a number."""
        if not np.isfinite(value):
            return "not a finite number"
        if self.box.scale == "logit":
            return f"{percent(float(self.box.to_probability(np.asarray(value))))} (logit {self.numbers.show(value)})"
        if self.box.scale == "probability" and 0 <= value <= 1:
            return percent(value)
        return self.numbers.show(value)


def class_name(box: BlackBox, place: int) -> Any:
    """The label of a class, as JSON holds it."""
    return place if box.classes is None else plain(box.classes[place])


def prediction(found: Explained, row: int) -> dict[str, Any] | None:
    """The predicted class and its probability; None for values, and where no model could be asked."""
    if isinstance(found, ClassExplanations):
        chances = found.probabilities
        if chances is None:
            return None
        place = int(chances.to_numpy()[row].argmax())
        return {"class": plain(found.classes[place]), "probability": float(chances.to_numpy()[row, place])}
    box = found.training.black_box
    if found.outputs is None or not box.is_classifier:
        return None
    second = float(np.clip(box.to_probability(found.outputs[[row]])[0], 0, 1))
    place = int(second > 0.5)
    return {"class": class_name(box, place), "probability": second if place else 1 - second}


def explanation_data(found: Explained) -> list[dict[str, Any]]:
    """Explanations as data for `as_json`, with the prediction of a classifier."""
    told: list[dict[str, Any]]
    if isinstance(found, ClassExplanations):
        told = json.loads(found.to_json(), parse_constant=_nothing)
    else:
        told = [one.to_dict() for one in found]
    for row, one in enumerate(told):
        said = prediction(found, row)
        if said is not None:
            one["prediction"] = said
    return told


def _nothing(_: str) -> None:
    """What stands for NaN and infinity."""


def neighbour_data(one: Explanation, k: int) -> list[dict[str, Any]]:
    """The training rows that speak most for an explanation, with their values in words."""
    training = one.all.training
    top = one.weights.iloc[:k]
    total = float(one.weights.sum())
    lines = []
    for place, weight in zip(top.index.to_numpy().tolist(), top.to_numpy().tolist(), strict=True):
        label = training.frame.index[place]
        lines.append(
            {
                "position": place,
                "row": plain(label),
                "weight": weight / total,
                "model_output": finite(float(training.outputs[place])),
                "values": {column.name: column.show(training.frame, place) for column in training.table.columns},
            }
        )
    return lines


def finite(value: float | None) -> float | None:
    """A number that JSON can hold."""
    return value if value is not None and np.isfinite(value) else None


def as_json(data: Any) -> bytes:
    """JSON text; a number that is not finite, of which JSON has none, is null."""
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(data), parse_constant=_nothing), ensure_ascii=False)
    return text.encode("utf-8", "replace")
