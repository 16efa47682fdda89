"""The paper's protocol on real data: which rows train, probe and test, the black box, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from limis.datasets import (
    Dataset,
    load_adult,
    load_bike,
    load_blog,
    load_facebook,
    load_german,
    load_news,
    load_weather,
)
from limis.experiments.black_boxes import fit_black_box
from limis.experiments.kept import digest, kept
from limis.explainer import LimisExplainer
from limis.outputs import first_outputs
from limis.rows import TrainingRows
from limis.table import Table
from limis.training import ProbeRows


def _of_scikit_learn(name: str, load: Callable[..., Any]) -> Dataset:
    """A table that comes with scikit-learn."""
    raw = load(as_frame=True)
    task: Literal["classification", "regression"] = "classification" if "target_names" in raw else "regression"
    target = raw.target.map(lambda code: str(raw.target_names[code])) if task == "classification" else raw.target
    return Dataset(name.lower(), raw.data, target, task, f"scikit-learn's table {name.lower()}", "scikit-learn", "BSD")


LOADERS: dict[str, Callable[[], Dataset]] = {
    "Blog": load_blog,
    "Facebook": load_facebook,
    "News": load_news,
    "Adult": load_adult,
    "Weather": load_weather,
}
# Not in the paper: no default was chosen on its data sets alone.
MORE_LOADERS: dict[str, Callable[[], Dataset]] = {"German": load_german, "Bike": load_bike}
# scikit-learn's own, too small to spare rows; on Diabetes and Cancer nothing was chosen, tests of classes use Wine.
SMALL_LOADERS: dict[str, Callable[[], Dataset]] = {
    name: partial(_of_scikit_learn, name, load)
    for name, load in (("Diabetes", load_diabetes), ("Cancer", load_breast_cancer), ("Wine", load_wine))
}
POSITIVE = {"Adult": ">50K", "Weather": "Yes", "German": "bad"}
# Neighbours of a test row: noise of so many standard deviations on its numbers, as in the paper.
NOISE, NEIGHBOURS = 0.1, 10
QUICK_ROWS, PLAIN_PROBES = 600, 500


@dataclass
class Answers:
    """What the black box says: all that methods which do not ask it themselves need of it."""

    train: np.ndarray  # (training rows,)
    probe: np.ndarray  # (probe rows,)
    test: ProbeRows  # with moves of the test rows
    near_values: np.ndarray  # (test rows × NEIGHBOURS, columns): neighbours of the test rows
    near: np.ndarray  # (test rows × NEIGHBOURS,) its outputs there


@dataclass(frozen=True)
class RealProblem:
    """One division of a real data set, and one black box fitted on its training rows.

    Parameters
    ----------
    data : str
        One of `LOADERS`, `MORE_LOADERS` or `SMALL_LOADERS`.
    box : str
        One of `black_boxes.KINDS` or `black_boxes.WITH_DEFAULTS`.
    seed : int
        Decides which row goes where, and all draws.
    tests : int
        Test rows, at most.
    rows : int, default=None
        Training rows, at most; all of them where not given.
    quick : bool, default=False
        Few rows and a small black box, for a trial.
    """

    data: str
    box: str
    seed: int
    tests: int
    rows: int | None = None
    quick: bool = False

    def __str__(self) -> str:
        return f"{self.data}, {self.box}, seed {self.seed}"

    # --- rows -----------------------------------------------------------------------------------------

    @cached_property
    def dataset(self) -> Dataset:
        """The whole data set."""
        return {**LOADERS, **MORE_LOADERS, **SMALL_LOADERS}[self.data]()

    @property
    def classifies(self) -> bool:
        """Whether there are classes to predict."""
        return self.dataset.task == "classification"

    @cached_property
    def labels(self) -> np.ndarray:
        """The target of every row as a number; of two classes 1 for the positive one, of more each one's place."""
        target = self.dataset.target
        if not self.classifies:
            return target.to_numpy(float)
        if self.data in POSITIVE:
            return (target == POSITIVE[self.data]).to_numpy(dtype=float)
        return pd.factorize(target, sort=True)[0].astype(float)

    @cached_property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions of training, probe and test rows; test rows are in random order."""
        train, probe, test = self.dataset.split(self.seed)
        rng = np.random.default_rng(self.seed)
        most = QUICK_ROWS if self.quick else self.rows
        if most is not None and most < len(train):
            probe = rng.permutation(probe)[: max(1, round(len(probe) * most / len(train)))]
            train = rng.permutation(train)[:most]
        return train, probe, rng.permutation(test)[: self.tests]

    @property
    def is_small(self) -> bool:
        """Whether explainers find probe rows by themselves, by fits without some of the training rows."""
        return self.data in SMALL_LOADERS

    @property
    def train(self) -> pd.DataFrame:
        """Rows that explanations may rest on, and that the black box was fitted to."""
        return self.dataset.frame.iloc[self.parts[0]]

    @property
    def probe(self) -> pd.DataFrame:
        """Rows that choose."""
        return self.dataset.frame.iloc[self.parts[1]]

    @property
    def test(self) -> pd.DataFrame:
        """Rows to explain."""
        return self.dataset.frame.iloc[self.parts[2]]

    @property
    def train_labels(self) -> np.ndarray:
        """The target of the training rows."""
        return self.labels[self.parts[0]]

    @property
    def test_labels(self) -> np.ndarray:
        """The target of the test rows."""
        return self.labels[self.parts[2]]

    # --- the black box ----------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """A name for all that decides the black box."""
        packages = [version(name) for name in ("scikit-learn", "xgboost", "lightgbm")]
        return digest(
            self.box, self.quick, packages, self.train_labels, pd.util.hash_pandas_object(self.train, index=False)
        )

    @cached_property
    def model(self) -> Any:
        """The black box, fitted once for all who ask for it."""
        target = self.train_labels.astype(int) if self.classifies else self.train_labels
        return kept(
            f"{self.data}-{self.box}".lower(),
            self.digest,
            lambda: fit_black_box(self.box, self.dataset.task, self.train, target, n_jobs=2, quick=self.quick),
        )

    @cached_property
    def answers(self) -> Answers:
        """What the black box says of all rows, of moves of the test rows and of their neighbours; asked once."""
        decisive = digest(self.digest, self.seed, self.tests, NOISE, NEIGHBOURS, version("numpy"))
        return kept(f"{self.data}-{self.box}-answers".lower(), decisive, self._ask)

    def _ask(self) -> Answers:
        table, frame = Table.learn(self.train)
        black_box, known = first_outputs(self.model, "auto", table, frame, None, None)
        training = TrainingRows(table, black_box, frame, table.values(frame), known)
        test, rng = table.read(self.test), np.random.default_rng(self.seed)
        neighbours = self._neighbours(rng)
        return Answers(
            train=known,
            probe=black_box.outputs(table.read(self.probe)),
            test=ProbeRows.ask(training, test, black_box.outputs(test), rng),
            near_values=table.values(table.read(neighbours)),
            near=black_box.outputs(table.read(neighbours)),
        )

    def _neighbours(self, rng: np.random.Generator) -> pd.DataFrame:
        """Test rows with noise on their numbers; categories stay, as noise on one-hot columns means nothing."""
        near = self.test.loc[self.test.index.repeat(NEIGHBOURS)].reset_index(drop=True)
        for name in near.select_dtypes("number"):
            spread = float(self.train[name].std())
            near[name] = near[name].astype(float) + NOISE * spread * rng.standard_normal(len(near))
        return near

    def plain_explainer(self, n_jobs: int = 1) -> LimisExplainer:
        """An explainer on the black box's outputs, to build on what asks nothing; few rows choose its few options."""
        explainer = LimisExplainer(surrogate="ridge", weighting="forest", n_jobs=n_jobs, random_state=self.seed)
        probe, said = self.probe.iloc[:PLAIN_PROBES], self.answers.probe[:PLAIN_PROBES]
        return explainer.fit(self.train, outputs=self.answers.train, probe_rows=probe, probe_outputs=said)
