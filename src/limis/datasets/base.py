"""What every loader of a real data set returns."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from limis.datasets.splits import split_rows

__all__ = ["Dataset"]


@dataclass(frozen=True)
class Dataset:
    """A table, what is to be predicted from it, and whom to thank for it.

    Attributes
    ----------
    name : str
        Short name.
    frame : DataFrame
        The features; under the columns' original names where they have names.
    target : Series
        What is to be predicted, on the same index.
    task : {"classification", "regression"}
        What kind of target it is.
    description : str
        What a row is and what is asked about it.
    citation : str
        How to cite the data.
    licence : str
        Under which terms it may be used.
    own_test_rows : int, default=0
        So many of the last rows were published to test on, and `split` keeps them for that. 0 where it draws the
        test rows itself.
    """

    name: str
    frame: pd.DataFrame
    target: pd.Series
    task: Literal["classification", "regression"]
    description: str
    citation: str
    licence: str
    own_test_rows: int = 0

    def split(
        self, random_state: int | np.random.Generator | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Divide the rows into training, probe and test rows: 72%, 8% and 20%.

        Where the data comes with test rows of its own, those are the test rows in every division, and the others
        are divided into training and probe rows in the same ratio, 9 to 1.

        Parameters
        ----------
        random_state : int, numpy Generator or None
            Decides which row goes where.

        Returns
        -------
        training, probe, test : ndarray
            Row numbers of each part, in increasing order.
        """
        n = len(self.frame)
        if not self.own_test_rows:
            training, probe, test = split_rows(n, random_state=random_state)
            return training, probe, test
        training, probe = split_rows(n - self.own_test_rows, (0.9, 0.1), random_state)
        return training, probe, np.arange(n - self.own_test_rows, n)

    def __repr__(self) -> str:
        rows, columns = self.frame.shape
        return f"Dataset({self.name!r}: {rows} rows, {columns} columns, {self.task})"
