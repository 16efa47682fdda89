"""Stage 2: training the weight estimator, and choosing what is left open, on probe rows."""

from limis.training.choose import Choice, choose_forest_weighting
from limis.training.probes import ProbeRows, split_probes
from limis.training.trainer import TrainingLog, TrainingPlan, train_pairwise

__all__ = [
    "Choice",
    "ProbeRows",
    "TrainingLog",
    "TrainingPlan",
    "choose_forest_weighting",
    "split_probes",
    "train_pairwise",
]
