"""What comes out: groups of rows, what weighs in each, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from limis.columns import show_number
from limis.errors import InputError
from limis.metrics import nse
from limis.subgroups.groups import Masks
from limis.subgroups.measure import Measure, RowNumbers
from limis.subgroups.resampling import FEWEST, interval, means, resampled_means

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVERYBODY = "all rows"
# Training rows near a group are few when half of its rows rest on fewer than this share of what half of all explained
# rows rest on; the larger share does where that is fewer than so many rows.
FEW_NEAR, FEW_NEAR_SHARE, FEWER_SHARE = 10, 0.5, 0.8
_SHORT: dict[Measure, str] = {"coefficients": "coefficient", "contributions": "contribution"}
_WORSE = {
    "lmae": "local models follow the black box worse in {group}: the mean error is {own}, {whole} over all rows",
    "error": "the black box itself does worse in {group}: its error is {own}, {whole} over all rows",
}


@dataclass(eq=False)
class Subgroups:
    """Groups of explained rows, and how much each column weighs in each of them.

    Made by `subgroups`. Groups may overlap where they come from rules.

    Attributes
    ----------
    measure : {"coefficients", "contributions"}
        What weighs: see `subgroups`.
    values : DataFrame
        Mean weight of each original column, a line a group, in units of the output.
    low, high : DataFrame
        Its 95% interval over rows; NaN for groups of fewer than five rows.
    fidelity : DataFrame
        A line a group: ``rows``, ``nse`` and ``lmae`` (with ``lmae low`` and ``lmae high``) of local against black-box
        outputs, ``trusted`` (the share), ``effective_rows`` (the median) and, where labels were given, the black box's
        own ``error`` with its interval. What could not be known is left out.
    overall : DataFrame
        The same as ``fidelity`` for all rows, in one line.
    overall_values : Series
        The same as ``values`` for all rows.
    """

    measure: Measure
    values: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame
    fidelity: pd.DataFrame
    overall: pd.DataFrame
    overall_values: pd.Series

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {n}" for name, n in self.sizes.items())
        return f"<{len(self)} groups by {self.measure} ({sizes})>"

    @property
    def sizes(self) -> pd.Series:
        """How many rows each group has."""
        return self.fidelity["rows"]

    def to_frame(self) -> pd.DataFrame:
        """One flat line a group: sizes and fidelity, then each column's weight with both ends of its interval."""
        word = _SHORT[self.measure]
        parts = {
            f"{word}: {column}{end}": frame[column]
            for column in self.values
            for end, frame in (("", self.values), (" low", self.low), (" high", self.high))
        }
        return pd.concat([self.fidelity, pd.DataFrame(parts)], axis=1)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the weights as a heat map; returns the axes."""
        from limis.plots import plot_subgroups

        return plot_subgroups(self, ax)

    def flags(self, sensitive: Sequence[str] = ()) -> list[str]:
        """What to look at, in plain sentences; an empty list where nothing stands out.

        Parameters
        ----------
        sensitive : sequence of str, default=()
            Columns that should not decide. One is told of in every group where it carries weight: where even the low
            end of its interval is above the weight of the group's median column.

        Returns
        -------
        list of str
            First those columns. Then the groups in which local models, or the black box itself, do clearly worse than
            over all rows: the two 95% intervals are apart. Then groups with few training rows near, which more
            training rows would help: what half of the group's rows rest on is less than half of what half of all
            explained rows rest on, or less than 0.8 of it and fewer than 10 effective rows. Last, groups of fewer than
            five rows, of which nothing can be told.

        Notes
        -----
        A flag is a place to look, not a verdict: with many groups and columns some intervals miss by chance, and a
        column without weight may still decide through others that stand for it.
        """
        sensitive = [sensitive] if isinstance(sensitive, str) else list(sensitive)
        for name in sensitive:
            if name not in self.values:
                raise InputError(
                    f"there is no column {name!r} among those explained; sensitive columns are some of "
                    f"{', '.join(map(repr, self.values))}"
                )
        told = [
            self._carries(group, name) for group in self.values.index for name in sensitive if self.heavy(group, name)
        ]
        told += [
            self._worse(group, name) for name in _WORSE for group in self.values.index if self._is_worse(group, name)
        ]
        told += [self._lonely(group) for group in self.values.index if self._is_lonely(group)]
        small = self.sizes[self.sizes < FEWEST]
        return told + [
            f"{_quoted(str(group))} has {_count(n)}, too few to tell anything of it; at least {FEWEST} are needed"
            for group, n in small.items()
        ]

    def heavy(self, group: str, column: str) -> bool | None:
        """Whether a column clearly weighs more (True) or less (False) than the group's median column; None: unclear."""
        middle = self._middle(group)
        if _at(self.low, group, column) > middle:
            return True
        return False if _at(self.high, group, column) < middle else None

    def _middle(self, group: str) -> float:
        return float(np.nanmedian(self.values.loc[group].to_numpy(dtype=np.float64)))

    # --- sentences ------------------------------------------------------------------------------------

    def _carries(self, group: str, column: str) -> str:
        ends = [_at(frame, group, column) for frame in (self.values, self.low, self.high)]
        middle = show_number(self._middle(group), 3)
        return f"{column} carries weight in {_quoted(group)}: {_with_ends(*ends)}; the median column has {middle}"

    def _is_worse(self, group: str, name: str) -> bool:
        if name not in self.fidelity:
            return False
        return _at(self.fidelity, group, f"{name} low") > _at(self.overall, EVERYBODY, f"{name} high")

    def _worse(self, group: str, name: str) -> str:
        own, whole = (
            _with_ends(*(_at(frame, line, name + end) for end in ("", " low", " high")))
            for frame, line in ((self.fidelity, group), (self.overall, EVERYBODY))
        )
        return _WORSE[name].format(group=_quoted(group), own=own, whole=whole)

    def _near(self, group: str) -> tuple[float, float]:
        """The effective rows that half of a group's rows rest on, and half of all."""
        return _at(self.fidelity, group, "effective_rows"), _at(self.overall, EVERYBODY, "effective_rows")

    def _is_lonely(self, group: str) -> bool:
        own, whole = self._near(group)
        # Never by a number alone: curves of all rows may rest on few, or none, and no group lacks any then.
        few = max(FEW_NEAR_SHARE * whole, min(FEW_NEAR, FEWER_SHARE * whole))
        return own < few and int(self.sizes[group]) >= FEWEST

    def _lonely(self, group: str) -> str:
        own, whole = self._near(group)
        return (
            f"few training rows are near those of {_quoted(group)}: half of them rest on at most {show_number(own, 3)} "
            f"effective rows ({show_number(whole, 3)} over all); more training rows near them would help"
        )


