"""Other ways to explain, behind the explainer's interface, and one to suggest changes, to be held against it."""

from limis.function_fits import FunctionFits
from limis.peers.dice import Dice, DiceRows
from limis.peers.global_models import GlobalClassificationTree, GlobalLogistic, GlobalTree
from limis.peers.lime import Lime
from limis.peers.maple import Maple
from limis.peers.silo import Silo
from limis.peers.simple import GlobalModel, LocalMean

__all__ = [
    "Dice",
    "DiceRows",
    "FunctionFits",
    "GlobalClassificationTree",
    "GlobalLogistic",
    "GlobalModel",
    "GlobalTree",
    "Lime",
    "LocalMean",
    "Maple",
    "Silo",
]
