"""LIME: a linear model of made-up rows around the one to explain, weighted by distance.

Ribeiro, Singh and Guestrin (2016), "Why should I trust you?", by the authors' own package. Numbers are drawn from a
normal distribution or, discretised, from the quartiles of the training rows; categories as often as they occur. The
linear model sees standardised numbers or, discretised, whether a number is in the row's own quartile; and of a category
whether its level is the row's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from limis.errors import InputError, require
from limis.peers.base import ModelKind, Peer, Rows, check_local_model
from limis.peers.lime_view import LimeView, OwnBins
from limis.peers.neighbours import Surroundings, Told, collect, local_tree, tell
from limis.walk import LocalFits


class _RecordingRidge(Ridge):
    """LIME's own regression, which keeps the kernel weights it was fitted with."""

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> _RecordingRidge:
        self.kernel_weights_ = sample_weight
        return super().fit(X, y, sample_weight)


@dataclass
class Lime(Peer):
    """The ``lime`` package's explainer of tables.

    Discretised, its model is flat around the row and answers to a move only when a number leaves its quartile; the
    coefficients then are, as LIME shows them, what being in the quartile adds, and no slopes. The weights of the
    training rows, which LIME does not use, are its kernel of their distance. LIME knows no missing numbers: they
    stand at the column's mean.

    Parameters
    ----------
    explainer : LimisExplainer
        Fitted, with a model that can be asked.
    local_model : {"ridge", "tree"}, default="ridge"
        LIME's ridge, or a tree of depth 3 on its made-up rows and their kernel weights.
    discretise : bool, default=True
        Whether numbers are cut into quartiles, as the package does by default.
    num_samples : int, default=5000
        Questions to the black box for each row.
    sample_around_instance : bool, default=False
        Whether numbers are drawn around the row instead of around the mean; without quartiles only.
    num_features : int, default=None
        How many columns a ridge may use. All where None; the package's own default is 10.
    random_state : int, default=0
        The same draws are made for every row, whatever others are explained with it.
    """

    local_model: ModelKind = "ridge"
    discretise: bool = True
    num_samples: int = 5000
    sample_around_instance: bool = False
    num_features: int | None = None
    random_state: int = 0
    view_: LimeView = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_local_model(self.local_model)
        training, table = self.training, self.training.table
        if not training.black_box.can_be_asked:
            raise InputError("LIME asks the black box about made-up rows, but there is no model to ask")
        tabular = require("lime.lime_tabular", "peers")
        self.view_ = LimeView.of(training)
        self.lime_ = tabular.LimeTabularExplainer(
            self.view_.training_rows,
            mode="regression",
            feature_names=table.names,
            categorical_features=np.flatnonzero(table.is_category).tolist(),
            discretize_continuous=self.discretise,
            feature_selection="none" if self.num_features is None else "auto",
            sample_around_instance=self.sample_around_instance,
            random_state=np.random.RandomState(self.random_state),
        )

    def fits(self, rows: Rows) -> LocalFits:
        """LIME's model of each row."""
        assert rows.outputs is not None
        told, kernels = [], []
        for row, output in enumerate(rows.outputs):
            told.append(self._tell(rows, row, float(output)))
            kernels.append(self._kernel(rows.values[row]))
        return collect(rows, told, sp.csr_array(np.array(kernels)))

    def _tell(self, rows: Rows, row: int, output: float) -> Told:
        asked: dict[str, np.ndarray] = {}

        def ask(drawn: np.ndarray) -> np.ndarray:
            # The first of LIME's rows is the explained one itself, whose output is known.
            made_up = self.training.black_box.outputs(self.view_.frame(drawn[1:]))
            asked["rows"], asked["outputs"] = drawn, np.concatenate([[output], made_up])
            return asked["outputs"]

        self.lime_.random_state.seed(self.random_state)
        regression = _RecordingRidge(alpha=1.0)
        explained = self.lime_.explain_instance(
            self.view_.rows(rows.values[[row]])[0],
            ask,
            num_features=self.num_features or len(self.training.table.columns),
            num_samples=self.num_samples,
            model_regressor=regression,
        )
        own = rows.features[row]
        features = self.view_.features(asked["rows"])
        features[0] = own
        around = Surroundings(features, asked["outputs"], np.asarray(regression.kernel_weights_))
        if self.local_model == "tree":
            return local_tree(around, own, np.arange(len(own)))
        effects = np.zeros(len(self.training.table.columns))
        for column, effect in explained.local_exp[1]:
            effects[column] = effect
        prediction = float(explained.local_pred[0])
        if self.discretise:
            return self._tell_bins(around, own, effects, prediction)
        return self._tell_slopes(around, own, effects, prediction)

    def _tell_slopes(self, around: Surroundings, own: np.ndarray, effects: np.ndarray, prediction: float) -> Told:
        """The linear model of standardised numbers and own levels, in our features."""
        slopes = self.view_.slopes(own, effects / self.lime_.scaler.scale_)
        missed = around.outputs - prediction - (around.features - own) @ slopes
        told = tell(
            around,
            coefficients=slopes,
            parts=slopes * (own - around.means),
            # Leaving out one of thousands of made-up rows would change nothing.
            residual_mean_square=float(around.share @ missed**2),
        )
        # A ridge goes through the means of all it sees; this one may not have seen all columns.
        told.level = prediction - float(told.parts.sum())
        return told

    def _tell_bins(self, around: Surroundings, own: np.ndarray, effects: np.ndarray, prediction: float) -> Told:
        """The linear model of being in the row's own quartiles and levels."""
        borders = {column: ends[1:] for column, ends in self.lime_.discretizer.mins.items()}
        bins = OwnBins.of(self.view_, own, borders, effects, prediction)
        share_inside = around.share @ bins.inside(around.features)
        table = self.training.table
        place = self.view_.own_feature(own)
        coefficients, parts = np.zeros(len(own)), np.zeros(len(own))
        coefficients[place] = effects * table.feature_scale[place]
        parts[place] = effects * (1 - share_inside)
        told = tell(
            around,
            coefficients=coefficients,
            parts=parts,
            residual_mean_square=float(around.share @ (around.outputs - bins(around.features)) ** 2),
            function=bins,
        )
        told.level = prediction - float(parts.sum())
        return told

    def _kernel(self, values: np.ndarray) -> np.ndarray:
        """LIME's weight of every training row for a row given by its values."""
        own, others = self.view_.rows(values[None]), self.view_.training_rows
        if self.discretise:
            own, others = self.lime_.discretizer.discretize(own), self.lime_.discretizer.discretize(others)
        apart = (others - own) / self.lime_.scaler.scale_
        binary = self.lime_.categorical_features
        apart[:, binary] = others[:, binary] != own[:, binary]
        return self.lime_.base.kernel_fn(np.sqrt((apart**2).sum(axis=1)))
