"""Other ways to explain, behind the explainer's interface, to be held against it."""

from limis.peers.simple import GlobalModel, LocalMean

__all__ = ["GlobalModel", "LocalMean"]
