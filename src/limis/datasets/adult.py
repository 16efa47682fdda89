"""Adult Income: does a person earn more than 50,000 dollars a year."""

from importlib.resources import as_file, files
from typing import Literal

import pandas as pd

from limis.datasets.base import Dataset
from limis.errors import InputError

__all__ = ["load_adult"]

CITATION = (
    "Becker, B. and Kohavi, R. (1996). Adult [Dataset]. UCI Machine Learning Repository. "
    "https://doi.org/10.24432/C5XW20"
)


def load_adult(*, missing: Literal["category", "nan"] = "category") -> Dataset:
    """Return the Adult Income data, which ships with limis.

    48,842 people from the United States census of 1994, with 14 columns each. The first 32,561
    rows are the training part as first published, the others its test part.

    Parameters
    ----------
    missing : {"category", "nan"}, default="category"
        Unknown values stand as "?" in three columns: workclass, occupation and native-country.
        Keep them as a category of their own, or turn them into missing values.

    Returns
    -------
    Dataset
        The target is "<=50K" or ">50K".

    Notes
    -----
    Cite as: Becker, B. and Kohavi, R. (1996). Adult [Dataset]. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5XW20. Published under CC BY 4.0.

    Examples
    --------
    >>> adult = load_adult()
    >>> adult
    Dataset('adult': 48842 rows, 14 columns, classification)
    >>> adult.frame[["age", "workclass", "hours-per-week"]].head(2)
       age         workclass  hours-per-week
    0   39         State-gov              40
    1   50  Self-emp-not-inc              13
    >>> adult.target.value_counts().to_dict()
    {'<=50K': 37155, '>50K': 11687}
    """
    if missing not in ("category", "nan"):
        raise InputError(f'missing must be "category" or "nan", not {missing!r}')
    with as_file(files("limis.datasets") / "adult.csv.gz") as path:
        frame = pd.read_csv(path, keep_default_na=False, na_values=["?"] if missing == "nan" else [])
    target = frame.pop("income")
    return Dataset(
        name="adult",
        frame=frame,
        target=target,
        task="classification",
        description="People in the census of 1994: does this one earn more than 50,000 dollars?",
        citation=CITATION,
        licence="CC BY 4.0",
    )
