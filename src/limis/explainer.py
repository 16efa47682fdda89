"""LimisExplainer: fit on the training rows once, then explain any row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from limis.against import ALL, check_queries, everybody
from limis.answers import AnswerFolder
from limis.any_surrogate import check_regressor
from limis.blackbox import BlackBox, Output
from limis.cell_types import in_type_of
from limis.changes import RecordedChanges
from limis.check import TOLERANCE
from limis.class_explanations import ClassExplanations
from limis.classes import class_model, leading_view, parts_of_classes, pooled, rename_classes
from limis.columns import UNKNOWN
from limis.curves.asking import ask_curves
from limis.curves.model import CurveFits, CurveModel
from limis.curves.questions import MAX_QUESTIONS
from limis.errors import InputError
from limis.explanation import Explanations, Kind
from limis.fidelity.ground import RANGES
from limis.fidelity.units import find_units
from limis.given import at_most, checked_weight
from limis.jumps import find_jumps
from limis.metrics import nse
from limis.one_output import OneOutput
from limis.outputs import first_outputs, outputs_of
from limis.polars_frames import from_polars, is_polars
from limis.queries import ask_about
from limis.reference import References
from limis.rows import TrainingRows
from limis.table import Table
from limis.training import AnsweredRows, MeasuringRows, ProbeRows, TrainingLog, split_probes
from limis.training.curves import (
    CHOSEN_WEIGHTINGS,
    CURVE_WEIGHTINGS,
    MOST_PROBES,
    CurveOptions,
    check_curve_options,
    fit_curves,
)
from limis.training.fitting import TRAINED, WEIGHTINGS, FitOptions, Stage, check_device
from limis.training.measuring import CHANGES
from limis.training.objectives import OBJECTIVES, Objective
from limis.training.plans import plan_for
from limis.training.terms import Term
from limis.trees.fits import TreeModel
from limis.two_scales import TwoScales
from limis.walk import GlobalFit, LocalFits, LocalModel

if TYPE_CHECKING:
    from limis.bulk import BulkResult
    from limis.fidelity.audit import Audit
    from limis.suggest import Suggestions

MAX_ROWS = 1_000_000  # of a longer table, so many
MIN_TRAINING_ROWS = 2
# Probe rows that choose and measure ridges and trees; of curves fewer choose, and all others of so many measure.
MAX_CHOOSING, MAX_MEASURING = 2000, 1000
FEWEST_ASKED = 10  # probe rows that choose or measure, however few questions there are
FEWEST_CROSS_FITTED, MOST_CROSS_FITTED = 20, 1500


class LimisExplainer(BaseEstimator):
    """Explain each prediction of a tabular model by a small model fitted for that row.

    Parameters
    ----------
    model : object, default=None
        The black box: anything with ``predict_proba`` or ``predict``, a torch module, an XGBoost or LightGBM booster,
        or a function from rows to outputs. With None the labels ``y`` given to `fit` are explained themselves.
    surrogate : {"curves", "ridge", "tree"} or regressor, default="curves"
        The kind of small model: response curves (what the black box would say with other values, a curve a column and
        a few pairs of columns), a linear one, a tree of if-then rules, or any scikit-learn regressor that takes
        ``sample_weight``. A regressor is fitted anew for every row, which takes its time.
    max_depth : int, default=3
        How many conditions a rule of a tree may have, at most 5.
    weighting : str, default="auto"
        How training rows are weighed.

        - "two-scales" takes the level from rows that a forest fitted to the black box's outputs finds near, and the
          slopes from what the black box did when columns of such rows were changed;
        - "forest" fits a ridge on the forest's rows, "retrieved" weighs them by what is learned first;
        - "towers", "kernel" and "sum" learn weights of all rows from embeddings of the rows;
        - "pairwise" is the paper's network, "pairwise-released" the one of its released code;
        - "random" selects half of the rows at random, as a control;
        - curves have weightings of their own: "learned", or "forest", "uniform", "random" and "none" to hold against
          it; "auto" is the best of "learned", "forest" and "none" on probe rows;
        - "auto" is "two-scales" where there is a model to ask and nothing is sampled, else the better of "forest" and
          "retrieved" on probe rows.
    objective : str, default="auto"
        How a pairwise, towers, kernel or sum estimator is trained: "reinforce", "rloo", "gumbel", "weighted" (the
        gradient through the ridge, which the paper calls STE), "straight-through", "l2r", or "released"; "auto" is the
        one that suits the weighting.
    reward : list, default=None
        What the estimator is trained for: terms of `limis.training.terms` and functions of your own, added up. None:
        the error at the row and, except in the paper's own variants, on changes.
    selection_penalty : "auto" or float, default="auto"
        The paper's λ, the price of selecting rows, in units of the outputs; chosen by validation fidelity when "auto"
        (0 for towers, kernel and sum).
    candidates : "auto" or int, default="auto"
        How many rows the forest retrieves; chosen on probe rows when "auto". On two scales that is how many the level
        rests on, and 256 speak for the slopes.
    output : {"auto", "logit", "probability"}, default="auto"
        What is explained of a classifier. "auto" takes logits, unless more than 5% of the training rows have
        probabilities so near 0 or 1 that their logits mean nothing.
    inference : {"weights", "sample"}, default="weights"
        Fit with the weights, or (as an ablation, not for two scales) on rows drawn with the weights as probabilities.
    scaling : {"standard", "minmax", "none"}, default="standard"
        How numbers are scaled before the ridge penalty sees them. Results are always in original units.
    jumps : {"auto", "none"}, default="auto"
        Whether a number may have features that are 1 above a value, where the black box was seen to jump there. Two
        scales only; "none" leaves every number its slope alone.
    categorical_features : "auto" or list, default="auto"
        Names or positions of number-coded columns that are really categories.
    groups : dict, default=None
        Dummy columns that belong together: ``{"colour": ["colour_red", "colour_blue"]}`` is one column, colour.
    max_questions : int, default=500,000
        How many changed rows the black box may be asked about in `fit` for curves. Fewer make them less true; what the
        black box says of the training and probe rows themselves is asked besides.
    answers : str or path, default=None
        A folder in which what the black box says in `fit` of curves is kept, batch by batch, as Arrow files: for models
        that are slow or far away. A fit that was stopped, or that is made again with other options, asks only what is
        not there. The folder is of one model and one training table; another one is refused.
    tolerance : float, default=0.25
        How large an error on changes may be for a ridge or a tree to be trusted, in standard deviations of the outputs.
        Curves are trusted by what share of changes they are expected to foresee.
    time_budget : float, default=None
        Seconds that training a weight estimator may take.
    memory_limit : float, default=1.0
        GiB that the working arrays of one block of explanations may take.
    device : str, default="cpu"
        Where estimators over all rows are trained, and ridges and trees on two scales fitted, as torch names it
        ("cuda"). Curves are drawn by all cores of the processor wherever that is.
    n_jobs : int, default=None
        Threads that grow the forest, as in scikit-learn; None takes all cores.
    random_state : int, default=0
        Seed of everything random, all of which happens in `fit`.
    verbose : int, default=0
        1 shows progress on standard error.

    Attributes
    ----------
    skill_by_range_ : Series
        Skill on single changes by law A (to values of training rows), by range: of the 10, 50, 200 and 1,000 nearest
        rows, as far as those are a neighbourhood, and of any. Measured on probe rows that chose nothing, or on training
        rows kept from their own fit where all probe rows rewarded. Absent when there is no model to ask.
    skill_ : float
        That of the 200 nearest rows, or of the widest range below.
    nse_ : float
        Nash–Sutcliffe efficiency at the same rows.
    choices_ : DataFrame
        What "auto" tried on the other probe rows, with the numbers that decided.
    by_class_ : dict
        What explains each of more than two classes, with its own ``nse`` and ``skill``; empty otherwise.
    curve_facts_ : dict
        Of curves: ``questions``, the changed rows that fit asked about; the ``recorded_rows`` and
        ``recorded_columns``, whose responses were recorded; and ``taught_nse``, how well the taught model says what the
        black box says of rows kept from it.
    training_log_ : list
        Learning curves of a trained estimator, one for each λ tried.
    feature_names_in_, n_features_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from limis import LimisExplainer
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> def model(rows):
    ...     return np.where(rows[:, 0] > 0, rows[:, 1], rows[:, 2])
    >>> explainer = LimisExplainer(model).fit(X)
    >>> found = explainer.explain(X[:2])
    >>> bool(abs(found.base_values + found.contributions.sum(axis=1) - found.model_outputs).max() < 1e-9)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "model": "no_validation",  # what a model can be is found out by asking it
        "surrogate": [StrOptions({"ridge", "tree", "curves"}), HasMethods(["fit", "predict"])],
        "max_depth": [Interval(Integral, 1, 5, closed="both")],
        "weighting": [StrOptions({*WEIGHTINGS, *CURVE_WEIGHTINGS})],
        "objective": [StrOptions({"auto", *OBJECTIVES})],
        "reward": ["array-like", None],
        "selection_penalty": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "candidates": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
        "output": [StrOptions({"auto", "logit", "probability"})],
        "inference": [StrOptions({"weights", "sample"})],
        "scaling": [StrOptions({"standard", "minmax", "none"})],
        "jumps": [StrOptions({"auto", "none"})],
        "categorical_features": [StrOptions({"auto"}), "array-like"],
        "groups": [Mapping, None],
        "max_questions": [Interval(Integral, 1000, None, closed="left")],
        "answers": [str, PathLike, None],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "device": [str],
        "n_jobs": [Integral, None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        model: Any = None,
        *,
        surrogate: Any = "curves",
        max_depth: int = 3,
        weighting: str = "auto",
        objective: Objective | Literal["auto"] = "auto",
        reward: Sequence[Term] | None = None,
        selection_penalty: float | Literal["auto"] = "auto",
        candidates: int | Literal["auto"] = "auto",
        output: Output = "auto",
        inference: str = "weights",
        scaling: Literal["standard", "minmax", "none"] = "standard",
        jumps: Literal["auto", "none"] = "auto",
        categorical_features: Sequence[Any] | Literal["auto"] = "auto",
        groups: Mapping[str, Sequence[str]] | None = None,
        max_questions: int = MAX_QUESTIONS,
        answers: str | PathLike[str] | None = None,
        tolerance: float = TOLERANCE,
        time_budget: float | None = None,
        memory_limit: float = 1.0,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.surrogate = surrogate
        self.max_depth = max_depth
        self.weighting = weighting
        self.objective = objective
        self.reward = reward
        self.selection_penalty = selection_penalty
        self.candidates = candidates
        self.output = output
        self.inference = inference
        self.scaling = scaling
        self.jumps = jumps
        self.categorical_features = categorical_features
        self.groups = groups
        self.max_questions = max_questions
        self.answers = answers
        self.tolerance = tolerance
        self.time_budget = time_budget
        self.memory_limit = memory_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(
        cls,
        model: Any = None,
        *,
        variant: Literal["text", "released"] = "text",
        synthetic: bool = False,
        **options: Any,
    ) -> LimisExplainer:
        """The configuration of the paper: of its text, or of its released code.

        Real data is min–max scaled; ``synthetic=True`` leaves the columns as they are, as the paper does there.
        """
        if variant not in ("text", "released"):
            raise InputError(f'variant is "text" or "released", not {variant!r}')
        paper: dict[str, Any] = {
            "surrogate": "ridge",
            "weighting": "pairwise" if variant == "text" else "pairwise-released",
            "selection_penalty": "auto" if variant == "text" else 1.0,
            "scaling": "none" if synthetic else "minmax",
        }
        return cls(model, **{**paper, **options})

    # --- fit ----------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        outputs: Any = None,
        probe_rows: Any = None,
        probe_outputs: Any = None,
        sample_weight: Any = None,
        fresh_rows: Any = None,
    ) -> LimisExplainer:
        """Learn which training rows matter for which row.

        Parameters
        ----------
        X : DataFrame (pandas or polars) or array
            Training rows: those that explanations may rest on. Of polars frames, the model is asked in pandas. Of more
            than a million rows a random million is used: more would take room and time, and change little.
        y : array, default=None
            Labels; explained themselves when there is no model, and otherwise not needed.
        outputs : array, default=None
            The black box's outputs on ``X``, for a model that cannot be called from here.
        probe_rows, probe_outputs : default=None
            Held-out rows to choose and measure on. When they are not given, a tenth of ``X`` is held out; of no more
            than 1,500 rows none is for curves: each is foreseen by a fit without it; the bound is that of such fits.
            Where so few training rows come with fewer than 1,000 probe rows, training rows choose, by such fits, and
            all probe rows measure.
        sample_weight : array, default=None
            How much each training row counts, whatever row is explained.
        fresh_rows : DataFrame or array, default=None
            More rows that explanations may rest on, which the black box was not fitted to: of those it was, it may
            remember each. For curves.
        """
        self._validate_params()
        self._check_trained_options()
        if probe_rows is None and probe_outputs is not None:
            raise InputError("probe_outputs were given without probe_rows; pass both")
        if sample_weight is not None and isinstance(self.surrogate, str) and self.surrogate == "curves":
            raise InputError('sample_weight is not used by curves; use surrogate="ridge" or "tree"')
        before = dict(self.__dict__)
        try:
            self._fit(X, y, outputs, probe_rows, probe_outputs, sample_weight, fresh_rows)
        except BaseException:
            # A fit that failed midway leaves the explainer as it was.
            self.__dict__ = before
            raise
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        outputs: Any,
        probe_rows: Any,
        probe_outputs: Any,
        sample_weight: Any,
        fresh_rows: Any,
    ) -> None:
        rng = np.random.default_rng(self.random_state)
        X, y, outputs, sample_weight = at_most(MAX_ROWS, rng, from_polars(X), y, outputs, sample_weight)
        table, frame = Table.learn(
            X, categorical_features=self.categorical_features, groups=self.groups, scaling=self.scaling
        )
        if len(frame) < MIN_TRAINING_ROWS:
            raise InputError(f"X has 1 sample, a single row (n_samples=1); at least {MIN_TRAINING_ROWS} are needed")
        if isinstance(frame.index, pd.MultiIndex):
            frame = frame.set_axis(frame.index.map(str))  # one label a row, which a file can hold
        weight = checked_weight(sample_weight, len(frame))
        black_box, known = first_outputs(self.model, self.output, table, frame, y, outputs)
        if known.ndim == 2:
            black_box = leading_view(black_box, known)
        # Of the table as it is given: other options divide it otherwise.
        asked_before = self.answers is not None and black_box.can_be_asked
        folder = AnswerFolder.open(self.answers, frame, known) if asked_before else None

        held_out, kept = None, np.arange(len(frame))
        if probe_rows is not None:
            probe_frame = table.read(probe_rows, "in probe_rows")
            probe_known = outputs_of(replace(black_box, view=None), probe_frame, probe_outputs, "probe_outputs")
            held_out = self._answered(black_box, probe_frame, probe_known)
        elif not self._cross_fits(len(frame)):
            kept, probe = split_probes(len(frame), rng)
            held_out = self._answered(black_box, frame.iloc[probe], known[probe])
        frame, known, weight = frame.iloc[kept], known[kept], None if weight is None else weight[kept]

        fresh = None
        if fresh_rows is not None:
            frame, known, fresh = self._with_fresh_rows(table, black_box, frame, known, fresh_rows)
        rows = self._answered(black_box, frame, known)
        self.training_ = TrainingRows(table, black_box, frame, table.values(frame), rows.outputs, weight, rows.every)
        self.training_log_: list[TrainingLog] = []
        self.local_model_: LocalModel
        if held_out is None or self.surrogate == "curves":
            self._fit_curves(held_out, fresh, rng, folder)
        else:
            self._measure(self._fit_stage(held_out, rng), rng)
        self.n_features_in_ = len(table.source_names)
        if not table.from_array:
            self.feature_names_in_ = np.array(table.source_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _fit_stage(self, held_out: AnsweredRows, rng: np.random.Generator) -> MeasuringRows:
        """Ridges, trees or regressors; returns the rows that measure them."""
        self.__dict__.pop("curve_facts_", None)  # of a fit before
        recorded = self._record_changes(rng) if self._on_two_scales else None
        self.global_fit_ = GlobalFit.of(self.training_)
        choosing, measuring = self._divide(held_out.part(rng.permutation(len(held_out))), rng)
        asked = ProbeRows.ask(self.training_, choosing.frame, choosing.outputs, rng, choosing.every)
        # Questions that measure have a seed of their own: they are not drawn with anything that was fitted.
        own = np.random.default_rng([self.random_state, 1])
        rows = MeasuringRows.ask(self.training_, measuring.frame, measuring.outputs, measuring.every, own)
        stage = Stage(self._options(), self.training_, self.global_fit_, asked, rng).fit(recorded)
        self.local_model_ = stage.model
        self.choices_ = stage.choices_frame(self.training_.unit)
        self.training_log_ = stage.logs
        self.by_class_ = parts_of_classes(
            self.training_, lambda own, place: class_model(stage.model, stage.recorded, own, place)
        )
        return rows

    def _cross_fits(self, n_rows: int) -> bool:
        """Whether all rows of a small table are probe rows too, each of a fit without it, so that none is lost."""
        return self.surrogate == "curves" and FEWEST_CROSS_FITTED <= n_rows <= MOST_CROSS_FITTED

    def _fit_curves(
        self,
        held_out: AnsweredRows | None,
        fresh: np.ndarray | None,
        rng: np.random.Generator,
        folder: AnswerFolder | None,
    ) -> None:
        """Curves, chosen and measured on held-out rows, or on the rows of a small table by fits without them.

        Of a small table with few held-out rows training rows choose so, and all held-out rows measure.
        """
        training = self.training_
        training.black_box.answers = folder
        self.global_fit_ = GlobalFit.of(training)
        n_given = len(training) if fresh is None else int((~fresh).sum())
        order = rng.permutation(len(training if held_out is None else held_out))
        places = measured = None  # of the training rows that choose and measure, each by a fit without it
        rows = AnsweredRows(training.frame, training.outputs, training.every)
        if held_out is None:
            places, measured = order[: len(order) // 2], order[len(order) // 2 :]
            choosing, measuring = rows.part(places), rows.part(measured)
        elif self._cross_fits(n_given) and len(held_out) < 2 * MOST_PROBES and self.weighting in CHOSEN_WEIGHTINGS:
            # Few probe rows would choose badly and measure little, were they shared out: all of them measure.
            places = rng.permutation(len(training))[:MOST_PROBES]
            choosing, measuring = rows.part(places), held_out.part(order)
        else:
            border = min(MOST_PROBES, len(order) // 2)
            choosing = held_out.part(order[:border])
            measuring = held_out.part(order[border : MAX_CHOOSING + MAX_MEASURING])
        # Rows that choose and those that measure may have about an eighth of the questions each, groups half of that.
        most = max(FEWEST_ASKED, self.max_questions // (8 * CHANGES * (len(RANGES) + 1)))
        if not training.black_box.can_be_asked:
            most = len(training)
        choosing, measuring = (part.part(np.arange(min(len(part), most))) for part in (choosing, measuring))
        places, measured = (None if part is None else part[:most] for part in (places, measured))
        units = find_units(training.table, training.values)
        asked, to_measure = (
            MeasuringRows.ask(
                training,
                part.frame,
                part.outputs,
                part.every,
                np.random.default_rng([self.random_state, seed]),
                units,
                self.max_questions // 16 if part is measuring else 0,
            )
            for part, seed in ((choosing, 2), (measuring, 1))
        )
        options = CurveOptions(**{field.name: getattr(self, field.name) for field in fields(CurveOptions)})
        n_asked = asked.n_questions + to_measure.n_questions
        options = replace(options, max_questions=max(0, self.max_questions - n_asked))
        found = fit_curves(training, asked, units, options, rng, fresh=fresh, places=places)
        found.facts["questions"] += n_asked
        self.local_model_ = found.model
        self.choices_ = found.choices_frame()
        self.curve_facts_ = found.facts
        self.by_class_ = parts_of_classes(training, found.of_class)
        self._measure(to_measure, rng, None if measured is None else partial(found.fits_of_others, measured))
        for part in (training, *(one.training for one in self.by_class_.values())):
            part.black_box.answers = None  # rows that are explained are asked about as they come

    def _with_fresh_rows(
        self,
        table: Table,
        black_box: BlackBox,
        frame: pd.DataFrame,
        known: np.ndarray,
        fresh_rows: Any,
    ) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """The training rows with fresh ones after them, their outputs, and which of them are fresh."""
        if self.surrogate != "curves":
            raise InputError('fresh_rows are for curves; use surrogate="curves", or add them to X')
        if not black_box.can_be_asked:
            raise InputError("fresh_rows need a model to ask; pass it to LimisExplainer")
        rows = table.read(fresh_rows, "in fresh_rows")
        strange = (table.values(rows) == UNKNOWN) & table.is_category
        if strange.any():
            name = table.names[int(np.argwhere(strange)[0][1])]
            raise InputError(f"fresh_rows hold a value of {name!r} that no row of X has; leave such rows out")
        rows = pd.DataFrame({name: in_type_of(rows[name], seen) for name, seen in frame.items()}, rows.index)
        if isinstance(rows.index, pd.MultiIndex):
            rows = rows.set_axis(rows.index.map(str))
        outputs = outputs_of(replace(black_box, view=None), rows, None, "fresh_rows")
        fresh = np.arange(len(frame) + len(rows)) >= len(frame)
        return pd.concat([frame, rows]), np.concatenate([known, outputs]), fresh

    @staticmethod
    def _answered(black_box: BlackBox, frame: pd.DataFrame, known: np.ndarray) -> AnsweredRows:
        """Rows with one output each and, where there are several classes, the outputs of all."""
        if known.ndim == 1:
            return AnsweredRows(frame, known)
        assert black_box.view is not None
        return AnsweredRows(frame, black_box.view(known), known)

    def _measure(
        self,
        measuring: MeasuringRows,
        rng: np.random.Generator,
        fits_of_others: Callable[..., list[tuple[CurveFits, MeasuringRows]]] | None = None,
    ) -> None:
        """What the explanations are worth; of several classes each, and all together.

        fits_of_others : where the measuring rows are training rows, their surrogates by fits without them.
        """
        for name in ("skill_", "skill_by_range_", "nse_"):
            if hasattr(self, name):
                delattr(self, name)
        whole = self._whole()
        whole.measure(measuring, self.memory_limit, rng, fits_of_others and fits_of_others(measuring))
        self.bound_, self.trust_ = whole.bound, whole.trust
        nse_, skills = whole.nse, whole.skills
        for place, part in enumerate(self.by_class_.values()):
            own = measuring.of_class(place)
            part.measure(own, self.memory_limit, rng, fits_of_others and fits_of_others(own, place))
        parts = self.by_class_.values()
        # All classes together, those counting more whose outputs vary more.
        if nse_ is not None and measuring.rows.every is not None:
            nse_ = pooled([part.nse for part in parts], measuring.rows.every.var(axis=0))
        if self.by_class_:
            skills = {name: self._pooled_skill(name, part) for name, part in measuring.by_range.items()}
        if nse_ is not None:
            self.nse_ = nse_
        if skills:
            self.skill_by_range_ = pd.Series(skills, name="skill").rename_axis("nearest rows")
            self.skill_ = float(self.skill_by_range_.get(measuring.promised_range, np.nan))

    def _pooled_skill(self, reach: str, measuring: ProbeRows) -> float:
        """Skill of all classes together, those counting more whose outputs change more."""
        assert measuring.asked is not None
        assert measuring.asked.every is not None
        skills = [part.skills.get(reach, np.nan) for part in self.by_class_.values()]
        return pooled(skills, (measuring.asked.every**2).sum(axis=0))

    def _whole(self) -> OneOutput:
        """What explains the only output or, of several classes, the direction that all were chosen on."""
        return OneOutput(self.training_, self.global_fit_, self.local_model_)

    def _check_trained_options(self) -> None:
        """Refuse what would be left unused: a reward or an objective where nothing is trained for it."""
        if not isinstance(self.surrogate, str):
            check_regressor(self.surrogate)
        if self.surrogate == "curves":
            self._check_curve_options()
            check_curve_options(self.weighting, self.objective)
            check_device(self.device)
            return
        if self.answers is not None:
            raise InputError('answers are kept for curves alone; leave the folder out, or use surrogate="curves"')
        if self.weighting in CURVE_WEIGHTINGS and self.weighting not in WEIGHTINGS:
            raise InputError(f'weighting={self.weighting!r} is for curves; use surrogate="curves"')
        if self.weighting not in TRAINED and self.objective != "auto":
            raise InputError(f"objective={self.objective!r} needs a weighting that is trained: {', '.join(TRAINED)}")
        if self.reward is not None:
            if self.weighting not in (*TRAINED, "retrieved"):
                raise InputError(f"reward needs a weighting that is trained: retrieved, {', '.join(TRAINED)}")
            if len(self.reward) == 0 or not all(callable(term) for term in self.reward):
                raise InputError(f"reward is a list of terms and functions, at least one, not {self.reward!r}")

    def _check_curve_options(self) -> None:
        """Refuse what curves do not use."""
        given = self.get_params(deep=False)
        usual = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        unused = ("reward", "selection_penalty", "inference", "jumps", "scaling", "max_depth", "time_budget")
        for name in unused:
            if given[name] != usual[name]:
                raise InputError(f'{name} is not used by curves; leave it out, or use surrogate="ridge" or "tree"')

    @property
    def _on_two_scales(self) -> bool:
        can_be_asked = self.training_.black_box.can_be_asked
        if self.weighting == "auto":
            return self.inference == "weights" and can_be_asked
        if self.weighting != "two-scales":
            return False
        if not can_be_asked:
            raise InputError('weighting="two-scales" asks the model about changed rows; pass a model')
        if self.inference != "weights":
            raise InputError('weighting="two-scales" has no sampling; use weighting="forest" with inference="sample"')
        return True

    def _record_changes(self, rng: np.random.Generator) -> RecordedChanges:
        """Ask the black box about changed training rows, and see where it jumps."""
        recorded = RecordedChanges.ask(self.training_, rng)
        if self.jumps == "auto":
            self.training_ = self.training_.with_jumps(find_jumps(self.training_, recorded, rng))
        return recorded

    def _options(self) -> FitOptions:
        return FitOptions(**{field.name: getattr(self, field.name) for field in fields(FitOptions)})

    def _divide(self, held_out: AnsweredRows, rng: np.random.Generator) -> tuple[AnsweredRows, AnsweredRows]:
        """Rows that choose and rows that measure: a number chosen for being high is no measurement.

        Where probe rows reward an estimator, as in the paper, all of them do. Training rows then measure: each is kept
        from its own fit, and none has rewarded.
        """
        training, n = self.training_, min(len(held_out), MAX_CHOOSING + MAX_MEASURING)
        if self.weighting in TRAINED and plan_for(self.weighting, self.objective).probes == "held-out":
            choosing = held_out.part(np.arange(n))
            every = None if training.every is None else training.every
            measuring = AnsweredRows(training.frame, training.outputs, every)
            return choosing, measuring.part(np.sort(rng.permutation(len(training))[:MAX_MEASURING]))
        border = n - min(MAX_MEASURING, (n + 1) // 2)
        return held_out.part(np.arange(border)), held_out.part(np.arange(border, n))

    # --- explain --------------------------------------------------------------------------------------

    def explain(
        self,
        X: Any,
        *,
        outputs: Any = None,
        queries: int = 0,
        reference: Any = "all",
        reasons: Kind = "curves",
        reason_queries: int = 0,
        until_trusted: int = 0,
    ) -> Any:
        """Explain rows. The black box is asked once a row, unless its outputs are given.

        Returns `Explanations` or, where the model has more than two classes, `ClassExplanations`.

        Parameters
        ----------
        X : DataFrame (pandas or polars) or array
            Rows with the columns seen in `fit`, in any order.
        outputs : array, default=None
            The black box's outputs on ``X``.
        queries : int, default=0
            How many more questions at most to ask the black box about each row: what it does when columns of the row
            itself take other values, near and far. Curves then pass through its answers, which are asked for where they
            are least sure. Slopes of a number move towards those by the answers as far as these foresee an answer that
            was left out better than the slopes did before, and end with the values asked about; what levels do is what
            was answered. Three questions a column are the fewest that tell of a number. The bound on the error on
            changes is still the one of the explanation without questions.
        reference : str, dict, DataFrame, Series or array, default="all"
            Whom reasons compare each row with: "all" training rows; those of a condition ("sex == 'Female'") or a group
            ({"sex": "Female"}); "other outcome", those that are predicted otherwise; "near threshold"; rows of your
            own, which the model is asked about; or one row ("why her and not him"). ``found.against(reference)`` gives
            the reasons from another one. For curves.
        reasons : {"curves", "shapley"}, default="curves"
            "curves": what was learned at fit says, with nothing asked. "shapley": Shapley values of the model itself,
            exact, and its pairs, where it is an ensemble of trees that the shap package can read. Both are
            interventional, against the rows (100 of many) that stand for the reference, and differ by what was not
            learned of the model. For curves.
        reason_queries : int, default=0
            How many questions about each row's reasons the black box may be asked besides: on walks that lead from the
            row to reference rows, one column after another. Reasons are then unbiased, whatever was learned at fit, and
            have standard errors (``found.contribution_errors``). For curves.
        until_trusted : int, default=0
            How many questions the black box may be asked about each row whose explanation is not trusted: most of them
            mend its curves and reasons, the others measure what these are then worth.
            ``found.fidelity["questions"]`` says how many were asked. For curves, of one output.
        """
        check_is_fitted(self, "training_")
        self._check_queries(queries)
        self._check_queries(reason_queries, "reason_queries")
        self._check_queries(until_trusted, "until_trusted")
        has_curves = isinstance(self.local_model_, CurveModel)
        if not has_curves and not (isinstance(reference, str) and reference == ALL):
            raise InputError('reference is for curves, whose reasons start from it; use surrogate="curves"')
        self._check_reasons(reasons, queries, reason_queries, until_trusted)
        training = self.training_
        frame = training.table.read(X)
        values = training.table.values(frame)
        frame = training.in_training_types(frame)
        if self.by_class_:
            several = self._explain_classes(frame, values, outputs, queries, is_polars(X))
            return several.against(reference, queries=int(reason_queries)) if has_curves else several
        known = None
        if outputs is not None or training.black_box.can_be_asked:
            known = outputs_of(training.black_box, frame, outputs, "outputs")
        fits = self._whole().fits(values, self.memory_limit, show=bool(self.verbose))
        informed = None
        if queries:
            assert known is not None
            informed = self._informed(frame, values, known, fits, int(queries))
        found = Explanations(
            training=training,
            frame=frame,
            values=values,
            fits=fits if informed is None else informed,
            bound_fits=fits,
            outputs=known,
            bound=self.bound_,
            tolerance=self.tolerance * training.output_deviation,
            from_polars=is_polars(X),
            references=References.one(everybody(training), len(frame)) if has_curves else None,
            trust=self.trust_,
        )
        if has_curves:
            found = found.against(reference, queries=int(reason_queries))
        if reasons == "shapley":
            return found.as_shapley()
        return found.until_trusted(int(until_trusted), show=bool(self.verbose)) if until_trusted else found

    def _informed(
        self, frame: pd.DataFrame, values: np.ndarray, known: np.ndarray, fits: LocalFits, queries: int
    ) -> LocalFits:
        """The same surrogates with the black box's answers to questions about the rows themselves."""
        if isinstance(fits, CurveFits):
            return ask_curves(self.training_, frame, known, fits, queries)
        return ask_about(self.training_, frame, values, known, fits, queries)

    def _explain_classes(
        self, frame: pd.DataFrame, values: np.ndarray, outputs: Any, queries: int, from_polars: bool
    ) -> ClassExplanations:
        if queries:
            raise InputError("queries are for one output so far; pass a function that gives one class's probability")
        box = self.training_.black_box
        every = None
        if outputs is not None or box.can_be_asked:
            every = outputs_of(replace(box, view=None), frame, outputs, "outputs")
        chances = None if every is None else box.to_probabilities(every)
        parts = []
        for place, part in enumerate(self.by_class_.values()):
            fits = part.fits(values, self.memory_limit, show=bool(self.verbose) and place == 0)
            parts.append(
                Explanations(
                    training=part.training,
                    frame=frame,
                    values=values,
                    fits=fits,
                    bound_fits=fits,
                    outputs=None if every is None else every[:, place],
                    bound=part.bound,
                    tolerance=self.tolerance * part.training.output_deviation,
                    chances=None if chances is None else chances[:, place],
                    from_polars=from_polars,
                    trust=part.trust,
                )
            )
        whole = self.training_ if isinstance(self.local_model_, CurveModel) else None
        return ClassExplanations(list(self.by_class_), parts, whole)

    __call__ = explain

    def explain_dataset(
        self,
        source: Any,
        output: Any,
        *,
        cluster: str | None = None,
        workers: int = 2,
        rows_a_part: int = 5000,
        outputs: str | None = None,
        one_class: Any = None,
        queries: int = 0,
        reference: Any = "all",
        reasons: Kind = "curves",
        reason_queries: int = 0,
        until_trusted: int = 0,
    ) -> BulkResult:
        """Explain Parquet files that may be larger than memory, with several workers, into a folder of Parquet files.

        The lines are those of ``limis explain -o explained.csv``: the columns of the row, then what is told of it; of
        more than two classes, a line a row and class. The column ``row_number`` has the number of the row in the
        whole input, from 0, the files being taken in the order of their names. ``pandas.read_parquet`` reads the
        folder, and so do others.

        Run the same again after a crash or a stop, and it goes on: parts that are finished are kept, and no row is
        lost or told twice. A worker that dies is replaced.

        Parameters
        ----------
        source : str or path
            A Parquet file, or a folder of them; folders in it are walked too.
        output : str or path
            A new folder, an empty one, or that of the same work begun before.
        cluster : str, default=None
            None: processes on this machine. "auto": Ray, on the cluster that this process or ``RAY_ADDRESS`` is
            connected to, else started on this machine. Or the address of a Ray cluster; its machines must see
            ``source`` and ``output`` under the same paths.
        workers : int, default=2
            How many work at a time, each on one core and holding the explainer once. They share ``memory_limit``.
        rows_a_part : int, default=5000
            How many rows a worker has in memory, and an output file tells of, at most.
        outputs : str, default=None
            A column of the rows with the black box's outputs, which is then not asked.
        one_class : object, default=None
            Of more than two classes, the one to tell of.
        queries, reason_queries, until_trusted : int, default=0
            As in `explain`.
        reference : str or dict, default="all"
            As in `explain`: a condition or a group of training rows, "other outcome" or "near threshold".
        reasons : {"curves", "shapley"}, default="curves"
            As in `explain`.

        Returns
        -------
        BulkResult
            ``rows``, ``trusted``, ``parts``, ``parts_found`` (from a run before) and ``folder``.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"hours": [20, 30, 40, 50] * 30, "team": ["a", "b", "c"] * 40})
        >>> def pay(rows):
        ...     return rows["hours"] * (1.0 + (rows["team"] == "b"))
        >>> explainer = LimisExplainer(pay).fit(rows)
        >>> with TemporaryDirectory() as folder:
        ...     rows.to_parquet(Path(folder, "rows.parquet"))
        ...     done = explainer.explain_dataset(Path(folder, "rows.parquet"), Path(folder, "explained"), workers=1)
        ...     print(done.rows, done.parts, len(pd.read_parquet(done.folder)))
        120 1 120
        """
        from limis.bulk import explain_dataset

        check_is_fitted(self, "training_")
        return explain_dataset(
            self,
            source,
            output,
            cluster=cluster,
            workers=workers,
            rows_a_part=rows_a_part,
            outputs=outputs,
            one_class=one_class,
            questions={
                "queries": queries,
                "reference": reference,
                "reasons": reasons,
                "reason_queries": reason_queries,
                "until_trusted": until_trusted,
            },
        )

    def suggest(
        self,
        X: Any,
        target: Any = None,
        *,
        immutable: Iterable[Any] | str = (),
        ranges: Mapping[Any, Any] | None = None,
        directions: Mapping[Any, str] | None = None,
        together: Sequence[Sequence[Any]] | Literal["auto"] = "auto",
        n: int = 3,
        max_queries: int = 1000,
        outputs: Any = None,
    ) -> Suggestions:
        """Suggest changes of rows for which the black box says something else, each checked on the black box.

        Columns only move to values that training rows hold. The explanation proposes first; then single changes are
        asked about, and pairs and more of the best of them. What is found is made as small as it gets. A row's
        suggestions do not depend on the rows beside it.

        Parameters
        ----------
        X : DataFrame (pandas or polars) or array
            Rows with the columns seen in `fit`, in any order.
        target : default=None
            What the black box should say. For a classifier a class: of two by default the one that a row does not have,
            of more it must be named. For values a level such as "> 100" or "<= 3", or "up" or "down" for a step beyond
            ``tolerance``. Rows that have it already are left alone, and say so; if all have it, that is an error.
        immutable : list of str, default=()
            Columns that may not change.
        ranges : dict, default=None
            Where columns may move to: ``{"hours": (20, 60)}`` with both ends allowed and None for an open one,
            ``{"job": ["clerk", "sales"]}`` for categories. A value that is outside may stay as it is.
        directions : dict, default=None
            Numbers that may only go "up" or "down": ``{"age": "up"}``.
        together : "auto" or list of tuples of str, default="auto"
            Columns that change only together, to values that some training row holds side by side; if one of them is
            immutable, all are. "auto": those of which one determines another in the training rows. (): none.
        n : int, default=3
            How many suggestions to make for each row.
        max_queries : int, default=1000
            How many changes of each row the black box may be asked about.
        outputs : array, default=None
            The black box's outputs on ``X``; a model to ask is needed all the same.

        Returns
        -------
        Suggestions
            For each row those that change few columns first, then those that lead less far. Where none was found, the
            reason and what the explanation proposed, marked as not confirmed.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"hours": [20, 30, 40, 50] * 30, "team": ["a", "b", "c"] * 40})
        >>> def pay(rows):
        ...     return rows["hours"] * (1.0 + (rows["team"] == "b"))
        >>> found = LimisExplainer(pay).fit(rows).suggest(rows.iloc[[1]], "> 70", immutable=["team"])
        >>> print(found[0][0])
        hours: 30 -> 40 (confirmed: 60 -> 80)
        """
        from limis.suggest import suggest

        return suggest(
            self.explain(X, outputs=outputs),
            target,
            immutable=immutable,
            ranges=ranges,
            directions=directions,
            together=together,
            n=n,
            max_queries=max_queries,
            show=bool(self.verbose),
        )

    def audit(
        self,
        X: Any,
        *,
        held_out: Any = None,
        against: Mapping[str, Any] | None = None,
        queries: int = 0,
        sensitive: Sequence[str] = (),
        max_questions: int = 1_000_000,
        random_state: int = 0,
    ) -> Audit:
        """Ask the black box what it does when rows change, and see what explanations foresaw: `limis.audit`.

        Parameters
        ----------
        X : DataFrame or array
            Rows that fitting never saw; a hundred give narrow intervals.
        held_out : DataFrame or array, default=None
            More such rows: law B takes values from them.
        against : dict, default=None
            Other explanations of the same rows, of any kind that `limis.audit` reads, under a name each.
        queries : int, default=0
            As in `explain`.
        sensitive : list of str, default=()
            Columns by whose values promises are looked at.
        max_questions : int, default=1,000,000
            How many changed rows the black box may be asked about; where they are too few, the first rows of ``X`` are
            audited.
        random_state : int, default=0
            Decides which questions are asked.

        Returns
        -------
        Audit
            Tables, sentences (``summary()``) and a page (``to_html()``). Reasons are also asked for after a jitter of
            every number by a hundredth of its standard deviation.
        """
        from limis.fidelity.audit import exam_of, jittered, judged

        check_is_fitted(self, "training_")
        training = self.training_
        if not training.black_box.can_be_asked:
            raise InputError("an audit asks the model; pass it to LimisExplainer, or to limis.load")
        exam = exam_of(
            training, X, held_out=held_out, max_questions=max_questions, random_state=random_state, verbose=self.verbose
        )
        if "limis" in (against or {}):
            raise InputError("against names 'limis', which is this explainer; choose another name")
        moved = jittered(exam.frame, training.table, training.frame, random_state)
        explanations = {"limis": self.explain(exam.frame, queries=queries), **(against or {})}
        return judged(exam, explanations, {"limis": {"jitter": self.explain(moved, queries=queries)}}, sensitive)

    def score(self, X: Any, y: Any = None) -> float:
        """NSE of the local predictions at rows, against the black box (or ``y``, where there is no model).

        Of several classes, the errors and the variances of all are added up first.
        """
        found = self.explain(X, outputs=None if self.training_.black_box.can_be_asked else y)
        # Not the local predictions: curves stand at what the black box says of the row.
        if isinstance(found, ClassExplanations):
            said = found.model_outputs.to_numpy()
            expected = np.column_stack([part.fits.predictions() for part in found.parts])
            return float(1 - ((said - expected) ** 2).sum() / ((said - said.mean(axis=0)) ** 2).sum())
        return nse(found.model_outputs.to_numpy(), found.fits.predictions())

    def _check_reasons(self, reasons: Any, queries: int, reason_queries: int, until_trusted: int) -> None:
        """Refuse kinds of reasons, and questions about them, that go with nothing else that was asked for."""
        has_curves = isinstance(self.local_model_, CurveModel)
        if (reason_queries or until_trusted) and not has_curves:
            name = "reason_queries" if reason_queries else "until_trusted"
            raise InputError(f'{name} are questions for curves; use surrogate="curves", or queries for ridges')
        if reasons not in get_args(Kind):
            raise InputError(f'reasons are "curves" or "shapley", not {reasons!r}')
        if reasons == "shapley" and (not has_curves or self.by_class_ or reason_queries or until_trusted):
            raise InputError(
                'reasons="shapley" are of curves and of one output, and exact: leave out reason_queries and '
                "until_trusted, or the reasons"
            )
        if until_trusted and (queries or reason_queries):
            raise InputError("until_trusted spends questions where they are needed; leave out the other queries")
        if until_trusted and self.by_class_:
            raise InputError("until_trusted is for one output; pass a function that gives one class's probability")

    def _check_queries(self, queries: Any, name: str = "queries") -> None:
        check_queries(queries, name)
        if queries == 0:
            return
        if not self.training_.black_box.can_be_asked:
            raise InputError(f"{name} need a model to ask; pass it to LimisExplainer, or to limis.load")
        if isinstance(self.local_model_, CurveModel):
            return
        if isinstance(self.local_model_, TreeModel):
            raise InputError('queries are answers about slopes, which trees do not have; use surrogate="ridge"')
        if not isinstance(self.local_model_, TwoScales):
            raise InputError('queries need weighting="two-scales", which is also what "auto" is without sampling')

    def to(self, device: str) -> LimisExplainer:
        """Explain on another device from now on, as torch names it: "cuda", or "cpu". A loaded explainer is on the CPU.

        On an accelerator many rows are explained at a time, with the same results up to rounding. It fits ridges and
        trees on two scales; everything else stays on the CPU, where all cores draw curves.
        """
        check_is_fitted(self, "training_")
        if not isinstance(device, str):
            raise InputError(f'device is a name such as "cuda" or "cpu", not {device!r}')
        check_device(device)
        for model in [self.local_model_, *(part.local_model for part in self.by_class_.values())]:
            base = getattr(model, "base", model)
            if isinstance(base, TwoScales):
                base.move(device)
        self.device = device
        return self

    # --- saving ----------------------------------------------------------------------------------------

    def save(self, path: Any, *, include_model: bool | Literal["auto"] = "auto") -> None:
        """Write the fitted explainer to one file, without pickle.

        XGBoost and LightGBM models travel inside it, in their native format, when ``include_model`` is "auto" or
        True; other models are passed again to `limis.load`.
        """
        from limis.store import save

        check_is_fitted(self, "training_")
        save(self, path, include_model=include_model)

    def name_classes(self, classes: Sequence[Any]) -> LimisExplainer:
        """Say what the classes are called, in their order, where the model only counts them (as boosters do)."""
        check_is_fitted(self, "training_")
        known = self.training_.black_box
        if not known.is_classifier or len(classes) != known.n_classes:
            raise InputError(f"the model does not have {len(classes)} classes")
        if len(set(classes)) < len(classes):
            repeated = next(label for label in classes if list(classes).count(label) > 1)
            raise InputError(f"class {repeated!r} is named twice; each class has a name of its own")
        if self.by_class_:
            self.by_class_ = rename_classes(self.by_class_, self.training_, list(classes))
        else:
            known.classes = list(classes)
        return self

    # --- scikit-learn's conventions -----------------------------------------------------------------------

    def __sklearn_clone__(self) -> LimisExplainer:
        # scikit-learn's own clone would unfit the black box.
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = self.model is None
        return tags
