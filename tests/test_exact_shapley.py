"""Shapley values of the model itself, where its trees can be read."""

import numpy as np
import pandas as pd
import pytest
import xgboost
from by_groups import shapley_values
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures
from sklearn.tree import DecisionTreeRegressor

from limis import InputError, LimisExplainer

pytest.importorskip("shap")
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # shap's own
OPTIONS = {"max_questions": 20_000, "n_jobs": 1}
NAMES = ["age", "income", "sex", "city"]


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": rng.gamma(2, 15, n).round(1),
            "sex": rng.choice(["Female", "Male"], n),
            "city": rng.choice(["Bern", "Genf", "Uri", "Zug"], n),
        }
    )


def target(rows):
    both = (rows["income"] > 30) & (rows["sex"] == "Female")
    where = rows["city"].map({"Bern": 0.0, "Genf": 1.0, "Uri": 2.0, "Zug": 4.0}) * (rows["age"] > 40)
    return (rows["age"] / 20 + 2.0 * both + where).to_numpy()


def encoder():
    return make_column_transformer((OneHotEncoder(), ["sex", "city"]), remainder="passthrough")


@pytest.fixture(scope="module")
def boosted():
    rows = people()
    model = make_pipeline(encoder(), xgboost.XGBRegressor(n_estimators=20, max_depth=3, n_jobs=1))
    model.fit(rows, target(rows))
    return LimisExplainer(model, **OPTIONS).fit(rows)


def test_they_are_those_of_the_model_by_all_groups_of_columns(boosted):
    rows = people(4, seed=1)
    found = boosted.explain(rows, reasons="shapley")
    others = found.references.kinds[0].frame
    for place in range(len(rows)):
        truth = shapley_values(boosted.model.predict, rows.iloc[place], others, NAMES)
        np.testing.assert_allclose(found.column_contributions.iloc[place], truth, atol=1e-4)
    total = found.base_values + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.model_outputs, rtol=0, atol=1e-12)
    against = found.against("sex == 'Male'")
    truth = shapley_values(boosted.model.predict, rows.iloc[0], against.references.kinds[0].frame, NAMES)
    np.testing.assert_allclose(against.column_contributions.iloc[0], truth, atol=1e-4)
    pd.testing.assert_series_equal(found[2].contributions, found.contributions.iloc[2])


def test_a_forest_is_read_on_its_own_scale():
    rows = people()
    model = make_pipeline(encoder(), RandomForestClassifier(10, max_depth=4, random_state=0))
    model.fit(rows, target(rows) > 3)
    found = LimisExplainer(model, output="probability", **OPTIONS).fit(rows).explain(rows[:3], reasons="shapley")
    total = found.base_values + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.model_outputs, rtol=0, atol=1e-12)


def test_what_cannot_be_read_is_refused_with_a_cure(boosted):
    rows = people()
    by_function = LimisExplainer(target, **OPTIONS).fit(rows)
    with pytest.raises(InputError, match=r"cannot be read as trees.*use reasons="):
        by_function.explain(rows[:2], reasons="shapley")
    mixing = make_pipeline(
        make_column_transformer((PolynomialFeatures(), ["age", "income"])),
        xgboost.XGBRegressor(n_estimators=5, n_jobs=1),
    )
    mixing.fit(rows, target(rows))
    with pytest.raises(InputError, match="mix 'income' with other columns"):
        LimisExplainer(mixing, **OPTIONS).fit(rows).explain(rows[:2], reasons="shapley")
    with pytest.raises(InputError, match='"curves" or "shapley"'):
        boosted.explain(rows[:2], reasons="lime")
    with pytest.raises(InputError, match="leave out reason_queries"):
        boosted.explain(rows[:2], reasons="shapley", reason_queries=100)


def test_columns_may_be_one_reason_and_pairs_are_told(boosted):
    rows = people(4, seed=1)
    found = boosted.explain(rows, reasons="shapley")
    pairs = found.strongest_pairs()
    assert set(pairs.iloc[0][["first", "second"]]) == {"age", "city"}
    grouped = found.in_groups({"who": ["age", "sex"]})
    together = grouped.removed(["who"])
    others = found.references.kinds[0].frame
    for place in range(len(rows)):
        mixed = rows.iloc[[place] * len(others)].assign(age=others["age"].to_numpy(), sex=others["sex"].to_numpy())
        lost = found.model_outputs.iloc[place] - boosted.model.predict(mixed).mean()
        assert together.iloc[place] == pytest.approx(lost, abs=0.2)  # pairs of more than two are not told


