"""Any model → one output a row: a value, or the logit or probability of the second class.

Of more than two classes there is an output for each, and a view of them says which number is explained.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from limis.answers import AnswerFolder
from limis.askers import Ask, Asker, asker_for
from limis.errors import BlackBoxError

Output = Literal["auto", "logit", "probability"]
# "centred": log-probabilities of several classes, less their mean over the classes.
Scale = Literal["value", "logit", "probability", "centred"]
# What is asked and what the answer is: plain values, class probabilities, logits, or the model's own margins.
Reads = Literal["values", "probabilities", "logits", "margins"]

CLIP = 1e-3
MAX_CLIPPED = 0.05
MARGIN_TOLERANCE = 1e-4
_MARGIN_CHECK_ROWS = 1000
OTHERS = "other classes"


class Along:
    """One number of the outputs of all classes: their sum, each times a weight."""

    def __init__(self, direction: np.ndarray) -> None:
        self.direction = direction

    def __call__(self, every: np.ndarray) -> np.ndarray:
        """(rows, classes) → (rows,)."""
        # Not a matrix product: its rounding would depend on how many rows there are.
        return (every * self.direction).sum(axis=1)


class Ahead:
    """How far one class is ahead of the best of the others: above zero where the model predicts it.

    Of classes that tie, the model predicts the first: that one is ahead by next to nothing.
    """

    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, every: np.ndarray) -> np.ndarray:
        """(rows, classes) → (rows,)."""
        ahead = every[:, self.place] - np.delete(every, self.place, axis=1).max(axis=1)
        least = np.finfo(np.float64).tiny
        return np.where(ahead == 0, np.where(every.argmax(axis=1) == self.place, least, -least), ahead)


def leading_direction(every: np.ndarray) -> np.ndarray:
    """The direction in which outputs (rows, classes) vary most, of length 1: (classes,)."""
    direction = np.linalg.svd(every - every.mean(axis=0), full_matrices=False)[2][0]
    # Its sign means nothing: the largest part is positive.
    return direction * (1.0 if direction[np.abs(direction).argmax()] > 0 else -1.0)


@dataclass
class BlackBox:
    """The user's model, asked only for outputs, on one scale fixed at fit."""

    scale: Scale
    reads: Reads
    classes: list[Any] | None = None
    clipped_share: float = 0.0
    model: Any = field(default=None, repr=False)
    from_array: bool = False
    labels: list[Any] | None = None  # the user's names of the columns, where the frames have others
    n_classes: int = 2
    answers: AnswerFolder | None = field(default=None, repr=False)  # where what it says at fit is kept
    view: Along | Ahead | None = field(default=None, repr=False)  # of several classes' outputs; None: all of them

    @property
    def has_several_classes(self) -> bool:
        """Whether there are more than two classes, and so an output for each."""
        return self.n_classes > 2

    @property
    def n_outputs(self) -> int:
        """How many outputs a row has before a view of them is taken."""
        return self.n_classes if self.has_several_classes else 1

    def of_class(self, place: int) -> BlackBox:
        """The same model, asked for the output of one of several classes."""
        assert self.classes is not None
        return replace(self, view=Along(np.eye(self.n_classes)[place]), classes=[OTHERS, self.classes[place]])

    @property
    def is_classifier(self) -> bool:
        """Whether outputs stand for a class's probability."""
        return self.scale != "value"

    @property
    def stands_for_labels(self) -> bool:
        """Whether there never was a model, and two classes of labels are explained themselves."""
        return self.reads == "values" and self.classes is not None

    @property
    def can_be_asked(self) -> bool:
        """Whether there is a model here to ask."""
        return self.model is not None

    def outputs(self, frame: pd.DataFrame) -> np.ndarray:
        """(rows,) finite float64 outputs on this black box's scale; (rows, classes) where several are not viewed."""
        every = self.every_output(frame)
        return every if self.view is None else self.view(every)

    def every_output(self, frame: pd.DataFrame) -> np.ndarray:
        """The outputs without a view: those of all classes where there are several."""
        if self.answers is None:
            return self._ask(frame)
        found = self.answers.find(frame)
        if found is None:
            found = self._ask(frame)
            self.answers.keep(frame, found)
        return found

    def _ask(self, frame: pd.DataFrame) -> np.ndarray:
        if self.model is None:
            raise BlackBoxError("there is no model to ask; pass model= or give outputs=")
        asker = asker_for(self.model, self.from_array, self.labels)
        if self.reads == "margins":
            if asker.margin is None:
                raise BlackBoxError("the model has no margins, unlike the one at fit; pass the model used then")
            margin = _ask(asker.margin, frame)
            return centred(self._all_classes(margin, frame)) if self.has_several_classes else _one_a_row(margin, frame)
        return self.read(_ask(asker.answer, frame), frame)

    def read(self, answer: np.ndarray, frame: pd.DataFrame) -> np.ndarray:
        """The model's answer on this black box's scale."""
        if self.has_several_classes:
            return self._read_classes(self._all_classes(answer, frame), frame)
        if self.reads == "values":
            return _one_a_row(answer, frame)
        if self.reads == "logits":
            logits = _one_a_row(_logit_column(answer), frame)
            return logits if self.scale == "logit" else sigmoid(logits)
        probability = _probability(answer, frame)
        return clipped_logit(probability) if self.scale == "logit" else probability

    def _read_classes(self, answer: np.ndarray, frame: pd.DataFrame) -> np.ndarray:
        if self.reads == "logits":
            return centred(answer) if self.scale == "centred" else softmax(answer)
        _check_probabilities(answer, frame, self.reads)
        return centred(np.log(np.clip(answer, CLIP, 1 - CLIP))) if self.scale == "centred" else np.clip(answer, 0, 1)

    def _all_classes(self, answer: np.ndarray, frame: pd.DataFrame) -> np.ndarray:
        if answer.shape != (len(frame), self.n_classes):
            raise BlackBoxError(
                f"the black box was asked about {len(frame)} rows and answered with shape {answer.shape}; "
                f"{self.n_classes} numbers a row are expected, one a class"
            )
        bad = ~np.isfinite(answer).all(axis=1)
        if bad.any():
            raise BlackBoxError(f"the black box answered with NaN or infinity for {_name_rows(bad, frame)}")
        return answer

    def to_probabilities(self, every: np.ndarray) -> np.ndarray:
        """Outputs of several classes as their probabilities: (rows, classes)."""
        return softmax(every) if self.scale == "centred" else every

    def to_probability(self, outputs: np.ndarray) -> np.ndarray:
        """Outputs as probabilities of the second class; only for classifiers."""
        return sigmoid(outputs) if self.scale == "logit" else np.asarray(outputs)

    def within(self, outputs: np.ndarray) -> np.ndarray:
        """Outputs that a local model expects, kept where they can be: probabilities between 0 and 1."""
        return np.clip(outputs, 0.0, 1.0) if self.scale == "probability" else outputs

    def to_dict(self) -> dict[str, Any]:
        """Everything but the model itself, as JSON-ready data."""
        classes = None if self.classes is None else [c.item() if isinstance(c, np.generic) else c for c in self.classes]
        return {
            "scale": self.scale,
            "reads": self.reads,
            "classes": classes,
            "clipped_share": self.clipped_share,
            "n_classes": self.n_classes,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], model: Any, from_array: bool, labels: list[Any] | None = None) -> BlackBox:
        """The inverse of `to_dict`, with the model given again (or None: outputs must then be given)."""
        return cls(**data, model=model, from_array=from_array, labels=labels)


