"""What comes out: explanations of many rows, and one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast, overload

import numpy as np
import pandas as pd
import scipy.sparse as sp

from limis import local_view, whole
from limis.against import check_can_be_asked, check_queries, references_for
from limis.check import ChangeBound, Expected, Measured, fidelity_frame
from limis.curves.asked_reasons import AskedReasons, ask_reasons
from limis.curves.model import CurveFits
from limis.curves.reasons import Reasons, reasons_of
from limis.curves.view import curve_frame
from limis.errors import InputError, require
from limis.exact_shapley import exact_reasons
from limis.fidelity.units import Units, find_units
from limis.local_view import Reason
from limis.metrics import skill_on_changes
from limis.perturb import MovedRows
from limis.polars_frames import to_polars
from limis.reference import Reference, References
from limis.rows import TrainingRows
from limis.training.measuring import MeasuringRows
from limis.trees.view import Rule, rules
from limis.trust import Trust
from limis.until_trusted import ask_until_trusted
from limis.walk import LocalFits

Kind = Literal["curves", "shapley"]
REST = "rest"
LEAST_PAIR = 0.005  # of the outputs' standard deviation: pairs that do less are not told


class DrawsItself:
    """What is drawn as cards: in a notebook the first few, on a page all."""

    def to_html(self: Any, path: Any = None, *, title: str = "Explanations", **options: Any) -> str:
        """A self-contained report: how faithful, which columns weigh, groups, and a card a case.

        It is also written to ``path`` where one is given. ``options`` are those of `limis.report.page`, such as
        ``suggestions``, ``by``, ``sensitive`` or ``labels``. Of several classes, the card of the one that is predicted.
        """
        from limis.report import page, write_text

        html = page(self, title=title, **options)
        if path is not None:
            write_text(path, html)
        return html

    def plot(self: Any, kind: str = "beeswarm", ax: Any = None) -> Any:
        """Draw all of them with matplotlib: "beeswarm" or "mean" contributions, or "fidelity"; returns the axes."""
        from limis.plots import draw_many

        return draw_many(self, kind, ax)

    def _repr_html_(self: Any) -> str:
        from limis.report import cards

        return cards(self[:5], total=len(self))


@dataclass(eq=False)
class Explanations(DrawsItself):
    """Explanations of some rows: a readable model a row, and how far to trust it.

    Made by `LimisExplainer.explain`. Indexing with a number gives one `Explanation`, with a slice or a list of
    numbers fewer of them.
    """

    training: TrainingRows
    frame: pd.DataFrame  # the explained rows, as given
    values: np.ndarray
    fits: LocalFits
    outputs: np.ndarray | None
    bound: ChangeBound | None
    tolerance: float
    bound_fits: LocalFits | None = None  # the fits that the bound holds for, where they are not the ones shown
    chances: np.ndarray | None = None  # of several classes: the black box's probabilities of this one
    from_polars: bool = False  # whether the rows came as a polars frame
    references: References | None = None  # whom each row is compared with; of curves alone
    trust: Trust | None = None  # which of them may be trusted; of curves, where enough rows measured them
    asked: AskedReasons | None = None  # what the black box was asked about reasons from this reference
    measured: Measured | None = None  # what is known by asking about the very rows, of those that were not trusted
    kind: Kind = "curves"  # of reasons
    groups: Units | None = None  # what counts as one reason; of curves, where it is not what the curves are of
    _by_row: dict[int, Reasons] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, key: int) -> Explanation: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | np.ndarray) -> Explanations: ...
    def __getitem__(self, key: int | slice | Sequence[int] | np.ndarray) -> Explanation | Explanations:
        if not isinstance(key, (int, np.integer)):
            chosen = np.arange(len(self))[key]
            return Explanations(
                self.training,
                self.frame.iloc[chosen],
                self.values[chosen],
                self.fits.part(chosen),
                None if self.outputs is None else self.outputs[chosen],
                self.bound,
                self.tolerance,
                None if self.bound_fits is None else self.bound_fits.part(chosen),
                None if self.chances is None else self.chances[chosen],
                self.from_polars,
                None if self.references is None else self.references.part(chosen),
                self.trust,
                None if self.asked is None else self.asked.part(chosen),
                None if self.measured is None else self.measured.part(chosen),
                self.kind,
                self.groups,
            )
        if not -len(self) <= key < len(self):
            raise IndexError(f"there are {len(self)} explanations, so there is no number {key}")
        return Explanation(self, int(key) % len(self))

    def __iter__(self) -> Iterator[Explanation]:
        return (Explanation(self, row) for row in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} explanations, {int(self.fidelity['trusted'].sum())} of them trusted>"

    # --- numbers, a row a case ------------------------------------------------------------------

    @property
    def index(self) -> pd.Index:
        """The row labels of the explained table."""
        return self.frame.index

    @cached_property
    def coefficients(self) -> pd.DataFrame:
        """Slopes in original units, under (column, level); NaN for a level that no weighted row has: unknown here."""
        self._need_coefficients()
        slopes = self.fits.coefficients / self.training.table.feature_scale
        slopes[self.fits.unknown] = np.nan
        columns = pd.MultiIndex.from_tuples(self.training.table.feature_names, names=["column", "level"])
        return pd.DataFrame(slopes, index=self.index, columns=columns)

    @cached_property
    def intercepts(self) -> pd.Series:
        """The local model where every number is 0 and no level is set."""
        self._need_coefficients()
        table, fits = self.training.table, self.fits
        at_zero = -table.feature_offset / table.feature_scale
        values = fits.predictions() + (fits.coefficients * (at_zero - fits.features)).sum(axis=1)
        return pd.Series(values, index=self.index, name="intercept")

    def _need_coefficients(self) -> None:
        if not self.fits.has_coefficients:
            raise InputError(
                "these local models have no coefficients"
                + ("; trees have rules: found[0].rules()" if self.fits.has_rules else "")
                + ("; curves are read with found[0].curve(column)" if self.fits.has_curves else "")
            )

    # --- why -----------------------------------------------------------------------------------

    def against(self, reference: Any, *, queries: int = 0) -> Explanations:
        """The same explanations, with reasons that start from another reference: what `explain` takes as one.

        Nothing is fitted anew. ``found.against("other outcome")``, ``found.against(X.loc[[17]])``. With ``queries`` the
        black box is asked so often about each row's reasons: `explain` says how, as ``reason_queries``.
        """
        if self.references is None:
            raise InputError('only curves have reasons that start from a reference; fit with surrogate="curves"')
        if self.training.every is not None:
            raise InputError("the reasons of all classes start from one reference: use against() before for_class()")
        references = references_for(self.training, reference, self.local_predictions.to_numpy())
        return _with_answers(replace(self, references=references, asked=None, measured=None), queries)

    def as_shapley(self) -> Explanations:
        """The same explanations, with Shapley values of the model itself as reasons, exact: of trees that can be read.

        Against the rows that stand for the reference, as the default is: 100 of many. Needs shap, which reads the
        trees; the model is asked about 200 mixtures of rows, to see that it was read as it works.
        """
        self._need_units()
        if not self.training.black_box.can_be_asked:
            raise InputError("there is no model to read; pass it to LimisExplainer, or to limis.load")
        exact = replace(self, kind="shapley", asked=None, measured=None)
        _ = exact.all_reasons  # says at once where the model cannot be read
        return exact

    def in_groups(self, groups: Mapping[str, Sequence[str]], *, queries: int = 0) -> Explanations:
        """The same explanations, with some columns together as one reason: ``{"money": ["income", "savings"]}``.

        What determines one another is one reason always; each column is one of its own after `unfolded`. Questions
        that were asked about reasons are asked again where ``queries`` are given.
        """
        self._need_units()
        training = self.training
        units = find_units(training.table, training.values, groups)
        return _with_answers(replace(self, groups=units, asked=None, measured=None), queries)

    def unfolded(self, *, queries: int = 0) -> Explanations:
        """The same explanations, with each column as a reason of its own, though some determine one another."""
        self._need_units()
        names = self.training.table.names
        single = Units(names, list(np.arange(len(names))[:, None]))
        return _with_answers(replace(self, groups=single, asked=None, measured=None), queries)

    def _need_units(self) -> None:
        if self.references is None:
            raise InputError('only curves have reasons in groups; fit with surrogate="curves"')

    @property
    def units(self) -> Units:
        """What counts as one reason; of curves."""
        assert isinstance(self.fits, CurveFits)
        return self.groups or self.fits.ground.units

    def reference_of(self, row: int) -> Reference:
        """Whom a row is compared with."""
        assert self.references is not None
        return self.references.of(row)

    @cached_property
    def all_reasons(self) -> Reasons:
        """What each unit of columns adds in each row, and the leading pairs; of curves."""
        assert isinstance(self.fits, CurveFits)
        assert self.references is not None
        known = self.local_predictions.to_numpy()
        if self.kind == "shapley":
            return exact_reasons(self.training, self.frame, self.references, known, self.units)
        return reasons_of(self.fits, self.references, known, self.units, self.asked)

    def reasons_at(self, row: int) -> tuple[Reasons, int]:
        """Those of one row, and its place in them: of one alone, unless they were worked out for all."""
        if "all_reasons" in self.__dict__ or len(self) == 1:
            return self.all_reasons, row
        if row not in self._by_row:
            self._by_row[row] = self[[row]].all_reasons
        return self._by_row[row], 0

    @cached_property
    def contributions(self) -> pd.DataFrame:
        """What each column adds: from the mean output of the reference to the model's output at the row.

        ``base_values`` and all of them together are ``model_outputs`` exactly. The last column, "rest", is what no
        other could be given: what is special about this very row. Columns that determine one another share alike, and
        of what two columns do only together (``interactions``) each has half.

        Of ridges and trees, the step from the neighbourhood's mean to the local prediction: there is no rest.
        """
        if self.fits.has_curves:
            return self._by_column(self.all_reasons)
        by_column = self.fits.contributions(self.training.table)
        return pd.DataFrame(by_column, index=self.index, columns=self.training.table.name_index.view())

    @property
    def contribution_errors(self) -> pd.DataFrame:
        """Standard errors of `column_contributions`, where the black box was asked about them; else NaN."""
        errors = self.all_reasons.errors if self.fits.has_curves else None
        if errors is None:
            return self.column_contributions * np.nan
        return pd.DataFrame(self._shared(errors), index=self.index, columns=self.column_contributions.columns)

    def _by_column(self, reasons: Reasons, index: pd.Index | None = None) -> pd.DataFrame:
        values = np.column_stack([self._shared(reasons.units), reasons.rest])
        return pd.DataFrame(values, index=self.index if index is None else index, columns=self._contribution_names)

    def _shared(self, by_unit: np.ndarray) -> np.ndarray:
        """What each column has of its unit; where the reader chose groups these stand for themselves."""
        if self.groups is not None:
            return by_unit
        sizes = np.array([len(members) for members in self.units.members])
        return (by_unit / sizes)[:, self.units.of_column()]

    @property
    def _contribution_names(self) -> pd.Index:
        names = self.training.table.names if self.groups is None else self.groups.names
        return pd.Index([*names, self.rest_name])

    @property
    def rest_name(self) -> str:
        """The name of the last contribution, which is no column's."""
        names = self.training.table.names if self.groups is None else self.groups.names
        name = REST
        while name in names:
            name = f"the {name}"
        return name

    @property
    def column_contributions(self) -> pd.DataFrame:
        """The contributions of columns, or of the groups that were asked for, without the rest."""
        return self.contributions.iloc[:, :-1] if self.fits.has_curves else self.contributions

    @property
    def interactions(self) -> pd.DataFrame:
        """What pairs of columns do beyond what each does alone, the strongest first in each row.

        Row, first, second and value; half of each value is in either column's contribution.
        """
        if not self.fits.has_curves:
            raise InputError('interactions are told of curves alone; fit with surrogate="curves"')
        labels = self.index.to_flat_index() if isinstance(self.index, pd.MultiIndex) else self.index
        row, told = self.pairs_in(self.all_reasons)
        told.insert(0, "row", labels[row])
        return told

    def pairs_in(self, reasons: Reasons) -> tuple[np.ndarray, pd.DataFrame]:
        """The pairs that matter in some rows' reasons, with the place of each row: first, second and value."""
        row, place = np.nonzero(np.abs(reasons.together) > LEAST_PAIR * self.training.output_deviation)
        names = np.array(self.units.names, dtype=object)
        first, second = (names[reasons.pairs[row, place, side]] for side in (0, 1))
        return row, pd.DataFrame({"first": first, "second": second, "value": reasons.together[row, place]})

    def removed(self, columns: Sequence[str]) -> pd.Series:
        """What the output loses, by these reasons, as columns take the values of the reference's rows: one a row.

        A pair is lost with either of its columns, and the rest, which is special about the row, sooner than columns
        are; so this is more than the sum of contributions. ``found.removed(["age"])``; of curves.
        """
        return whole.removed(self, columns)

    @property
    def importances(self) -> pd.Series:
        """The model as a whole: mean size of each column's contribution over the rows, the largest first."""
        return whole.importances(self)

    def dependence(self, column: str) -> pd.DataFrame:
        """One column's contribution beside its value in each row, and its strongest partner's value; of curves."""
        return whole.dependence(self, column)

    def strongest_pairs(self, n: int = 10) -> pd.DataFrame:
        """The pairs of columns that do most together, over all rows: first, second and mean size; of curves."""
        return whole.strongest_pairs(self, n)

    def reason_codes(self, n: int = 4, *, towards: str | None = None) -> pd.DataFrame:
        """The leading reasons of each row in plain words, for letters that must state them.

        Parameters
        ----------
        n : int, default=4
            How many a row, at most: fewer where fewer point that way.
        towards : {"higher", "lower"}, default=None
            Name what raises the output, or what lowers it. Where not given, what leads to the side of the reference
            on which the row stands.

        Returns
        -------
        DataFrame
            A line a reason: row, rank, reason in words, its columns, and its contribution.
        """
        return whole.reason_codes(self, n, towards)

    @property
    def base_values(self) -> pd.Series:
        """Mean output of the reference, from which contributions lead to the model's output.

        Of ridges and trees the neighbourhood's mean, from which theirs lead to the local prediction.
        """
        base = self.fits.levels if self.references is None else self.references.means
        return pd.Series(base, index=self.index, name="base_value")

    @property
    def neighbourhood_shift(self) -> pd.Series:
        """How far the neighbourhood's level lies from the overall mean of the training rows; curves have none."""
        if self.fits.has_curves:
            raise InputError("curves stand at what the model says of the row: they have no level of a neighbourhood")
        return (self.base_values - self.training.overall_mean).rename("neighbourhood_shift")

    @cached_property
    def local_predictions(self) -> pd.Series:
        """What the local models say of their own rows; curves stand at what the black box says, where it is known."""
        said = self.fits.predictions()
        if self.fits.has_curves:
            said = self.training.black_box.within(said) if self.outputs is None else self.outputs
        return pd.Series(said, index=self.index, name="local_prediction")

    @cached_property
    def curves(self) -> pd.DataFrame:
        """What the model would say with other values, one column changed at a time.

        Row, column, value, output, low and high, change, and whether the value is the row's own. The values are those
        that training rows hold most, and some spread evenly; columns that determine one another change together, under
        a common name. Low and high are the ends of intervals that hold for 95% of changes, near and far; they are not
        known where questions were asked about the row.
        """
        return curve_frame(self, np.arange(len(self)))

    @property
    def model_outputs(self) -> pd.Series:
        """What the black box says of the rows; absent (an AttributeError) when it was neither asked nor given."""
        if self.outputs is None:
            raise AttributeError("the black box's outputs are not known: there was no model to ask and no outputs=")
        return pd.Series(self.outputs, index=self.index, name="model_output")

    @property
    def weights(self) -> sp.csr_array:
        """How much each training row counts for each case's level: (cases, training rows)."""
        return self.fits.weights

    @property
    def slope_weights(self) -> sp.csr_array:
        """How much each training row counts for each case's coefficients; the same as `weights` unless they differ."""
        return self.fits.slope_weights

    @cached_property
    def fidelity(self) -> pd.DataFrame:
        """How far to trust each explanation, and why not."""
        return fidelity_frame(
            self.fits,
            self.values,
            self.training.table,
            outputs=self.outputs,
            bound=self.bound,
            bound_fits=self.bound_fits,
            tolerance=self.tolerance,
            index=self.index,
            expected=self._expected(),
            questions=None if self.measured is None else self.measured.questions,
        )

    def _expected(self) -> Expected | None:
        """How good the explanations are expected to be; of curves alone."""
        if not isinstance(self.fits, CurveFits):
            return None
        # Of what is known without the answers to questions about the rows, as it was learned.
        fits = cast(CurveFits, self.bound_fits or self.fits)
        expected = None if self.trust is None else self.trust.expect(fits, self.outputs)
        return expected if self.measured is None else self.measured.over(expected)

    def until_trusted(self, queries: int, *, show: bool = False) -> Explanations:
        """The same explanations, of which those not trusted are mended by questions, at most so many about each.

        ``found.fidelity["questions"]`` says how many were asked about each row. A value that was never seen in training
        remains a doubt whatever is asked.
        """
        self._need_units()
        if self.kind == "shapley":
            raise InputError('until_trusted mends reasons="curves"; exact Shapley values need no questions')
        check_queries(queries, "until_trusted")
        check_can_be_asked(self.training, self.outputs)
        assert isinstance(self.fits, CurveFits)
        assert self.references is not None
        # Questions help where it is the quality that is doubted, and nothing else: not where a value was never seen.
        expected, doubts = self._expected(), self.fidelity["doubts"].str.len().to_numpy(dtype=np.int64)
        enough = np.zeros(len(self), dtype=bool) if expected is None else expected.enough
        mended = ask_until_trusted(
            self.training,
            self.frame,
            self.fits,
            self.units,
            self.local_predictions.to_numpy(),
            self.references,
            np.flatnonzero(~enough & (doubts == 1)),
            queries,
            before=(self.asked, self.measured),
            show=show,
        )
        return replace(self, fits=mended.fits, asked=mended.asked, measured=mended.measured)

    @cached_property
    def status(self) -> pd.DataFrame:
        """A word where a column's contribution must not be read as "no effect": fixed here, unknown here, or none."""
        words = local_view.status(self.training, self.values, self.fits)
        return pd.DataFrame(words, index=self.index, columns=self.training.table.names)

    def skill(self, model: Any = None, *, random_state: int = 0) -> float:
        """Skill on single changes to values of the 200 nearest training rows (law A).

        The black box is asked about them. Of a short table, of the nearest 50, 10 or any. `limis.audit` measures more,
        by questions of another law too.
        ``model`` is needed only where the explainer has none to ask, as after loading without it.
        """
        training = self.training
        if model is not None:
            training = training.with_model(model)
        elif not training.black_box.can_be_asked:
            raise InputError("there is no model to ask about changes; pass it: skill(model)")
        outputs = training.black_box.outputs(self.frame) if self.outputs is None else self.outputs
        asked = MeasuringRows.ask(training, self.frame, outputs, None, np.random.default_rng(random_state))
        probes = asked.promised
        if probes.asked is None or not np.any(probes.asked.changes):
            raise InputError("no column of these rows can be moved so that the black box changes its answer")
        foreseen = self.fits.changes(probes.asked.rows, probes.asked.moved(training.table))
        return skill_on_changes(probes.asked.changes, foreseen)

    # --- other forms ------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """One flat row a case: outputs, contributions (as "contribution: column", if they have a meaning), fidelity.

        A pandas frame under the rows' labels or, where the rows came as a polars frame, a polars frame with the column
        "row".
        """
        return to_polars(self.flat()) if self.from_polars else self.flat()

    def flat(self) -> pd.DataFrame:
        """The same as `to_frame`, in pandas whatever the rows came as."""
        parts: list[Any] = [] if self.outputs is None else [self.model_outputs]
        parts += [self.local_predictions, self.base_values]
        if not self.fits.has_curves:
            parts.append(self.neighbourhood_shift)
        if self.fits.has_contributions:
            parts.append(self.contributions.add_prefix("contribution: "))
        parts.append(self.fidelity.assign(doubts=self.fidelity["doubts"].map("; ".join)))
        return pd.concat(parts, axis=1)

    def to_json(self) -> str:
        """All cases as JSON: a list of objects, one a case."""
        return json.dumps([one.to_dict() for one in self], ensure_ascii=False, indent=1)

    def to_shap(self) -> Any:
        """These contributions as a `shap.Explanation`, for shap's own plots.

        Base and values add up to the model's outputs, as shap's do; the rest is one more feature, of value 0.
        Numbers are numbers; levels of categories are their codes, and in words in ``display_data``.
        """
        shap = require("shap", "peers")
        words = np.array([list(one.values.values()) for one in self], dtype=object).reshape(
            len(self), len(self.training.table.columns)
        )
        data = np.where(self.training.table.is_category & (self.values < 0), np.nan, self.values)
        names, contributions = [*map(str, self.contributions.columns)], self.contributions
        if self.groups is not None:
            alone = [members[0] if len(members) == 1 else -1 for members in self.groups.members]
            data, words = (
                np.column_stack([held, np.full(len(self), none, dtype=held.dtype)])[:, alone]
                for held, none in ((data, np.nan), (words, ""))
            )
        if contributions.shape[1] > data.shape[1]:
            data = np.column_stack([data, np.zeros(len(self))])  # what is missing everywhere shap cannot colour
            words = np.column_stack([words, np.full(len(self), "", dtype=object)])
        return shap.Explanation(
            values=contributions.to_numpy(),
            base_values=self.base_values.to_numpy(dtype=float),
            data=data,
            display_data=words,
            feature_names=names,
        )


def _with_answers(found: Explanations, queries: int) -> Explanations:
    """The same with the black box asked so often about each row's reasons."""
    check_queries(queries)
    if not queries:
        return found
    if found.kind == "shapley":
        raise InputError("exact Shapley values need no questions; leave out queries")
    check_can_be_asked(found.training, found.outputs)
    assert isinstance(found.fits, CurveFits)
    assert found.references is not None
    known = found.local_predictions.to_numpy()[:, None]
    (asked,) = ask_reasons(found.training, found.frame, [found.fits], found.units, known, [found.references], queries)
    return replace(found, asked=asked)


