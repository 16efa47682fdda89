"""The weight estimator h: how much each training row should count for the row to explain."""

from limis.weighting.base import Neighbourhood, Weighting, sample_neighbourhood
from limis.weighting.dense import DenseWeighting, FactoredWeighting
from limis.weighting.factored import FactoredEstimator
from limis.weighting.forest import ForestWeighting
from limis.weighting.learned import LearnedSlopes
from limis.weighting.pairwise import PairwiseEstimator, PairwiseWeighting
from limis.weighting.random import RandomWeighting
from limis.weighting.retrieved import RetrievedEstimator, RetrievedWeighting
from limis.weighting.shared import SharedEstimator, SharedWeighting

__all__ = [
    "DenseWeighting",
    "FactoredEstimator",
    "FactoredWeighting",
    "ForestWeighting",
    "LearnedSlopes",
    "Neighbourhood",
    "PairwiseEstimator",
    "PairwiseWeighting",
    "RandomWeighting",
    "RetrievedEstimator",
    "RetrievedWeighting",
    "SharedEstimator",
    "SharedWeighting",
    "Weighting",
    "sample_neighbourhood",
]
