"""Bike Sharing: how many bikes are rented in an hour."""

import io
import os

import pandas as pd

from limis.datasets.base import Dataset
from limis.datasets.files import RawFile, read_raw

__all__ = ["load_bike"]

# A running number, the date, and two counts whose sum is the target.
DROPPED = ["instant", "dteday", "casual", "registered"]
FILE = RawFile(
    "bike/hour.csv",
    ("e03de4ee4ef4dc376ac6e04bf829673c6269e8eba5c60fa121640fa2f829504f",),
    url="https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip",
    archives=("bike/bike+sharing+dataset.zip",),
)
CITATION = (
    "Fanaee-T, H. (2013). Bike Sharing [Dataset]. UCI Machine Learning Repository. https://doi.org/10.24432/C5W894"
)


def load_bike(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load the Bike Sharing data: 17,379 hours of 2011 and 2012 in Washington, D.C., with 12 columns each.

    Columns have their original names, and all are numbers:

    - ``season`` (from 1, which begins in December, to 4), ``yr`` (0 is 2011), ``mnth``, ``hr`` and ``weekday`` (0 is
      Sunday);
    - ``holiday`` and ``workingday``, which are 0 or 1, and ``weathersit``, from 1 (clear) to 4 (heavy rain or snow);
    - ``temp``, ``atemp`` (as it feels), ``hum`` and ``windspeed``, scaled by UCI to between 0 and 1.

    Parameters
    ----------
    folder : path, default=None
        Holds ``bike/hour.csv`` or the same with ``.gz``; `data_folder` where not given.

    Returns
    -------
    Dataset
        The target is how many bikes were rented in the hour.

    Raises
    ------
    InputError
        If the file is not there and cannot be downloaded, or is another one.

    Notes
    -----
    It is not in the paper. The running number and the date are left out, and so are ``casual`` and ``registered``,
    whose sum is the target.

    Cite as: Fanaee-T, H. (2013). Bike Sharing [Dataset]. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5W894. Published under CC BY 4.0.
    """
    frame = pd.read_csv(io.BytesIO(read_raw(FILE, folder))).drop(columns=DROPPED)
    target = frame.pop("cnt")
    return Dataset(
        name="bike",
        frame=frame,
        target=target,
        task="regression",
        description="Hours of 2011 and 2012 in Washington, D.C.: how many bikes are rented in this one?",
        citation=CITATION,
        licence="CC BY 4.0",
    )
