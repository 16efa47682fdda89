"""Explanations as matplotlib drawings."""

from limis.plots.contributions import plot_contributions
from limis.plots.subgroups import plot_subgroups

__all__ = ["plot_contributions", "plot_subgroups"]
