"""From explanations to groups of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from limis.class_explanations import ClassExplanations
from limis.errors import InputError
from limis.explanation import Explanations
from limis.subgroups.groups import read_groups
from limis.subgroups.measure import Measure, RowNumbers, usual_measure
from limis.subgroups.result import Subgroups, summarise


def subgroups(
    explanations: Explanations | ClassExplanations,
    by: Any,
    *,
    measure: Measure | Literal["auto"] = "auto",
    data: Any = None,
    y: Any = None,
    bins: Sequence[Any] | None = None,
    n_resamples: int = 200,
    random_state: int | np.random.Generator | None = 0,
) -> Subgroups:
    """What weighs for whom: explanations, put together in groups of rows.

    Parameters
    ----------
    explanations : Explanations
        Of at least two rows. Of several classes, those of one: ``found.for_class(label)``.
    by : str, array-like, or dict of rules
        The name of a column: numbers are cut at ``bins``, else at their quartiles (up to five values have a group
        each), categories by level, with rare levels together in one group. Or one label a row. Or rules by name, each
        a mask or a callable that is given the rows and returns one; their groups may overlap.
    measure : {"auto", "coefficients", "contributions"}, default="auto"
        What is averaged over the rows of a group, for every original column. "auto": coefficients where local models
        have them, else contributions.

        "coefficients", for ridges, is the paper's: the absolute coefficient with numbers scaled to [0, 1] over the
        training rows, which is how far the local model moves when the column goes from its least to its largest
        value. Jumps have coefficients of their own, and their sizes are added: what goes up on that way and what
        comes down again both count. For a category it is how far the model moves, on average, when the level
        is exchanged for another one, both drawn as frequently as they are in training. So a column of two values
        weighs the same as a number and as a category, and many levels do not weigh more than few. Levels that are
        unknown in a neighbourhood are left out, and so is a row in which fewer than two are known. A number's missing
        values count by their share of the training rows.

        "contributions" is the mean absolute contribution: what a column did for these rows, not what it could do. Of
        curves that is what would be lost if it alone had the values of training rows.
    data : data frame, default=None
        More columns of the same rows, to group by or for rules to look at: those that the model does not see.
    y : array-like, default=None
        The rows' labels; with them, the black box's own error in each group is told: the share of wrong classes, or
        the mean absolute error of numbers.
    bins : sequence, default=None
        Borders of groups of numbers; each belongs to the group below it.
    n_resamples : int, default=200
        How often rows are drawn for the 95% intervals.
    random_state : int, Generator or None, default=0
        Seed of those draws.

    Returns
    -------
    Subgroups
        Weights, sizes and fidelity of every group.

    Raises
    ------
    InputError
        If a column is not there, a group is empty, there are fewer than two rows, there are several classes, or the
        local models have no coefficients and those are asked for.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from limis import LimisExplainer
    >>> from limis.subgroups import subgroups
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"a": rng.random(300), "b": rng.random(300), "side": rng.choice(["left", "right"], 300)})
    >>> model = lambda rows: 2 * rows["a"].where(rows["side"] == "left", rows["b"])
    >>> found = LimisExplainer(model, random_state=0).fit(X[:200]).explain(X[200:])
    >>> groups = subgroups(found, "side")
    >>> groups.values.idxmax(axis=1).to_dict()
    {'side = left': 'a', 'side = right': 'b'}
    """
    if isinstance(explanations, ClassExplanations):
        raise InputError(
            f"there are {len(explanations.classes)} classes, each with explanations of its own; choose one: "
            f"subgroups(found.for_class({explanations.classes[0]!r}), ...)"
        )
    if len(explanations) < 2:
        raise InputError("groups are made of rows, and only one is explained; explain at least two")
    if n_resamples < 1:
        raise InputError(f"n_resamples must be at least 1, not {n_resamples}")
    masks = read_groups(explanations, by, data, bins)
    if measure == "auto":
        measure = usual_measure(explanations.fits)
    rows = RowNumbers.of(explanations, measure, y)
    return summarise(rows, masks, measure, n_resamples, np.random.default_rng(random_state))
