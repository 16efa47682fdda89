"""A damaged, foreign or newer file is refused in one sentence; a save that fails leaves the old file whole."""

import contextlib
import json
import os
import zipfile

import numpy as np
import pandas as pd
import pytest

import limis
from limis import LimisExplainer, StoreError
from limis.store import container

N = 240


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(0).normal(size=(N + 20, 4))


@pytest.fixture(scope="module")
def explainer(numbers):
    return LimisExplainer(lambda rows: np.where(rows[:, 0] > 0, rows[:, 1], -2 * rows[:, 2])).fit(numbers[:N])


@pytest.fixture(scope="module")
def saved(explainer, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "explainer.limis"
    explainer.save(path)
    return path


def test_a_file_that_is_not_there_a_folder_and_other_files(tmp_path):
    with pytest.raises(StoreError, match=r"there is no file .*nothing\.limis; check the path"):
        limis.load(tmp_path / "nothing.limis")
    with pytest.raises(StoreError, match="is a folder"):
        limis.load(tmp_path)
    other = tmp_path / "other"
    for content in (b"", b"P", b"age,pay\n1,2\n", b"\x80\x04pickle"):
        other.write_bytes(content)
        with pytest.raises(StoreError, match="is not a saved explainer"):
            limis.load(other)
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("word/document.xml", "<a/>")
    with pytest.raises(StoreError, match="is not a saved explainer"):
        limis.load(str(other))
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("manifest.json", '{"name": "an extension of a browser"}')
    with pytest.raises(StoreError, match="is not a saved explainer"):
        limis.load(other)


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.2, 0.5, 0.9, 0.99, 0.9999])
def test_a_file_cut_short_is_refused(saved, tmp_path, share):
    whole = saved.read_bytes()
    short = tmp_path / "short.limis"
    short.write_bytes(whole[: max(4, int(len(whole) * share))])
    with pytest.raises(StoreError, match=r"is damaged: .* save the explainer again"):
        limis.load(short)


def test_no_changed_byte_gives_another_explainer(saved, explainer, numbers, tmp_path):
    whole = saved.read_bytes()
    before = explainer.explain(numbers[N:])
    rng = np.random.default_rng(0)
    # The first header, the zip's own book-keeping at the end, and a sample of everything between.
    places = {*range(30), *range(len(whole) - 250, len(whole), 2), *rng.integers(0, len(whole), 100).tolist()}
    broken = tmp_path / "broken.limis"
    refused = 0
    for place in sorted(places):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        broken.write_bytes(changed)
        try:
            after = limis.load(broken)
        except StoreError:
            refused += 1
        else:
            # Some bytes of a zip file mean nothing, such as the date of a member.
            again = after.explain(numbers[N:], outputs=before.outputs)
            pd.testing.assert_frame_equal(again.contributions, before.contributions, check_exact=True)
            pd.testing.assert_frame_equal(again.fidelity, before.fidelity, check_exact=True)
    assert refused > len(places) / 2


