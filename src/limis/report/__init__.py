"""Explanations as HTML: cards for a notebook, a report for a file."""

from limis.report.files import write_text
from limis.report.render import cards, fragment, page, style, suggestion_cards

__all__ = ["cards", "fragment", "page", "style", "suggestion_cards", "write_text"]
