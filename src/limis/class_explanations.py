"""Explanations for several classes: the same face for each, and the predicted one first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, overload

import numpy as np
import pandas as pd

from limis.against import check_can_be_asked, check_queries, references_for
from limis.curves.asked_reasons import ask_reasons
from limis.curves.model import CurveFits
from limis.errors import InputError
from limis.explanation import DrawsItself, Explanation, Explanations
from limis.kinds import plain
from limis.labels import find_class
from limis.polars_frames import to_polars
from limis.rows import TrainingRows


@dataclass(eq=False)
class ClassExplanations(DrawsItself):
    """Explanations of some rows, for each of several classes.

    Made by `LimisExplainer.explain`. `for_class` gives the explanations of one class, with the same face as those of
    a model of two classes. Indexing with a number gives the explanation of the class that is predicted for that row.
    """

    classes: list[Any]
    parts: list[Explanations]  # one a class
    whole: TrainingRows | None = None  # with the outputs of all classes; of curves alone

    def __len__(self) -> int:
        return len(self.parts[0])

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.classes))
        return f"<{len(self)} rows explained for each of {len(self.classes)} classes: {names}>"

    def for_class(self, label: Any) -> Explanations:
        """The explanations of one class.

        Parameters
        ----------
        label : object
            One of ``classes``; its text will do.
        """
        return self.parts[place_of_class(label, self.classes)]

    def against(self, reference: Any, *, queries: int = 0) -> ClassExplanations:
        """The same explanations, with reasons that start from another reference: as `Explanations.against`."""
        training = self.whole
        if training is None:
            raise InputError('only curves have reasons that start from a reference; fit with surrogate="curves"')
        known = np.column_stack([part.local_predictions for part in self.parts])
        found = references_for(training, reference, known)
        parts = [
            replace(part, references=found.of_class(place), kind="curves", asked=None, measured=None)
            for place, part in enumerate(self.parts)
        ]
        return self._with_answers(parts, queries)

    def in_groups(self, groups: Mapping[str, Sequence[str]], *, queries: int = 0) -> ClassExplanations:
        """The same explanations, with some columns together as one reason: as `Explanations.in_groups`."""
        return self._with_answers([part.in_groups(groups) for part in self.parts], queries)

    def unfolded(self, *, queries: int = 0) -> ClassExplanations:
        """The same explanations, with each column as a reason of its own: as `Explanations.unfolded`."""
        return self._with_answers([part.unfolded() for part in self.parts], queries)

    def _with_answers(self, parts: list[Explanations], queries: int) -> ClassExplanations:
        """The same with the black box asked so often about each row's reasons, once for all classes."""
        check_queries(queries)
        if queries:
            assert self.whole is not None
            check_can_be_asked(self.whole, parts[0].outputs)
            fits, references = [cast(CurveFits, part.fits) for part in parts], [part.references for part in parts]
            known = np.column_stack([part.local_predictions for part in parts])
            own = [one for one in references if one is not None]
            asked = ask_reasons(self.whole, parts[0].frame, fits, parts[0].units, known, own, queries)
            parts = [replace(part, asked=more) for part, more in zip(parts, asked, strict=True)]
        return replace(self, parts=parts)

    @property
    def index(self) -> pd.Index:
        """The row labels of the explained table."""
        return self.parts[0].index

    @property
    def probabilities(self) -> pd.DataFrame | None:
        """The black box's, a column a class; None where it was neither asked nor given."""
        chances = [part.chances for part in self.parts if part.chances is not None]
        if not chances:
            return None
        return pd.DataFrame(np.column_stack(chances), index=self.index, columns=self.classes)

    @property
    def predicted(self) -> pd.Series:
        """The class that the black box predicts for each row or, where it was not asked, the local models."""
        said = self.probabilities
        if said is None:
            said = pd.DataFrame({place: part.local_predictions for place, part in enumerate(self.parts)})
        places = said.to_numpy().argmax(axis=1)
        labels = np.empty(len(places), dtype=object)
        labels[:] = [self.classes[place] for place in places]
        return pd.Series(labels, index=self.index, name="predicted").infer_objects()

    @overload
    def __getitem__(self, key: int) -> Explanation: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | np.ndarray) -> ClassExplanations: ...
    def __getitem__(self, key: int | slice | Sequence[int] | np.ndarray) -> Explanation | ClassExplanations:
        if isinstance(key, (int, np.integer)):
            if not -len(self) <= key < len(self):
                raise IndexError(f"there are {len(self)} explanations, so there is no number {key}")
            return self.for_class(self.predicted.iloc[key])[int(key)]
        chosen = np.arange(len(self))[key]
        return replace(self, parts=[part[chosen] for part in self.parts])

    def __iter__(self) -> Iterator[Explanation]:
        return (self[row] for row in range(len(self)))

    # --- numbers, a row a case, the classes side by side ---------------------------------------------------

    @property
    def coefficients(self) -> pd.DataFrame:
        """Slopes in original units, under (class, column, level)."""
        return self._side_by_side([part.coefficients for part in self.parts])

    @property
    def contributions(self) -> pd.DataFrame:
        """What each column adds for each class, under (class, column); as in `Explanations.contributions`."""
        return self._side_by_side([part.contributions for part in self.parts])

    @property
    def fidelity(self) -> pd.DataFrame:
        """How far to trust each explanation, under (class, what is told)."""
        return self._side_by_side([part.fidelity for part in self.parts])

    @property
    def local_predictions(self) -> pd.DataFrame:
        """What the local models say of their own rows, a column a class."""
        return self._side_by_side([part.local_predictions for part in self.parts])

    @property
    def base_values(self) -> pd.DataFrame:
        """Where contributions start: mean outputs of the reference, a column a class; else the neighbourhood's."""
        return self._side_by_side([part.base_values for part in self.parts])

    @property
    def model_outputs(self) -> pd.DataFrame:
        """What the black box says of the rows, a column a class."""
        return self._side_by_side([part.model_outputs for part in self.parts])

    @property
    def weights(self) -> Any:
        """How much each training row counts for each case, whatever the class: (cases, training rows)."""
        return self.parts[0].weights

    def skill(self, model: Any = None, *, random_state: int = 0) -> pd.Series:
        """Skill on changes of each class, measured as `Explanations.skill` does."""
        found = [part.skill(model, random_state=random_state) for part in self.parts]
        return pd.Series(found, index=self.classes, name="skill")

    def _side_by_side(self, tables: list[Any]) -> pd.DataFrame:
        return pd.concat(tables, axis=1, keys=self.classes, names=["class"])

    # --- other forms -------------------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """One flat row a case and class: the class, its probability, and all that `Explanations.to_frame` tells."""
        return to_polars(self._flat()) if self.parts[0].from_polars else self._flat()

    def _flat(self) -> pd.DataFrame:
        parts = []
        for place, (label, part) in enumerate(zip(self.classes, self.parts, strict=True)):
            flat = part.flat()
            if part.chances is not None:
                flat.insert(0, "probability", part.chances)
            flat.insert(0, "predicted", self.predicted == label)
            flat.insert(0, "class", label)
            parts.append(flat.assign(_case=np.arange(len(self)), _place=place))
        table = pd.concat(parts).sort_values(["_case", "_place"], kind="stable")
        return table.drop(columns=["_case", "_place"])

    def to_json(self) -> str:
        """All cases as JSON: a list of objects, one a case, with the explanation of every class."""
        cases = []
        for row in range(len(self)):
            told = [{"class": plain(label), **part[row].to_dict()} for label, part in self._labelled()]
            cases.append({"row": told[0]["row"], "predicted": plain(self.predicted.iloc[row]), "classes": told})
        return json.dumps(cases, ensure_ascii=False, indent=1)

    def _labelled(self) -> list[tuple[Any, Explanations]]:
        return list(zip(self.classes, self.parts, strict=True))


def place_of_class(label: Any, classes: Sequence[Any]) -> int:
    """Where a class stands among all; an InputError lists them where it is not among them."""
    place = find_class(label, classes)
    if place is None:
        raise InputError(f"there is no class {label!r}; the classes are {', '.join(map(repr, map(plain, classes)))}")
    return place
