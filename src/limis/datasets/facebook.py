"""Facebook Comment Volume: how many comments does a post get in the next hours."""

import os
from itertools import product

from limis.datasets.base import Dataset
from limis.datasets.files import RawFile, read_numbers, read_raw

__all__ = ["load_facebook"]

_URL = "https://archive.ics.uci.edu/static/public/363/facebook+comment+volume+dataset.zip"
_ARCHIVE = "facebook/facebook+comment+volume+dataset.zip"
TRAINING = RawFile(
    "facebook/Features_Variant_1.csv",
    ("f8a739d1d95318694a7827fe5cc07d7ff5478ef9200a529f7625f8a45838a611",),
    url=_URL,
    archives=(_ARCHIVE,),
)
TESTS = [
    RawFile(
        f"facebook/TestSet/Test_Case_{number}.csv", (digest,), url=_URL, archives=("facebook/TestSet.zip", _ARCHIVE)
    )
    for number, digest in enumerate(
        (
            "29c9952b4ba66faded00a4e4b31c5ead64e25de015c882faf0cd5a9ca5d2bd46",
            "c22a4cdab09040af3f4c5c7bcd72dfeadd370dbacab0cffb405cdea17604c203",
            "1291cb5c63018a584ae04dd76794f78ca7cd973fa41484d4d57d9a0d6033ee3f",
            "3d10bd58bd2911eafe9a70dc7e0b26ecd5229b23b416e610d57f76d2824e2c21",
            "54c93a4b68f111a9935063182b4042f4ba3490b030475b00ea1f9918d13e2b88",
            "caae7e491436bbfd8e2e279b3f2ab87d123998e7cffde35202d14dffde9e742b",
            "5b14cdd10405acf49af4a92b9067d883a106744f410f9c7b30a262640281c6e9",
            "088ce064566d3306f9fd4a51886a89b7413981d45662664c817f4d8d9af70de3",
            "6ce79ee31430b33a0981eab686a65f1049990b827d192dffc54f27d366f3a82a",
            "69fef440e489bf96bd048a1310d58c6f43c01129fbd1d6698896d61c2dbd2ab3",
        ),
        start=1,
    )
]
TEST_ROWS = 100  # of each file
CITATION = (
    "Singh, K. (2015). Facebook Comment Volume [Dataset]. UCI Machine Learning Repository. "
    "https://doi.org/10.24432/C5Q886"
)

_COMMENTS = [f"comments_{when}" for when in ("total", "last_24h", "24h_before", "first_24h", "growth")]
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
COLUMNS = [
    "page_likes",
    "page_checkins",
    "page_talking_about",
    "page_category",
    *(f"page_{count}_{statistic}" for count, statistic in product(_COMMENTS, ("min", "max", "mean", "median", "sd"))),
    *_COMMENTS,
    "hours_since_publication",
    "post_length",
    "post_shares",
    "post_promoted",
    "hours_ahead",
    *(f"published_{day}" for day in _DAYS),
    *(f"base_{day}" for day in _DAYS),
]
TARGET = "comments_next"


def load_facebook(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load the Facebook Comment Volume data: 41,949 looks at posts of pages, with 53 columns each.

    A row is a post as it was at a base time, at most 72 hours after it was published. The first 40,949 rows are
    UCI's ``Features_Variant_1.csv``; the last 1,000 are its ten test files of 100 rows, in order, which
    `Dataset.split` keeps as test rows.

    Columns, which have no names in the file, are called:

    - ``page_likes``, ``page_checkins``, ``page_talking_about`` (people who come back to the page) and
      ``page_category`` (a code from 1 to 106);
    - ``comments_total``, ``_last_24h``, ``_24h_before`` (24 to 48 hours before the base time), ``_first_24h`` (after
      publication) and ``_growth`` (the last 24 hours less the 24 before), of the post;
    - ``page_comments_total_min`` and so on: min, max, mean, median and sd of each of these over the page's posts;
    - ``hours_since_publication``, ``post_length``, ``post_shares``, ``post_promoted`` (always 0) and ``hours_ahead``
      (how many hours the target counts);
    - ``published_sunday`` and so on, ``base_sunday`` and so on: the weekday of publication and of the base time.

    Parameters
    ----------
    folder : path, default=None
        Holds ``facebook/Features_Variant_1.csv`` and ``facebook/TestSet.zip``, or UCI's archive of both;
        `data_folder` where not given.

    Returns
    -------
    Dataset
        The target is the number of comments in the ``hours_ahead`` hours after the base time.

    Raises
    ------
    InputError
        If a file is not there and cannot be downloaded, or is another one.

    Notes
    -----
    The paper has 603,713 rows: all five variants, which are looks at the same posts at one to five base times each,
    602,813 rows together, and nine of the ten test files. Here is the first variant, one look a post, and all ten. Its
    54 dimensions count the target. As in the paper's code, test rows are those of the test files alone, and the
    category's code is a number.

    Cite as: Singh, K. (2015). Facebook Comment Volume [Dataset]. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5Q886. Published under CC BY 4.0.
    """
    raw = b"".join(read_raw(file, folder) for file in (TRAINING, *TESTS))
    frame = read_numbers(raw, [*COLUMNS, TARGET])
    target = frame.pop(TARGET)
    return Dataset(
        name="facebook",
        frame=frame,
        target=target,
        task="regression",
        description="Posts of Facebook pages at some time after publication: how many comments in the next hours?",
        citation=CITATION,
        licence="CC BY 4.0",
        own_test_rows=TEST_ROWS * len(TESTS),
    )
