"""What every loader of a real data set returns."""

from dataclasses import dataclass
from typing import Literal

import pandas as pd

__all__ = ["Dataset"]


@dataclass(frozen=True)
class Dataset:
    """A table, what is to be predicted from it, and whom to thank for it.

    Attributes
    ----------
    name : str
        Short name.
    frame : DataFrame
        The features, with the columns' original names.
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
    """

    name: str
    frame: pd.DataFrame
    target: pd.Series
    task: Literal["classification", "regression"]
    description: str
    citation: str
    licence: str

    def __repr__(self) -> str:
        rows, columns = self.frame.shape
        return f"Dataset({self.name!r}: {rows} rows, {columns} columns, {self.task})"