def connect(
    model: Any, frame: pd.DataFrame, *, from_array: bool, output: Output, labels: list[Any] | None = None
) -> tuple[BlackBox, np.ndarray]:
    """Find out what the model answers, and on which scale to explain it; returns its outputs on ``frame`` too.

    ``labels`` are the user's names of the columns, where the frame has others.
    """
    asker = asker_for(model, from_array, labels)
    answer = _ask(asker.answer, frame)
    margins = _margins(asker, frame.iloc[:_MARGIN_CHECK_ROWS])
    _refuse_class_numbers(asker, answer, margins)
    margin = margins if margins is not None and margins.ndim == 1 else None
    reads = _what_it_reads(answer, asker, margin, output)
    if reads != "values" and answer.ndim == 2 and answer.shape[1] > 2:
        _check_probabilities(answer, frame, reads)
        box = _classes_box(asker, answer, margins, reads, output)
    elif reads == "values":
        box = BlackBox("value", "values")
    elif reads == "logits":
        box = BlackBox("probability" if output == "probability" else "logit", "logits")
    else:
        box = _probability_box(asker, _probability(answer, frame), margin, output)
    box.model, box.from_array, box.labels = model, from_array, labels
    return box, box.outputs(frame) if box.reads == "margins" else box.read(answer, frame)


