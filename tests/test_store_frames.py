"""Training columns of every type come back as they were, or are refused by name; so do values that JSON lacks."""

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limis import StoreError
from limis.store.frames import pack_frame, unpack_frame
from limis.store.plain import from_json, to_json

DATES = pd.Series(pd.to_datetime(["2020-01-01 10:00", None, "1999-05-06 00:00"]))
COLUMNS = {
    "small integers": pd.Series([1, 2, 3], dtype="int8"),
    "huge integers": pd.Series([2**63 + 1, 2, 3], dtype="uint64"),
    "nullable, past a float's digits": pd.Series([2**60 + 1, None, 3], dtype="Int64"),
    "nullable floats": pd.Series([1.5, None, 3], dtype="Float32"),
    "half floats": pd.Series([1, np.nan, 3], dtype="float16"),
    "booleans": pd.Series([True, False, True]),
    "nullable booleans": pd.Series([True, None, False], dtype="boolean"),
    "text": pd.Series(["a", None, "ü\n'\"\0"], dtype="str"),
    "nullable text": pd.Series(["a", None, "b"], dtype="string"),
    "seconds": DATES.astype("datetime64[s]"),
    "nanoseconds": DATES.astype("datetime64[ns]") + pd.Timedelta(1, "ns"),
    "a time zone": DATES.dt.tz_localize("Asia/Tokyo"),
    "an offset": pd.Series(pd.to_datetime(["2020-01-01T00:00+02:00", None, "2021-01-01T00:00+02:00"])),
    "durations": DATES - pd.Timestamp("2000-01-01"),
    "sparse": pd.Series(pd.arrays.SparseArray([0, 0, 1])),
    "Arrow's integers": pd.Series([1, None, 3], dtype="int64[pyarrow]"),
    "Arrow's text": pd.Series(
        ["a", None, "b"],
        dtype=pd.ArrowDtype(pd.ArrowDtype.construct_from_string("large_string[pyarrow]").pyarrow_dtype),
    ),
    "Arrow's seconds": DATES.astype("timestamp[s][pyarrow]"),
    "categories": pd.Series(pd.Categorical(["b", None, "a"], ["z", "b", "a"], ordered=True)),
    "categories of numbers": pd.Series(pd.Categorical([2.5, None, np.inf], [np.inf, 2.5])),
    "categories of booleans": pd.Series(pd.Categorical([True, None, False])),
    "categories of dates": pd.Series(pd.Categorical(DATES.dt.tz_localize("UTC"))),
    "intervals": pd.Series(pd.cut([0.1, np.nan, 2.5], [0, 1, 2, 3])),
    "mixed categories": pd.Series(pd.Categorical(["a", 1, 2.5], [2.5, 1, "a"])),
    "mixed objects": pd.Series([None, 1, "a"], dtype=object),
    "integers and None": pd.Series([1, None, 3], dtype=object),
    "many ways to be missing": pd.Series([np.nan, pd.NA, pd.NaT], dtype=object),
    "objects of every kind": pd.Series(
        [Decimal("1.50"), dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC)], dtype=object
    ),
    "more objects": pd.Series([pd.Timestamp(5, tz="UTC"), pd.Timedelta(7), pd.Interval(0, 1, "left")], dtype=object),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_of_column_comes_back(name):
    frame = pd.DataFrame({"x": COLUMNS[name], "another": [1.0, 2.0, 3.0]})
    described, parquet = pack_frame(frame)
    back = unpack_frame(from_json(to_json(described)), parquet)
    pd.testing.assert_frame_equal(back, frame, check_exact=True)
    assert [type(value) for value in back["x"].astype(object)] == [type(value) for value in frame["x"].astype(object)]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([(1, 2), None, (3, 4)], dtype=object),
        pd.Series([b"a", b"b", b"c"], dtype=object),
        pd.Series(pd.Categorical([(1, 2), (3, 4), (1, 2)])),
        DATES.dt.tz_localize("dateutil/Europe/Rome"),
    ],
    ids=["tuples", "bytes", "categories of tuples", "a time zone of dateutil"],
)
def test_a_column_that_would_not_come_back_is_refused_by_name(column):
    with pytest.raises(StoreError, match=r"column 'odd' .* cannot be saved: .* convert it to .* before fitting"):
        pack_frame(pd.DataFrame({"odd": column}))


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.decimals(),
    st.dates(),
    st.datetimes().map(lambda moment: moment.replace(fold=0)),  # ISO 8601 has no word for it
    st.sampled_from([pd.NA, pd.NaT]),
)


@given(st.lists(scalars) | st.dictionaries(st.text(), scalars | st.lists(scalars)).filter(lambda d: "$" not in d))
@settings(max_examples=200)
def test_values_survive_json(value):
    text = to_json(value)
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert repr(from_json(text)) == repr(value)