@dataclass(eq=False, repr=False)
class Explanation:
    """The explanation of one row: a view into `Explanations`."""

    all: Explanations
    row: int

    def __str__(self) -> str:
        from limis.report.text import render

        return render(self, f"Row {self.label}").rstrip("\n")

    def __repr__(self) -> str:
        return f"<explanation of row {self.label!r}, {'' if self.trusted else 'not '}trusted>"

    @property
    def label(self) -> Any:
        """The row's label in the table it came from."""
        return self.all.index[self.row]

    @property
    def coefficients(self) -> pd.Series:
        """Slopes in original units, under (column, level)."""
        return self.all.coefficients.iloc[self.row]

    @property
    def contributions(self) -> pd.Series:
        """What each column adds, from the base value to the model's output, and the rest.

        Of ridges and trees, the step from the neighbourhood's mean to the local prediction.
        """
        if not self.all.fits.has_curves:
            return self.all.contributions.iloc[self.row]
        reasons, place = self.all.reasons_at(self.row)
        return self.all._by_column(reasons.part(np.array([place])), self.all.index[[self.row]]).iloc[0]  # noqa: SLF001

    @property
    def interactions(self) -> pd.DataFrame:
        """What pairs of columns do beyond what each does alone, the strongest first: first, second and value."""
        if not self.all.fits.has_curves:
            return self.all.interactions
        reasons, place = self.all.reasons_at(self.row)
        return self.all.pairs_in(reasons.part(np.array([place])))[1]

    @property
    def rest(self) -> float:
        """What the model says of this very row that no column could be given; of curves."""
        reasons, place = self.all.reasons_at(self.row)
        return float(reasons.rest[place])

    @property
    def reference(self) -> Reference:
        """Whom the row is compared with; of curves."""
        return self.all.reference_of(self.row)

    def against(self, reference: Any) -> Explanation:
        """The same explanation, with reasons that start from another reference: why this and not that."""
        return self.all[[self.row]].against(reference)[0]

    @property
    def fidelity(self) -> pd.Series:
        """How far to trust this explanation."""
        return self.all.fidelity.iloc[self.row]

    @property
    def status(self) -> pd.Series:
        """A word a column: fixed here, unknown here, or none."""
        return self.all.status.iloc[self.row]

    @property
    def trusted(self) -> bool:
        """Whether the error on changes is bounded within the tolerance and the row is in range."""
        return bool(self.fidelity["trusted"])

    @property
    def base_value(self) -> float:
        """Mean output of the reference; of ridges and trees of the neighbourhood."""
        return float(self.all.base_values.iloc[self.row])

    @property
    def neighbourhood_shift(self) -> float:
        """How far the neighbourhood's mean lies from the overall mean."""
        return float(self.all.neighbourhood_shift.iloc[self.row])

    @property
    def local_prediction(self) -> float:
        """What the local model says of its own row."""
        return float(self.all.local_predictions.iloc[self.row])

    @property
    def model_output(self) -> float:
        """What the black box says; absent (an AttributeError) when it was neither asked nor given."""
        return float(self.all.model_outputs.iloc[self.row])

    @cached_property
    def values(self) -> dict[str, str]:
        """The row's values in words."""
        return local_view.words(self.all.training.table, self.all.frame, self.row)

    @cached_property
    def weights(self) -> pd.Series:
        """Weight of every training row that has any, by its position among the training rows, largest first."""
        line = self.all.weights[[self.row]]
        return pd.Series(line.data, index=line.indices, name="weight").sort_values(ascending=False, kind="stable")

    def training_rows(self, k: int = 10) -> pd.DataFrame:
        """The ``k`` training rows that speak most for this explanation, with weight and black-box output."""
        top = self.weights.iloc[:k]
        rows = self.all.training.frame.iloc[top.index].copy()
        # The user's own table may have columns of these names too.
        rows.insert(0, "weight", (top / self.weights.sum()).to_numpy(), allow_duplicates=True)
        rows.insert(1, "model_output", self.all.training.outputs[top.index], allow_duplicates=True)
        return rows

    def predict(self, rows: Any) -> np.ndarray:
        """What this local model says of other rows."""
        training, fits = self.all.training, self.all.fits
        moved = MovedRows(training.table, training.table.values(training.table.read(rows)))
        said = self.local_prediction + fits.changes(np.full(len(moved), self.row), moved)
        return training.black_box.within(said) if fits.has_curves else said

    def neighbourhood(self) -> pd.DataFrame:
        """How this neighbourhood differs from all training rows, the columns that set it apart most first."""
        return local_view.neighbourhood(self.all.training, self.weights)

    def reasons(self) -> list[Reason]:
        """What leads from the base value to the model's output, largest first; the rest is not among it.

        Columns that determine one another are one reason. Of ridges and trees, what leads from the neighbourhood's
        mean to the local prediction; columns that rise and fall together among the weighted rows are one reason.
        """
        return local_view.reasons(self)

    def curve(self, column: str) -> pd.DataFrame:
        """What the model would say with other values of a column: value, output, low, high, change, own."""
        found = self.curve_frame()
        own = found[found["column"] == str(column)]
        if own.empty:
            names = list(dict.fromkeys(found["column"]))
            together = next((name for name in names if str(column) in name.split(" / ")), None)
            cure = f"; it changes together with others: {together!r}" if together else f"; there are {', '.join(names)}"
            raise InputError(f"there is no curve of {column!r}{cure}")
        return own.drop(columns=["row", "column"]).reset_index(drop=True)

    def curve_frame(self) -> pd.DataFrame:
        """All curves of this row, as in `Explanations.curves`."""
        return curve_frame(self.all, [self.row])

    def rules(self) -> list[Rule]:
        """The tree as if-then rules in original columns and units, a leaf each; the one that holds here is marked."""
        return rules(self)

    def as_list(self) -> list[tuple[str, float]]:
        """The reasons as (words, contribution) pairs; of curves the rest is the last."""
        told = [(reason.words, reason.contribution) for reason in self.reasons()]
        return [*told, (self.all.rest_name, self.rest)] if self.all.fits.has_curves else told

    def plot(self, kind: Any = "contributions", ax: Any = None, **options: Any) -> Any:
        """Draw it with matplotlib; returns the axes, which are never shown.

        ``kind`` is "contributions" (from the mean of the reference to the model's output; of ridges and trees overall
        mean → neighbourhood → local prediction), "coefficients", "curves",
        "tree", "training_rows" or "weights"; ``options`` are those of `limis.plots`, such as ``k`` or ``against``.
        """
        from limis.plots import draw_one

        if not isinstance(kind, str):  # the axes alone
            kind, ax = "contributions", kind
        return draw_one(self, kind, ax, **options)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return local_view.as_dict(self)

    def _repr_html_(self) -> str:
        from limis.report import cards

        return cards(self.all[self.row : self.row + 1], total=1)
