"""Mixed tables ↔ matrices: what the user's columns are, and how rows become numbers.

A row has three numeric faces, all made here:

values     (rows, columns)   one number an original column: the number itself, or a category's code
ranks      (rows, columns)   numbers replaced by their position among the training rows, in [0, 1]
features   (rows, features)  what the surrogate is fitted on: scaled numbers, jumps and one-hot levels
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from limis.columns import MISSING, OTHER, UNKNOWN, Column, learn_column, learn_group
from limis.encoding import Edges, Layout, write_features, write_ranks
from limis.errors import InputError
from limis.polars_frames import from_polars

Scaling = Literal["standard", "minmax", "none"]

QUANTILES = 1001
FEW_ROWS = 4  # that are read cell by cell


@dataclass
class Table:
    """The columns of the training table, learned once, and the way from a row to its numbers."""

    columns: list[Column]
    source_names: list[str]
    source_labels: list[Any]  # the same as the user wrote them, numbers or other labels included
    from_array: bool
    scaling: Scaling
    quantiles: np.ndarray = field(repr=False)  # (columns, QUANTILES); rows of categories are unused
    _known_columns: pd.Index | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def learn(
        cls,
        X: Any,
        *,
        categorical_features: Sequence[Any] | Literal["auto"] = "auto",
        groups: Mapping[str, Sequence[str]] | None = None,
        scaling: Scaling = "standard",
    ) -> tuple[Table, pd.DataFrame]:
        """Learn the columns of ``X``; returns the table and ``X`` as a checked frame."""
        X = from_polars(X)
        frame = as_frame(X)
        if len(frame) == 0:
            raise InputError("the training table has no rows (0 samples); at least 2 are needed to explain anything")
        names = list(frame.columns)
        if not names:
            raise InputError("the training table has no columns: at least one column is needed")
        members = {str(name): [str(source) for source in sources] for name, sources in (groups or {}).items()}
        grouped = _check_groups(members, names)
        categorical = _categorical_names(categorical_features, names)
        columns: list[Column] = []
        for name in names:
            group = grouped.get(name)
            if group is None:
                columns.append(learn_column(frame[name], name, name in categorical, scaling))
            elif members[group][0] == name:
                columns.append(learn_group(frame[members[group]], group))
        table = cls(
            columns=columns,
            source_names=names,
            source_labels=list(X.columns) if isinstance(X, pd.DataFrame) else names,
            from_array=not isinstance(X, pd.DataFrame),
            scaling=scaling,
            quantiles=np.zeros((len(columns), QUANTILES)),
        )
        table._learn_quantiles(table.values(frame))
        return table, frame

    def _learn_quantiles(self, values: np.ndarray) -> None:
        grid = np.linspace(0, 1, QUANTILES)
        for j, column in enumerate(self.columns):
            known = values[np.isfinite(values[:, j]), j]
            if not column.is_category and len(known):
                self.quantiles[j] = np.quantile(known, grid)

    def with_jumps(self, jumps: Sequence[Sequence[float]]) -> Table:
        """The same table with these jumps, given for each column, as features beside the numbers."""
        columns = [replace(column, jumps=list(own)) for column, own in zip(self.columns, jumps, strict=True)]
        return replace(self, columns=columns)

    # --- reading a user's table ---------------------------------------------------------------

    def read(self, X: Any, what: str = "to explain") -> pd.DataFrame:
        """Check a table against the one learned: same columns, any order; extra ones are left out.

        what : what its rows are for, in the words of an error.
        """
        if isinstance(X, pd.DataFrame) and X.columns.is_(self._known_columns) and len(X) > 0:
            return X
        X = from_polars(X)
        frame = as_frame(X)
        if len(frame) == 0:
            raise InputError(f"there are no rows {what}: the table is empty")
        if not isinstance(X, pd.DataFrame):
            if frame.shape[1] != len(self.source_names):
                raise InputError(
                    f"X has {frame.shape[1]} features, but LimisExplainer is expecting "
                    f"{len(self.source_names)} features as input"
                )
            frame.columns = pd.Index(self.source_names)
            return frame
        if list(frame.columns) == self.source_names:
            self._known_columns = frame.columns  # parts of one frame have the same, and need no second look
            return frame
        missing = [name for name in self.source_names if name not in frame.columns]
        if len(missing) == len(self.source_names):
            raise InputError(
                "the table has none of the columns seen at fit: expected "
                f"{_shorten(self.source_names)}, got {_shorten(frame.columns)}"
            )
        if missing:
            raise InputError(f"columns seen at fit are missing from the table: {_shorten(missing)}; add them")
        extra = [name for name in frame.columns if name not in set(self.source_names)]
        if extra:
            warnings.warn(f"columns that were not there at fit are ignored: {_shorten(extra)}", stacklevel=3)
        return frame[self.source_names]

    # --- the three faces of a row ---------------------------------------------------------------

    def values(self, frame: pd.DataFrame) -> np.ndarray:
        """One number an original column: the number, or the category's code (-1 for a level never seen)."""
        if len(frame) <= FEW_ROWS and self._cells_are_plain and self._in_order(frame):
            found = [self._values_of(frame, row) for row in range(len(frame))]
            if found and all(values is not None for values in found):
                return np.array(found, dtype=np.float64)
        return np.column_stack([column.values(frame) for column in self.columns])

    def _in_order(self, frame: pd.DataFrame) -> bool:
        return frame.columns.is_(self._known_columns) or frame.columns.tolist() == self.source_names

    @cached_property
    def _cells_are_plain(self) -> bool:
        """Whether each column is one column of the user's, and no date or duration."""
        return all(column.kind in ("number", "category") and not column.is_group for column in self.columns)

    def _values_of(self, frame: pd.DataFrame, place: int) -> list[float | None] | None:
        """The same of one row, cell by cell: columns cost more than few cells do. None where a cell is unusual."""
        try:
            row = frame.iloc[place]
        except (ValueError, OverflowError):  # Arrow does not put large integers beside other numbers
            return None
        cells = row.array
        if row.dtype != object:
            # One type for all cells may have changed some; of numbers it has not.
            if self.is_category.any() or not isinstance(row.dtype, np.dtype) or row.dtype.kind not in "fiu":
                return None
            cells = row.to_numpy().tolist()
        values = [column.value_of(cell) for column, cell in zip(self.columns, cells, strict=True)]
        return None if None in values else values

    def ranks(self, values: np.ndarray) -> np.ndarray:
        """Numbers as positions in [0, 1] among the training rows (missing stays NaN); codes unchanged."""
        ranks = np.array(values, dtype=np.float64, order="C")
        write_ranks(np.ascontiguousarray(values, dtype=np.float64), self._edges, ranks)
        return ranks

    @cached_property
    def _edges(self) -> Edges:
        grid = np.linspace(0, 1, QUANTILES)
        nothing = np.empty(0)
        points, lowest, highest = [nothing], [nothing], [nothing]
        for j in self.number_columns:
            own, first = np.unique(self.quantiles[j], return_index=True)
            _, last = np.unique(self.quantiles[j][::-1], return_index=True)
            points.append(own)
            lowest.append(grid[first])
            highest.append(grid[::-1][last])
        starts = np.cumsum([len(own) for own in points])
        columns = np.array(self.number_columns, dtype=np.int64)
        return Edges(columns, starts, *map(np.concatenate, (points, lowest, highest)))

    def features(self, values: np.ndarray) -> np.ndarray:
        """The matrix the surrogate sees: (rows, features)."""
        features = np.zeros((len(values), int(self._layout.starts[-1])))
        write_features(np.ascontiguousarray(values, dtype=np.float64), self._layout, features)
        return features

    @cached_property
    def _layout(self) -> Layout:
        widths, jumps = (
            [len(column.feature_levels) for column in self.columns],
            [column.jumps for column in self.columns],
        )
        return Layout(
            starts=np.cumsum([0, *widths]),
            is_category=self.is_category,
            has_missing=self.has_missing,
            offset=np.array([column.offset for column in self.columns], dtype=np.float64),
            scale=np.array([column.scale for column in self.columns], dtype=np.float64),
            jump_starts=np.cumsum([0, *map(len, jumps)]),
            jumps=np.array([jump for own in jumps for jump in own], dtype=np.float64),
        )

    # --- what the features mean -----------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the original columns, groups of dummies as one."""
        return [column.name for column in self.columns]

    @cached_property
    def name_index(self) -> pd.Index:
        """The same as pandas knows column names, made once."""
        return pd.Index(self.names)

    @cached_property
    def number_columns(self) -> list[int]:
        """Positions of the columns that hold numbers, dates or durations."""
        return [j for j, column in enumerate(self.columns) if not column.is_category]

    @cached_property
    def number_features(self) -> np.ndarray:
        """The places of their own features, in which one unit is one scale of the column."""
        return np.searchsorted(self.feature_column, self.number_columns)

    @cached_property
    def is_category(self) -> np.ndarray:
        """Which columns are categories: (columns,) bool."""
        return np.array([column.is_category for column in self.columns])

    @cached_property
    def has_missing(self) -> np.ndarray:
        """Which columns were missing somewhere in the training table: (columns,) bool."""
        return np.array([column.has_missing for column in self.columns])

    @property
    def feature_names(self) -> list[tuple[str, str]]:
        """(column, level) of every feature; the level of a number is empty."""
        return [(column.name, level) for column in self.columns for level in column.feature_levels]

    @cached_property
    def feature_column(self) -> np.ndarray:
        """For every feature, the index of the original column it belongs to."""
        return np.repeat(np.arange(len(self.columns)), [len(c.feature_levels) for c in self.columns])

    @cached_property
    def is_level(self) -> np.ndarray:
        """Which features are 0 or 1 (a category's level, a jump, missing) rather than numbers: (features,) bool."""
        return np.concatenate([column.is_level for column in self.columns])

    @cached_property
    def is_jump(self) -> np.ndarray:
        """Which features are jumps: (features,) bool."""
        return np.concatenate([column.is_jump for column in self.columns])

    @cached_property
    def feature_offset(self) -> np.ndarray:
        """The original value at which a feature is zero (numbers only)."""
        offsets = np.array([column.offset for column in self.columns])
        return np.where(self.is_level, 0.0, offsets[self.feature_column])

    @cached_property
    def feature_scale(self) -> np.ndarray:
        """Original units per unit of the feature."""
        scales = np.array([column.scale for column in self.columns])
        return np.where(self.is_level, 1.0, scales[self.feature_column])

    # --- plain data, for saving -------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything but the quantiles, as JSON-ready data."""
        return {
            "columns": [asdict(column) for column in self.columns],
            "source_names": self.source_names,
            "source_labels": [_plain_label(label) for label in self.source_labels],
            "from_array": self.from_array,
            "scaling": self.scaling,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], quantiles: np.ndarray) -> Table:
        """The inverse of `to_dict`."""
        columns = [Column.from_dict(column) for column in data["columns"]]
        return cls(columns, data["source_names"], data["source_labels"], data["from_array"], data["scaling"], quantiles)


