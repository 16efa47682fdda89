"""The numbers that judge explanations, on plain arrays.

f is the black box, g the local model of a row. A number that is not defined (the efficiency
for a black box that always says the same, say) is an :class:`~limis.errors.InputError` that
says why, never a silent NaN.
"""

from limis.metrics.fidelity import (
    apr,
    lmae,
    mae,
    neighbourhood_lmae,
    neighbourhood_mae,
    nse,
    skill_on_changes,
)
from limis.metrics.truth import awd, awd_nonzero, awd_norm, awd_positive, selection_auc

__all__ = [
    "apr",
    "awd",
    "awd_nonzero",
    "awd_norm",
    "awd_positive",
    "lmae",
    "mae",
    "neighbourhood_lmae",
    "neighbourhood_mae",
    "nse",
    "selection_auc",
    "skill_on_changes",
]
