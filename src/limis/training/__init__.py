"""Stage 2: training the weight estimator, and choosing what is left open, on probe rows."""

from limis.training.choose import Choice, judge
from limis.training.measuring import MeasuringRows
from limis.training.objectives import OBJECTIVES
from limis.training.plans import PLANS, TOWERS_PLAN, paper_baseline
from limis.training.probes import AnsweredRows, ProbeRows, split_probes
from limis.training.terms import ChangeError, ProbeFits, RowError, SelectedShare, Stability
from limis.training.trainer import TrainingLog, TrainingPlan, train

__all__ = [
    "OBJECTIVES",
    "PLANS",
    "TOWERS_PLAN",
    "AnsweredRows",
    "ChangeError",
    "Choice",
    "MeasuringRows",
    "ProbeFits",
    "ProbeRows",
    "RowError",
    "SelectedShare",
    "Stability",
    "TrainingLog",
    "TrainingPlan",
    "judge",
    "paper_baseline",
    "split_probes",
    "train",
]
