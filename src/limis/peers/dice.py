"""DiCE: changed rows with another outcome, by random draws or by a genetic search.

Mothilal, Sharma and Tan (2020), "Explaining machine learning classifiers through diverse counterfactual explanations",
by the authors' own package. It explains nothing by itself: it is held against suggestions, not against explanations.
"""

from __future__ import annotations

import contextlib
import io
import random
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from limis.errors import InputError, require

DiceMethod = Literal["random", "genetic"]

OUTCOME = "the black box's class"
# More than the package's own limits ever need: 500 generations of two calls, or 10,000 steps back to the row. What
# they do not limit are draws of a first generation, which may never succeed.
MAX_CALLS = 20_000


@dataclass(eq=False)
class DiceRows:
    """What DiCE found for some rows: one changed row for each."""

    changed: pd.DataFrame  # where nothing was found, the row as it is
    found: np.ndarray  # (rows,) bool
    confirmed: np.ndarray  # (rows,) bool: whether the black box gives the changed row the wished class
    n_changes: np.ndarray  # (rows,) columns that differ
    questions: np.ndarray  # (rows,) changed and training rows that the black box was asked about
    seconds: np.ndarray  # (rows,) of the processor


@dataclass(eq=False)
class Dice:
    """The ``dice-ml`` package's search for changed rows, with its own defaults.

    The same row gets the same answer, whatever others are beside it. DiCE knows the levels of the training rows only:
    for a row with another one it finds nothing. It takes no missing values.

    Parameters
    ----------
    model : object
        A classifier with ``predict_proba`` and ``classes_``, on raw frames.
    training : DataFrame
        Its training rows: numbers are continuous features, all else is a category.
    method : {"random", "genetic"}, default="random"
        The package's way to search.
    target : default=1
        The wished class.
    immutable : iterable of str, default=()
        Columns that may not change.
    ranges : dict, default=None
        Where columns may move to: ``[low, high]`` for numbers, a list of levels for categories.
    random_state : int, default=0
        Seeds the search of every row.
    max_calls : int, default=20000
        How often the black box may be called for one row, however many rows it is asked about at once.
    """

    model: Any
    training: pd.DataFrame
    method: DiceMethod = "random"
    target: Any = 1
    immutable: Iterable[str] = ()
    ranges: Mapping[str, list[Any]] | None = None
    random_state: int = 0
    max_calls: int = MAX_CALLS
    counted_: _CountedModel = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.method not in ("random", "genetic"):
            raise InputError(f'method is "random" or "genetic", not {self.method!r}')
        fixed = set(self.immutable)
        unknown = sorted(fixed - set(self.training))
        if unknown:
            raise InputError(f"immutable has {unknown[0]!r}, but the training rows have no such column")
        classes = list(self.model.classes_)
        if self.target not in classes:
            raise InputError(f"target is {self.target!r}, but the classes are {classes}")
        dice = require("dice_ml", "peers")
        self.counted_ = _CountedModel(self.model, self.max_calls)
        self._class = classes.index(self.target)
        self._vary = [name for name in self.training if name not in fixed]
        numbers = list(self.training.select_dtypes("number"))
        self._categories = [name for name in self.training if name not in numbers]
        with _kept_quiet():
            data = dice.Data(
                dataframe=self.training.assign(**{OUTCOME: self._classes_of(self.training)}),
                continuous_features=numbers,
                outcome_name=OUTCOME,
            )
            asked = dice.Model(model=self.counted_, backend="sklearn", model_type="classifier")
            self._dice = dice.Dice(data, asked, method=self.method)

    def find(self, rows: pd.DataFrame) -> DiceRows:
        """Search a changed row for each row.

        Parameters
        ----------
        rows : DataFrame
            Rows that do not have the wished class, with the columns of the training rows.
        """
        rows = rows[list(self.training)]
        known = np.logical_and.reduce([rows[name].isin(self.training[name]) for name in self._categories])
        known = np.broadcast_to(known, len(rows))  # of no categories, all are known
        changed, questions, seconds = [], np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows))
        found = np.zeros(len(rows), dtype=bool)
        for place in range(len(rows)):
            started = time.process_time()
            row = rows.iloc[[place]]
            other = self._search(row) if known[place] else None
            seconds[place] = time.process_time() - started
            questions[place] = self.counted_.rows if known[place] else 0
            found[place] = other is not None
            changed.append(row if other is None else other)
        after = pd.concat(changed).astype(rows.dtypes.to_dict()).set_axis(rows.index)
        return DiceRows(
            changed=after,
            found=found,
            confirmed=found & (self._classes_of(after) == self._class),
            n_changes=(after != rows).to_numpy().sum(axis=1),
            questions=questions,
            seconds=seconds,
        )

    def _classes_of(self, rows: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict_proba(rows)).argmax(axis=1)

    def _search(self, row: pd.DataFrame) -> pd.DataFrame | None:
        """The changed row; None where there is none."""
        not_found = require("raiutils.exceptions", "peers").UserConfigValidationException
        # The genetic search takes no seed of its own.
        options = {"random_seed": self.random_state} if self.method == "random" else {}
        self.counted_.restart()
        try:
            with _kept_quiet(), _seeded(self.random_state):
                found = self._dice.generate_counterfactuals(
                    row,
                    total_CFs=1,
                    desired_class=self._class,
                    features_to_vary=self._vary,
                    permitted_range=None if self.ranges is None else dict(self.ranges),
                    **options,
                )
        except _AskedTooOftenError:
            return None
        except not_found as error:
            if "No counterfactuals found" in str(error):
                return None
            raise
        except ValueError as error:
            # A generation of equal rows has no parents to draw the next one from.
            if "empty range for randrange" in str(error):
                return None
            raise
        return found.cf_examples_list[0].final_cfs_df_sparse[list(self.training)]


class _AskedTooOftenError(RuntimeError):
    """The black box was called more often than is allowed for one row."""


@dataclass
class _CountedModel:
    """A model that counts what it is asked, and stops answering."""

    model: Any
    max_calls: int
    calls: int = 0
    rows: int = 0

    def restart(self) -> None:
        """Begin to count anew."""
        self.calls = self.rows = 0

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        """What the model says."""
        self.calls += 1
        self.rows += len(rows)
        if self.calls > self.max_calls:
            raise _AskedTooOftenError
        return self.model.predict_proba(rows)


@contextlib.contextmanager
def _kept_quiet() -> Iterator[None]:
    """Without the package's prints and progress bars, and the warnings of its dealings with pandas."""
    nowhere = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """With both global generators, which are all that the package draws from, seeded, and afterwards as before."""
    plain, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpy)  # noqa: NPY002
