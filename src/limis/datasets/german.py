"""German Credit: is a person who asks a bank for money a good or a bad risk."""

import io
import os

import pandas as pd

from limis.datasets.base import Dataset
from limis.datasets.files import RawFile, read_raw

__all__ = ["load_german"]

FILE = RawFile(
    "german/german.data",
    ("e2bc10785808eeb5e30462f0805edb73a672f295bc671dec0bca6e2fb5c8e1ca",),
    url="https://archive.ics.uci.edu/static/public/144/statlog+german+credit+data.zip",
    archives=("german/statlog+german+credit+data.zip",),
)
CITATION = (
    "Hofmann, H. (1994). Statlog (German Credit Data) [Dataset]. UCI Machine Learning Repository. "
    "https://doi.org/10.24432/C5NC77"
)
COLUMNS = [
    "checking_status",
    "duration",
    "credit_history",
    "purpose",
    "amount",
    "savings",
    "employment",
    "installment_rate",
    "personal_status_sex",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_installments",
    "housing",
    "existing_credits",
    "job",
    "people_liable",
    "telephone",
    "foreign_worker",
]
TARGET = "risk"
RISKS = {1: "good", 2: "bad"}
# UCI's code table in fewer words. Codes that no row has (A47, A95) are left out.
WORDS = {
    "checking_status": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more",
        "A14": "no account",
    },
    "credit_history": {
        "A30": "no credits or all paid back",
        "A31": "all at this bank paid back",
        "A32": "paid back so far",
        "A33": "delays in the past",
        "A34": "critical or credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture or equipment",
        "A43": "radio or television",
        "A44": "appliances",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employment": {
        "A71": "unemployed",
        "A72": "below 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "personal_status_sex": {
        "A91": "male divorced or separated",
        "A92": "female not single",
        "A93": "male single",
        "A94": "male married or widowed",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "property": {
        "A121": "real estate",
        "A122": "savings agreement or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "other_installments": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "free"},
    "job": {
        "A171": "unemployed or unskilled non-resident",
        "A172": "unskilled resident",
        "A173": "skilled",
        "A174": "management or highly qualified",
    },
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
}


def load_german(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load the German Credit data: 1,000 people who asked a bank for a credit, with 20 columns each.

    Columns have no names in the file. Seven are numbers: ``duration`` (months), ``amount`` (DM), ``installment_rate``
    and ``residence_since`` (from 1 to 4), ``age``, ``existing_credits`` (at this bank) and ``people_liable`` (whom the
    person has to provide for). The other 13 are categories, for whose codes short words stand here.

    Parameters
    ----------
    folder : path, default=None
        Holds ``german/german.data``; `data_folder` where not given.

    Returns
    -------
    Dataset
        The target is "good" or "bad": what kind of risk the person is.

    Raises
    ------
    InputError
        If the file is not there and cannot be downloaded, or is another one.

    Notes
    -----
    It is not in the paper.

    The words are those of UCI's code table, as in most work on this data. By Grömping, U. (2019), South German Credit
    Data: Correcting a Widely Used Data Set, that table names the wrong categories in ``checking_status``,
    ``credit_history``, ``purpose``, ``savings``, ``personal_status_sex``, ``property``, ``housing`` and
    ``foreign_worker``. The categories themselves are sound, so methods can be compared on them; do not draw conclusions
    about people from their names.

    Cite as: Hofmann, H. (1994). Statlog (German Credit Data) [Dataset]. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5NC77. Published under CC BY 4.0.
    """
    # One line ends in a blank, which would be a column of its own behind a plain separator.
    raw = pd.read_csv(io.BytesIO(read_raw(FILE, folder)), sep=r"\s+", header=None, names=[*COLUMNS, TARGET])
    frame = raw.assign(**{column: raw[column].map(words) for column, words in WORDS.items()})
    target = frame.pop(TARGET).map(RISKS)
    return Dataset(
        name="german",
        frame=frame,
        target=target,
        task="classification",
        description="People who asked a German bank for a credit: is this one a good or a bad risk?",
        citation=CITATION,
        licence="CC BY 4.0",
    )
