"""Real data sets: what the loaders make of the raw files, and how those are found and checked."""

import gzip
import hashlib
import sys
import threading
import zipfile
from functools import cache, partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from limis.datasets import (
    Dataset,
    bike,
    blog,
    compare_with_paper,
    data_folder,
    facebook,
    german,
    how_it_differs,
    load_adult,
    load_bike,
    load_blog,
    load_facebook,
    load_german,
    load_news,
    load_weather,
    news,
    weather,
)
from limis.datasets.checks import PAPER
from limis.datasets.files import RawFile, _find, read_raw
from limis.errors import InputError, MissingExtraError
from limis.experiments import EXPERIMENTS, Scope
from limis.experiments.data_statistics import LOADERS

NEEDED = {
    "blog": [blog.FILE],
    "facebook": [facebook.TRAINING, *facebook.TESTS],
    "news": [news.FILE],
    "adult": [],
    "weather": [weather.FILE],
    "german": [german.FILE],
    "bike": [bike.FILE],
}
LOAD = {
    "blog": load_blog,
    "facebook": load_facebook,
    "news": load_news,
    "adult": load_adult,
    "weather": load_weather,
    "german": load_german,
    "bike": load_bike,
}
DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
CONTENTS = b"1,0.5\n2,3.0\n"
FILE = RawFile("toy/numbers.csv", (hashlib.sha256(CONTENTS).hexdigest(),))
REAL_FOLDER = data_folder().absolute()


def need(name):
    if absent := absent_files(name):
        pytest.skip(f"{absent[0]} not in {REAL_FOLDER}")


@cache
def absent_files(name):
    return [file.name for file in NEEDED[name] if _find(file, REAL_FOLDER) is None]


@cache
def load(name):
    return LOAD[name]() if name == "adult" else LOAD[name](REAL_FOLDER)


