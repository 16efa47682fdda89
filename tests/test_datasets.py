import gzip
import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limis.datasets import SyntheticFunction, load_adult, make_synthetic, split_rows
from limis.errors import InputError

NAMES = ["Syn1", "Syn2", "Syn3", "Syn4"]


def load_bundler():
    path = Path(__file__).parents[1] / "tools/bundle_adult.py"
    spec = importlib.util.spec_from_file_location("bundle_adult", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_adult_is_whole():
    adult = load_adult()
    assert adult.frame.shape == (48_842, 14)
    assert not adult.frame.isna().any(axis=None)
    assert adult.target.index.equals(adult.frame.index)
    # adult.names gives the share of the higher label as 23.93%.
    assert (adult.target == ">50K").mean() == pytest.approx(0.2393, abs=5e-5)
    assert set(adult.target) == {"<=50K", ">50K"}
    assert "Becker" in adult.citation


def test_adult_has_the_papers_number_of_columns_after_one_hot_encoding():
    assert pd.get_dummies(load_adult().frame).shape[1] == 108


def test_adult_unknown_values_can_be_missing_values():
    missing = load_adult(missing="nan").frame.isna()
    assert list(missing.columns[missing.any()]) == ["workclass", "occupation", "native-country"]
    # adult.names counts 45,222 rows without unknown values.
    assert (~missing.any(axis=1)).sum() == 45_222
    assert ((load_adult().frame == "?") == missing).all(axis=None)


def test_adult_refuses_another_treatment_of_missing_values():
    with pytest.raises(InputError, match="drop"):
        load_adult(missing="drop")


def test_bundling_cleans_cells_and_labels():
    text = "|1x3 Cross validator\n25, Private" + ", x" * 12 + ", <=50K.\n\n"
    assert load_bundler().clean(text) == ["25,Private" + ",x" * 12 + ",<=50K"]


def test_bundling_refuses_files_it_does_not_know(tmp_path):
    bundler = load_bundler()
    with pytest.raises(SystemExit, match="neither"):
        bundler.read_raw(tmp_path, "adult.data")
    (tmp_path / "adult.data.gz").write_bytes(gzip.compress(b"39, State-gov\n"))
    with pytest.raises(SystemExit, match="SHA-256"):
        bundler.read_raw(tmp_path, "adult.data")


@pytest.mark.parametrize("name", NAMES)
def test_synthetic_data_tell_the_truth(name):
    data = make_synthetic(name, n=300, random_state=1)
    f = data.black_box
    assert list(data.features.columns) == [f"X{i}" for i in range(1, 12)]
    for truth in (data.outputs, data.regime, data.boundary_distance):
        assert truth.shape == (300,)
    # A frame in any order and a bare matrix are the same rows.
    for rows in (data.features[data.features.columns[::-1]], data.features.to_numpy()):
        np.testing.assert_array_equal(f(rows), data.outputs)
        np.testing.assert_array_equal(f.coefficients(rows), data.coefficients)
        np.testing.assert_array_equal(f.regime(rows), data.regime)
        np.testing.assert_array_equal(f.boundary_distance(rows), data.boundary_distance)


@pytest.mark.parametrize("name", NAMES)
def test_synthetic_coefficients_are_the_slopes_of_the_function(name):
    data = make_synthetic(name, n=200, random_state=2)
    inside = data.boundary_distance > 1e-3
    x, step = data.features.to_numpy()[inside], 1e-6
    for column in range(11):
        move = np.zeros(11)
        move[column] = step
        slope = (data.black_box(x + move) - data.black_box(x - move)) / (2 * step)
        np.testing.assert_allclose(slope, data.coefficients[inside, column], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "row", "output"),
    [
        ("Syn1", {"X1": 1, "X2": 2, "X10": -0.1}, 5),
        ("Syn1", {"X3": 1, "X4": 2, "X10": 0}, 5),
        ("Syn2", {"X1": 1, "X2": 2, "X10": -0.1}, 5),
        ("Syn2", {"X3": 1, "X4": 2, "X10": 0.1}, 5),
        ("Syn2", {"X3": 1, "X4": 2, "X10": -1, "X11": 1}, 5),
        ("Syn3", {"X1": 1, "X2": 2, "X10": 1, "X11": -1.1}, 5),
        ("Syn3", {"X3": 1, "X4": 2, "X10": -1, "X11": 1.1}, 5),
        ("Syn4", {"X1": np.pi / 2, "X2": np.pi, "X3": 2, "X4": 0}, 1 - 2 - 2 - 1),
    ],
)
def test_synthetic_functions_are_the_papers(name, row, output):
    frame = pd.DataFrame([row], columns=[f"X{i}" for i in range(1, 12)]).fillna(0.0).astype(float)
    assert SyntheticFunction(name)(frame)[0] == pytest.approx(output)


def test_synthetic_columns_have_the_papers_distributions():
    # The mean of 20,000 draws strays by .007 at one standard error; .05 is seven of them.
    normal = make_synthetic("Syn1", n=20_000, random_state=0).features
    assert normal.mean().abs().max() < 0.05
    assert normal.std().sub(1).abs().max() < 0.05
    uniform = make_synthetic("Syn4", n=20_000, random_state=0).features
    assert uniform.min().min() >= -1
    assert uniform.max().max() <= 1
    assert uniform.std().sub(1 / np.sqrt(3)).abs().max() < 0.05


def test_synthetic_data_follow_random_state():
    first, again = (make_synthetic("Syn1", n=5, random_state=3) for _ in range(2))
    pd.testing.assert_frame_equal(first.features, again.features)
    generator = np.random.default_rng(3)
    one, other = (make_synthetic("Syn1", n=5, random_state=generator) for _ in range(2))
    pd.testing.assert_frame_equal(one.features, first.features)
    assert not one.features.equals(other.features)


def test_synthetic_function_can_be_sent_to_other_processes():
    f = SyntheticFunction("Syn2")
    assert pickle.loads(pickle.dumps(f)) == f


def test_bad_requests_for_synthetic_data_are_explained():
    with pytest.raises(InputError, match="Syn1, Syn2, Syn3, Syn4"):
        make_synthetic("Syn9")
    with pytest.raises(InputError, match="at least 1"):
        make_synthetic("Syn1", n=0)
    with pytest.raises(InputError, match="X11"):
        SyntheticFunction("Syn1")(pd.DataFrame(np.ones((1, 10)), columns=[f"X{i}" for i in range(1, 11)]))
    with pytest.raises(InputError, match=r"\(3, 4\)"):
        SyntheticFunction("Syn1")(np.ones((3, 4)))


@given(
    st.integers(60, 3000),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(0, 2**32 - 1),
)
def test_split_gives_every_row_to_one_part(n, shares, seed):
    fractions = np.array(shares) / sum(shares)
    parts = split_rows(n, fractions, random_state=seed)
    assert sorted(np.concatenate(parts)) == list(range(n))
    for part, fraction in zip(parts, fractions, strict=True):
        assert part.size == pytest.approx(fraction * n, abs=1)
        assert (np.diff(part) > 0).all()
    for part, again in zip(parts, split_rows(n, fractions, random_state=seed), strict=True):
        np.testing.assert_array_equal(part, again)


def test_split_refuses_shares_it_cannot_give():
    with pytest.raises(InputError, match="sum to one"):
        split_rows(100, (0.5, 0.4))
    with pytest.raises(InputError, match="positive"):
        split_rows(100, (1.5, -0.5))
    with pytest.raises(InputError, match="too few"):
        split_rows(4, (0.72, 0.08, 0.20))
