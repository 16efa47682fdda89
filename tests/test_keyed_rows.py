"""Equal rows are found whatever they hold, and told apart even where their keys are not."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limis import keyed_rows
from limis.keyed_rows import KeyedRows

CELLS = st.sampled_from([0.0, -0.0, 1.0, np.nan, np.inf, -1e300])
TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=30)
)


@pytest.fixture(params=["keys", "few keys"])
def _keys(request, monkeypatch):
    if request.param == "few keys":  # so that rows that differ have equal ones
        real = keyed_rows.row_keys
        monkeypatch.setattr(keyed_rows, "row_keys", lambda values: real(values) % np.uint64(2))


@pytest.mark.usefixtures("_keys")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=TABLES)
def test_distinct_rows_are_those_pandas_finds(rows):
    values = np.array(rows)
    places, group = KeyedRows.of(values).distinct()
    expected = ~pd.DataFrame(values + 0.0).duplicated().to_numpy()
    assert places.tolist() == np.flatnonzero(expected).tolist()
    np.testing.assert_array_equal(values[places][group], values)


@pytest.mark.usefixtures("_keys")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=TABLES)
def test_each_row_equals_those_that_agree_in_every_cell(rows):
    values = np.array(rows)
    starts, places = KeyedRows.of(values).equal_to(values)
    for row in range(len(values)):
        agree = [np.array_equal(values[row], other, equal_nan=True) for other in values]
        assert places[starts[row] : starts[row + 1]].tolist() == np.flatnonzero(agree).tolist()
