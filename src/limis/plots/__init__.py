"""Explanations as matplotlib drawings."""

from limis.plots.coefficients import plot_coefficients
from limis.plots.contributions import plot_contributions
from limis.plots.curves import plot_curves
from limis.plots.fidelity import plot_fidelity
from limis.plots.kinds import draw_many, draw_one
from limis.plots.learning import plot_learning, plot_penalties
from limis.plots.overview import plot_global
from limis.plots.subgroups import plot_subgroups
from limis.plots.training_rows import plot_training_rows
from limis.plots.tree import plot_tree
from limis.plots.weights import plot_weights

__all__ = [
    "draw_many",
    "draw_one",
    "plot_coefficients",
    "plot_contributions",
    "plot_curves",
    "plot_fidelity",
    "plot_global",
    "plot_learning",
    "plot_penalties",
    "plot_subgroups",
    "plot_training_rows",
    "plot_tree",
    "plot_weights",
]
