"""Data to try limis on: Adult, which ships with it, others from a folder, and synthetic data with known truth."""

from limis.datasets.adult import load_adult
from limis.datasets.base import Dataset
from limis.datasets.piecewise import PiecewiseFunction, make_piecewise
from limis.datasets.splits import split_rows
from limis.datasets.synthetic import SyntheticData, SyntheticFunction, make_synthetic
from limis.datasets.weather import data_folder, load_weather

__all__ = [
    "Dataset",
    "PiecewiseFunction",
    "SyntheticData",
    "SyntheticFunction",
    "data_folder",
    "load_adult",
    "load_weather",
    "make_piecewise",
    "make_synthetic",
    "split_rows",
]
