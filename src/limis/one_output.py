"""What explains one output: rows, a local model, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from limis.check import ChangeBound
from limis.curves.intervals import CurveIntervals
from limis.curves.model import CurveFits, CurveModel
from limis.progress import progress
from limis.rows import TrainingRows
from limis.training.choose import judge
from limis.training.measuring import MeasuringRows
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

    def measure(self, measuring: MeasuringRows, memory_limit: float, rng: np.random.Generator) -> None:
        """Skill by range, NSE and the bound on the error on changes, on rows that chose nothing."""
        training = self.training
        can_be_asked = training.black_box.can_be_asked
        if len(measuring) < MIN_MEASURING:
            self.bound = ChangeBound.unknown(training.unit) if can_be_asked else None
            return
        fits = self.fits(measuring.rows.values, memory_limit)
        self.nse = judge(training.table, fits, measuring.rows)["nse"]
        found = {name: judge(training.table, fits, part)["skill"] for name, part in measuring.by_range.items()}
        self.skills = {name: skill for name, skill in found.items() if skill is not None}
        if can_be_asked and isinstance(self.local_model, CurveModel) and isinstance(fits, CurveFits):
            known = [part.asked for part in measuring.by_range.values() if part.asked is not None]
            asked = [(one.rows, one.moved(training.table), one.changes) for one in known]
            self.local_model.intervals.learned = CurveIntervals.learn(fits, asked, training.unit, rng)
        if can_be_asked:
            promised = measuring.promised
            self.bound = ChangeBound.learn(training.table, fits, promised, training.unit, rng, measuring.promised_range)
