"""The experiments behind every figure: each one a name for ``limis reproduce``."""

from limis.experiments.registry import EXPERIMENTS, Experiment

__all__ = ["EXPERIMENTS", "Experiment"]
