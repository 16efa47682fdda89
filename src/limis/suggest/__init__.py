"""Suggestions: what could change in a row for the black box to say something else, checked on the black box."""

from limis.suggest.result import Evidence, RowSuggestions, Suggestion, Suggestions
from limis.suggest.suggesting import suggest

__all__ = ["Evidence", "RowSuggestions", "Suggestion", "Suggestions", "suggest"]
