"""Folders of Parquet explained in parts: the same results, whatever is killed, and nothing twice."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bulk_models import MARK, Deadly, Gated, Three, Unsendable, price

from limis import InputError, LimisExplainer, MissingExtraError
from limis.bulk import running
from limis.bulk.part import PartExplainer
from limis.cli.main import main
from limis.lines import explained_lines

TESTS = Path(__file__).parent


def make_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n).round(3)
    size[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "id": [f"n{i}" for i in range(n)],
            "size": size,
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
            "zip": pd.Series(rng.choice(["02139", "94110"], n)).mask(rng.random(n) < 0.2),
            "flag": rng.random(n) > 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )


def fitted(model, **options):
    return LimisExplainer(model, **options).fit(make_rows(120).drop(columns="id"))


@pytest.fixture(scope="module")
def explainer():
    return fitted(price)


@pytest.fixture
def here(monkeypatch):
    """Parts are explained in this process, which is quicker; what numbers were explained is in the list."""
    done = []

    def run(job, workers):  # noqa: ARG001
        explainer = PartExplainer(job)
        for number in job.parts:
            done.append(number)
            yield explainer.explain(number)

    monkeypatch.setattr(running, "run_in_processes", run)
    return done


def write(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, rows in files.items():
        rows.to_parquet(folder / f"{name}.parquet", index=False)
    return folder


def told(explainer, rows):
    """What `limis explain -o x.parquet` would write."""
    found = explainer.explain(rows[[name for name in rows.columns if name in explainer.feature_names_in_]])
    return explained_lines(found, rows).reset_index(drop=True)


def check_same(folder, expected):
    """The same lines, each row once and in order; categories come back as their values."""
    got = pd.read_parquet(folder)
    lines = len(expected) // got["row_number"].nunique()
    assert got["row_number"].tolist() == np.repeat(np.arange(len(expected) // lines), lines).tolist()
    got = got.drop(columns="row_number")
    assert list(got.columns) == list(expected.columns)
    pd.testing.assert_frame_equal(got, expected, check_dtype=False, check_categorical=False, rtol=1e-9, atol=1e-9)


# --- the same results -------------------------------------------------------------------------------------


def test_a_folder_is_explained_as_its_rows_would_be_at_once(explainer, here, tmp_path):
    rows = make_rows(230, seed=1)
    source = write(tmp_path / "rows", a=rows[:150], b=rows[150:150], c=rows[150:])
    done = explainer.explain_dataset(source, tmp_path / "out", rows_a_part=40)
    expected = told(explainer, rows)
    check_same(tmp_path / "out", expected)
    assert (done.rows, done.parts, done.parts_found, done.folder) == (230, 6, 0, tmp_path / "out")
    assert done.trusted == expected["trusted"].sum()
    assert here == list(range(6))


@pytest.mark.parametrize("workers", [None, 2])
def test_curves_are_told_in_parts_as_at_once(request, tmp_path, workers):
    if workers is None:
        request.getfixturevalue("here")
    curves = fitted(price, surrogate="curves", max_questions=5000)
    rows = make_rows(60, seed=4)
    source = write(tmp_path / "rows", a=rows[:35], b=rows[35:])
    curves.explain_dataset(source, tmp_path / "out", rows_a_part=13, workers=workers or 1)
    expected = told(curves, rows)
    check_same(tmp_path / "out", expected)
    assert (expected["contribution: colour"] != 0).any()


def test_only_results_and_the_plan_are_left(explainer, here, tmp_path):
    source = write(tmp_path / "rows", a=make_rows(20))
    explainer.explain_dataset(source, tmp_path / "out", rows_a_part=10)
    assert here
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "_plan.json",
        "part-000000.parquet",
        "part-000001.parquet",
    }


@pytest.mark.parametrize("row_group_size", [7, 1000])
def test_row_groups_smaller_and_larger_than_a_part(explainer, here, tmp_path, row_group_size):
    rows = make_rows(100, seed=2)
    rows.to_parquet(tmp_path / "rows.parquet", index=False, row_group_size=row_group_size)
    explainer.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", rows_a_part=30)
    assert len(here) == 4
    check_same(tmp_path / "out", told(explainer, rows))


def test_files_may_differ_in_order_of_columns_in_types_and_in_what_is_beside(explainer, here, tmp_path):
    rows = make_rows(60, seed=3)
    rows["size"] = rows["size"].fillna(1).round()
    first, second = rows[:30].copy(), rows[30:].copy()
    first["size"] = first["size"].astype("int32")
    second["colour"] = second["colour"].astype(str)
    second["note"] = "only here"
    source = write(tmp_path / "rows", a=first, b=second[second.columns[::-1]])
    explainer.explain_dataset(source, tmp_path / "out", rows_a_part=20)
    assert here
    got = pd.read_parquet(tmp_path / "out")
    assert got["note"].isna().tolist() == [True] * 30 + [False] * 30
    expected = told(explainer, rows)
    own = [name for name in expected.columns if name != "note"]
    pd.testing.assert_frame_equal(got[own], expected, check_dtype=False, check_categorical=False, rtol=1e-9)
    schemas = [pq.read_schema(path).remove_metadata() for path in sorted((tmp_path / "out").glob("*.parquet"))]
    assert all(schema == schemas[0] for schema in schemas)


def test_a_named_index_stays_as_a_column_and_an_unnamed_one_goes(explainer, here, tmp_path):
    rows = make_rows(30)
    rows.set_index("id").to_parquet(tmp_path / "named.parquet")
    rows.set_axis(range(100, 130)).to_parquet(tmp_path / "unnamed.parquet", index=True)
    for name in ("named", "unnamed"):
        explainer.explain_dataset(tmp_path / f"{name}.parquet", tmp_path / name)
        got = pd.read_parquet(tmp_path / name)
        assert got["id"].tolist() == rows["id"].tolist()
        assert not any("index" in column for column in got.columns)
    assert here


def test_what_the_rows_had_is_kept_as_it_was(explainer, here, tmp_path):
    table = pa.Table.from_pandas(make_rows(6), preserve_index=False)
    own = pa.array([2**62 + 1, None, 3, 4, 5, 6])  # pandas would make floats of these, and lose the first
    pq.write_table(table.append_column("number", own), tmp_path / "rows.parquet")
    explainer.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out")
    assert here
    assert pq.read_table(tmp_path / "out")["number"].to_pylist() == own.to_pylist()


def test_several_classes_have_a_line_a_row_and_class(here, tmp_path):
    explainer, rows = fitted(Three()), make_rows(40, seed=4)
    source = write(tmp_path / "rows", a=rows)
    done = explainer.explain_dataset(source, tmp_path / "out", rows_a_part=15)
    check_same(tmp_path / "out", told(explainer, rows))
    assert done.rows == 40
    assert done.trusted == sum(one.trusted for one in explainer.explain(rows.drop(columns="id")))
    explainer.explain_dataset(source, tmp_path / "high", one_class="high")
    found = explainer.explain(rows.drop(columns="id")).for_class("high")
    check_same(tmp_path / "high", explained_lines(found, rows).reset_index(drop=True))
    assert here


def test_a_model_in_its_native_format_is_not_pickled(here, monkeypatch, tmp_path):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    rows = make_rows(120)[["size", "flag"]]
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(rows, rows["size"].fillna(0) + rows["flag"])
    explainer = LimisExplainer(model).fit(rows)
    monkeypatch.setattr(running.cloudpickle, "dumps", None)
    explainer.explain_dataset(write(tmp_path / "rows", a=rows), tmp_path / "out", rows_a_part=50)
    assert len(here) == 3
    check_same(tmp_path / "out", told(explainer, rows))


def test_given_outputs_are_taken_instead_of_asking(explainer, here, tmp_path):
    rows = make_rows(20).assign(score=7.5)
    explainer.explain_dataset(write(tmp_path / "rows", a=rows), tmp_path / "out", outputs="score")
    assert here
    assert pd.read_parquet(tmp_path / "out")["model_output"].tolist() == [7.5] * 20


# --- going on ---------------------------------------------------------------------------------------------


def test_finished_parts_are_not_done_again(explainer, here, tmp_path):
    source = write(tmp_path / "rows", a=make_rows(50))
    out = tmp_path / "out"
    explainer.explain_dataset(source, out, rows_a_part=10)
    before = {path.name: path.stat().st_ino for path in out.glob("part-*")}
    (out / "part-000003.parquet").unlink()
    (out / ".part-000003.parquet.abc.tmp").write_bytes(b"half a part")
    here.clear()
    done = explainer.explain_dataset(source, out, rows_a_part=10, workers=3)
    assert here == [3]
    assert (done.rows, done.parts, done.parts_found) == (50, 5, 4)
    after = {path.name: path.stat().st_ino for path in out.glob("part-*")}
    assert {name for name in after if after[name] != before[name]} <= {"part-000003.parquet"}
    assert not list(out.glob(".*"))
    check_same(out, told(explainer, make_rows(50)))


def test_a_part_that_was_cut_short_is_done_again(explainer, here, tmp_path):
    source = write(tmp_path / "rows", a=make_rows(20))
    out = tmp_path / "out"
    explainer.explain_dataset(source, out, rows_a_part=10)
    (out / "part-000001.parquet").write_bytes((out / "part-000001.parquet").read_bytes()[:-20])
    here.clear()
    explainer.explain_dataset(source, out, rows_a_part=10)
    assert here == [1]
    check_same(out, told(explainer, make_rows(20)))


def test_a_file_mended_after_what_is_finished_is_no_reason_to_begin_again(explainer, here, tmp_path):
    rows = make_rows(40)
    broken = rows[20:].copy()
    broken["since"] = broken["since"].astype(str).where(np.arange(20) != 5, "yesterday")
    source, out = write(tmp_path / "rows", a=rows[:20], b=rows[20:]), tmp_path / "out"
    text = rows[20:].assign(since=rows["since"].astype(str))
    write(source, a=rows[:20].assign(since=rows["since"].astype(str)), b=broken)
    with pytest.raises(InputError, match=r"b\.parquet: column 'since' held dates at fit, but row 5 has 'yesterday'"):
        explainer.explain_dataset(source, out, rows_a_part=20)
    write(source, b=text)
    here.clear()
    done = explainer.explain_dataset(source, out, rows_a_part=20)
    assert here == [1]
    assert done.rows == 40


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # shap's own
def test_reasons_in_parts_start_from_the_reference_that_was_named(here, tmp_path):
    curves, rows = fitted(price, surrogate="curves", max_questions=5000), make_rows(20)
    source = write(tmp_path / "rows", a=rows)
    curves.explain_dataset(source, tmp_path / "out", rows_a_part=10, reference="size > 0")
    told = pd.read_parquet(tmp_path / "out")
    expected = curves.explain(rows.drop(columns="id"), reference="size > 0")
    np.testing.assert_allclose(told["base_value"], expected.base_values)
    with pytest.raises(InputError, match="not rows"):
        curves.explain_dataset(source, tmp_path / "other", reference=rows)
    with pytest.raises(InputError, match="cannot be read as trees"):
        curves.explain_dataset(source, tmp_path / "other", reasons="shapley")
    assert here


def test_results_of_something_else_are_left_alone(explainer, here, tmp_path):
    rows, out = make_rows(30), tmp_path / "out"
    source = write(tmp_path / "rows", a=rows)
    explainer.explain_dataset(source, out, rows_a_part=10)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(InputError, match="rows_a_part was 10 and is now 20"):
        explainer.explain_dataset(source, out, rows_a_part=20)
    with pytest.raises(InputError, match="queries was 0 and is now 3"):
        explainer.explain_dataset(source, out, rows_a_part=10, queries=3)
    with pytest.raises(InputError, match="another explainer"):
        fitted(price, tolerance=0.5).explain_dataset(source, out, rows_a_part=10)
    write(source, a=rows.assign(size=1.0))
    with pytest.raises(
        InputError, match=r"part 0 \(a\.parquet, rows 0 to 9\) of the input was changed.*another folder"
    ):
        explainer.explain_dataset(source, out, rows_a_part=10)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert here == [0, 1, 2]


def test_a_folder_with_other_files_is_left_alone(explainer, tmp_path):
    source = write(tmp_path / "rows", a=make_rows(10))
    other = write(tmp_path / "other", letters=make_rows(3))
    with pytest.raises(InputError, match=r"holds something else, such as letters\.parquet"):
        explainer.explain_dataset(source, other)
    with pytest.raises(InputError, match="is inside"):
        explainer.explain_dataset(source, source / "explained")
    assert [path.name for path in other.iterdir()] == ["letters.parquet"]


def test_a_second_run_is_kept_out(explainer, monkeypatch, tmp_path):
    source = write(tmp_path / "rows", a=make_rows(10))

    def run(job, workers):  # noqa: ARG001
        with pytest.raises(InputError, match="another run is writing"):
            explainer.explain_dataset(source, tmp_path / "out")
        yield from map(PartExplainer(job).explain, job.parts)

    monkeypatch.setattr(running, "run_in_processes", run)
    assert explainer.explain_dataset(source, tmp_path / "out").rows == 10


# --- what cannot be used ------------------------------------------------------------------------------------


def test_a_broken_or_different_file_is_named_before_any_work(explainer, here, tmp_path):
    rows, out = make_rows(20), tmp_path / "out"
    source = write(tmp_path / "rows", a=rows, b=rows.drop(columns="flag"))
    with pytest.raises(InputError, match=r"b\.parquet has no column 'flag'"):
        explainer.explain_dataset(source, out)
    (source / "b.parquet").write_bytes(b"no Parquet")
    with pytest.raises(InputError, match=r"b\.parquet cannot be read as Parquet"):
        explainer.explain_dataset(source, out)
    write(source, b=rows.assign(id=rows.index))
    with pytest.raises(InputError, match=r"b\.parquet: column 'id' holds int64, but .*string in the files before"):
        explainer.explain_dataset(source, out)
    write(source, b=rows.assign(trusted=1))
    with pytest.raises(InputError, match=r"column 'trusted', and so would the output"):
        explainer.explain_dataset(source, out)
    assert not out.exists()
    assert here == []


def test_a_damaged_page_is_blamed_on_its_file(explainer, here, tmp_path):
    source = write(tmp_path / "rows", a=make_rows(20), b=make_rows(2000))
    data = bytearray((source / "b.parquet").read_bytes())
    data[4:3000] = bytes(len(data[4:3000]))  # the end, which tells of rows and columns, is whole
    (source / "b.parquet").write_bytes(data)
    with pytest.raises(InputError, match=r"b\.parquet cannot be read as Parquet"):
        explainer.explain_dataset(source, tmp_path / "out", rows_a_part=2000)
    assert here == [0, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path / "nowhere", "is not there"),
        (lambda path: write(path / "empty"), "has no files that end in"),
        (lambda path: write(path / "none", a=make_rows(0)), "has no rows to explain"),
        (lambda path: path / "rows.csv", r"does not end in \.parquet"),
    ],
)
def test_a_source_without_rows_is_refused(explainer, tmp_path, make, message):
    make_rows(3).to_csv(tmp_path / "rows.csv")
    with pytest.raises(InputError, match=message):
        explainer.explain_dataset(make(tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_options_are_checked(explainer, tmp_path):
    source = write(tmp_path / "rows", a=make_rows(10))
    with pytest.raises(InputError, match="workers is a number of at least 1, not 0"):
        explainer.explain_dataset(source, tmp_path / "out", workers=0)
    with pytest.raises(InputError, match=r"rows_a_part is a number of at least 1, not 2\.5"):
        explainer.explain_dataset(source, tmp_path / "out", rows_a_part=2.5)
    with pytest.raises(InputError, match="more than two classes"):
        explainer.explain_dataset(source, tmp_path / "out", one_class="high")
    with pytest.raises(InputError, match="has no column 'score'"):
        explainer.explain_dataset(source, tmp_path / "out", outputs="score")


def test_a_model_that_cannot_be_sent_says_so(tmp_path):
    explainer = fitted(Unsendable())
    with pytest.raises(InputError, match="the model, a Unsendable, cannot be sent to workers"):
        explainer.explain_dataset(write(tmp_path / "rows", a=make_rows(10)), tmp_path / "out")


def test_without_ray_the_extra_is_named(explainer, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r'pip install "limis-xai\[ray\]"'):
        explainer.explain_dataset(write(tmp_path / "rows", a=make_rows(10)), tmp_path / "out", cluster="auto")


def test_an_address_without_ray_is_named(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed")
    source = write(tmp_path / "rows", a=make_rows(10))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"  # free again, and nobody listens, once this is closed
    # In a process of its own: this one may have joined a Ray already.
    code = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from bulk_models import price
from test_bulk import fitted
from limis.errors import InputError
try:
    fitted(price).explain_dataset({str(source)!r}, {str(tmp_path / "out")!r}, cluster={address!r})
except InputError as error:
    print("refused:", error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert f"refused: there is no Ray to join at {address}" in done.stdout, done.stderr
    assert "ray start --head" in done.stdout


# --- killing, in processes and on Ray -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray():
    """Ray on this machine, once for all tests."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.fixture(params=[None, "auto"], ids=["processes", "ray"])
