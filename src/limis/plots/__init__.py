"""Explanations as matplotlib drawings."""

from limis.plots.contributions import plot_contributions

__all__ = ["plot_contributions"]
