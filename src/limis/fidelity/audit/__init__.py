"""Auditing explanations of any kind by questions that no part of fitting them drew."""

from limis.fidelity.audit.auditing import audit, exam_of, jittered, judged, reference_rows
from limis.fidelity.audit.result import Audit

__all__ = ["Audit", "audit", "exam_of", "jittered", "judged", "reference_rows"]
