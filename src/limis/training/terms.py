"""The reward as a sum of terms, each a loss a probe row: what the surrogate of that row should be good at.

A term is any callable from `ProbeFits` to losses (probes,), lower being better; the trainer adds up those it is given.
Outputs count in standard deviations, so that terms can be added. A term that should train by the gradient through the
ridge computes with torch operations. One with an attribute ``needs`` gets what that names: "changes" or "nudged".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch

from limis.errors import InputError


class Models(Protocol):
    """One surrogate a probe row."""

    def predict(self, features: torch.Tensor) -> torch.Tensor:
        """Each model at a row of its own: (probes,) from (probes, features)."""
        ...

    def foresee(self, features: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """What each model says of steps (probes, changes, features) away from its row: (probes, changes)."""
        ...


@dataclass
class LinearModels:
    """One linear model a probe row."""

    coefficients: torch.Tensor  # (probes, features)
    intercepts: torch.Tensor  # (probes,)

    def predict(self, features: torch.Tensor) -> torch.Tensor:
        """Each model at a row of its own: (probes,) from (probes, features)."""
        return self.intercepts + (self.coefficients * features).sum(dim=1)

    def foresee(self, features: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:  # noqa: ARG002 - the same anywhere
        """What each model says of steps (probes, changes, features) away from its row: (probes, changes)."""
        return (steps @ self.coefficients[:, :, None])[:, :, 0]


@dataclass
class Changes:
    """Where else the black box was asked, seen from each probe row: as many places for all, some of them unknown."""

    steps: torch.Tensor  # (probes, changes, features) from the row to the place
    answers: torch.Tensor  # (probes, changes) what the black box did on the way
    known: torch.Tensor  # (probes, changes) 1 or 0
    unit: float  # root mean square of all answers


@dataclass
class ProbeFits:
    """Some probe rows, the weights they gave to training rows, and the surrogates that came of them."""

    features: torch.Tensor  # (probes, features)
    targets: torch.Tensor  # (probes,) the black box's outputs
    weights: torch.Tensor  # (probes, rows), as selected or as probabilities; zeros for the global model
    models: Models
    feature_deviation: torch.Tensor  # (features,) over the training rows
    changes: Changes | None = None
    nudged: Models | None = None  # the surrogates of the same rows, slightly changed


Term = Callable[[ProbeFits], torch.Tensor]


def added_up(terms: Sequence[Term], fits: ProbeFits) -> torch.Tensor:
    """The sum of the terms, (probes,); an InputError names a term that says something else."""
    losses = []
    for term in terms:
        loss = term(fits)
        if not isinstance(loss, torch.Tensor) or loss.shape != fits.targets.shape:
            given = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
            name = getattr(term, "__name__", type(term).__name__)
            raise InputError(
                f"the reward {name} must give one loss a probe row, shape {tuple(fits.targets.shape)}, not {given}"
            )
        losses.append(loss)
    return torch.stack(losses).sum(dim=0)


@dataclass(frozen=True)
class RowError:
    """The paper's fidelity: |g − f| at the row, or its square, which looks more at the rows still far off."""

    price: float = 1.0
    squared: bool = False

    def __call__(self, fits: ProbeFits) -> torch.Tensor:
        """Error of each probe row."""
        return self.price * _size(fits.models.predict(fits.features) - fits.targets, self.squared)


@dataclass(frozen=True)
class ChangeError:
    """|Δg − Δf|, or its square, mean over the row's changes: what keeps coefficients from meaning nothing.

    It counts in root mean squares of Δf, since near changes are small beside the outputs: coefficients of zero cost
    about 1, and the square's mean over the probes is 1 − skill on changes.
    """

    price: float = 1.0
    squared: bool = False
    needs: ClassVar[str] = "changes"

    def __call__(self, fits: ProbeFits) -> torch.Tensor:
        """Error on changes of each probe row; 0 for a row without any."""
        assert fits.changes is not None
        changes = fits.changes
        foreseen = fits.models.foresee(fits.features, changes.steps)
        missed = _size((foreseen - changes.answers) / changes.unit, self.squared) * changes.known
        return self.price * missed.sum(dim=1) / changes.known.sum(dim=1).clamp(min=1)


@dataclass(frozen=True)
class SelectedShare:
    """The share of training rows selected, at a price of λ.

    For lists made by hand: the λ of a training plan, which validation may choose, needs no term.
    """

    price: float

    def __call__(self, fits: ProbeFits) -> torch.Tensor:
        """Price of each probe row's selection."""
        return self.price * fits.weights.mean(dim=1)


@dataclass(frozen=True)
class Stability:
    """How far the explanation changes with a small change of the row: Σ |Δ coefficient| × deviation of its feature."""

    price: float = 1.0
    needs: ClassVar[str] = "nudged"

    def __call__(self, fits: ProbeFits) -> torch.Tensor:
        """Instability of each probe row's surrogate."""
        assert fits.nudged is not None
        if not (isinstance(fits.models, LinearModels) and isinstance(fits.nudged, LinearModels)):
            raise InputError("Stability compares coefficients, which trees do not have; leave it out of the reward")
        apart = (fits.models.coefficients - fits.nudged.coefficients).abs()
        return self.price * (apart * fits.feature_deviation).sum(dim=1)


def _size(error: torch.Tensor, squared: bool) -> torch.Tensor:
    return error.square() if squared else error.abs()
