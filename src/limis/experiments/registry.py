"""All experiments by name, and the groups they can be asked for in."""

from __future__ import annotations

from collections.abc import Iterable

from limis.errors import InputError
from limis.experiments.adult_fidelity import ADULT
from limis.experiments.audit_more import MORE
from limis.experiments.audit_tables import AUDIT as EVERY_CELL
from limis.experiments.audit_why import WHY
from limis.experiments.data_statistics import DATA_STATISTICS
from limis.experiments.experiment import Experiment
from limis.experiments.real_fidelity import FIDELITY
from limis.experiments.real_training import CONVERGENCE
from limis.experiments.recovery import RECOVERY
from limis.experiments.selection import SELECTION
from limis.experiments.subgroups import GROUPS_OF_ROWS
from limis.experiments.suggested_people import PEOPLE_TABLE
from limis.experiments.suggestions import SUGGESTIONS
from limis.experiments.training_studies import TRAINING
from limis.experiments.tree_fidelity import TREES

AUDIT = (*EVERY_CELL, *WHY, *MORE)
PAPERS_REAL = (DATA_STATISTICS, *FIDELITY, CONVERGENCE, *GROUPS_OF_ROWS)
REAL = (*PAPERS_REAL, ADULT, TREES, SUGGESTIONS, PEOPLE_TABLE)
EXPERIMENTS: dict[str, Experiment] = {one.name: one for one in (*AUDIT, *RECOVERY, *SELECTION, *TRAINING, *REAL)}
GROUPS = {
    "audit": [one.name for one in AUDIT],
    "all-synthetic": [name for name, one in EXPERIMENTS.items() if one.synthetic],
    "all-real": [one.name for one in PAPERS_REAL],
    "all": list(EXPERIMENTS),
}


def named(names: Iterable[str]) -> list[Experiment]:
    """The experiments of these names and groups, each once.

    Parameters
    ----------
    names : iterable of str
        Names of experiments, "audit", "all-synthetic", "all-real" or "all".

    Returns
    -------
    list of Experiment
        In the order asked for.

    Raises
    ------
    InputError
        If there is no such experiment.

    Examples
    --------
    >>> [one.name for one in named(["syn4", "selection-auc", "syn4"])]
    ['syn4', 'selection-auc']
    """
    found: dict[str, Experiment] = {}
    for name in names:
        if name not in EXPERIMENTS and name not in GROUPS:
            raise InputError(f"there is no experiment {name!r}; there are: {', '.join([*EXPERIMENTS, *GROUPS])}")
        found |= {one: EXPERIMENTS[one] for one in GROUPS.get(name, [name])}
    return list(found.values())
