"""A row and the same row with other values: the black box, the row's own local model, and the new explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from limis.class_explanations import ClassExplanations
from limis.explanation import Explanation, Explanations
from limis.serve.words import Explained, explanation_data, finite, prediction


@dataclass
class WhatIf:
    """Both rows, explained together; the second is the changed one."""

    found: Explained
    changed: pd.DataFrame

    @property
    def part(self) -> Explanations:
        """Of several classes, the explanations of the one that is predicted for the row as it is."""
        if isinstance(self.found, ClassExplanations):
            return self.found.for_class(self.found.predicted.iloc[0])
        return self.found

    @property
    def own(self) -> Explanation:
        """The explanation of the row as it is."""
        return self.part[0]

    @property
    def foreseen(self) -> float:
        """What the row's own local model says of the changed row."""
        return float(self.own.predict(self.changed)[0])

    @property
    def outputs(self) -> tuple[float, float] | None:
        """What the black box says of both; None where there is none to ask."""
        known = self.part.outputs
        return None if known is None else (float(known[0]), float(known[1]))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        before, after = (None, None) if self.outputs is None else self.outputs
        first, second = explanation_data(self.found)
        return {
            "model_output_before": finite(before),
            "model_output_after": finite(after),
            "prediction_before": prediction(self.found, 0),
            "prediction_after": prediction(self.found, 1),
            "foreseen_before": finite(self.own.local_prediction),
            "foreseen_after": finite(self.foreseen),
            "explanation_before": first,
            "explanation_after": second,
        }


def both(row: pd.DataFrame, changed: pd.DataFrame) -> pd.DataFrame:
    """A row and its changed copy as one table, each under a label of its own."""
    label = row.index[0]
    return pd.concat([row, changed]).set_axis(pd.Index([label, f"{label}, changed"], dtype=object))
