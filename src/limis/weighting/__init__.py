"""The weight estimator h: how much each training row should count for the row to explain."""

from limis.weighting.base import Neighbourhood, Weighting, sample_neighbourhood
from limis.weighting.forest import ForestWeighting
from limis.weighting.pairwise import PairwiseEstimator, PairwiseWeighting

__all__ = [
    "ForestWeighting",
    "Neighbourhood",
    "PairwiseEstimator",
    "PairwiseWeighting",
    "Weighting",
    "sample_neighbourhood",
]