def cluster(request):
    if request.param is not None:
        request.getfixturevalue("ray")
    return request.param


def marked_rows(n, at):
    rows = make_rows(n, seed=5)
    rows.loc[at, "size"] = MARK
    return rows


# Ray leaves sockets and files to be collected, and warns of options of its own that only it sets.
kills = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning:ray"),
]


def given_lives(folder, n):
    folder.mkdir()
    for life in range(n):
        (folder / str(life)).touch()
    return folder


class TestKilling:
    pytestmark = kills

    def test_a_killed_worker_costs_no_row_and_doubles_none(self, cluster, tmp_path):
        explainer = fitted(Deadly(given_lives(tmp_path / "lives", 1)))
        rows = marked_rows(100, at=35)
        source = write(tmp_path / "rows", a=rows)
        done = explainer.explain_dataset(source, tmp_path / "out", rows_a_part=10, cluster=cluster)
        assert not list((tmp_path / "lives").iterdir())  # a worker was killed
        assert (done.rows, done.parts) == (100, 10)
        check_same(tmp_path / "out", told(explainer, rows))

    def test_a_part_that_kills_every_worker_is_named(self, cluster, tmp_path):
        explainer = fitted(Deadly(given_lives(tmp_path / "lives", 30)))
        source = write(tmp_path / "rows", a=marked_rows(30, at=15))
        message = r"3 workers died one after another at part 1 \(a\.parquet, rows 10 to 19\).*rows_a_part"
        with pytest.raises(InputError, match=message):
            explainer.explain_dataset(source, tmp_path / "out", rows_a_part=10, cluster=cluster)
        assert len(list((tmp_path / "lives").iterdir())) == 27

    @pytest.mark.parametrize("cluster", [None, "auto"], ids=["processes", "ray"])
    def test_a_killed_driver_takes_its_workers_along_and_its_work_goes_on(self, cluster, here, tmp_path):
        if cluster is not None:  # the driver starts its own
            pytest.importorskip("ray", reason="ray is not installed")
        gate = tmp_path / "gate"
        gate.touch()
        rows = marked_rows(60, at=25)
        source, out = write(tmp_path / "rows", a=rows), tmp_path / "out"
        code = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from bulk_models import Gated
