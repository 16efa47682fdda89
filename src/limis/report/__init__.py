"""Explanations as HTML: cards for a notebook, a page for a file."""

from limis.report.files import write_text
from limis.report.render import cards, page

__all__ = ["cards", "page", "write_text"]