@pytest.fixture(params=list(LOAD))
def dataset(request):
    need(request.param)
    return load(request.param)


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Nothing but an empty cache folder to find files in."""
    monkeypatch.delenv("LIMIS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "cache" / "limis"


def write(path, contents):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)


def write_archive(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)


SHAPES = {
    "blog": (60_021, 280),
    "facebook": (41_949, 53),
    "news": (39_644, 59),
    "adult": (48_842, 14),
    "weather": (112_925, 16),
    "german": (1_000, 20),
    "bike": (17_379, 12),
}


def test_tables_are_whole(dataset):
    assert dataset.frame.shape == SHAPES[dataset.name]
    assert not dataset.frame.isna().any(axis=None)
    assert not dataset.target.isna().any()
    assert dataset.frame.columns.is_unique
    assert all(name == name.strip() for name in dataset.frame.columns)
    assert dataset.frame.index.equals(pd.RangeIndex(len(dataset.frame)))
    assert dataset.target.index.equals(dataset.frame.index)
    assert dataset.target.name not in dataset.frame
    assert dataset.citation
    assert dataset.licence


def test_regressions_are_all_numbers_and_counts_are_whole():
    for name in ("blog", "facebook", "news", "bike"):
        need(name)
        data = load(name)
        assert data.task == "regression"
        assert all(dtype.kind in "if" for dtype in data.frame.dtypes)
        assert data.target.dtype == np.int64
    assert load("blog").frame["word_7"].dtype == np.int64
    assert load("news").frame["num_imgs"].dtype == np.int64
    assert load("facebook").frame["page_comments_growth_mean"].dtype == np.float64


@pytest.mark.parametrize(
    ("name", "mean", "sd"),
    [("blog", 6.584, 36.872), ("facebook", 7.782, 38.728), ("news", 3395.380, 11626.951), ("bike", 189.463, 181.388)],
)
def test_labels_stay_as_they_are(name, mean, sd):
    need(name)
    target = load(name).target
    assert target.mean() == pytest.approx(mean, abs=5e-4)
    assert target.std() == pytest.approx(sd, abs=5e-4)


def test_weather_has_the_papers_labels():
    need("weather")
    assert (load("weather").target == "Yes").sum() == 25_019
    assert set(load("weather").target) == {"No", "Yes"}
    assert "RISK_MM" not in load("weather").frame


@pytest.mark.parametrize("name", ["blog", "facebook"])
def test_names_of_columns_agree_with_what_is_in_them(name):
    need(name)
    frame = load(name).frame
    assert (frame["comments_growth"] == frame["comments_last_24h"] - frame["comments_24h_before"]).all()
    assert (frame["comments_first_24h"] <= frame["comments_total"]).all()
    assert frame["hours_since_publication"].between(0, 72).all()
    base, published = (frame[[f"{of}_{day}" for day in DAYS]].to_numpy() for of in ("base", "published"))
    assert (base.sum(axis=1) == 1).all()
    assert (published.sum(axis=1) == 1).all()
    # After so many whole days the weekday has moved on by as many, or by one more.
    moved = (base.argmax(axis=1) - published.argmax(axis=1)) % 7
    assert np.isin(moved - frame["hours_since_publication"] // 24, (0, 1)).all()
    of = "blog" if name == "blog" else "page"
    for count in ("comments_total", "comments_growth"):
        low, high, mean = (frame[f"{of}_{count}_{statistic}"] for statistic in ("min", "max", "mean"))
        assert (low <= mean + 1e-4).all()
        assert (mean <= high + 1e-4).all()


def test_blog_ends_with_the_test_part_in_order():
    need("blog")
    # The test part is 60 days from the first of February 2012, a Wednesday, on.
    base = load("blog").frame[[f"base_{day}" for day in DAYS]].to_numpy().argmax(axis=1)
    changes = np.flatnonzero(np.diff(base[-7624:])) + 1
    assert base[-7624] == DAYS.index("wednesday")
    assert len(changes) == 59
    assert set(np.diff(base[-7624:])[changes - 1] % 7) == {1}


def test_news_keeps_timedelta_and_drops_the_address():
    need("news")
    assert list(load("news").frame.columns[:2]) == ["timedelta", "n_tokens_title"]
    assert load("news").target.name == "shares"


def test_german_reads_in_words():
    need("german")
    data = load("german")
    assert data.task == "classification"
    assert data.target.value_counts().to_dict() == {"good": 700, "bad": 300}
    first = data.frame.loc[0]
    assert (first["checking_status"], first["duration"], first["amount"]) == ("below 0 DM", 6, 1169)
    assert (first["purpose"], first["age"], first["telephone"]) == ("radio or television", 67, "yes")
    numbers = data.frame.select_dtypes("number")
    assert len(numbers.columns) == 7
    assert all(dtype == np.int64 for dtype in numbers.dtypes)
    words = data.frame.drop(columns=numbers.columns)
    assert not words.apply(lambda column: column.str.fullmatch(r"A\d+")).any(axis=None)
    # As many words as UCI has codes in use: none share one.
    assert words.nunique().tolist() == [4, 5, 10, 5, 5, 4, 3, 4, 3, 3, 4, 2, 2]


def test_bike_keeps_nothing_that_gives_the_count_away():
    need("bike")
    frame = load("bike").frame
    assert load("bike").target.name == "cnt"
    assert not {"instant", "dteday", "casual", "registered"} & set(frame.columns)
    working = frame["weekday"].between(1, 5) & (frame["holiday"] == 0)
    assert (frame["workingday"] == working).all()
    assert set(frame["hr"]) == set(range(24))


def test_splits_are_disjoint_and_reproducible(dataset):
    parts = dataset.split(random_state=3)
    n = len(dataset.frame)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    for part, again in zip(parts, dataset.split(random_state=3), strict=True):
        np.testing.assert_array_equal(part, again)
    assert not np.array_equal(parts[0], dataset.split(random_state=4)[0])
    if not dataset.own_test_rows:
        assert [part.size for part in parts] == pytest.approx([0.72 * n, 0.08 * n, 0.20 * n], abs=1)


def test_own_test_rows_are_kept_for_testing():
    need("facebook")
    training, probe, test = load("facebook").split(random_state=0)
    assert (training.size, probe.size) == (36_854, 4_095)
    for seed in (0, 1):
        np.testing.assert_array_equal(load("facebook").split(seed)[2], np.arange(40_949, 41_949))
    assert test.size == load("facebook").own_test_rows == 1_000


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("blog", "as in the paper"),
        ("news", "as in the paper"),
        ("adult", "as in the paper"),
        ("weather", "columns 62 instead of 61: RainToday"),
        ("facebook", "rows 41,949 instead of 603,713, columns 53 instead of 54, label mean 7.8 instead of 7.2"),
    ],
)
def test_the_data_is_compared_with_the_papers(name, words):
    need(name)
    table = compare_with_paper(load(name))
    assert table["paper"].tolist() == [PAPER[name].rows, PAPER[name].columns, *PAPER[name].label.values()]
    assert how_it_differs(load(name)).startswith(words)
    assert table["differs"].any() == (words != "as in the paper")


def test_a_difference_without_a_known_reason_is_told():
    adult = load("adult")
    half = Dataset("adult", adult.frame[::2], adult.target[::2], "classification", "", "", "")
    assert how_it_differs(half).startswith("rows 24,421 instead of 48,842, ")
    other = Dataset("iris", adult.frame, adult.target, "classification", "", "", "")
    with pytest.raises(InputError, match="no data called 'iris': it has blog, facebook"):
        compare_with_paper(other)


def test_the_experiment_puts_the_paper_beside(monkeypatch):
    experiment = EXPERIMENTS["data-statistics"]
    assert len(experiment.runs(Scope(seeds=3))) == 5
    for name in LOADERS:
        need(name.lower())
        monkeypatch.setitem(LOADERS, name, partial(load, name.lower()))
    runs = experiment.runs(Scope())
    table = experiment.tabulate([run.outcome(run.execute()) for run in runs])
    shown = experiment.show(table).set_index("data")
    assert list(shown.index) == ["Blog", "Facebook", "News", "Adult", "Weather"]
    assert shown.loc["Blog", "label"] == "6.6 (0-0-22)"
    assert shown.loc["Facebook", "rows"] == "41,949 (paper 603,713)"
    assert shown["differs because"].ne("").tolist() == [False, True, False, False, True]
    assert shown.loc["Weather", "label"] == "25,019 (22.2%)"
    pytest.importorskip("matplotlib")
    assert all(ax.has_data() for ax in experiment.draw(table).axes)


def test_a_file_may_be_plain_compressed_or_in_an_archive(tmp_path):
    write(tmp_path / "plain/toy/numbers.csv", CONTENTS)
    write(tmp_path / "zipped/toy/numbers.csv.gz", gzip.compress(CONTENTS))
    write_archive(tmp_path / "archived/toy/all.zip", {"Data/other.csv": b"", "Data/Deep/numbers.csv": CONTENTS})
    file = RawFile(FILE.name, ("0" * 64, *FILE.sha256), archives=("toy/none.zip", "toy/all.zip"))
    for folder in ("plain", "zipped", "archived"):
        assert read_raw(file, tmp_path / folder) == CONTENTS


@pytest.mark.parametrize("name", ["numbers.csv", "numbers.csv.gz", "all.zip"])
def test_another_file_is_refused(tmp_path, name):
    other = b"1,0.5\n2,3.1\n"
    path = tmp_path / "toy" / name
    if name == "all.zip":
        write_archive(path, {"numbers.csv": other})
    else:
        write(path, gzip.compress(other) if name.endswith("gz") else other)
    file = RawFile(FILE.name, FILE.sha256, url="https://example.org/all.zip", archives=("toy/all.zip",))
    with pytest.raises(InputError, match="not the file that limis knows") as told:
        read_raw(file, tmp_path)
    for word in (str(path), hashlib.sha256(other).hexdigest(), FILE.sha256[0], "save https://example.org/all.zip as"):
        assert word in str(told.value)


@pytest.mark.parametrize("name", ["numbers.csv.gz", "all.zip"])
def test_a_damaged_file_is_told(tmp_path, name):
    path = tmp_path / "toy" / name
    whole = gzip.compress(CONTENTS)
    write(path, whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cannot be read .*: move it away, then save u as"):
        read_raw(RawFile(FILE.name, FILE.sha256, url="u", archives=("toy/all.zip",)), tmp_path)


@pytest.mark.parametrize(
    ("load_one", "words"),
    [
        (load_blog, "save https://archive.ics.uci.edu/static/public/304/blogfeedback.zip as "),
        (load_facebook, "no .*facebook/Features_Variant_1.csv .*set LIMIS_DATA to the folder that holds facebook/"),
        (load_news, r"as .*news/online\+news\+popularity.zip, or set LIMIS_DATA"),
        (load_german, r"as .*german/statlog\+german\+credit\+data.zip, or set LIMIS_DATA"),
        (load_bike, r"as .*bike/bike\+sharing\+dataset.zip, or set LIMIS_DATA"),
        (load_weather, '"Rain in Australia" from Kaggle .*, or set LIMIS_DATA to the folder that holds weather/'),
    ],
)
def test_absent_files_say_where_to_get_them(tmp_path, monkeypatch, load_one, words):
    with pytest.raises(InputError, match=words):
        load_one(tmp_path)
    # Nothing is downloaded into a folder that somebody keeps.
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setenv("LIMIS_DATA", str(tmp_path / "kept"))
    with pytest.raises(InputError, match="kept"):
        load_one()


def test_weather_is_never_downloaded(cached):
    with pytest.raises(InputError, match="Kaggle") as told:
        load_weather()
    assert str(cached / "weather/weatherAUS.csv") in str(told.value)


def test_data_is_looked_for_in_this_order(cached, monkeypatch):
    assert data_folder() == cached
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_folder().parts[-2:] == (".cache", "limis")
    (cached.parents[1] / "shared/data").mkdir(parents=True)
    assert data_folder().resolve() == (cached.parents[1] / "shared/data").resolve()
    monkeypatch.setenv("LIMIS_DATA", "~/mine")
    assert data_folder().name == "mine"
    assert data_folder().is_absolute()


@pytest.fixture
def published(tmp_path):
    """The address of a server, and the folder that it offers."""
    folder = tmp_path / "published"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield SimpleNamespace(address=f"http://127.0.0.1:{server.server_port}", folder=folder)
    server.shutdown()
    thread.join()
    server.server_close()


def test_files_are_downloaded_once_into_the_cache(cached, published, monkeypatch):
    pytest.importorskip("pooch")
    write(published.folder / "numbers.csv", CONTENTS)
    write_archive(published.folder / "a+b.zip", {"Data/numbers.csv": CONTENTS})
    alone = RawFile("alone/numbers.csv", FILE.sha256, url=f"{published.address}/numbers.csv")
    inside = RawFile("in/numbers.csv", FILE.sha256, url=f"{published.address}/a+b.zip", archives=("in/a+b.zip",))
    assert read_raw(alone) == read_raw(inside) == CONTENTS
    assert (cached / "alone/numbers.csv").read_bytes() == CONTENTS
    assert (cached / "in/a+b.zip").is_file()
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert read_raw(alone) == read_raw(inside) == CONTENTS


def test_a_download_that_fails_says_what_to_do(cached, monkeypatch):
    pooch = pytest.importorskip("pooch")

    def refuse(*args, **options):  # noqa: ARG001 - as pooch calls it
        raise ConnectionError("404 Not Found")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    with pytest.raises(InputError, match=r"u/a could not be downloaded \(404 Not Found\): save u/a as") as told:
        read_raw(RawFile(FILE.name, FILE.sha256, url="u/a"))
    assert str(cached / FILE.name) in str(told.value)


def test_another_file_than_was_asked_for_is_not_kept(cached, published):
    pytest.importorskip("pooch")
    write(published.folder / "numbers.csv", b"another one")
    with pytest.raises(InputError, match=r"could not be downloaded .*hash"):
        read_raw(RawFile(FILE.name, FILE.sha256, url=f"{published.address}/numbers.csv"))
    assert not (cached / FILE.name).exists()


def test_downloading_without_pooch_names_the_extra(cached, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"limis-xai\[data\]"):
        load_news()
    assert not cached.exists()
