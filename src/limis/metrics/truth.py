"""How near explanations come to the truth, where it is known: coefficients, and which rows belong together."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import rankdata

from limis.errors import InputError
from limis.metrics.arrays import alike, finite

__all__ = ["awd", "awd_nonzero", "awd_norm", "awd_positive", "selection_auc"]


def awd_nonzero(true_coefficients: ArrayLike, estimated_coefficients: ArrayLike) -> float:
    """Absolute weight difference over the non-zero true coefficients.

    The mean of abs(ŵ − w) over every row and column where w is not zero. This is the number in
    the paper's tables, and what "AWD" alone means here.

    Parameters
    ----------
    true_coefficients : array-like of shape (n, d)
        w: how f really depends on the columns at each row.
    estimated_coefficients : array-like of shape (n, d)
        ŵ: the coefficients of each row's g, without the intercept.

    Returns
    -------
    float
        Zero is perfect.

    Raises
    ------
    InputError
        If every true coefficient is zero.

    Examples
    --------
    >>> awd_nonzero([[1.0, -2.0, 0.0]], [[0.5, -2.5, 9.0]])
    0.5
    """
    w, estimated = _coefficients(true_coefficients, estimated_coefficients)
    return _mean_difference(w, estimated, w != 0, "not zero")


def awd_positive(true_coefficients: ArrayLike, estimated_coefficients: ArrayLike) -> float:
    """Absolute weight difference over the positive true coefficients.

    As the paper's released code has it: equal to :func:`awd_nonzero` on Syn1 to Syn3, but on
    Syn4 it leaves out the negative coefficients.

    Parameters
    ----------
    true_coefficients : array-like of shape (n, d)
        w: how f really depends on the columns at each row.
    estimated_coefficients : array-like of shape (n, d)
        ŵ: the coefficients of each row's g, without the intercept.

    Returns
    -------
    float
        Zero is perfect.

    Raises
    ------
    InputError
        If no true coefficient is positive.

    Examples
    --------
    >>> awd_positive([[1.0, -2.0, 0.0]], [[0.75, -2.5, 9.0]])
    0.25
    """
    w, estimated = _coefficients(true_coefficients, estimated_coefficients)
    return _mean_difference(w, estimated, w > 0, "positive")


def awd_norm(true_coefficients: ArrayLike, estimated_coefficients: ArrayLike) -> float:
    """Absolute weight difference as the norm over all coefficients.

    As the paper's text has it: the mean over rows of the Euclidean norm of ŵ − w. Unlike the
    other two, it also counts weight given to columns that do not matter.

    Parameters
    ----------
    true_coefficients : array-like of shape (n, d)
        w: how f really depends on the columns at each row.
    estimated_coefficients : array-like of shape (n, d)
        ŵ: the coefficients of each row's g, without the intercept.

    Returns
    -------
    float
        Zero is perfect.

    Examples
    --------
    >>> awd_norm([[1.0, 2.0, 0.0]], [[1.0, 5.0, 4.0]])
    5.0
    """
    w, estimated = _coefficients(true_coefficients, estimated_coefficients)
    return float(np.mean(np.linalg.norm(estimated - w, axis=1)))


awd = awd_nonzero


def selection_auc(weights: Any, training_regimes: ArrayLike, query_regimes: ArrayLike) -> float:
    """Whether the rows that belong to a query weigh more than those that do not.

    For each query, the area under the ROC curve: the chance that a training row of its own
    regime weighs more than one of another, ties counting half. Then the mean over queries.

    Parameters
    ----------
    weights : array-like or scipy sparse array of shape (queries, training rows)
        How much each training row counts for each query.
    training_regimes : array-like of shape (training rows,)
        The regime each training row is in.
    query_regimes : array-like of shape (queries,)
        The regime each query is in.

    Returns
    -------
    float
        1 is perfect, 0.5 is chance.

    Raises
    ------
    InputError
        If a query has no training row in its regime, or none outside it.

    Examples
    --------
    >>> selection_auc([[0.9, 0.2, 0.1], [0.8, 0.5, 0.5]], [0, 1, 1], [0, 1])
    0.5
    """
    # Row by row, because all of a large sparse matrix may not fit in memory at once.
    weights = sparse.csr_array(weights) if sparse.issparse(weights) else np.asarray(weights)
    training, queries = np.asarray(training_regimes), np.asarray(query_regimes)
    if weights.ndim != 2 or weights.shape != (queries.size, training.size):
        raise InputError(
            f"weights must have shape (queries, training rows) = {(queries.size, training.size)}, not {weights.shape}"
        )
    if not queries.size:
        raise InputError("weights holds no queries")
    areas = []
    for i, regime in enumerate(queries):
        row = weights[[i]].toarray() if sparse.issparse(weights) else weights[i]
        inside = training == regime
        if inside.all() or not inside.any():
            raise InputError(
                f"selection AUC is undefined for query {i}: "
                f"{inside.sum()} of {inside.size} training rows are in its regime"
            )
        areas.append(_auc(inside, finite(row, f"weights of query {i}").ravel()))
    return float(np.mean(areas))


def _auc(positive: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Area under the ROC curve, from ranks."""
    n = np.count_nonzero(positive)
    above = rankdata(scores)[positive].sum() - n * (n + 1) / 2
    return float(above / (n * (positive.size - n)))


def _mean_difference(
    w: NDArray[np.float64], estimated: NDArray[np.float64], mask: NDArray[np.bool_], kind: str
) -> float:
    """Mean of abs(ŵ − w) where the mask holds."""
    if not mask.any():
        raise InputError(f"AWD is undefined: no true coefficient is {kind}")
    return float(np.mean(np.abs(estimated - w)[mask]))


def _coefficients(true: ArrayLike, estimated: ArrayLike) -> list[NDArray[np.float64]]:
    """Check that both are tables of coefficients; a single row may come without brackets."""
    pair = alike(true_coefficients=true, estimated_coefficients=estimated)
    return [np.atleast_2d(array) for array in pair]