from test_bulk import fitted
explainer = fitted(Gated({str(gate)!r}))
explainer.explain_dataset({str(source)!r}, {str(out)!r}, rows_a_part=10, cluster={cluster!r})
"""
        driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)  # noqa: S603
        wait_for(lambda: (tmp_path / "waiting").exists() and len(list(out.glob("part-*"))) == 5)
        worker = int((tmp_path / "waiting").read_text())
        driver.kill()
        driver.wait()
        wait_for(lambda: not is_alive(worker))
        assert (out / "_explainer.limis").exists()  # it really was in the midst of it
        gate.unlink()
        before = {path.name: path.stat().st_ino for path in out.glob("part-*")}
        explainer = fitted(Gated(gate))
        done = explainer.explain_dataset(source, out, rows_a_part=10)
        assert here == [2]
        assert (done.rows, done.parts, done.parts_found) == (60, 6, 5)
        after = {path.name: path.stat().st_ino for path in out.glob("part-*")}
        assert {name: after[name] for name in before} == before
        check_same(out, told(explainer, rows))
        assert {path.name for path in out.iterdir()} == {*after, "_plan.json"}

    def test_bad_rows_are_told_of_in_one_line(self, explainer, cluster, tmp_path):
        rows = make_rows(30)
        since = rows["since"].astype(str).where(rows.index != 12, "yesterday")
        source = write(tmp_path / "rows", a=rows.assign(since=since))
        with pytest.raises(InputError, match=r"a\.parquet: column 'since' .* row 12 has 'yesterday'"):
            explainer.explain_dataset(source, tmp_path / "out", rows_a_part=10, cluster=cluster)
        assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def wait_for(condition, seconds=120):
    """Wait for what must come; the time is only how long a broken test may hang."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # a zombie is dead, though nobody has looked after it
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