def _margins(asker: Asker, frame: pd.DataFrame) -> np.ndarray | None:
    """(rows,) margins, or (rows, classes) of several; None where the model has none, or none that can be read."""
    if asker.margin is None:
        return None
    try:
        margins = np.asarray(asker.margin(frame), dtype=np.float64)
    except Exception:  # noqa: BLE001 - margins only make logits finer; whatever is wrong with them, there are answers
        return None
    margins = margins[:, 0] if margins.ndim == 2 and margins.shape[1] == 1 else margins
    readable = margins.ndim in (1, 2) and len(margins) == len(frame) and bool(np.isfinite(margins).all())
    return margins if readable else None


def _refuse_class_numbers(asker: Asker, answer: np.ndarray, margins: np.ndarray | None) -> None:
    """A booster that answers with the number of a class would be taken for a regressor; its margins give it away."""
    if answer.ndim == 1 and not asker.is_regressor and margins is not None and margins.ndim == 2:
        raise BlackBoxError(
            f"the model answers with the number of one of {margins.shape[1]} classes; train it to give probabilities "
            '(objective "multi:softprob"), or pass a function that gives them'
        )


def _classes_box(
    asker: Asker, answer: np.ndarray, margins: np.ndarray | None, reads: Reads, output: Output
) -> BlackBox:
    """A black box with an output for each of several classes."""
    n = answer.shape[1]
    classes = list(range(n)) if asker.classes is None else asker.classes
    if reads == "logits":
        return BlackBox("probability" if output == "probability" else "centred", "logits", classes, n_classes=n)
    exact = (
        margins is not None
        and margins.shape == answer[: len(margins)].shape
        and bool(np.abs(softmax(margins) - answer[: len(margins)]).max() <= MARGIN_TOLERANCE)
    )
    clipped = float(((answer < CLIP) | (answer > 1 - CLIP)).mean())
    if output == "probability" or (output == "auto" and not exact and clipped > MAX_CLIPPED):
        return BlackBox("probability", "probabilities", classes, n_classes=n)
    if exact:
        return BlackBox("centred", "margins", classes, n_classes=n)
    return BlackBox("centred", "probabilities", classes, clipped, n_classes=n)


def _check_probabilities(answer: np.ndarray, frame: pd.DataFrame, reads: Reads) -> None:
    outside: np.ndarray = np.any((answer < -1e-6) | (answer > 1 + 1e-6), axis=1)
    if reads == "probabilities" and outside.any():
        raise BlackBoxError(f"the black box gave a probability outside [0, 1] for {_name_rows(outside, frame)}")


def _probability_box(asker: Asker, probability: np.ndarray, margin: np.ndarray | None, output: Output) -> BlackBox:
    exact = margin is not None and _are_logits(margin, probability[: len(margin)])
    clipped = float(((probability < CLIP) | (probability > 1 - CLIP)).mean())
    if output == "probability" or (output == "auto" and not exact and clipped > MAX_CLIPPED):
        return BlackBox("probability", "probabilities", asker.classes)
    if exact:
        return BlackBox("logit", "margins", asker.classes)
    return BlackBox("logit", "probabilities", asker.classes, clipped)


def _what_it_reads(answer: np.ndarray, asker: Asker, margin: np.ndarray | None, output: Output) -> Reads:
    """Values, probabilities or logits, judged by the shape and sums of the first answer."""
    if answer.ndim == 2 and answer.shape[1] > 1:
        return _what_columns_mean(answer, asker, output)
    if asker.gives_probabilities:
        raise BlackBoxError(
            f"the model knows only one class ({asker.classes}): there is nothing to explain; "
            "fit it on a target with two classes"
        )
    if asker.is_regressor:
        if output != "auto":
            raise BlackBoxError(f'output="{output}" needs class probabilities, but the model only predicts values')
        return "values"
    column = _first_column(answer)
    # A booster from its native file: only its margins tell a classifier from a regressor.
    if margin is not None and _are_logits(margin, column[: len(margin)]):
        return "probabilities"
    if output == "auto":
        return "values"
    return "probabilities" if (column >= 0).all() and (column <= 1).all() else "logits"


def _what_columns_mean(answer: np.ndarray, asker: Asker, output: Output) -> Reads:
    """The same for an answer of several columns: those of classes, or none that can be explained."""
    columns = answer.shape[1]
    if asker.is_regressor:
        raise BlackBoxError(f"the model gives {columns} outputs a row; pass a function that gives one")
    finite = answer[np.isfinite(answer).all(axis=1)]
    sums_to_one = np.allclose(finite.sum(axis=1), 1, atol=1e-3) and bool((finite >= -1e-6).all())
    if asker.gives_probabilities or sums_to_one:
        return "probabilities"
    if asker.two_are_logits or output != "auto":
        return "logits"
    raise BlackBoxError(
        f"the model gives {columns} outputs a row, which do not sum to one; pass a function that gives one, or say "
        f'output="logit" if they are the logits of {columns} classes'
    )


