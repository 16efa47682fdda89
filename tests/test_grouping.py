"""How many questions about groups of columns measure reasons."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from limis import LimisExplainer
from limis.fidelity.drawing import GROUP_SIZES
from limis.training.measuring import DONORS, MOST_GROUPED, Grouping, MeasuringRows


@settings(max_examples=50, deadline=None)
@given(n_questions=st.integers(0, 200_000), n_rows=st.integers(0, 3000))
def test_groups_are_asked_about_within_the_questions_there_are(n_questions, n_rows):
    found = Grouping.within(n_questions, n_rows)
    assert 0 <= found.rows <= min(n_rows, MOST_GROUPED)
    assert found.rows * found.groups * DONORS * len(GROUP_SIZES) <= n_questions
    assert found.groups >= 1
    fewer = Grouping.within(n_questions, n_rows // 2)
    assert fewer.groups >= found.groups  # of fewer rows each is asked about at least as many groups


def test_groups_are_asked_about_first_where_the_model_does_anything():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((3000, 4)), columns=list("abcd"))
    # One row in ten is where the model moves at all.
    explainer = LimisExplainer(lambda rows: rows["a"].gt(0.9) * rows["b"] * 1.0, surrogate="ridge", weighting="forest")
    training = explainer.fit(frame).training_
    rows = frame.iloc[:1200]
    said = training.black_box.outputs(rows)
    found = MeasuringRows.ask(training, rows, said, None, rng, group_questions=6_000)
    assert found.groups is not None
    asked, moving = np.unique(found.groups.rows), np.flatnonzero(~found.flat(training.unit))
    assert set(moving) <= set(asked)
    assert 0 < len(moving) < len(asked) < len(rows)
    assert len(found.groups) * DONORS <= 6_000


def test_of_several_classes_no_one_decides_which_rows_are_asked_about_groups():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((1500, 3)), columns=list("abc"))

    def chances(rows):
        # The third class does something everywhere, the first two, which lead, in one row of ten.
        third, lead = 0.1 + 0.05 * rows["c"], np.where(rows["a"] > 0.9, 0.2 + 0.6 * rows["b"], 0.5)
        return np.column_stack([(1 - third) * lead, (1 - third) * (1 - lead), third])

    explainer = LimisExplainer(chances, surrogate="ridge", weighting="forest", output="probability").fit(frame)
    training = explainer.training_
    every = training.every[:1200]
    rows = training.frame.iloc[:1200]
    found = MeasuringRows.ask(training, rows, training.outputs[:1200], every, rng, group_questions=6_000)
    asked = np.unique(found.groups.rows)
    np.testing.assert_array_equal(asked, np.arange(len(asked)))  # the first in a random order of rows
