"""Explanations in groups of rows: what carries weight for whom, and where local models or the black box do worse."""

from limis.subgroups.finding import subgroups
from limis.subgroups.measure import Measure
from limis.subgroups.result import Subgroups

__all__ = ["Measure", "Subgroups", "subgroups"]