def as_frame(X: Any) -> pd.DataFrame:
    """Any table as a data frame with unique string names, fresh row numbers left as they are."""
    X = from_polars(X)
    if isinstance(X, pd.DataFrame):
        if isinstance(X.columns, pd.MultiIndex):
            raise InputError(
                f"column names have {X.columns.nlevels} levels, such as {X.columns[0]}; join them into one first: "
                'X.columns = ["_".join(map(str, name)) for name in X.columns]'
            )
        frame = X if all(isinstance(name, str) for name in X.columns) else X.rename(columns=str)
        if frame.columns.has_duplicates:
            repeated = frame.columns[frame.columns.duplicated()].unique()
            raise InputError(f"column names must be unique; these appear more than once: {_shorten(repeated)}")
        return frame
    if hasattr(X, "tocsr"):
        raise InputError("a sparse matrix was passed, but dense data is required; use X.toarray() or a data frame")
    array = np.asarray(X)
    if array.ndim != 2:
        raise InputError(
            f"Expected 2D array (rows × columns), got {array.ndim}D array instead. "
            "Reshape your data: X.reshape(1, -1) if it is one row, X.reshape(-1, 1) if it is one column."
        )
    if array.shape[1] == 0:
        raise InputError(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    if np.iscomplexobj(array):
        raise InputError("Complex data not supported: pass real numbers.")
    frame = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
    return frame.infer_objects() if array.dtype == object else frame


def _categorical_names(categorical_features: Any, names: list[str]) -> set[str]:
    if isinstance(categorical_features, str):
        if categorical_features != "auto":
            raise InputError(f'categorical_features is "auto" or a list of columns, not {categorical_features!r}')
        return set()
    wanted = list(categorical_features)
    if len(wanted) == len(names) and all(isinstance(w, (bool, np.bool_)) for w in wanted):
        return {name for name, flag in zip(names, wanted, strict=True) if flag}
    chosen = set()
    for item in wanted:
        name = names[item] if isinstance(item, (int, np.integer)) and -len(names) <= item < len(names) else str(item)
        if name not in names:
            raise InputError(f"categorical_features names {item!r}, which is not a column; there are {_shorten(names)}")
        chosen.add(name)
    return chosen


def _check_groups(groups: dict[str, list[str]], names: list[str]) -> dict[str, str]:
    """Which group each source column belongs to."""
    grouped: dict[str, str] = {}
    for group, sources in groups.items():
        if len(sources) < 2:
            raise InputError(f"groups[{group!r}] must list at least two dummy columns, got {sources}")
        for name in sources:
            if name not in names:
                raise InputError(f"groups[{group!r}] names {name!r}, which is not a column of the table")
            if name in grouped:
                raise InputError(f"column {name!r} is in two groups, {grouped[name]!r} and {group!r}; keep one")
            grouped[name] = group
        if group in names and group not in sources:
            raise InputError(f"groups[{group!r}] has the name of another column; choose a name of its own")
    return grouped


def _plain_label(label: Any) -> int | str:
    """A label that a file can hold; one that is neither a number nor a text is kept by its name."""
    label = label.item() if isinstance(label, np.generic) else label
    return label if isinstance(label, (int, str)) else str(label)


def _shorten(names: Any, most: int = 8) -> str:
    shown = [repr(str(name)) for name in list(names)[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")


__all__ = ["MISSING", "OTHER", "UNKNOWN", "Column", "Scaling", "Table", "as_frame"]
