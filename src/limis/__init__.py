"""Explains the predictions of any tabular model, one row at a time, and says how far to trust each explanation."""

__version__ = "0.1.0"

from limis.errors import BlackBoxError, InputError, LimisError, MissingExtraError, StoreError
from limis.explainer import LimisExplainer
from limis.explanation import Explanation, Explanations
from limis.fidelity.audit import Audit, audit
from limis.store import load

__all__ = [
    "Audit",
    "BlackBoxError",
    "Explanation",
    "Explanations",
    "InputError",
    "LimisError",
    "LimisExplainer",
    "MissingExtraError",
    "StoreError",
    "__version__",
    "audit",
    "load",
]