@pytest.mark.parametrize(
    "model",
    [
        LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1),
        LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1),
        xgboost.XGBClassifier(n_estimators=20, n_jobs=1),
        xgboost.XGBRegressor(n_estimators=30, early_stopping_rounds=3, n_jobs=1),
        HistGradientBoostingRegressor(max_iter=20),
        GradientBoostingRegressor(n_estimators=20),
        ExtraTreesRegressor(10, max_depth=6),
        DecisionTreeRegressor(max_depth=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_trees_are_read_as_the_model_takes_them_missing_values_included(model):
    rows = people()[["age", "income"]]
    known = rows["age"] / 20 + (rows["income"] > 30) * (rows["age"] > 50)
    if not isinstance(model, (GradientBoostingRegressor, ExtraTreesRegressor)):
        rows = rows.mask(np.random.default_rng(0).random(rows.shape) < 0.1)
    target = (known > 3) if hasattr(model, "predict_proba") else known
    more = {"eval_set": [(rows[:100], target[:100])], "verbose": False} if "XGBRegressor" in str(type(model)) else {}
    model.fit(rows, target, **more)
    found = LimisExplainer(model, **OPTIONS).fit(rows).explain(rows[:50], reasons="shapley")
    assert (found.contributions["rest"].abs() < 0.2 * found.training.output_deviation).all()


def test_a_level_that_no_reference_row_has_belongs_to_its_column(boosted):
    rows = people(4, seed=1).assign(city="Zug")
    found = boosted.explain(rows, reasons="shapley").against("city == 'Bern'")
    found = found.against(people(300, seed=2).query("city == 'Bern'"))
    for place in range(len(rows)):
        truth = shapley_values(boosted.model.predict, rows.iloc[place], found.references.kinds[0].frame, NAMES)
        np.testing.assert_allclose(found.column_contributions.iloc[place], truth, atol=1e-4)


def test_rows_that_trees_cannot_take_are_refused():
    rows = people()[["age", "city"]]
    model = xgboost.XGBRegressor(n_estimators=5, enable_categorical=True, n_jobs=1)
    model.fit(rows.astype({"city": "category"}), target(people()))
    by_levels = LimisExplainer(model, **OPTIONS).fit(rows.astype({"city": "category"}))
    with pytest.raises(InputError, match="trees"):
        by_levels.explain(rows[:2].astype({"city": "category"}), reasons="shapley")


def test_a_sparse_encoder_and_many_levels_are_read():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(size=400), "job": rng.choice([f"j{k}" for k in range(12)], 400)})
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder="passthrough")
    model = make_pipeline(encode, xgboost.XGBRegressor(n_estimators=10, n_jobs=1))
    model.fit(rows, rows["age"] * rows["job"].isin(["j3", "j5", "j7"]))
    found = LimisExplainer(model, **OPTIONS).fit(rows).explain(rows[:5], reasons="shapley")
    others = found.references.kinds[0].frame
    truth = [shapley_values(model.predict, rows.iloc[k], others, list(rows)) for k in range(5)]
    np.testing.assert_allclose(found.column_contributions, truth, atol=1e-4)


def test_features_that_mix_columns_where_no_single_change_shows_it_are_refused():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(18, 80, 400) * 1.0, "income": rng.gamma(2, 15, 400)})

    def flags(frame):
        both = (frame["age"] < 30) & (frame["income"] > 45)
        return np.column_stack([frame["age"] > 60, both.astype(float)])

    model = make_pipeline(FunctionTransformer(flags), DecisionTreeRegressor())
    model.fit(rows, 4.0 * ((rows["age"] < 30) & (rows["income"] > 45)) + (rows["age"] > 60))
    young = rows.query("age < 30 and income < 40")[:5]
    explainer = LimisExplainer(model, **OPTIONS).fit(rows)
    for reference in ("age > 40 and income > 45", "age > 40"):
        with pytest.raises(InputError, match="trees"):
            explainer.explain(young, reference=reference, reasons="shapley")


def test_missing_values_that_are_read_otherwise_than_the_model_takes_them_are_refused():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"z": rng.integers(0, 2, 400) * 1.0, "x": rng.normal(size=400)})
    tree = LGBMRegressor(n_estimators=1, num_leaves=3, learning_rate=1.0, min_child_samples=5, verbose=-1)
    tree.fit(rows, np.where(rows["z"] > 0, np.where(rows["x"] > -0.5, 3.0, -3.0), -10.0))
    unknown = rows[rows["z"] == 0][:1].assign(x=np.nan)
    with pytest.raises(InputError, match="do not say what the model says"):
        LimisExplainer(tree, **OPTIONS).fit(rows).explain(unknown, reasons="shapley")


def test_the_cure_names_the_scale_that_the_trees_are_on(boosted):
    rows = people()
    yes = target(rows) > 3
    forest = make_pipeline(encoder(), RandomForestClassifier(10, max_depth=4, random_state=0)).fit(rows, yes)
    with pytest.raises(InputError, match='output="probability"'):
        LimisExplainer(forest, output="logit", **OPTIONS).fit(rows).explain(rows[:3], reasons="shapley")
    margins = make_pipeline(encoder(), xgboost.XGBClassifier(n_estimators=10, n_jobs=1)).fit(rows, yes)
    with pytest.raises(InputError, match='output="logit"'):
        LimisExplainer(margins, output="probability", **OPTIONS).fit(rows).explain(rows[:3], reasons="shapley")
    exact = boosted.explain(rows[:3], reasons="shapley")
    for ask in (lambda: exact.until_trusted(1000), lambda: exact.unfolded(queries=100)):
        with pytest.raises(InputError, match="no questions"):
            ask()
    assert exact[:0].contributions.empty
    pd.testing.assert_frame_equal(
        exact[1].interactions, exact.interactions.query("row == 1").drop(columns="row").reset_index(drop=True)
    )


def test_models_fitted_on_arrays_and_searched_for_are_read():
    numbers = np.random.default_rng(0).normal(size=(300, 2))
    doubled = FunctionTransformer(lambda rows: np.column_stack([rows[:, 0], rows[:, 1] * 2]))
    inner = make_pipeline(doubled, DecisionTreeRegressor(max_depth=4))
    model = GridSearchCV(inner, {"decisiontreeregressor__max_depth": [3, 4]}, cv=2).fit(numbers, numbers[:, 0])
    found = LimisExplainer(model, **OPTIONS).fit(numbers).explain(numbers[:5], reasons="shapley")
    assert (found.column_contributions.iloc[:, 0].abs() > 0).any()
