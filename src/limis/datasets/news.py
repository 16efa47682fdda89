"""Online News Popularity: how often is an article shared."""

import io
import os

import pandas as pd

from limis.datasets.base import Dataset
from limis.datasets.files import RawFile, read_raw, whole_numbers

__all__ = ["load_news"]

FILE = RawFile(
    "news/OnlineNewsPopularity.csv",
    (
        # Of a copy in which some cells of 410 rows are rounded at about the ninth decimal, and of UCI's own file.
        "4d5c37877e043ea292ab1cd7ba8adc8a0a4ef6b28b33626b84c7ef5c7cba4577",
        "b66d9088632308cc27fa35af847650d174a5a50503987c4e511de94a99d1c218",
    ),
    url="https://archive.ics.uci.edu/static/public/332/online+news+popularity.zip",
    archives=("news/online+news+popularity.zip",),
)
CITATION = (
    "Fernandes, K., Vinagre, P., Cortez, P. and Sernadela, P. (2015). Online News Popularity [Dataset]. "
    "UCI Machine Learning Repository. https://doi.org/10.24432/C5NS3V"
)


def load_news(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load the Online News Popularity data: 39,644 articles of Mashable, with 59 columns each.

    Columns have the names that UCI gives them, without the blank in front: how long title and text are, links,
    pictures, the channel, how often articles with the same keywords were shared, the weekday, topics and sentiment.
    The address of the article is left out.

    Parameters
    ----------
    folder : path, default=None
        Holds ``news/OnlineNewsPopularity.csv``; `data_folder` where not given.

    Returns
    -------
    Dataset
        The target is how often the article was shared.

    Raises
    ------
    InputError
        If the file is not there and cannot be downloaded, or is another one.

    Notes
    -----
    59 is the paper's number of dimensions. UCI calls one of these columns not predictive: ``timedelta``, the days
    from publication until the data was collected. A copy in which some cells of 410 rows are rounded at about the
    ninth decimal is taken as well as UCI's own file.

    Cite as: Fernandes, K., Vinagre, P., Cortez, P. and Sernadela, P. (2015). Online News Popularity [Dataset]. UCI
    Machine Learning Repository. https://doi.org/10.24432/C5NS3V. Published under CC BY 4.0.
    """
    raw = pd.read_csv(io.BytesIO(read_raw(FILE, folder)), skipinitialspace=True)
    frame = whole_numbers(raw.drop(columns="url"))
    target = frame.pop("shares")
    return Dataset(
        name="news",
        frame=frame,
        target=target,
        task="regression",
        description="Articles of Mashable in 2013 and 2014: how often is this one shared?",
        citation=CITATION,
        licence="CC BY 4.0",
    )
