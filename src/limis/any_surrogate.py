"""Any scikit-learn regressor that takes sample weights as the local model, fitted once a row."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier

from limis.errors import InputError
from limis.function_fits import FunctionFits
from limis.rows import TrainingRows
from limis.surrogate.fitted_tree import FittedTree
from limis.walk import SMALL_BLOCK, GlobalFit, LocalFits, LocalModel


def check_regressor(regressor: Any) -> None:
    """Refuse what cannot be a surrogate; an InputError says why."""
    name = type(regressor).__name__
    if isinstance(regressor, type):
        raise InputError(f"surrogate is the class {regressor.__name__}; pass one of it: {regressor.__name__}()")
    if not (hasattr(regressor, "fit") and hasattr(regressor, "predict") and hasattr(regressor, "get_params")):
        raise InputError(f'surrogate is "ridge", "tree" or a scikit-learn regressor, not {regressor!r}')
    if hasattr(regressor, "predict_proba") or is_classifier(regressor):
        raise InputError(f"surrogate={name} is a classifier; the local model predicts numbers: use a regressor")
    if "sample_weight" not in inspect.signature(regressor.fit).parameters:
        raise InputError(f"surrogate={name} takes no sample_weight in fit, so it cannot be fitted on weighted rows")


@dataclass
class AnySurrogate:
    """A regressor of the user's choice for each row, on the rows that another local model weighs.

    Parameters
    ----------
    base : LocalModel
        Says which rows matter.
    regressor : estimator
        Not fitted; a clone of it is, for every row. A ``random_state`` left open is 0 in all of them, so that a row is
        explained alike each time.
    n_jobs : int, default=None
        Rows fitted at once, as in joblib.
    """

    base: LocalModel
    regressor: Any
    n_jobs: int | None = None

    def rows_at_once(self, training: TrainingRows, memory_limit: float) -> int:
        """As many as the base takes, but few: their surrogates take more room."""
        return min(SMALL_BLOCK, self.base.rows_at_once(training, memory_limit))

    def fit(self, training: TrainingRows, fallback: GlobalFit, values: np.ndarray) -> LocalFits:
        """The regressors of one block of rows."""
        base = self.base.fit(training, fallback, values)
        regressor = _settled(self.regressor)
        features = training.features.double().numpy()
        lines = [base.weights[[row]] for row in range(len(values))]
        fitted = iter(
            Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_one)(regressor, features[line.indices], training.outputs[line.indices], line.data, row)
                for line, row, empty in zip(lines, base.features, base.empty, strict=True)
                if not empty
            )
        )
        return _as_fits(base, [None if empty else next(fitted) for empty in base.empty])


@dataclass(eq=False, kw_only=True)
class RegressorFits(FunctionFits):
    """Fitted regressors. Linear ones and trees tell what leads to their predictions, others do not."""

    said: np.ndarray  # (rows,) g at the explained rows
    telling: np.ndarray  # (rows,) "linear", "tree" or "": what the parts are read from

    @property
    def has_coefficients(self) -> bool:
        """Whether all of them are linear."""
        return bool((self.telling == "linear").all())

    @property
    def has_contributions(self) -> bool:
        """Whether all of them are linear or trees."""
        return bool((self.telling != "").all())

    def predictions(self) -> np.ndarray:
        """g at the explained rows."""
        return self.said

    def weighted_differences(self) -> np.ndarray:
        """Each feature's part in the step from the level to the prediction: (rows, features)."""
        if not self.has_contributions:
            name = type(getattr(self.functions[0], "model", None)).__name__
            raise InputError(
                f"contributions have no meaning for {name}, which is neither linear nor a tree; what it says is in "
                "local_predictions, predict() and fidelity"
            )
        return self.parts


@dataclass
class _Fitted:
    """One row's regressor and what it says there."""

    model: Any
    said: float
    level: float
    residual: float
    telling: str
    parts: np.ndarray
    coefficients: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """What it says of rows."""
        return np.asarray(self.model.predict(features), dtype=np.float64).reshape(len(features))


@dataclass
class _Global:
    """The global model, where nothing could be fitted."""

    coefficients: np.ndarray
    means: np.ndarray
    level: float

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """What it says of rows."""
        return self.level + (features - self.means) @ self.coefficients


def _settled(regressor: Any) -> Any:
    """A clone whose random states, also of estimators inside it, are settled."""
    names = [name for name, value in regressor.get_params().items() if value is None]
    return clone(regressor).set_params(**{name: 0 for name in names if name.split("__")[-1] == "random_state"})


def _fit_one(
    regressor: Any, features: np.ndarray, outputs: np.ndarray, weights: np.ndarray, row: np.ndarray
) -> _Fitted:
    try:
        model = clone(regressor).fit(features, outputs, sample_weight=weights)
    except Exception as error:  # the regressor is the user's choice: whatever it raises is told with its name
        name = type(regressor).__name__
        raise InputError(f"surrogate={name} could not be fitted on the weighted rows of a row: {error}") from error
    share = weights / weights.sum()
    residual = float(share @ (outputs - np.ravel(model.predict(features))) ** 2)
    said = float(np.ravel(model.predict(row[None]))[0])
    nothing = np.zeros(len(row))
    if _is_linear(model, features):
        coefficients = np.ravel(model.coef_).astype(np.float64)
        parts = coefficients * (row - share @ features)
        return _Fitted(model, said, said - float(parts.sum()), residual, "linear", parts, coefficients)
    if hasattr(model, "tree_"):
        tree = FittedTree(model.tree_, model.tree_.value[:, 0, 0])
        return _Fitted(model, said, tree.level, residual, "tree", tree.parts(row[None])[0], nothing)
    return _Fitted(model, said, float(share @ outputs), residual, "", nothing, nothing)


def _is_linear(model: Any, features: np.ndarray) -> bool:
    """Whether what it says is its coefficients times the features; not so behind a link function."""
    if np.size(getattr(model, "coef_", ())) != features.shape[1]:
        return False
    straight = features @ np.ravel(model.coef_) + np.ravel(getattr(model, "intercept_", 0.0))
    return bool(np.allclose(straight, np.ravel(model.predict(features)), rtol=1e-6, atol=1e-9))


def _as_fits(base: LocalFits, found: list[_Fitted | None]) -> RegressorFits:
    """The fits of the base with the regressors in their place; where there is none, the base's own is kept."""
    held: dict[str, Any] = {one.name: np.copy(getattr(base, one.name)) for one in fields(LocalFits) if _dense(one.name)}
    functions = np.empty(len(found), dtype=object)
    said, parts = base.predictions(), base.weighted_differences()
    telling = np.full(len(found), "linear", dtype="<U6")  # as the global model is
    for row, one in enumerate(found):
        if one is None:
            functions[row] = _Global(base.coefficients[row], base.feature_means[row], float(base.levels[row]))
            continue
        functions[row], telling[row] = one, one.telling
        said[row], parts[row] = one.said, one.parts
        held["levels"][row], held["residual_mean_square"][row] = one.level, one.residual
        held["coefficients"][row] = one.coefficients
    weights = {"weights": base.weights, "slope_weights": base.slope_weights}
    return RegressorFits(**held, **weights, functions=functions, parts=parts, said=said, telling=telling)


def _dense(name: str) -> bool:
    return name not in ("weights", "slope_weights", "spans")