# --- the command --------------------------------------------------------------------------------------------


def run(folder, monkeypatch, *words):
    monkeypatch.chdir(folder)
    return main(["explain", "saved.limis", *words])


@pytest.fixture
def saved(explainer, tmp_path):
    explainer.save(tmp_path / "saved.limis")
    (tmp_path / "my_prices.py").write_text("from bulk_models import price\n")
    write(tmp_path / "rows", a=make_rows(25), b=make_rows(5))
    return tmp_path


def test_the_command_explains_a_folder(saved, monkeypatch, capfd):
    words = ("rows", "-o", "out", "--model", "my_prices:price", "--rows-a-part", "10")
    assert run(saved, monkeypatch, *words) == 0
    printed = capfd.readouterr()
    assert "30 rows explained" in printed.out
    assert "explaining rows: 100%" in printed.err
    assert len(pd.read_parquet(saved / "out")) == 30
    assert json.loads((saved / "out" / "_plan.json").read_text())["rows_a_part"] == 10
    assert run(saved, monkeypatch, *words) == 0
    assert "4 of 4 parts were there already" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rows", "-o", "out.csv"), "go to a folder, not out.csv: write -o explained/"),
        (("rows",), "go to a folder: write -o explained/"),
        (("rows/a.parquet", "--workers", "2", "-o", "out.parquet"), "go to a folder, not out.parquet"),
        (("rows", "-o", "rows"), "rows is inside rows"),
        (("rows", "-o", "out", "--class", "high"), "more than two classes"),
    ],
)
def test_the_command_says_what_is_wrong(saved, monkeypatch, capsys, words, message):
    assert run(saved, monkeypatch, *words) == 1
    assert message in capsys.readouterr().err
    assert not (saved / "out").exists()
