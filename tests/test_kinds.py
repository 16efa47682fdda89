"""Numbers, dates, durations and categories of every type are read as what they are."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from limis.columns import MISSING, show_value
from limis.errors import InputError
from limis.table import Table

DAY, NOON, FAR_DAY = 18263.0, 18263.5, 2932896.0  # 2020-01-02, its noon, and 9999-12-31
DAYS = [dt.date(2020, 1, 2), None, dt.date(9999, 12, 31)]
WORDS = ["2020-01-02T12:00", "NaT", "9999-12-31T00:00"]
NOONS = [None if word == "NaT" else dt.datetime.fromisoformat(word) for word in WORDS]
NOON_IN_UTC = NOONS[0].replace(tzinfo=dt.UTC)
NOON_IN_TOKYO = NOON_IN_UTC.astimezone(dt.timezone(dt.timedelta(hours=9)))

DATES = {
    "days as objects": (pd.Series(DAYS, dtype=object), [DAY, np.nan, FAR_DAY]),
    "moments as objects": (pd.Series(NOONS, dtype=object), [NOON, np.nan, FAR_DAY]),
    "moments of a zone as objects": (pd.Series([NOON_IN_TOKYO], dtype=object), [NOON]),
    "seconds": (pd.Series(np.array(WORDS, dtype="datetime64[s]")), [NOON, np.nan, FAR_DAY]),
    "milliseconds": (pd.Series(np.array(WORDS, dtype="datetime64[ms]")), [NOON, np.nan, FAR_DAY]),
    "microseconds": (pd.Series(np.array(WORDS, dtype="datetime64[us]")), [NOON, np.nan, FAR_DAY]),
    "nanoseconds": (pd.Series(np.array(WORDS[:2], dtype="datetime64[ns]")), [NOON, np.nan]),
    "a time zone": (pd.Series([NOON_IN_UTC, None]).dt.tz_convert("Asia/Tokyo"), [NOON, np.nan]),
    "Arrow's days": (pd.Series(DAYS, dtype="date32[day][pyarrow]"), [DAY, np.nan, FAR_DAY]),
    "Arrow's moments": (pd.Series(NOONS, dtype="timestamp[s][pyarrow]"), [NOON, np.nan, FAR_DAY]),
    "Arrow's time zone": (pd.Series([NOON_IN_UTC], dtype="timestamp[us, Asia/Tokyo][pyarrow]"), [NOON]),
}
DURATIONS = {
    "objects": pd.Series([dt.timedelta(hours=36), None], dtype=object),
    "seconds": pd.Series([36 * 3600, None]).astype("timedelta64[s]"),
    "nanoseconds": pd.Series([36, None]).astype("timedelta64[ns]") * 3600 * 10**9,
    "Arrow's": pd.Series([dt.timedelta(hours=36), None], dtype="duration[s][pyarrow]"),
}


def learn(column):
    table, frame = Table.learn(pd.DataFrame({"x": column}))
    return table.columns[0], table.values(frame)[:, 0]


@pytest.mark.parametrize("name", DATES)
def test_dates_of_every_type_and_age_are_days_since_1970(name):
    given, expected = DATES[name]
    column, values = learn(given)
    assert column.kind == "date"
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("name", DURATIONS)
def test_durations_of_every_type_are_days(name):
    column, values = learn(DURATIONS[name])
    assert column.kind == "duration"
    np.testing.assert_array_equal(values, [1.5, np.nan])


def test_dates_may_come_in_another_type_or_all_missing_when_explained():
    column, _ = learn(pd.to_datetime(["2020-01-02", "2020-01-03"]))
    for name in ("days as objects", "milliseconds", "Arrow's days"):
        given, expected = DATES[name]
        np.testing.assert_array_equal(column.values(given.to_frame("x")), expected)
    for nothing in (np.nan, None):
        assert np.isnan(column.values(pd.DataFrame({"x": [nothing, nothing]}))).all()
    with pytest.raises(InputError, match=r"column 'x' held dates at fit, now its type is int64; use pd.to_datetime"):
        column.values(pd.DataFrame({"x": [20200102]}))


def test_decimals_are_numbers_also_beside_others():
    for given, expected in (
        (pd.Series([Decimal("1.5"), None, Decimal(-2)]), [1.5, np.nan, -2]),
        (pd.Series([Decimal(1), 2, 0.5], dtype=object), [1, 2, 0.5]),
        (pd.Series([Decimal(1), None, Decimal(3)], dtype=pd.ArrowDtype(pa.decimal128(5, 2))), [1, np.nan, 3]),
    ):
        column, values = learn(given)
        assert column.kind == "number"
        np.testing.assert_array_equal(values, expected)
        assert column.show(given.to_frame("x"), 0) == show_value(expected[0])


def test_objects_of_several_kinds_are_categories():
    for given in ([True, 1, 0], [1, "a", 2.5], [dt.date(2020, 1, 2), 5, "x"]):
        assert learn(pd.Series(given, dtype=object))[0].kind == "category"


def test_arrow_dictionaries_are_categories():
    given = pd.Series(["b", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))
    column, values = learn(given)
    assert column.feature_levels == [MISSING, "a", "b"]
    assert values.tolist() == [2, 0, 1]
    assert column.show(given.to_frame("x"), 0) == "b"


@pytest.mark.parametrize("kind", ["int64", "Int64", "int64[pyarrow]", "object"])
def test_integers_that_floats_cannot_hold_are_warned_about_once_by_name(kind):
    frame = pd.DataFrame({"id": pd.Series([2**53 + 2, 5], dtype=kind), "fine": [2**53, 1], "float": [1e200, 1.0]})
    with pytest.warns(UserWarning, match=r"column 'id' holds integers beyond 2\^53") as warned:
        table, frame = Table.learn(frame)
    assert len(warned) == 1
    table.values(table.read(frame))  # in silence


def test_integers_that_no_float_comes_near_are_refused_by_name():
    with pytest.raises(InputError, match="column 'x' holds integers too large for any float"):
        learn(pd.Series([10**400, 1], dtype=object))
