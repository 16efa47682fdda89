"""The schema tells the truth: requests made from it, good ones and bad ones, get the answers that it promises."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")
import schemathesis
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from limis.serve import make_app
from limis.serve.docs_page import operations

OPERATIONS = [
    ("GET", "/api/health"),
    ("GET", "/api/metadata"),
    ("POST", "/api/explain"),
    ("POST", "/api/what-if"),
    ("POST", "/api/suggest"),
    ("POST", "/api/neighbours"),
]


@pytest.fixture(scope="module")
def app(served_explainer, served_rows):
    return make_app(served_explainer, served_rows.head(5), "rows.csv")


@pytest.fixture(scope="module")
def schema(app, serving):
    with serving(app) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


# A request without a body cannot be wrong.
@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [(*one, GenerationMode.POSITIVE) for one in OPERATIONS]
    + [(*one, GenerationMode.NEGATIVE) for one in OPERATIONS if one[0] == "POST"],
)
def test_every_request_gets_an_answer_that_the_schema_promises(schema, method, path, mode):
    operation = schema[path][method]

    statuses = []

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=20,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answers(case):
        # No schema can say which classes and columns a wish may name: that is refused, with the field.
        statuses.append(case.call_and_validate(excluded_checks=[positive_data_acceptance]).status_code)

    answers()
    assert (200 in statuses) == (mode == GenerationMode.POSITIVE)


def test_the_page_of_the_interface_tells_of_every_operation(app):
    told = operations(app.openapi())
    assert {(one.method, one.path) for one in told} == set(OPERATIONS)
    for one in told:
        assert one.summary
        assert bool(one.example) == (one.method == "POST")
