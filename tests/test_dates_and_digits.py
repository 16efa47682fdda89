"""What is told of a date, a duration or a number is as true as the number behind it."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from limis import LimisExplainer
from limis.columns import MISSING, roundest, show_apart, show_exact, show_number
from limis.errors import InputError
from limis.table import Table

NEW_YORK = "America/New_York"
HAVANA = "America/Havana"  # has two midnights when summer time ends
ZONES = [None, "UTC", NEW_YORK, HAVANA, "Asia/Kathmandu", "UTC-03:30"]
SECOND_MIDNIGHT = pd.Timestamp("2024-11-03 05:00")  # in UTC
# Pandas reads no offsets with seconds, which zones had before; and later a float of days is coarser than a microsecond.
MOMENTS = st.datetimes(pd.Timestamp("1940-01-01"), pd.Timestamp("2140-01-01")).map(pd.Timestamp)
DURATIONS = st.timedeltas(dt.timedelta(days=-(10**4)), dt.timedelta(days=10**4))
# Neighbours as near as a tick, and others.
STEPS = st.one_of(st.integers(1, 100), st.integers(1, 10**13)).map(lambda ticks: pd.Timedelta(ticks, "us"))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def learn(values, dtype=None):
    table, frame = Table.learn(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))
    return table.columns[0], table.values(frame)[:, 0]


def borders(low, high):
    """Places between two values, as trees and jumps choose them."""
    return {low, roundest(low, high), low + (high - low) / 2} - {high}


@given(MOMENTS, STEPS, st.sampled_from(ZONES))
@example(SECOND_MIDNIGHT, pd.Timedelta("1h"), HAVANA)
@example(SECOND_MIDNIGHT - pd.Timedelta("1h"), pd.Timedelta("1h"), HAVANA)
def test_the_words_of_a_border_divide_the_same_dates(moment, step, zone):
    below = moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)
    column, values = learn([below, below + step])
    assert column.zone == zone
    for border in borders(*values.tolist()):
        told = pd.Timestamp(column.show_border(border))
        if zone is not None and told.tzinfo is None:
            told = told.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
        assert below <= told < below + step


@given(DURATIONS, STEPS)
def test_the_words_of_a_border_divide_the_same_durations(duration, step):
    below = pd.Timedelta(duration)
    column, values = learn([below, below + step])
    for border in borders(*values.tolist()):
        assert below <= pd.Timedelta(column.show_border(border)) < below + step


@given(NUMBERS)
@example(1e15 + 0.125)
@example(2.0**60 + 256)
def test_the_words_of_a_border_give_the_number_back(border):
    column, _ = learn([0.0, 1.0])
    assert float(column.show_border(border).replace(",", "")) == border
    assert column.show_border(border) == show_exact(border)


@given(MOMENTS, st.sampled_from(["s", "ms", "us", "ns"]))
def test_a_moment_is_the_same_number_in_every_unit(moment, unit):
    moment = moment.floor("s")
    assert learn([moment], f"M8[{unit}]")[1] == learn([moment.to_pydatetime()], object)[1]


@pytest.mark.parametrize("dtype", [None, object, f"timestamp[us, {NEW_YORK}][pyarrow]"])
def test_dates_of_a_zone_are_told_and_read_in_it(dtype):
    noon = pd.Timestamp("2024-07-01 12:00", tz=NEW_YORK)
    column, values = learn([noon, noon + pd.Timedelta("1D")], dtype)
    assert column.zone == NEW_YORK
    assert column.show_border(values[0]) == column.show_amount(values[0]) == "2024-07-01 12:00:00-04:00"
    assert column.show_mean(values[0] + 0.3) == "2024-07-01"  # in UTC it is the next day
    for same in (noon, noon.tz_convert("UTC"), noon.tz_localize(None)):
        for kind in (None, object):
            assert column.values(pd.DataFrame({"x": pd.Series([same], dtype=kind)})) == values[0]
    in_utc = pd.DataFrame({"x": [noon.tz_convert("UTC")]})
    assert column.show(in_utc, 0) == "2024-07-01 12:00:00-04:00"


def test_zones_without_a_common_name_are_told_in_utc():
    moment = pd.Timestamp("2024-07-01 12:00", tz=NEW_YORK)
    odd = dt.datetime(2024, 7, 1, tzinfo=dt.timezone(dt.timedelta(hours=2), "of its own"))
    for values in ([moment, moment.tz_convert("Asia/Tokyo")], [odd, odd]):
        column, numbers = learn(values, object)
        assert column.zone == "UTC"
        assert column.show_border(numbers[0]) == column.show(pd.DataFrame({"x": values}), 0)
        assert column.show_border(numbers[0]).endswith("+00:00")


def test_a_zone_is_saved():
    table, _ = Table.learn(pd.DataFrame({"x": pd.date_range("2024-01-01", periods=3, tz=NEW_YORK)}))
    again = Table.from_dict(json.loads(json.dumps(table.to_dict())), table.quantiles)
    assert again.columns[0].zone == NEW_YORK
    old = table.to_dict()
    del old["columns"][0]["zone"]
    assert Table.from_dict(old, table.quantiles).columns[0].zone is None


def test_durations_of_every_type_are_told_alike():
    day_and_half = [pd.Timedelta("36h"), dt.timedelta(hours=36), np.timedelta64(36, "h"), np.timedelta64(129600, "s")]
    for value in day_and_half:
        column, values = learn([value, value], object)
        assert column.show(pd.DataFrame({"x": pd.Series([value], dtype=object)}), 0) == "1 days 12:00:00"
        assert column.show_border(values[0]) == column.show_amount(values[0]) == "1 days 12:00:00"
    assert column.show_mean(1.23456789) == "1 days 05:37:47"
    assert column.show_mean(0.25 / 86400) == "0 days 00:00:00.250000"
    assert column.show_mean(np.nan) == MISSING


@given(NUMBERS, NUMBERS)
@example(52.5, 52.503)
@example(1e15, 1e15 + 0.125)
@example(100.0, 100.0 + 1e-13)
def test_different_numbers_are_told_with_digits_enough_to_differ(one, other):
    told = show_apart(one, other)
    assert (told[0] != told[1]) == (one != other)
    if show_number(one) != show_number(other) or one == other:
        assert told == (show_number(one), show_number(other))


def test_a_column_tells_its_values_apart():
    frame = pd.DataFrame({"lat": [52.5, 52.503, np.nan, 52.5], "kind": ["a", "b", None, "a"]})
    lat, kind = Table.learn(frame)[0].columns
    assert lat.show_apart(frame, 0, frame, 1) == ("52.5", "52.503")
    assert lat.show_apart(frame, 0, frame, 2) == ("52.5", MISSING)
    assert lat.show_apart(frame, 0, frame, 3) == ("52.5", "52.5")
    assert kind.show_apart(frame, 0, frame, 1) == ("a", "b")


@pytest.fixture(scope="module")
def explained():
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "t": pd.date_range("2024-01-01", periods=n, freq="h", tz=NEW_YORK).to_series().sample(n, random_state=0),
            "wait": pd.to_timedelta(rng.integers(0, 40, n), "h"),
            "count": rng.integers(0, 9, n),
            "never": np.nan,
            "word": rng.choice(np.array(["a", "b", None], dtype=object), n),
        }
    ).reset_index(drop=True)
    cut = pd.Timestamp("2024-01-03", tz=NEW_YORK)
    explainer = LimisExplainer(lambda rows: 5.0 * (rows["t"] >= cut) + 0.1 * rows["count"], surrogate="tree")
    return explainer.fit(frame), frame, cut


def test_a_range_of_dates_is_read_in_their_zone(explained):
    explainer, frame, cut = explained
    row = frame[frame["t"] == cut - pd.Timedelta("3h")]
    for zone in ("", "-05:00"):
        ends = (f"2024-01-03 06:00{zone}", f"2024-01-03 07:00{zone}")
        found = explainer.suggest(row, "up", ranges={"t": ends}, immutable=["count"])[0].suggestions[0]
        assert cut + pd.Timedelta("6h") <= found.changes["t"][1] <= cut + pd.Timedelta("7h")


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"count": (0, 10**400)}, r"ranges\['count'\] has an end too large for a number"),
        ({"t": (None, 10**400)}, r"ranges\['t'\] has an end too large for a date"),
        ({"wait": (None, 10**400)}, r"ranges\['wait'\] has an end too large for a duration"),
        ({"word": ["a", "missing"]}, "lists 'missing', and no column is ever moved to missing"),
        ({"word": ["c"]}, r"no training row has; there are 'a', 'b'$"),
        ({"never": (0, 1)}, "no training row has a value there; they are all missing"),
        ({"wait": ("50 days", None)}, r"they go from 0 days 00:00:00 to 1 days \d\d:00:00"),
        ({"t": ("2030", None)}, "they go from 2024-01-01.*-05:00 to 2024-01-05.*-05:00"),
        ({"count": (50, None)}, "they go from 0 to 8"),
    ],
)
def test_ranges_that_leave_nothing_are_refused_in_the_columns_own_words(explained, ranges, message):
    explainer, frame, _ = explained
    with pytest.raises(InputError, match=message):
        explainer.suggest(frame[:1], "up", ranges=ranges)


def test_a_level_called_missing_may_be_listed():
    frame = pd.DataFrame({"word": ["a", "missing", None] * 20, "x": np.arange(60.0)})
    explainer = LimisExplainer(lambda rows: 1.0 * (rows["word"] == "missing"), surrogate="tree").fit(frame)
    for word in ("missing", '"missing"'):
        found = explainer.suggest(frame[:1], "up", ranges={"word": [word]}, immutable=["x"])[0]
        assert found.suggestions[0].changes == {"word": ("a", "missing")}


def test_a_small_change_and_its_target_are_told_with_enough_digits():
    rows = pd.DataFrame({"lat": 52.5 + np.random.default_rng(0).random(200) * 0.02})
    explainer = LimisExplainer(lambda rows: 100 + (rows["lat"] - 52.5) * 10).fit(rows)
    low = rows[rows["lat"] < 52.503].iloc[:1]
    told = explainer.suggest(low, "> 100.04")[0]
    (before, after) = told[0].words["lat"]
    assert before != after
    assert told[0].says[0] != told[0].says[1]
    assert "an output > 100.04" in repr(told)
