"""Data to try limis on: Adult, which ships with it, and synthetic data with known truth."""

from limis.datasets.adult import load_adult
from limis.datasets.base import Dataset
from limis.datasets.piecewise import PiecewiseFunction, make_piecewise
from limis.datasets.splits import split_rows
from limis.datasets.synthetic import SyntheticData, SyntheticFunction, make_synthetic

__all__ = [
    "Dataset",
    "PiecewiseFunction",
    "SyntheticData",
    "SyntheticFunction",
    "load_adult",
    "make_piecewise",
    "make_synthetic",
    "split_rows",
]
