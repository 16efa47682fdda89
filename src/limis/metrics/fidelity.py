"""Fidelity: does a row's local model g follow the black box f, at the row, around it, and when columns change."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score

from limis.errors import InputError
from limis.metrics.arrays import alike, finite

__all__ = ["apr", "lmae", "mae", "neighbourhood_lmae", "neighbourhood_mae", "nse", "skill_on_changes"]


def nse(model_outputs: ArrayLike, local_predictions: ArrayLike) -> float:
    """Nash–Sutcliffe efficiency: the share of f's variance that g explains at the rows.

    1 − Σ(f − g)² / Σ(f − mean f)². One is perfect; zero is no better than answering the mean
    of f everywhere; below zero is worse than that.

    Parameters
    ----------
    model_outputs : array-like of shape (n,)
        f at each row.
    local_predictions : array-like of shape (n,)
        Each row's own g, at that row.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    InputError
        If f is the same at every row, so that there is no variance to explain.

    Examples
    --------
    >>> nse([1.0, 2.0, 3.0], [1.0, 2.0, 3.5])
    0.875
    """
    f, g = alike(model_outputs=model_outputs, local_predictions=local_predictions)
    if np.all(f == f.flat[0]):
        raise InputError("NSE is undefined: model_outputs are all the same")
    return _share_explained(f - f.mean(), f - g)


def lmae(model_outputs: ArrayLike, local_predictions: ArrayLike) -> float:
    """Local mean absolute error: how far g is from the black box at the rows.

    Parameters
    ----------
    model_outputs : array-like of shape (n,)
        f at each row.
    local_predictions : array-like of shape (n,)
        Each row's own g, at that row.

    Returns
    -------
    float
        Mean of abs(f − g).

    Examples
    --------
    >>> lmae([1.0, 2.0, 3.0], [1.0, 2.0, 4.5])
    0.5
    """
    f, g = alike(model_outputs=model_outputs, local_predictions=local_predictions)
    return float(np.mean(np.abs(f - g)))


def mae(targets: ArrayLike, local_predictions: ArrayLike) -> float:
    """Mean absolute error: how far g is from the true targets, not from the black box.

    Parameters
    ----------
    targets : array-like of shape (n,)
        What really happened.
    local_predictions : array-like of shape (n,)
        Each row's own g, at that row.

    Returns
    -------
    float
        Mean of abs(y − g).

    Examples
    --------
    >>> mae([1.0, 2.0], [2.0, 4.0])
    1.5
    """
    y, g = alike(targets=targets, local_predictions=local_predictions)
    return float(np.mean(np.abs(y - g)))


def apr(labels: ArrayLike, scores: ArrayLike) -> float:
    """Average precision: the area under the precision–recall curve, in steps.

    Parameters
    ----------
    labels : array-like of shape (n,)
        True labels as booleans, or as 0 and 1; for others write ``labels == "yes"``.
    scores : array-like of shape (n,)
        Higher means more likely positive: logits and probabilities give the same number.

    Returns
    -------
    float
        In (0, 1]. Random scores get about the share of positives.

    Raises
    ------
    InputError
        If no label is positive.

    Examples
    --------
    >>> apr([0, 1, 1], [-2.0, 0.5, 3.0])
    1.0
    """
    labels = np.asarray(labels)
    if not np.isin(labels, [0, 1]).all():
        raise InputError('labels must be booleans, or 0 and 1: write labels == "yes" for others')
    y, g = alike(labels=labels, scores=scores)
    if not y.any():
        raise InputError("average precision is undefined: no label is positive")
    return float(average_precision_score(y.ravel(), g.ravel()))


def neighbourhood_lmae(model_outputs: ArrayLike, local_predictions: ArrayLike) -> float:
    """Local mean absolute error around the rows: does a row's g still follow f nearby.

    The paper takes as neighbours the row plus Gaussian noise of standard deviation 0.1 on
    standardised inputs. Compare with :func:`lmae`: the difference is what is lost on leaving
    the row.

    Parameters
    ----------
    model_outputs : array-like of shape (n, neighbours)
        f at the neighbours of each row.
    local_predictions : array-like of shape (n, neighbours)
        g of the row itself, at those same neighbours.

    Returns
    -------
    float
        Mean of abs(f − g) over rows and neighbours.

    Examples
    --------
    >>> neighbourhood_lmae([[1.0, 1.5], [4.0, 4.0]], [[1.0, 1.0], [4.5, 5.0]])
    0.5
    """
    f, g = alike(model_outputs=model_outputs, local_predictions=local_predictions)
    _need_neighbours(g)
    return float(np.mean(np.abs(f - g)))


def neighbourhood_mae(targets: ArrayLike, local_predictions: ArrayLike) -> float:
    """Mean absolute error around the rows: does a row's g still predict its target nearby.

    The neighbours are those of :func:`neighbourhood_lmae`; being made up, they have no target
    of their own, so g at a neighbour is held against the target of the row.

    Parameters
    ----------
    targets : array-like of shape (n,)
        What really happened at each row.
    local_predictions : array-like of shape (n, neighbours)
        g of the row, at its neighbours.

    Returns
    -------
    float
        Mean of abs(y − g) over rows and neighbours.

    Examples
    --------
    >>> neighbourhood_mae([1.0, 4.0], [[1.0, 1.5], [4.5, 5.0]])
    0.5
    """
    y = finite(targets, "targets")
    g = finite(local_predictions, "local_predictions")
    _need_neighbours(g)
    if y.shape != g.shape[:1]:
        raise InputError(
            f"targets must hold one number for each of the {len(g)} rows of local_predictions, but has shape {y.shape}"
        )
    return float(np.mean(np.abs(y[:, None] - g)))


def skill_on_changes(model_changes: ArrayLike, local_changes: ArrayLike) -> float:
    """How much of f's answer to changed columns g foresees.

    1 − Σ(Δf − Δg)² / ΣΔf². One is perfect; zero is what a local model without any coefficient
    gets; below zero is worse than saying that nothing changes.

    Parameters
    ----------
    model_changes : array-like
        Δf: f after the change less f before it, one number a change, in any shape.
    local_changes : array-like
        Δg: the same for g.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    InputError
        If f answers no change at all.

    Examples
    --------
    >>> skill_on_changes([2.0, 0.0, -1.0], [1.0, 0.0, -1.0])
    0.8
    >>> skill_on_changes([2.0, 0.0, -1.0], [0.0, 0.0, 0.0])
    0.0
    """
    f, g = alike(model_changes=model_changes, local_changes=local_changes)
    if not f.any():
        raise InputError("skill on changes is undefined: model_changes are all zero")
    return _share_explained(f, f - g)


def _share_explained(signal: NDArray[np.float64], rest: NDArray[np.float64]) -> float:
    """Return 1 − Σrest²/Σsignal², for a signal that is not zero everywhere."""
    # Divided by the largest first, so that the squares of a tiny signal do not vanish.
    scale = np.abs(signal).max()
    return float(1 - np.sum((rest / scale) ** 2) / np.sum((signal / scale) ** 2))


def _need_neighbours(g: NDArray[np.float64]) -> None:
    if g.ndim != 2:
        raise InputError(f"local_predictions must have shape (n, neighbours), not {g.shape}")
