"""How many questions about groups of columns measure reasons."""

from hypothesis import given, settings
from hypothesis import strategies as st

from limis.fidelity.drawing import GROUP_SIZES
from limis.training.measuring import DONORS, MOST_GROUPED, Grouping


@settings(max_examples=50, deadline=None)
@given(n_questions=st.integers(0, 200_000), n_rows=st.integers(0, 3000))
def test_groups_are_asked_about_within_the_questions_there_are(n_questions, n_rows):
    found = Grouping.within(n_questions, n_rows)
    assert 0 <= found.rows <= min(n_rows, MOST_GROUPED)
    assert found.rows * found.groups * DONORS * len(GROUP_SIZES) <= n_questions
    assert found.groups >= 1
    fewer = Grouping.within(n_questions, n_rows // 2)
    assert fewer.groups >= found.groups  # of fewer rows each is asked about at least as many groups
