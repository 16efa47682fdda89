"""Rain in Australia: will it rain tomorrow? Read from a folder, since the data may not be passed on."""

import os
from pathlib import Path

import pandas as pd

from limis.datasets.base import Dataset
from limis.errors import InputError

__all__ = ["data_folder", "load_weather"]

# The date and the place, an amount that gives the label away, and columns that are missing almost half of the time.
DROPPED = ["Date", "Location", "RISK_MM", "Evaporation", "Sunshine", "Cloud9am", "Cloud3pm"]
FILE = "weather/weatherAUS.csv.gz"


def data_folder() -> Path:
    """Where data sets are that limis does not bring along: ``LIMIS_DATA``, else ``../shared/data``."""
    return Path(os.environ.get("LIMIS_DATA", "../shared/data"))


def load_weather(folder: Path | None = None) -> Dataset:
    """Load the weather of Australian stations, as the paper prepares it: rows with nothing missing.

    Parameters
    ----------
    folder : Path, default=None
        Holds ``weather/weatherAUS.csv.gz``; `data_folder` where not given.

    Returns
    -------
    Dataset
        The target is "No" or "Yes".

    Raises
    ------
    InputError
        If the file is not there.
    """
    path = (data_folder() if folder is None else folder) / FILE
    if not path.exists():
        raise InputError(f"{path} is not there; set LIMIS_DATA to the folder that holds {FILE}")
    frame = pd.read_csv(path).drop(columns=DROPPED).dropna().reset_index(drop=True)
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
