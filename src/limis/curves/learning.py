"""Learning who speaks: the weight estimator is trained on how well the selected rows foresee changes of other rows.

The reward is the paper's on another target: the fidelity of what the selected rows say, here to the black box's answers
to changes near and far. Every recorded row teaches, itself kept out of its own fit; probe rows say when to stop.
"weighted" takes the gradient through the weighted mean; "rloo" draws selections and follows the policy gradient, each
draw's reward against the mean of the others'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from limis.curves.weights import ResponseWeights

CurveObjective = Literal["weighted", "rloo"]
STEPS, RATE, DRAWS = 300, 0.1, 8
PATIENCE: dict[CurveObjective, int] = {"weighted": 30, "rloo": 60}  # steps without gain; drawn gradients are noisy
TINY_PRICE = -3.0  # softplus of it is where prices start
PRIOR = 5.0  # questions' worth of trust that the taught model gets in each unit


@dataclass
class Lessons:
    """Changes of some rows, what the black box did, and what the taught model and every candidate row say of them."""

    rows: np.ndarray  # (questions,) the row
    units: np.ndarray  # (questions,) the unit that changed
    changes: np.ndarray  # (questions,) what the black box's output changed by
    taught: np.ndarray  # (questions,) what the taught model's does
    said: np.ndarray  # (questions, candidates) what the black box did with the same change of each candidate
    said_taught: np.ndarray  # (questions, candidates) what the taught model does there
    worth: np.ndarray  # (questions,) how much its square counts: all ranges alike, and 1 is what nothing foresees
    proximity: np.ndarray  # (rows, candidates)
    apart: np.ndarray  # (rows, candidates, columns)

    def __len__(self) -> int:
        return len(self.changes)

    @classmethod
    def join(cls, parts: list[Lessons]) -> Lessons:
        """Those of other rows one after another; each range counts as much in all of them together."""
        if len(parts) == 1:
            return parts[0]
        most = max(part.proximity.shape[1] for part in parts)
        firsts = np.cumsum([0, *(len(part.proximity) for part in parts)])

        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(part, name) for part in parts])

        def wide(name: str) -> np.ndarray:
            return np.concatenate([_padded(getattr(part, name), most) for part in parts])

        return cls(
            np.concatenate([part.rows + first for part, first in zip(parts, firsts, strict=False)]),
            joined("units"),
            joined("changes"),
            joined("taught"),
            wide("said"),
            wide("said_taught"),
            joined("worth") / len(parts),
            wide("proximity"),
            wide("apart"),
        )

    def shares(self, weights: ResponseWeights) -> np.ndarray:
        """How much each candidate counts: (rows, candidates)."""
        if weights.kind == "none":
            return np.zeros_like(self.proximity)
        selected = weights.selected(self.proximity, self.apart @ weights.price)
        return selected / (weights.silence + selected.sum(axis=1, keepdims=True))

    def reliance(self, weights: ResponseWeights, n_units: int) -> np.ndarray:
        """How far the taught model should count in each unit, where the candidates are weighed so: (units,)."""
        own, beyond = self._parts(weights)
        return best_reliance(self.changes - own, beyond, self.worth, self.units, n_units)

    def skill(self, weights: ResponseWeights, reliance: np.ndarray) -> float:
        """Mean skill over the ranges, where the candidates are weighed so and the taught model counts so far."""
        own, beyond = self._parts(weights)
        missed = self.changes - own - reliance[self.units] * beyond
        return 1 - float((self.worth * missed**2).sum())

    def _parts(self, weights: ResponseWeights) -> tuple[np.ndarray, np.ndarray]:
        """What the rows that speak say of each question, and what the taught model says beyond them."""
        shares = self.shares(weights)[self.rows]
        own, taught = (np.einsum("qc,qc->q", part, shares) for part in (self.said, self.said_taught))
        return own, self.taught - taught


def _padded(array: np.ndarray, width: int) -> np.ndarray:
    """With zeros for candidates that are none."""
    return np.pad(array, [(0, 0), (0, width - array.shape[1]), (0, 0)][: array.ndim])


def best_reliance(
    left: np.ndarray, beyond: np.ndarray, worth: np.ndarray, units: np.ndarray, n_units: int
) -> np.ndarray:
    """For each unit the share of ``beyond``, from 0 to 1, that explains best what is left; 1 where nothing is known."""
    asked = np.bincount(units, minlength=n_units)
    both, square = (np.bincount(units, worth * beyond * other, n_units) for other in (left, beyond))
    prior = PRIOR / np.maximum(asked, 1) * square
    total = square + prior
    return np.clip(np.divide(both + prior, total, out=np.ones(n_units), where=total > 0), 0.0, 1.0)


@threadpool_limits.wrap(limits=1, user_api="blas")  # of such small products, threads wait longer than they work
def train(
    teaching: Lessons,
    checking: Lessons,
    start: ResponseWeights,
    n_units: int,
    seed: int,
    *,
    relies: bool = True,
    objective: CurveObjective = "weighted",
    steps: int = STEPS,
    rate: float = RATE,
    draws: int = DRAWS,
) -> ResponseWeights:
    """The estimator with the least loss on the rows that check; where it starts is among those.

    relies : whether the taught model counts, as far as it helps, beside the rows that speak.
    """
    rows, rng = _ByRow.of(teaching, n_units), np.random.default_rng(seed)
    raw = np.concatenate(
        [[start.bias, start.power, np.log(start.silence)], np.full(teaching.apart.shape[2], TINY_PRICE)]
    )
    adam = _Adam.of(raw, rate)

    def check(weights: ResponseWeights) -> float:
        """The loss where the rows that teach also say how far the taught model counts."""
        reliance = rows.reliance(weights) if relies else np.zeros(n_units)
        return 1 - checking.skill(weights, reliance)

    best, since = start, 0
    least = check(best)
    for step in range(1, steps + 1):
        chances = expit(rows.logits(raw))
        if objective == "weighted":
            of_selected, of_silence, _ = rows.gradients(chances * rows.known, raw[2], relies)
            of_logits = of_selected * rows.known * chances * (1 - chances)
        else:
            of_logits, of_silence = _policy_gradient(rows, chances, raw[2], relies, draws, rng)
        raw = adam.step(raw, rows.back(of_logits, of_silence, raw))
        if step % 5 == 0:
            found = ResponseWeights(raw[0], raw[1], np.logaddexp(0, raw[3:]), float(np.exp(raw[2])), start.n_candidates)
            missed = check(found)
            since += 5
            if missed < least:
                best, least, since = found, missed, 0
            if since >= PATIENCE[objective]:
                break
    return best


def _policy_gradient(
    rows: _ByRow, chances: np.ndarray, silence: float, relies: bool, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Of the logits by what drawn selections lose, each against the mean of the others; and of the silence itself."""
    drawn = [(rng.random(chances.shape, dtype=np.float32) < chances) * rows.known for _ in range(draws)]
    parts = [rows.gradients(selected, silence, relies) for selected in drawn]
    losses = np.stack([loss for _, _, loss in parts])  # (draws, rows)
    credit = losses - (losses.sum(axis=0) - losses) / max(draws - 1, 1)
    of_logits = np.zeros_like(chances)
    for selected, own in zip(drawn, credit, strict=True):
        of_logits += own[:, None] * (selected - chances) * rows.known / draws
    return of_logits, float(np.mean([of_silence for _, of_silence, _ in parts]))


