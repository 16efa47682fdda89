"""What the page of one row tells, as plain data that a template only has to place."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlencode

import pandas as pd
from markupsafe import Markup

from limis.errors import LimisError
from limis.explainer import LimisExplainer
from limis.report.words import percent
from limis.rows import TrainingRows
from limis.serve.errors import words
from limis.serve.fields import Field, fields_of, query_for
from limis.serve.rendering import card
from limis.serve.what_if import WhatIf
from limis.serve.words import Explained, Teller, class_name, neighbour_data, prediction

NEIGHBOURS = 10
SUGGESTIONS = 3


@dataclass
class Neighbours:
    """Training rows, all columns of each; the first line is the row itself."""

    columns: list[str]
    own: list[str]
    lines: list[tuple[str, str, str, list[tuple[str, bool]]]]  # name, weight, output, (value, unlike the row's own)


@dataclass
class RowView:
    """The explanation of a row, the rows it rests on, and the form to change it."""

    card: Markup
    neighbours: Neighbours
    fields: list[Field]


@dataclass
class Comparison:
    """What changed values lead to; each line has what is said before and after."""

    changes: list[tuple[str, str, str]]
    lines: list[tuple[str, str, str]]
    card: Markup
    said: str  # for those who hear the page


@dataclass
class SuggestionView:
    """One suggestion, and the address that tries it."""

    changes: list[tuple[str, str, str]]
    says: tuple[str, ...]
    confirmed: bool
    query: str


@dataclass
class SuggestionsView:
    """All suggestions for a row, or why there are none."""

    wish: str = ""
    reason: str = ""
    evidence: str = ""
    ones: list[SuggestionView] = field(default_factory=list)


def view_row(found: Explained) -> RowView:
    """Tell of a row that is explained alone."""
    one = found[0]
    training = one.all.training
    teller = Teller.of(training)
    own = list(one.values.values())
    lines = [
        (
            str(line["row"]),
            percent(line["weight"]),
            "" if line["model_output"] is None else teller.output(line["model_output"]),
            [(value, value != mine) for value, mine in zip(line["values"].values(), own, strict=True)],
        )
        for line in neighbour_data(one, NEIGHBOURS)
    ]
    neighbours = Neighbours(list(one.values), own, lines)
    return RowView(card(found), neighbours, fields_of(training, one.all.frame))


def compare(found: Explained, changed: pd.DataFrame) -> Comparison:
    """Tell of a row and its changed copy, which were explained together."""
    what_if = WhatIf(found, changed)
    part = what_if.part
    teller = Teller.of(part.training)
    lines = _black_box(what_if, teller)
    with_curves = part.fits.has_curves
    lines.append(
        (
            f"This row’s {'curves foresee' if with_curves else 'local model foresees'}",
            teller.output(what_if.own.local_prediction),
            teller.output(what_if.foreseen),
        )
    )
    if not with_curves:  # which stand at what the black box says of the changed row
        own = teller.output(float(part.local_predictions.iloc[1]))
        lines.append(("The changed row’s own local model says", "", own))
    changes = [
        (column.name, *column.show_apart(part.frame, 0, part.frame, 1))
        for j, column in enumerate(part.training.table.columns)
        if part.values[0, j] != part.values[1, j] and not (pd.isna(part.values[0, j]) and pd.isna(part.values[1, j]))
    ]
    said = "; ".join(f"{name} {after}" for name, _, after in lines)
    return Comparison(changes, lines, card(found[1:2]), said)


def _black_box(what_if: WhatIf, teller: Teller) -> list[tuple[str, str, str]]:
    """What the black box says of both rows: of classes the predicted one, and the output of the explained one."""
    if what_if.outputs is None:
        return []
    before, after = map(teller.output, what_if.outputs)
    said = [prediction(what_if.found, row) for row in (0, 1)]
    if said[0] is None or said[1] is None:
        return [("The black box says", before, after)]
    chances = what_if.part.chances
    if chances is not None:
        before, after = (percent(float(chance)) for chance in chances)
    name = class_name(teller.box, 1)
    return [
        ("The black box predicts", str(said[0]["class"]), str(said[1]["class"])),
        (f"The black box gives {name}", before, after),
    ]


def suggest_for(explainer: LimisExplainer, row: pd.DataFrame, target: str | None, keep: list[str]) -> SuggestionsView:
    """Suggestions for a row; ``keep`` are the columns that may not change."""
    training: TrainingRows = explainer.training_
    try:
        found = explainer.suggest(row, target, immutable=keep, n=SUGGESTIONS)[0]
    except LimisError as error:
        return SuggestionsView(reason=words(error))
    fields = fields_of(training, row)
    changed = found.changed_rows().set_axis(pd.Index(training.table.source_names), axis=1)
    ones = [
        SuggestionView(
            [(name, *words_) for name, words_ in one.words.items()],
            one.says,
            one.confirmed,
            urlencode(query_for(training, fields, changed.iloc[[place]])),
        )
        for place, one in enumerate(found)
    ]
    evidence = "" if found.evidence is None else str(found.evidence)
    return SuggestionsView(found.wish, found.reason, evidence, ones)