def rewrite(source, target, change=None, **replaced):
    """The file with its manifest changed, or members replaced."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = replaced.get(name.partition(".")[0], old.read(name))
            if change is not None and name == container.MANIFEST:
                manifest = json.loads(data)
                change(manifest)
                data = json.dumps(manifest)
            if data is not None:
                new.writestr(name, data)
    return target


@pytest.mark.parametrize("member", ["arrays.safetensors", "training.parquet"])
def test_a_changed_or_missing_member_is_named(saved, tmp_path, member):
    name = member.partition(".")[0]
    with zipfile.ZipFile(saved) as archive:
        data = bytearray(archive.read(member))
    data[len(data) // 2] ^= 1
    with pytest.raises(StoreError, match=f"is damaged: {member} is not what was saved"):
        limis.load(rewrite(saved, tmp_path / "changed.limis", **{name: bytes(data)}))
    with pytest.raises(StoreError, match=f"is damaged: {member} cannot be read"):
        limis.load(rewrite(saved, tmp_path / "missing.limis", **{name: None}))


def test_a_newer_file_asks_for_a_newer_limis(saved, tmp_path):
    def change(manifest):
        manifest.update(version=99, limis="9.9", parameters="something else altogether")

    with pytest.raises(
        StoreError, match=r"made by a newer limis \(9\.9, format 99; .* pip install --upgrade limis-xai"
    ):
        limis.load(rewrite(saved, tmp_path / "newer.limis", change))


def test_an_older_file_asks_to_be_made_anew(saved, tmp_path):
    with pytest.raises(StoreError, match=r"made by an older limis \(0\.0, format 1\); fit and save it again"):
        limis.load(rewrite(saved, tmp_path / "older.limis", lambda manifest: manifest.update(version=1, limis="0.0")))


def places_in(data, path=()):
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places_in(value, (*path, key))


def put(value, *path):
    """A change of the manifest: another value at one place."""

    def change(manifest):
        for key in path[:-1]:
            manifest = manifest[key]
        manifest[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        put(None, "members", "arrays.safetensors"),
        put("wide", "parameters", "tolerance"),
        put([1, 2], "parameters", "groups"),
        put(1, "parameters", "no_such_option"),
        put([], "table"),
        put("three", "table", "columns", 0, "shown_levels"),
        put("number", "table", "columns", 0, "colour"),
        put([], "table", "columns"),
        put(None, "frame", 0, "dtype"),
        put("no such type", "frame", 0, "dtype"),
        put([], "frame"),
        put("volts", "black_box", "scale"),
        put(None, "global_level"),
        put("magic", "weighting", "kind"),
        put(2.5, "weighting", "weights", "n_candidates"),
        put("x", "bound", "factor"),
        put(["x"] * 4, "bound", "slopes"),
        put("good", "measured", "nse_"),
        put({}, "choices"),
        put([{"penalty": "high"}], "training_log"),
        put({"$": "decimal", "value": "x"}, "choices"),
        put({"$": "no such kind", "value": "x"}, "choices"),
        put("1", "version"),
    ],
)
def test_a_manifest_with_wrong_types_is_refused(saved, tmp_path, change):
    with pytest.raises(StoreError, match=r"^\S+ is damaged: .*; take another copy or save the explainer again$"):
        limis.load(rewrite(saved, tmp_path / "wrong.limis", change))


@pytest.mark.parametrize(
    "options",
    [
        {"max_questions": 2000},
        {"surrogate": "ridge", "weighting": "forest"},
        {"surrogate": "ridge", "weighting": "pairwise", "time_budget": 0.1},
    ],
    ids=str,
)
def test_no_manifest_ends_in_anything_but_a_store_error(tmp_path, options):
    source = tmp_path / "e.limis"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(60) < 0.1, np.nan, rng.normal(size=60)),
            "category": pd.Categorical(rng.choice(["a", "b"], 60)),
            "object": rng.choice(np.array([None, 1, "x"], dtype=object), 60),
        }
    )
    explainer = LimisExplainer(lambda rows: rows["number"].fillna(9), **options)
    explainer.fit(frame).save(source)
    with zipfile.ZipFile(source) as archive:
        places = [place for place in places_in(json.loads(archive.read(container.MANIFEST))) if place]
    wrong = ["words", None, True, -7, 2.5, [], {}, [[1]]]
    for at in rng.choice(len(places), 60, replace=False):
        change = put(wrong[rng.integers(len(wrong))], *places[at])
        # What has the right type, if another value, may load.
        with contextlib.suppress(StoreError):
            limis.load(rewrite(source, tmp_path / "wrong.limis", change))


@pytest.mark.parametrize("missing", ["members", "parameters", "table", "weighting", "choices", "limis", "version"])
def test_a_manifest_without_a_part_is_refused(saved, tmp_path, missing):
    with pytest.raises(StoreError, match="is damaged"):
        limis.load(rewrite(saved, tmp_path / "part.limis", lambda manifest: manifest.pop(missing)))
    with pytest.raises(StoreError, match=r"damaged: manifest\.json cannot be read"):
        limis.load(rewrite(saved, tmp_path / "text.limis", manifest="{"))


def test_a_folder_or_a_place_that_cannot_be_written_is_refused(explainer, tmp_path):
    with pytest.raises(StoreError, match=r"is a folder; name a file in it, such as .*explainer\.limis"):
        explainer.save(tmp_path)
    with pytest.raises(StoreError, match="does not exist; make it first"):
        explainer.save(tmp_path / "no" / "e.limis")


@pytest.mark.parametrize("moment", ["writing", "flushing", "replacing"])
@pytest.mark.parametrize(
    "problem", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disk", "ctrl-c"]
)
def test_an_interrupted_save_leaves_the_old_file_whole(explainer, tmp_path, monkeypatch, moment, problem):
    path = tmp_path / "e.limis"
    explainer.save(path)
    old = path.read_bytes()

    def fail(*_args, **_options):
        raise problem

    where = {"writing": (zipfile.ZipFile, "writestr"), "flushing": (os, "fsync"), "replacing": (os, "replace")}
    monkeypatch.setattr(*where[moment], fail)
    if isinstance(problem, OSError):
        with pytest.raises(StoreError, match=r"cannot write .*No space left on device; what was there is unchanged"):
            explainer.save(path)
    else:
        with pytest.raises(KeyboardInterrupt):
            explainer.save(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_saving_through_a_link_replaces_what_it_points_to(explainer, tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    explainer.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert limis.load(tmp_path / "real") is not None


def test_classes_that_no_file_can_hold_are_refused(numbers, tmp_path):
    months = np.where(numbers[:, 0] > 0, pd.Period("2020-01"), pd.Period("2020-02"))
    explainer = LimisExplainer().fit(numbers, months)
    with pytest.raises(StoreError, match="cannot be saved: its options or classes hold a value of type Period"):
        explainer.save(tmp_path / "e.limis")
    assert list(tmp_path.iterdir()) == []
