"""Plots by their names, as the methods of explanations offer them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from limis.errors import InputError
from limis.explanation import Explanation, Explanations
from limis.plots.coefficients import plot_coefficients
from limis.plots.contributions import plot_contributions
from limis.plots.curves import plot_curves
from limis.plots.fidelity import plot_fidelity
from limis.plots.overview import KINDS, plot_global
from limis.plots.training_rows import plot_training_rows
from limis.plots.tree import plot_tree
from limis.plots.weights import plot_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OF_ONE: dict[str, Callable[..., Any]] = {
    "contributions": plot_contributions,
    "coefficients": plot_coefficients,
    "curves": plot_curves,
    "tree": plot_tree,
    "training_rows": plot_training_rows,
    "weights": plot_weights,
}
OF_MANY: dict[str, Callable[..., Any]] = {
    **{kind: partial(plot_global, kind=kind) for kind in KINDS},
    "fidelity": plot_fidelity,
}


def draw_one(explanation: Explanation, kind: str, ax: Axes | None, **options: Any) -> Axes:
    """One explanation by the name of a plot; an InputError lists the names there are."""
    if kind not in OF_ONE:
        raise InputError(f"there is no plot {kind!r} of one explanation; there are {_listed(OF_ONE)}")
    return OF_ONE[kind](explanation, ax=ax, **options)


def draw_many(explanations: Explanations, kind: str, ax: Axes | None) -> Axes:
    """Many explanations by the name of a plot; an InputError lists the names there are."""
    if kind in OF_MANY:
        return OF_MANY[kind](explanations, ax)
    if kind in OF_ONE:
        raise InputError(f"{kind!r} draws one explanation; choose one: found[0].plot({kind!r})")
    raise InputError(f"there is no plot {kind!r} of many explanations; there are {_listed(OF_MANY)}")


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))
