"""The experiments behind every figure: each one a name for ``limis reproduce``."""

from limis.experiments.cache import Cache
from limis.experiments.experiment import Experiment
from limis.experiments.page import write_page
from limis.experiments.pool import make_missing
from limis.experiments.protocol import Scope
from limis.experiments.registry import EXPERIMENTS, GROUPS, named
from limis.experiments.results import finish

__all__ = ["EXPERIMENTS", "GROUPS", "Cache", "Experiment", "Scope", "finish", "make_missing", "named", "write_page"]
