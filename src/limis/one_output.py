"""What explains one output: rows, a local model, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from limis.check import ChangeBound
from limis.curves.intervals import Asked, CurveIntervals
from limis.curves.model import CurveFits, CurveModel
from limis.metrics import nse, skill_on_changes
from limis.progress import progress
from limis.rows import TrainingRows
from limis.training.measuring import MeasuringRows
from limis.trust import Trust, learn_trust
from limis.walk import GlobalFit, LocalFits, LocalModel, fit_locally

MIN_MEASURING = 2


@dataclass(eq=False)
class OneOutput:
    """What explains one output: the only one, or that of one of several classes."""

    training: TrainingRows
    global_fit: GlobalFit
    local_model: LocalModel
    bound: ChangeBound | None = None
    nse: float | None = None
    skills: dict[str, float] = field(default_factory=dict)  # on changes, by range of law A
    trust: Trust | None = None  # of curves

    def fits(self, values: np.ndarray, memory_limit: float, show: bool = False) -> LocalFits:
        """The surrogates of rows, in blocks that fit into ``memory_limit`` GiB."""
        found = fit_locally(self.training, self.local_model, self.global_fit, values, memory_limit)
        if not show:  # even a bar that is not shown takes a tenth of a row's time
            return LocalFits.join(list(found))
        blocks = []
        with progress(len(values), "explaining", enabled=True) as bar:
            for block in found:
                blocks.append(block)
                bar.update(len(block.levels))
        return LocalFits.join(blocks)

    def measure(
        self,
        measuring: MeasuringRows,
        memory_limit: float,
        rng: np.random.Generator,
        fitted: list[tuple[CurveFits, MeasuringRows]] | None = None,
    ) -> None:
        """Skill by range, NSE and the bound on the error on changes, on rows that chose nothing.

        fitted : the surrogates of the measuring rows, in parts, where they are training rows: from fits without them.
        """
        training = self.training
        can_be_asked = training.black_box.can_be_asked
        if len(measuring) < MIN_MEASURING:
            self.bound = ChangeBound.unknown(training.unit) if can_be_asked else None
            return
        parts: list[tuple[LocalFits, MeasuringRows]] = [*(fitted or [])]
        if fitted is None:
            parts = [(self.fits(measuring.rows.values, memory_limit), measuring)]
        said = np.concatenate([fits.predictions() for fits, _ in parts])
        known = np.concatenate([part.rows.outputs for _, part in parts])
        self.nse = nse(known, said) if np.ptp(known) > 0 else float("nan")
        for name in measuring.by_range:
            asked = [(fits, part.by_range[name].asked) for fits, part in parts]
            changes = np.concatenate([one.changes for _, one in asked if one is not None])
            if np.any(changes):
                foreseen = [fits.changes(one.rows, one.moved(training.table)) for fits, one in asked if one is not None]
                self.skills[name] = skill_on_changes(changes, np.concatenate(foreseen))
        if not can_be_asked:
            return
        if isinstance(self.local_model, CurveModel):
            known_changes = [(fits, _all_asked(part, training)) for fits, part in parts if isinstance(fits, CurveFits)]
            self.local_model.intervals.learned = CurveIntervals.learn(known_changes, training.unit, rng)
        promised = [(fits, part.by_range.get(measuring.promised_range, part.rows)) for fits, part in parts]
        self.bound = ChangeBound.learn(
            training.table, promised, training.unit, rng, measuring.promised_range, fitted is not None
        )
        self.trust = learn_trust(parts, training, training.unit, rng)


def _all_asked(measuring: MeasuringRows, training: TrainingRows) -> list[Asked]:
    """All changes that the black box was asked about, with its answers."""
    known = [part.asked for part in measuring.by_range.values() if part.asked is not None]
    return [(one.rows, one.moved(training.table), one.changes) for one in known]