def summarise(
    rows: RowNumbers, masks: Masks, measure: Measure, n_resamples: int, rng: np.random.Generator
) -> Subgroups:
    """Means over the rows of every group, with intervals."""
    found = {name: _weights(rows, mask, n_resamples, rng) for name, mask in masks.items()}
    columns = rows.weight.columns
    values, low, high = (
        pd.DataFrame([ends[place] for ends in found.values()], index=list(found), columns=columns) for place in range(3)
    )
    everybody = np.ones(len(rows.weight), dtype=bool)
    return Subgroups(
        measure,
        values,
        low,
        high,
        pd.DataFrame({name: _fidelity(rows, mask, n_resamples, rng) for name, mask in masks.items()}).T.astype(
            {"rows": int}
        ),
        pd.DataFrame({EVERYBODY: _fidelity(rows, everybody, n_resamples, rng)}).T.astype({"rows": int}),
        pd.Series(means(rows.weight.to_numpy()), index=columns),
    )


def _weights(rows: RowNumbers, mask: np.ndarray, n_resamples: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    own = rows.weight.to_numpy()[mask]
    ends = interval(resampled_means(own, n_resamples, rng), np.isfinite(own).sum(axis=0))
    return means(own), *ends


def _fidelity(rows: RowNumbers, mask: np.ndarray, n_resamples: int, rng: np.random.Generator) -> dict[str, Any]:
    line: dict[str, Any] = {"rows": int(mask.sum())}
    if rows.outputs is not None:
        said, local = rows.outputs[mask], rows.local[mask]
        line["nse"] = nse(said, local) if np.ptp(said) > 0 else np.nan
        line |= _mean_line("lmae", np.abs(said - local), n_resamples, rng)
    line |= {"trusted": rows.trusted[mask].mean(), "effective_rows": np.median(rows.effective_rows[mask])}
    if rows.errors is not None:
        line |= _mean_line("error", rows.errors[mask], n_resamples, rng)
    return line


def _mean_line(name: str, values: np.ndarray, n_resamples: int, rng: np.random.Generator) -> dict[str, float]:
    low, high = interval(resampled_means(values[:, None], n_resamples, rng), len(values))
    return {name: float(values.mean()), f"{name} low": float(low[0]), f"{name} high": float(high[0])}


def _at(frame: pd.DataFrame, line: str, column: str) -> float:
    return float(frame[column][line])


def _with_ends(value: float, low: float, high: float) -> str:
    return f"{show_number(value, 3)} ({show_number(low, 3)} to {show_number(high, 3)})"


def _quoted(group: str) -> str:
    return f'"{group}"'


def _count(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"
