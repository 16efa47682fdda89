"""What REST requests hold and what answers look like, made for the columns of one explainer."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from fastapi import HTTPException
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from limis.rows import TrainingRows
from limis.serve.reading import changes_model, row_model
from limis.serve.settings import Settings

MOST_NEIGHBOURS = 100
MOST_SUGGESTIONS = 20
MOST_QUERIES = 10_000
SUGGEST_ROWS = 100  # a suggestion costs many questions to the black box

_Whole = Annotated[int, Field(strict=True)]
_Name = Annotated[str, Field(strict=True, max_length=1000)]
_End = Annotated[float, Field(strict=True, allow_inf_nan=False)] | _Name | Annotated[bool, Field(strict=True)] | None
_STRICT = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """One thing that is wrong with a request."""

    field: str = Field(description="where, such as rows.0.age; empty where it is no single field")
    message: str


class Problems(BaseModel):
    """Why a request was refused."""

    detail: list[Problem]


class Health(BaseModel):
    """Whether the server answers."""

    status: str


class ColumnInfo(BaseModel):
    """A column that rows have."""

    name: str
    kind: str
    levels: list[Any] | None = None
    sources: list[str] = Field(description="the column's names in a row; several where dummies stand for one column")


class Metadata(BaseModel):
    """What is explained, and how well."""

    version: str
    surrogate: str
    scale: str = Field(description="of outputs: value, logit, probability, or centred log-probability")
    classes: list[Any] | None
    training_rows: int
    skill: float | None = Field(
        description="skill on changes of one column to values of the 200 nearest training rows (of a short table "
        "fewer), measured on held-out rows at fit"
    )
    nse: float | None
    has_model: bool = Field(description="whether there is a model to ask: without it there are no suggestions")
    columns: list[ColumnInfo]
    limits: dict[str, int]


class Prediction(BaseModel):
    """The class that the model predicts."""

    label: Any = Field(alias="class")
    probability: float


class Coefficient(BaseModel):
    """A coefficient of a local model: of a number, of a jump in it, or of a level."""

    column: str
    level: str | None
    value: float


class CurveValue(BaseModel):
    """What the model would say if a column had another value, with the ends of an interval where they are known."""

    value: Any = Field(description="null where missing")
    output: float | None
    low: float | None
    high: float | None
    own: bool = Field(description="whether it is the row's own value")


class Curve(BaseModel):
    """What the model would say with other values of one column, or of columns that change together."""

    column: str
    values: list[CurveValue]


class TrainingRow(BaseModel):
    """A training row and its weight."""

    row: int
    weight: float


class Answer(BaseModel):
    """One explanation; with more than two classes, `classes` has one of each. What is not known is left out or null."""

    model_config = ConfigDict(extra="allow")
    row: int | str
    prediction: Prediction | None = Field(None, description="of classifiers, where there is a model to ask")
    values: dict[str, str] | None = Field(None, description="the row's values in words, by column")
    model_output: float | None = Field(None, description="the black box's output, on the scale that is explained")
    local_prediction: float | None = Field(None, description="what the row's local model says")
    base_value: float | None = Field(
        None,
        description="the mean output of the reference, from which contributions lead to the model's output; of ridges "
        "and trees the level of rows like this one",
    )
    neighbourhood_shift: float | None = Field(
        None, description="that level, less the mean of all training rows; curves have none"
    )
    contributions: dict[str, float | None] | None = Field(
        None,
        description="what each column adds to the base value; of curves, whose contributions add up to the model's "
        "output, the last is the rest: what is special about this very row",
    )
    curves: list[Curve] | None = Field(None, description="of local models that are curves: one a column")
    reference: str | None = Field(None, description="of curves: whom the row is compared with")
    interactions: list[dict[str, str | float]] | None = Field(
        None, description="of curves: what pairs of columns do beyond what each does alone, the strongest first"
    )
    stand_in: bool | None = Field(
        None, description="of curves: whether they tell of a stand-in, as there was no model to ask"
    )
    coefficients: list[Coefficient] | None = Field(None, description="of local models that are linear")
    intercept: float | None = None
    rules: list[dict[str, Any]] | None = Field(None, description="of local models that are trees")
    status: dict[str, str] | None = Field(None, description="columns whose effect cannot be seen here, and why")
    fidelity: dict[str, Any] | None = Field(None, description="how far to trust it: trusted, error, bound, doubts")
    training_rows: list[TrainingRow] | None = Field(None, description="those that count most, by position")
    label: Any = Field(None, alias="class", description="the class that is explained, in `classes`")
    predicted: Any = Field(None, description="the predicted class, beside `classes`")
    classes: list[Answer] | None = None


class Explained(BaseModel):
    """One explanation a row."""

    explanations: list[Answer]


class Changed(BaseModel):
    """What a changed row gets; outputs are null where there is no model to ask."""

    model_output_before: float | None
    model_output_after: float | None
    prediction_before: Prediction | None
    prediction_after: Prediction | None
    foreseen_before: float | None = Field(description="the row's own local model, at the row")
    foreseen_after: float | None = Field(description="the row's own local model, at the changed row")
    explanation_before: Answer
    explanation_after: Answer


class Neighbour(BaseModel):
    """A training row and how much it counts."""

    position: int
    row: Any
    weight: float
    model_output: float | None
    values: dict[str, str]


class Neighbours(BaseModel):
    """The training rows that speak most for each explanation."""

    neighbours: list[list[Neighbour]]


class Suggested(BaseModel):
    """Suggestions for each row."""

    suggestions: list[dict[str, Any]]


class Requests(NamedTuple):
    """The bodies of requests."""

    explain: type[BaseModel]
    neighbours: type[BaseModel]
    what_if: type[BaseModel]
    suggest: type[BaseModel]


def requests_for(training: TrainingRows, settings: Settings) -> Requests:
    """Bodies with exactly the columns that the explainer knows."""
    row = row_model(training)
    rows = _rows_field(row, settings.most_rows)
    whole = Field(3, ge=1, le=MOST_SUGGESTIONS, description="suggestions a row")
    suggest = create_model(
        "SuggestRequest",
        __config__=_STRICT,
        rows=_rows_field(row, SUGGEST_ROWS),
        target=(_End, Field(None, description='a class, or for values a level such as "> 100", "up" or "down"')),
        immutable=(list[_Name], Field(default_factory=list, description="columns that may not change")),
        ranges=(
            dict[_Name, list[_End]],
            Field(default_factory=dict, description="low and high of a number, or levels of a category"),
        ),
        directions=(dict[_Name, _Name], Field(default_factory=dict, description='"up" or "down" for numbers')),
        n=(_Whole, whole),
        max_queries=(_Whole, Field(1000, ge=1, le=MOST_QUERIES, description="questions to the model a row")),
    )
    return Requests(
        explain=create_model("ExplainRequest", __config__=_STRICT, rows=rows),
        neighbours=create_model(
            "NeighboursRequest",
            __config__=_STRICT,
            rows=rows,
            k=(_Whole, Field(10, ge=1, le=MOST_NEIGHBOURS, description="training rows for each row")),
        ),
        what_if=create_model(
            "WhatIfRequest", __config__=_STRICT, row=(row, ...), changes=(changes_model(training), ...)
        ),
        suggest=suggest,
    )


def _rows_field(row: type[BaseModel], most: int) -> Any:
    """A list of rows, counted before any of them is looked into: too many are a 413, not a 422 about each."""

    def counted(given: Any) -> Any:
        if isinstance(given, list) and len(given) > most:
            raise HTTPException(413, f"there are {len(given):,} rows, and at most {most:,} may be sent at once")
        return given

    told = Field(min_length=1, description=f"at most {most:,} rows", json_schema_extra={"maxItems": most})
    return Annotated[list[row], BeforeValidator(counted)], told  # type: ignore[valid-type]
