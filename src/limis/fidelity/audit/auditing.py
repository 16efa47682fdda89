"""``limis.audit``: hold explanations of any kind against the black box they explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from limis.blackbox import BlackBox, Output
from limis.errors import InputError
from limis.fidelity.audit import figures
from limis.fidelity.audit.exam import Box, Exam, check_rows
from limis.fidelity.audit.methods import read_methods, read_reasons
from limis.fidelity.audit.plan import Plan
from limis.fidelity.audit.result import Audit
from limis.fidelity.audit.tally import tally
from limis.fidelity.ground import Ground
from limis.fidelity.units import find_units
from limis.outputs import first_outputs
from limis.rows import TrainingRows
from limis.table import Table

MAX_QUESTIONS = 1_000_000
REFERENCE_ROWS = 100
JITTER = 0.01  # of each number's standard deviation
MOST_GROUPS, FEWEST_IN_GROUP = 12, 5


def audit(
    model: Any,
    X_train: Any,
    X: Any,
    explanations: Mapping[str, Any],
    *,
    held_out: Any = None,
    reference: Any = None,
    again: Mapping[str, Mapping[str, Any]] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    sensitive: Sequence[str] = (),
    categorical_features: Any = "auto",
    output: Output = "auto",
    max_questions: int = MAX_QUESTIONS,
    random_state: int = 0,
    verbose: int = 0,
) -> Audit:
    """Ask the model what it does when rows change, and see which explanations foresaw it.

    Parameters
    ----------
    model : object
        The black box, as for `LimisExplainer`.
    X_train : DataFrame or array
        The rows that explanations may rest on.
    X : DataFrame or array
        Rows that no fitting saw, and that ``explanations`` explain.
    explanations : dict
        Under a name each: what `LimisExplainer.explain` gives, a ``shap.Explanation``, LIME's explanations (a list, one
        a row), shapiq's ``InteractionValues`` (a list, one a row), a data frame of attributions, or a function from
        rows, in the form that the model gets them, to predictions on the scale that is audited. What a kind cannot say
        is left out. Fewer rows may be explained than X has: the first ones.
    held_out : DataFrame or array, default=None
        More rows that no fitting saw: law B takes values from them and from ``X``.
    reference : DataFrame or array, default=None
        The rows that functions know the population by; give the same ones to SHAP. 100 training rows, those of
        `reference_rows`, where not given.
    again : dict of dict, default=None
        The same rows explained again, ``{"limis": {"another seed": ..., "jitter": ...}}``: how stable reasons are.
    groups : dict, default=None
        Columns that count as one, under a name. Dummies and columns that determine one another are found.
    sensitive : list of str, default=()
        Columns by whose values promises are looked at, each by itself.
    categorical_features : "auto" or list, default="auto"
        Names or positions of number-coded columns that are really categories.
    output : {"auto", "logit", "probability"}, default="auto"
        What is explained of a classifier. Of several classes each row is audited for the one predicted.
    max_questions : int, default=1,000,000
        How many changed rows the black box may be asked about. Where they are too few for all rows of ``X``, the first
        of them are audited. What it says of the training rows and of ``X`` itself is asked besides.
    random_state : int, default=0
        Decides which questions are asked.
    verbose : int, default=0
        1 shows progress on standard error.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> import limis
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> def model(rows):
    ...     return np.asarray(rows)[:, 0] * 2.0
    >>> found = limis.audit(model, X[:200], X[200:240], {"the model itself": model}, max_questions=30_000)
    >>> found.table("single").loc[("the model itself", "B"), "any"].item()
    1.0
    """
    if not explanations:
        raise InputError("there are no explanations to audit; pass at least one, under a name")
    exam = prepare(
        model,
        X_train,
        X,
        held_out=held_out,
        reference=reference,
        groups=groups,
        categorical_features=categorical_features,
        output=output,
        max_questions=max_questions,
        random_state=random_state,
        verbose=verbose,
    )
    return judged(exam, explanations, again or {}, sensitive)


def prepare(
    model: Any,
    X_train: Any,
    X: Any,
    *,
    held_out: Any = None,
    reference: Any = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    categorical_features: Any = "auto",
    output: Output = "auto",
    max_questions: int = MAX_QUESTIONS,
    random_state: int = 0,
    verbose: int = 0,
) -> Exam:
    """An exam with nothing asked yet but what the model says of the rows; its parameters are those of `audit`."""
    table, training = Table.learn(X_train, categorical_features=categorical_features)
    black_box, outputs = first_outputs(model, output, table, training, None, None)
    return exam_of(
        TrainingRows(table, black_box, training, table.values(training), outputs)
        if outputs.ndim == 1
        else _of_classes(table, black_box, training, outputs),
        X,
        held_out=held_out,
        reference=reference,
        groups=groups,
        max_questions=max_questions,
        random_state=random_state,
        verbose=verbose,
    )


def exam_of(
    training: TrainingRows,
    X: Any,
    *,
    held_out: Any = None,
    reference: Any = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    max_questions: int = MAX_QUESTIONS,
    random_state: int = 0,
    verbose: int = 0,
) -> Exam:
    """The same on training rows whose outputs are known."""
    table, rows = training.table, training.in_training_types(training.table.read(X))
    check_rows(len(rows))
    others = [rows] if held_out is None else [rows, training.in_training_types(table.read(held_out))]
    units = find_units(table, training.values, groups)
    rng = np.random.default_rng([random_state, 99])
    ground = Ground.of(table, units, table.values(rows), training.values, rng)
    n_references = max(len(training), sum(map(len, others)))
    plan = Plan.within(max_questions, len(rows), len(units), len(ground.ranges), n_references)
    n_given, rows, ground = len(rows), rows.iloc[: plan.rows], replace(ground, values=ground.values[: plan.rows])
    box = replace(training.black_box, view=None)
    outputs = box.outputs(rows)
    classes = outputs.argmax(axis=1) if outputs.ndim == 2 else None
    return Exam(
        ground=ground,
        box=Box(box, table, classes, asked=len(training) + len(rows)),
        frame=rows,
        outputs=outputs if classes is None else outputs[np.arange(len(rows)), classes],
        training=training.frame,
        training_outputs=training.outputs if training.every is None else training.every,
        held_out=_joined(others),
        reference=reference_rows(training.frame, random_state=random_state)
        if reference is None
        else table.read(reference),
        plan=plan,
        random_state=random_state,
        n_given=n_given,
        show=bool(verbose),
    )


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Rows one after another; columns of categories stay so, with the levels of all."""
    frames = [frame.copy() for frame in frames]
    for name in frames[0]:
        if all(isinstance(frame[name].dtype, pd.CategoricalDtype) for frame in frames):
            levels = union_categoricals([frame[name] for frame in frames], ignore_order=True).categories
            for frame in frames:
                frame[name] = frame[name].cat.set_categories(levels)
    return pd.concat(frames, ignore_index=True)


