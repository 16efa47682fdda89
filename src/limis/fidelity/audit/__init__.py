"""Auditing explanations of any kind by questions that no part of fitting them drew."""

from limis.fidelity.audit.auditing import audit, jittered, reference_rows
from limis.fidelity.audit.result import Audit

__all__ = ["Audit", "audit", "jittered", "reference_rows"]
