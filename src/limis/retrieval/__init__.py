"""Which training rows could matter for a row: a forest fitted to the black box's outputs, and its leaf index."""

from limis.retrieval.forest import Forest
from limis.retrieval.index import LeafIndex
from limis.retrieval.levels import LevelMeans
from limis.retrieval.retriever import Retriever

__all__ = ["Forest", "LeafIndex", "LevelMeans", "Retriever"]
