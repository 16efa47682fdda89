"""Generated data know the truth about themselves, whatever they are made of."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limis.datasets import make_piecewise
from limis.errors import InputError

OPTIONS = st.fixed_dictionaries(
    {
        "regimes": st.integers(1, 5),
        "boundary": st.sampled_from(["linear", "curved", "categorical"]),
        "n_relevant": st.integers(1, 6),
        "n_irrelevant": st.integers(0, 3),
        "correlation": st.sampled_from([0.0, 0.5, 0.9]),
        "categorical_switch": st.sampled_from([0, 5, 7]),
        "jump": st.sampled_from([0.0, 2.0]),
        "function_state": st.integers(0, 1000),
    }
)


def numbers_of(data):
    return data.features[list(data.black_box.columns)].to_numpy()


@settings(max_examples=40)
@given(OPTIONS, st.integers(0, 1000))
def test_every_row_is_on_the_plane_of_its_regime(options, seed):
    data = make_piecewise(200, random_state=seed, **options)
    f, x = data.black_box, numbers_of(data)
    plane = f.intercepts[data.regime] + (x * data.coefficients).sum(axis=1)
    np.testing.assert_allclose(plane, data.outputs, atol=1e-12)
    assert data.regime.min() >= 0
    assert data.regime.max() < options["regimes"]
    np.testing.assert_array_equal(data.labels, data.outputs)
    for rows in (data.features, data.features[data.features.columns[::-1]], data.features.to_numpy()):
        np.testing.assert_array_equal(f(rows), data.outputs)
        np.testing.assert_array_equal(f.coefficients(rows), data.coefficients)
        np.testing.assert_array_equal(f.regime(rows), data.regime)
        np.testing.assert_array_equal(f.boundary_distance(rows), data.boundary_distance)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(data.features), data.outputs)


@settings(max_examples=40)
@given(OPTIONS, st.integers(0, 1000))
def test_nothing_changes_within_the_distance_to_the_boundary(options, seed):
    data = make_piecewise(200, random_state=seed, **options)
    steps = np.random.default_rng(seed).normal(size=numbers_of(data).shape)
    length = np.where(np.isfinite(data.boundary_distance), data.boundary_distance, 1.0)
    steps *= 0.999 * (length / np.linalg.norm(steps, axis=1))[:, None]
    moved = data.features.copy()
    moved[list(data.black_box.columns)] += steps
    np.testing.assert_array_equal(data.black_box.regime(moved), data.regime)
    change = (data.coefficients * steps).sum(axis=1)
    np.testing.assert_allclose(data.black_box(moved) - data.outputs, change, atol=1e-9)


@pytest.mark.parametrize("boundary", ["linear", "curved", "categorical"])
@pytest.mark.parametrize("regimes", [1, 2, 5])
def test_regimes_hold_equal_shares_and_differ(boundary, regimes):
    data = make_piecewise(20_000, boundary=boundary, regimes=regimes, correlation=0.4, random_state=0)
    shares = np.bincount(data.regime, minlength=regimes) / 20_000
    # Shares of 20,000 rows stray by .0035, and so do ends set by as many; .02 is four times both.
    np.testing.assert_allclose(shares, 1 / regimes, atol=0.02)
    assert len(np.unique(data.black_box.slopes, axis=0)) == regimes
    assert (np.count_nonzero(data.coefficients, axis=1) == 2).all()
    assert np.isinf(data.boundary_distance).all() == (boundary == "categorical" or regimes == 1)


def test_boundaries_are_lines_or_circles():
    angle = np.linspace(0, 2 * np.pi, 50)
    f = make_piecewise(regimes=3, boundary="curved").black_box
    for radius, regime in ((f.ends[0] - 1e-9, 0), (f.ends[0] + 1e-9, 1), (f.ends[1] + 1e-9, 2)):
        rows = np.zeros((50, 10))
        rows[:, 4], rows[:, 5] = radius * np.cos(angle), radius * np.sin(angle)
        assert (f.regime(rows) == regime).all()
    f = make_piecewise(regimes=2).black_box
    along = np.array([-f.direction[1], f.direction[0]])
    for side, regime in ((-1e-9, 0), (1e-9, 1)):
        rows = np.zeros((50, 10))
        rows[:, 4:6] = (f.ends[0] + side) * f.direction + np.linspace(-3, 3, 50)[:, None] * along
        assert (f.regime(rows) == regime).all()


def test_a_category_switches_the_regime():
    data = make_piecewise(500, regimes=3, categorical_switch=3, random_state=0)
    rows = [data.features.assign(kind=level) for level in data.black_box.levels]
    regimes = np.array([data.black_box.regime(one) for one in rows])
    np.testing.assert_array_equal(np.sort(regimes, axis=0), np.repeat([[0], [1], [2]], 500, axis=1))
    as_category = data.features.astype({"kind": "category"})
    np.testing.assert_array_equal(data.black_box(as_category), data.outputs)
    alone = make_piecewise(500, regimes=2, boundary="categorical", random_state=0)
    assert alone.features["kind"].nunique() == 4
    assert alone.features.shape[1] == 9
    assert pd.Series(alone.regime).groupby(alone.features["kind"].to_numpy()).nunique().eq(1).all()


def test_columns_are_correlated_as_asked_and_some_are_irrelevant():
    data = make_piecewise(20_000, correlation=0.6, n_irrelevant=3, random_state=0)
    # The error of a correlation from 20,000 rows is below .007; .03 is four times that.
    np.testing.assert_allclose(data.features.corr(), np.where(np.eye(9), 1, 0.6), atol=0.03)
    moved = data.features.copy()
    moved[["X7", "X8", "X9"]] += 1
    np.testing.assert_array_equal(data.black_box(moved), data.outputs)
    assert not data.coefficients[:, 4:].any()


def test_the_function_and_the_rows_have_seeds_of_their_own():
    one, other = (make_piecewise(50, random_state=seed) for seed in (0, 1))
    np.testing.assert_array_equal(one.black_box(other.features), other.outputs)
    assert not one.features.equals(other.features)
    pd.testing.assert_frame_equal(one.features, make_piecewise(50, random_state=0).features)
    changed = make_piecewise(50, random_state=0, function_state=1)
    assert not np.array_equal(changed.coefficients, one.coefficients)


def test_noise_is_in_the_labels_only():
    data = make_piecewise(20_000, noise=0.5, random_state=0)
    np.testing.assert_array_equal(data.outputs, data.black_box(data.features))
    assert np.std(data.labels - data.outputs) == pytest.approx(0.5, abs=0.02)  # eight standard errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 0}, "n must be at least 1"),
        ({"regimes": 0}, "regimes must be at least 1"),
        ({"n_relevant": 0}, "n_relevant must be at least 1"),
        ({"n_irrelevant": -1}, "n_irrelevant must be at least 0"),
        ({"correlation": 1.0}, "correlation"),
        ({"boundary": "fractal"}, "fractal"),
        ({"boundary": "categorical", "regimes": 4, "categorical_switch": 3}, "at least 4"),
    ],
)
def test_options_without_a_meaning_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_piecewise(**options)


def test_rows_without_the_truth_are_refused():
    data = make_piecewise(5, categorical_switch=2, random_state=0)
    with pytest.raises(InputError, match="X3"):
        data.black_box(data.features.drop(columns="X3"))
    with pytest.raises(InputError, match="level 9"):
        data.black_box(data.features.assign(kind="level 9"))
    with pytest.raises(InputError, match=r"\(2, 3\)"):
        data.black_box(np.zeros((2, 3)))
