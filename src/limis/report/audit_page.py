"""An audit as one page: what it comes to, drawings, tables, and how it was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from limis.fidelity.audit.sentences import BASELINES, SHORT
from limis.report.audit_plots import plots
from limis.report.audit_tables import tables
from limis.report.render import _templates
from limis.report.words import count

if TYPE_CHECKING:
    from limis.fidelity.audit.result import Audit

_SCALES = {
    "logit": "logits (log-odds) of the class that counts as 1; skill in probability is told beside it",
    "probability": "probabilities",
    "centred": "log-probabilities of the predicted class, less their mean over all classes",
}
_PLAN = {
    "singles": "single changes a range",
    "joints": "joint changes a number of columns, from near rows and from any row each",
    "groups": "groups of columns a size, for the reasons",
    "references": "reference rows that replace a group",
    "removals": "rows that replace one column, to find the strongest",
    "orders": "random orders of the columns, there and back, for the Shapley values",
}


def audit_page(audit: Audit, title: str) -> str:
    """A self-contained HTML page of an audit, for whoever reviews a model and its explanations.

    Parameters
    ----------
    audit : Audit
        What `limis.audit` found.
    title : str
        Heading of the page.

    Returns
    -------
    str
        A whole document that loads nothing else, runs no scripts and prints well.
    """
    *found, rests_on = audit.summary()
    return (
        _templates()
        .get_template("audit.html")
        .render(
            title=title,
            headline=_headline(audit),
            sentences=found,
            rests_on=rests_on,
            plots=plots(audit),
            tables=tables(audit),
            facts=_facts(audit.facts),
            is_labels=False,
        )
    )


def _headline(audit: Audit) -> str:
    """How many methods do worse than knowing nothing, and how many bounds hold for fewer rows than promised."""
    skills = audit.skills[(audit.skills["subset"] == "all") & ~audit.skills["method"].isin(BASELINES)]
    known = skills.dropna(subset="skill")
    n, n_worse = known["method"].nunique(), known.loc[known["skill"] < 0, "method"].nunique()
    if n == 0:
        text = "Nothing could be measured: the model did not answer to any change."
    elif n_worse == 0:
        who = "The method does" if n == 1 else f"All {n} methods do"
        text = f"{who} at least as well as knowing nothing, on every kind of question."
    else:
        does = "does" if n_worse == 1 else "do"
        text = f"{n_worse} of {count(n, 'method', 'methods')} {does} worse than knowing nothing on some questions."
    own = audit.coverage[(audit.coverage["sort"] == "all rows") & (audit.coverage["rows"] > 0)]
    broken = own.loc[own["kept"] < own["promised"] - SHORT, "method"].nunique()
    if broken:
        text += (
            f" {broken} of {count(own['method'].nunique(), 'promised bound', 'promised bounds')} held for fewer rows "
        )
        text += "than promised, by some law and range."
    elif len(own):
        text += " Every promised bound held."
    return text


def _facts(facts: dict[str, Any]) -> dict[str, str]:
    """What was audited and how, in words."""
    together = [f"{name} ({', '.join(map(str, own))})" for name, own in facts["counted_as_one"].items()]
    plan = [f"{n:,} {_PLAN[name]}" for name, n in facts["plan"].items() if name in _PLAN]
    told = {
        "Rows audited": f"{facts['rows']:,}; for their reasons the first {facts['plan']['reason_rows']:,}",
        "Training rows": f"{facts['training_rows']:,}",
        "Held-out rows": f"{facts['held_out_rows']:,}, the audited rows among them; law B takes its values from these",
        "Reference rows": f"{facts['reference_rows']:,}, by which methods may know the population",
        "Columns": f"{facts['columns']:,}",
        "Counted as one": "; ".join(together),
        "Scale": f"Outputs are {_SCALES.get(facts['scale'], 'values in the model’s own units')}.",
        "Questions": f"{facts['questions']:,} to the model in all",
        "Plan": f"For each row and law, at most: {'; '.join(plan)}." if plan else "",
        "random_state": str(facts["random_state"]),
    }
    return {name: words for name, words in told.items() if words}
