"""Data to try limis on: the paper's five real data sets (Adult ships with it), two more, and data with known truth."""

from limis.datasets.adult import load_adult
from limis.datasets.base import Dataset
from limis.datasets.bike import load_bike
from limis.datasets.blog import load_blog
from limis.datasets.checks import compare_with_paper, how_it_differs
from limis.datasets.facebook import load_facebook
from limis.datasets.files import data_folder
from limis.datasets.german import load_german
from limis.datasets.news import load_news
from limis.datasets.piecewise import PiecewiseFunction, make_piecewise
from limis.datasets.splits import split_rows
from limis.datasets.synthetic import SyntheticData, SyntheticFunction, make_synthetic
from limis.datasets.weather import load_weather

__all__ = [
    "Dataset",
    "PiecewiseFunction",
    "SyntheticData",
    "SyntheticFunction",
    "compare_with_paper",
    "data_folder",
    "how_it_differs",
    "load_adult",
    "load_bike",
    "load_blog",
    "load_facebook",
    "load_german",
    "load_news",
    "load_weather",
    "make_piecewise",
    "make_synthetic",
    "split_rows",
]
