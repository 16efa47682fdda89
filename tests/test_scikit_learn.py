"""scikit-learn's own checks of an estimator: the explainer passes all but those of sample weights with curves."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from limis import LimisExplainer


@parametrize_with_checks(
    [LimisExplainer(), LimisExplainer(surrogate="ridge", scaling="minmax", tolerance=1.0, random_state=7)]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