def _are_logits(margin: np.ndarray, probability: np.ndarray) -> bool:
    return bool(np.abs(sigmoid(margin) - probability).max() <= MARGIN_TOLERANCE)


def _probability(answer: np.ndarray, frame: pd.DataFrame) -> np.ndarray:
    """(rows,) probability of the second class."""
    column = answer[:, 1] if answer.ndim == 2 and answer.shape[1] == 2 else answer
    probability = _one_a_row(column, frame)
    outside = (probability < -1e-6) | (probability > 1 + 1e-6)
    if outside.any():
        raise BlackBoxError(
            f"the black box gave a probability outside [0, 1] for {_name_rows(outside, frame)}: "
            f"{probability[outside][0]:.6g}"
        )
    return np.clip(probability, 0.0, 1.0)


def _logit_column(answer: np.ndarray) -> np.ndarray:
    return answer[:, 1] - answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 2 else answer


def _first_column(answer: np.ndarray) -> np.ndarray:
    return answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer


def _one_a_row(answer: np.ndarray, frame: pd.DataFrame) -> np.ndarray:
    """Check that there is one finite number a row."""
    column = _first_column(answer)
    if column.shape != (len(frame),):
        raise _wrong_shape(answer, frame)
    bad = ~np.isfinite(column)
    if bad.any():
        raise BlackBoxError(f"the black box answered with NaN or infinity for {_name_rows(bad, frame)}")
    return column


def _wrong_shape(answer: np.ndarray, frame: pd.DataFrame) -> BlackBoxError:
    return BlackBoxError(
        f"the black box was asked about {len(frame)} rows and answered with shape {answer.shape}; "
        "one number a row is expected"
    )


def _ask(ask: Ask, frame: pd.DataFrame) -> np.ndarray:
    """The answer in float64: one or more numbers a row."""
    try:
        answer = ask(frame)
    except NotFittedError as error:
        raise BlackBoxError(f"the model was never fitted; call its fit first ({error})") from error
    except Exception as error:  # the model is the user's code: whatever it raises is reported with its row
        row = _first_failing_row(ask, frame)
        raise BlackBoxError(f"the black box raised {type(error).__name__} on {row}: {error}") from error
    if answer.ndim not in (1, 2) or len(answer) != len(frame):
        raise _wrong_shape(answer, frame)
    try:
        return answer.astype(np.float64)
    except (TypeError, ValueError):
        first = answer.ravel()[:1].tolist()[0]
        raise BlackBoxError(
            f"the black box answers with {first!r}, not with numbers; pass a function that gives probabilities"
        ) from None


def _first_failing_row(ask: Ask, frame: pd.DataFrame) -> str:
    """Halve the rows until one is left that fails by itself; names all rows where none does."""
    while len(frame) > 1:
        half = len(frame) // 2
        for part in (frame.iloc[:half], frame.iloc[half:]):
            try:
                ask(part)
            except Exception:  # noqa: BLE001 - looking for the row, whatever the error
                frame = part
                break
        else:
            return f"these {len(frame)} rows together, though not on either half of them"
    return f"row {frame.index.tolist()[0]!r}"


def _name_rows(bad: np.ndarray, frame: pd.DataFrame, most: int = 5) -> str:
    """Their labels, each once: moves of one row share its label."""
    labels = list(dict.fromkeys(frame.index[bad].tolist()))
    shown = ", ".join(repr(label) for label in labels[:most])
    more = len(labels) - most
    return f"row{'s' if len(labels) > 1 else ''} {shown}" + (f" and {more} more" if more > 0 else "")


def clipped_logit(probability: np.ndarray) -> np.ndarray:
    """log(p / (1 − p)) of probabilities kept at least `CLIP` from 0 and 1."""
    probability = np.clip(probability, CLIP, 1 - CLIP)
    return np.log(probability / (1 - probability))


def sigmoid(logit: np.ndarray) -> np.ndarray:
    """The probability of a logit, without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * np.asarray(logit, dtype=np.float64)))


def centred(numbers: np.ndarray) -> np.ndarray:
    """Each row less its mean."""
    return numbers - numbers.mean(axis=1, keepdims=True)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of the classes, from their logits: (rows, classes)."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)