def _of_classes(table: Table, black_box: BlackBox, training: pd.DataFrame, outputs: np.ndarray) -> TrainingRows:
    """Training rows with the outputs of several classes; which of them is looked at does not matter here."""
    return TrainingRows(table, black_box, training, table.values(training), outputs[:, 0], every=outputs)


def judged(
    exam: Exam, explanations: Mapping[str, Any], again: Mapping[str, Mapping[str, Any]], sensitive: Sequence[str]
) -> Audit:
    """The audit of explanations; the questions are asked when all of them have been read, unless they were."""
    groups = _groups(exam.frame, sensitive)
    unknown = [name for name in again if name not in explanations]
    if unknown:
        raise InputError(f"again names {unknown[0]!r}, which is not among the explanations")
    methods = read_methods(explanations, exam)
    repeats = {
        name: {str(why): read_reasons(f"{name}, {why}", given, exam) for why, given in own.items()}
        for name, own in again.items()
    }
    if not exam.changes:
        exam.ask()
    by_row = tally(exam, methods)
    plan = exam.plan.to_dict()
    return Audit(
        skills=figures.skills(by_row, exam.random_state),
        strongest=figures.strongest(exam, methods),
        at_row=figures.at_row(exam, methods),
        coverage=figures.coverage(by_row, methods, groups),
        intervals=figures.intervals(exam, methods),
        trust=figures.trust(by_row, exam, methods, groups),
        stability=figures.stability(methods, repeats),
        by_row=by_row,
        facts={
            "rows": len(exam.frame),
            "rows_given": exam.n_given,
            "training_rows": len(exam.training),
            "held_out_rows": len(exam.held_out),
            "reference_rows": len(exam.reference),
            "columns": len(exam.ground.table.columns),
            "counted_as_one": {
                name: [exam.ground.table.names[j] for j in members]
                for name, members in zip(exam.units.names, exam.units.members, strict=True)
                if len(members) > 1
            },
            "scale": exam.box.box.scale,
            "questions": exam.box.asked,
            "plan": plan,
            "random_state": exam.random_state,
        },
    )


def reference_rows(X_train: pd.DataFrame, n: int = REFERENCE_ROWS, random_state: int = 0) -> pd.DataFrame:
    """Training rows by which methods may know the population: one and the same for all of an audit."""
    places = np.random.default_rng([random_state, 100]).permutation(len(X_train))[:n]
    return X_train.iloc[np.sort(places)]


def jittered(X: pd.DataFrame, table: Table, X_train: pd.DataFrame, random_state: int = 0) -> pd.DataFrame:
    """The rows with every number moved by a hundredth of its column's standard deviation, at random.

    Columns of two values, dummies, number-coded categories, dates and durations stay.
    """
    rng = np.random.default_rng([random_state, 101])
    moved = X.copy()
    for column in table.columns:
        name = column.sources[0]
        if column.kind == "number" and len(column.sources) == 1 and X_train[name].nunique() > 2:
            moved[name] = X[name].astype(float) + JITTER * float(X_train[name].std()) * rng.standard_normal(len(X))
    return moved


def _groups(frame: pd.DataFrame, sensitive: Sequence[str]) -> dict[str, np.ndarray]:
    """Rows by the values of sensitive columns: (rows,) bool each."""
    if isinstance(sensitive, str):
        raise InputError(f"sensitive is a list of columns, not the text {sensitive!r}")
    found = {}
    for name in map(str, sensitive):
        if name not in frame.columns:
            raise InputError(f"sensitive names {name!r}, which is not a column of the rows")
        counts = frame[name].value_counts()
        for value in counts[counts >= FEWEST_IN_GROUP].index[:MOST_GROUPS]:
            found[f"{name} = {value}"] = (frame[name] == value).to_numpy()
    return found
