"""Blog Feedback: how many comments does a blog post get in the next 24 hours."""

import io
import os
import zipfile
from itertools import product

from limis.datasets.base import Dataset
from limis.datasets.files import RawFile, read_numbers, read_raw

__all__ = ["load_blog"]

FILE = RawFile(
    "blog/BlogFeedback.zip",
    ("1ba74e5ad920f7cd037502b2968581cc695146a226a73eff52fe8ad875ed4bcf",),
    url="https://archive.ics.uci.edu/static/public/304/blogfeedback.zip",
)
CITATION = "Buza, K. (2014). BlogFeedback [Dataset]. UCI Machine Learning Repository. https://doi.org/10.24432/C58S3F"

# Numbered from 1 as UCI does: 51 to 55 count comments, 56 to 60 the same of links (trackbacks), and 1 to 50 are
# statistics of each of these over all posts of the blog.
_COUNTED = ("total", "last_24h", "24h_before", "first_24h", "growth")
_ACTIVITY = [f"{what}_{when}" for what, when in product(("comments", "links"), _COUNTED)]
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
COLUMNS = [
    *(f"blog_{count}_{statistic}" for count, statistic in product(_ACTIVITY, ("mean", "sd", "min", "max", "median"))),
    *_ACTIVITY,
    "hours_since_publication",
    "post_length",
    *(f"word_{i}" for i in range(1, 201)),
    *(f"base_{day}" for day in _DAYS),
    *(f"published_{day}" for day in _DAYS),
    "parents",
    *(f"parent_comments_{statistic}" for statistic in ("min", "max", "mean")),
]
TARGET = "comments_next_24h"


def load_blog(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load the Blog Feedback data: 60,021 looks at blog posts, with 280 columns each.

    A row is a post as it was at a base time, at most 72 hours after it was published. The first 52,397 rows are the
    training part as UCI publishes it (base times in 2010 and 2011), the others its test part (60 days in February and
    March 2012), day by day.

    Columns, which have no names in the file, are called:

    - ``comments_total``, ``_last_24h``, ``_24h_before`` (24 to 48 hours before the base time), ``_first_24h`` (after
      publication) and ``_growth`` (the last 24 hours less the 24 before), and ``links_`` likewise, of the post;
    - ``blog_comments_total_mean`` and so on: mean, sd, min, max and median of each of these over the blog's posts;
    - ``hours_since_publication``, ``post_length``;
    - ``word_1`` to ``word_200``: whether the text has a frequent word (which, is not published);
    - ``base_monday`` and so on, ``published_monday`` and so on: the weekday of the base time and of publication;
    - ``parents`` (posts that this one replies to) and ``parent_comments_min``, ``_max``, ``_mean``.

    Parameters
    ----------
    folder : path, default=None
        Holds ``blog/BlogFeedback.zip``; `data_folder` where not given.

    Returns
    -------
    Dataset
        The target is the number of comments in the 24 hours after the base time.

    Raises
    ------
    InputError
        If the file is not there and cannot be downloaded, or is another one.

    Notes
    -----
    The paper's 60,021 rows are both parts together, taken here as one table to divide at random. Base times of the
    training part overlap, so that rows of one post can fall on both sides of such a division: to test on days that
    come later, as UCI advises, take the last 7,624 rows.

    Cite as: Buza, K. (2014). BlogFeedback [Dataset]. UCI Machine Learning Repository.
    https://doi.org/10.24432/C58S3F. Published under CC BY 4.0.
    """
    with zipfile.ZipFile(io.BytesIO(read_raw(FILE, folder))) as archive:
        tests = sorted(name for name in archive.namelist() if name.startswith("blogData_test"))
        raw = b"".join(archive.read(name) for name in ("blogData_train.csv", *tests))
    frame = read_numbers(raw, [*COLUMNS, TARGET])
    target = frame.pop(TARGET)
    return Dataset(
        name="blog",
        frame=frame,
        target=target,
        task="regression",
        description="Blog posts at some time after publication: how many comments in the next 24 hours?",
        citation=CITATION,
        licence="CC BY 4.0",
    )
