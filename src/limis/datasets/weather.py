"""Rain in Australia: will it rain tomorrow? Read from a folder, since the data may not be passed on."""

import io
import os

import pandas as pd

from limis.datasets.base import Dataset
from limis.datasets.files import RawFile, read_raw

__all__ = ["load_weather"]

# The date and the place, an amount that gives the label away, and columns that are missing almost half of the time.
DROPPED = ["Date", "Location", "RISK_MM", "Evaporation", "Sunshine", "Cloud9am", "Cloud3pm"]
FILE = RawFile(
    "weather/weatherAUS.csv",
    ("a4f2b071196fef2a06849899187ff91dbcb097baf573e49391f0b75692fecb2b",),
    by_hand='get weatherAUS.csv of "Rain in Australia" from Kaggle '
    "(https://www.kaggle.com/datasets/jsphyg/weather-dataset-rattle-package, the version with 142,193 rows and the "
    "column RISK_MM) and save it under that name",
)


def load_weather(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load the weather of Australian stations: 112,925 days, with 16 columns each.

    Columns have their original names.

    Parameters
    ----------
    folder : path, default=None
        Holds ``weather/weatherAUS.csv`` or the same with ``.gz``; `data_folder` where not given.

    Returns
    -------
    Dataset
        The target is "No" or "Yes": whether it rains the day after.

    Raises
    ------
    InputError
        If the file is not there or is another one. It may not be passed on, and is never downloaded.

    Notes
    -----
    Of 142,193 days those are left on which nothing is missing, after leaving out the date, the place, ``RISK_MM``,
    which gives the label away, and four columns that are missing almost half of the time: ``Evaporation``,
    ``Sunshine``, ``Cloud9am`` and ``Cloud3pm``. Rows and labels are then as many as in the paper. One-hot encoding
    gives 62 columns, two of them for ``RainToday``; the paper has 61, one of them for it.
    """
    frame = pd.read_csv(io.BytesIO(read_raw(FILE, folder))).drop(columns=DROPPED).dropna().reset_index(drop=True)
    target = frame.pop("RainTomorrow")
    return Dataset(
        name="weather",
        frame=frame,
        target=target,
        task="classification",
        description="Days at Australian weather stations: does it rain the day after?",
        citation="Commonwealth of Australia, Bureau of Meteorology. Observations of daily weather, 2007 to 2017.",
        licence="copyright Commonwealth of Australia, Bureau of Meteorology",
    )