class _Gradients(NamedTuple):
    of_selected: np.ndarray  # (rows, candidates)
    of_silence: float  # of its logarithm
    loss: np.ndarray  # (rows,)


@dataclass
class _ByRow:
    """Lessons in units of what changes, for which single precision will do: of each row as many questions as of any.

    Where a row has fewer the others are worth nothing. Parameters stand in one line: the bias, the power, the logarithm
    of the silence, and prices before they are made positive.
    """

    lessons: Lessons
    units: np.ndarray  # (rows, questions) the unit that changed; one more than there are where there is no question
    n_units: int
    changes: np.ndarray  # (rows, questions)
    taught: np.ndarray
    said: np.ndarray  # (rows, questions, candidates)
    said_taught: np.ndarray
    worth: np.ndarray  # (rows, questions)
    near: np.ndarray  # (rows, candidates) log of the proximity, relative to the nearest row's
    known: np.ndarray  # (rows, candidates) 1 where there is a candidate
    apart: np.ndarray  # (rows, candidates, columns)

    @classmethod
    def of(cls, lessons: Lessons, n_units: int) -> _ByRow:
        unit = float(np.sqrt(np.mean(lessons.changes**2))) or 1.0
        proximity, order = lessons.proximity, np.argsort(lessons.rows, kind="stable")
        counts = np.bincount(lessons.rows, minlength=len(proximity))
        place = np.empty(len(lessons), dtype=np.int64)
        place[order] = np.arange(len(lessons)) - np.repeat(np.cumsum(counts) - counts, counts)

        def by_row(numbers: np.ndarray) -> np.ndarray:
            whole = np.zeros((len(proximity), int(counts.max(initial=0)), *numbers.shape[1:]), dtype=np.float32)
            whole[lessons.rows, place] = numbers
            return whole

        units = np.full((len(proximity), int(counts.max(initial=0))), n_units)
        units[lessons.rows, place] = lessons.units

        nearest, known = np.maximum(proximity.max(axis=1, keepdims=True), 1e-300), proximity > 0
        near = np.log(np.where(known, proximity / nearest, 1.0))
        return cls(
            lessons,
            units,
            n_units,
            by_row(lessons.changes / unit),
            by_row(lessons.taught / unit),
            by_row(lessons.said / unit),
            by_row(lessons.said_taught / unit),
            by_row(lessons.worth * unit**2),
            near.astype(np.float32),
            known.astype(np.float32),
            lessons.apart.astype(np.float32),
        )

    def logits(self, raw: np.ndarray) -> np.ndarray:
        """(rows, candidates)."""
        found: np.ndarray = raw[0] + raw[1] * self.near - self.apart @ np.logaddexp(0, raw[3:]).astype(np.float32)
        return found

    def back(self, of_logits: np.ndarray, of_silence: float, raw: np.ndarray) -> np.ndarray:
        """The gradient of the parameters from that of the logits."""
        of_prices = -np.tensordot(of_logits, self.apart, axes=2) * expit(raw[3:])
        return np.concatenate([[of_logits.sum(), (of_logits * self.near).sum(), of_silence], of_prices])

    def reliance(self, weights: ResponseWeights) -> np.ndarray:
        """`Lessons.reliance`, in single precision and much faster."""
        shares = self.lessons.shares(weights).astype(np.float32)
        left, beyond = self.changes - _at(self.said, shares), self.taught - _at(self.said_taught, shares)
        return self._reliance(left, beyond)[: self.n_units]

    def _reliance(self, left: np.ndarray, beyond: np.ndarray) -> np.ndarray:
        known, told, worth = (part.ravel().astype(np.float64) for part in (left, beyond, self.worth))
        return best_reliance(known, told, worth, self.units.ravel(), self.n_units + 1)

    def gradients(self, selected: np.ndarray, silence: float, relies: bool) -> _Gradients:
        """Of the loss where candidates count as selected; selected : (rows, candidates), silence : its logarithm."""
        total = np.exp(silence) + selected.sum(axis=1, keepdims=True)
        shares = (selected / total).astype(np.float32)
        left, reliance = self.changes - _at(self.said, shares), np.zeros((1, 1), dtype=np.float32)
        if relies:
            beyond = self.taught - _at(self.said_taught, shares)
            # The best of all for these shares, so its own gradient is zero.
            reliance = self._reliance(left, beyond).astype(np.float32)[self.units]
            left = left - reliance * beyond
        pull = 2 * self.worth * left
        of_shares = _over(-pull, self.said)
        if relies:
            of_shares += _over(pull * reliance, self.said_taught)
        whole = (of_shares * shares).sum(axis=1, keepdims=True)
        of_silence = -float((whole / total).sum() * np.exp(silence))
        return _Gradients((of_shares - whole) / total, of_silence, (self.worth * left**2).sum(axis=1))


def _at(said: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(rows, questions, candidates), (rows, candidates) → (rows, questions)."""
    found: np.ndarray = np.matmul(said, shares[:, :, None])[:, :, 0]
    return found


def _over(numbers: np.ndarray, said: np.ndarray) -> np.ndarray:
    """(rows, questions), (rows, questions, candidates) → (rows, candidates)."""
    found: np.ndarray = np.matmul(numbers[:, None, :], said)[:, 0]
    return found


@dataclass
class _Adam:
    """Steps of the size of the rate, in the direction of what gradients agree on."""

    rate: float
    mean: np.ndarray
    square: np.ndarray
    steps: int = 0

    @classmethod
    def of(cls, parameters: np.ndarray, rate: float) -> _Adam:
        return cls(rate, np.zeros_like(parameters), np.zeros_like(parameters))

    def step(self, parameters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The parameters after one step."""
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean, square = self.mean / (1 - 0.9**self.steps), self.square / (1 - 0.999**self.steps)
        moved: np.ndarray = parameters - self.rate * mean / (np.sqrt(square) + 1e-8)
        return moved
