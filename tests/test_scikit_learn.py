"""scikit-learn's own checks of an estimator: the explainer passes all but those of sample weights with curves."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from limis import LimisExplainer

# Curves refuse sample weights, which these checks all give.
WEIGHTED = (
    "check_all_zero_sample_weights_error",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
)


def refused(estimator):
    """Checks that must fail, and why."""
    return dict.fromkeys(WEIGHTED, "curves refuse sample weights") if estimator.surrogate == "curves" else {}


@parametrize_with_checks(
    [LimisExplainer(), LimisExplainer(surrogate="ridge", scaling="minmax", tolerance=1.0, random_state=7)],
    expected_failed_checks=refused,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
