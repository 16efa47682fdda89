"""The two that every explanation must beat: one model for all rows, and a neighbourhood's mean without any columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from limis.explainer import LimisExplainer
from limis.explanation import Explanations


@dataclass
class LocalMean:
    """The mean output of the rows an explainer selects, with every coefficient zero.

    It can follow the black box closely at the row and foresees no change at all: what error at the row alone is worth.
    """

    explainer: LimisExplainer

    def explain(self, X: Any, *, outputs: Any = None) -> Explanations:
        """The explainer's neighbourhoods, without its slopes."""
        found = self.explainer.explain(X, outputs=outputs)
        fits = found.fits
        flat = replace(
            fits, coefficients=np.zeros_like(fits.coefficients), residual_mean_square=fits.spread_mean_square
        )
        return replace(found, fits=flat, bound=None)


@dataclass
class GlobalModel:
    """One ridge over all training rows, the same for every row."""

    explainer: LimisExplainer

    def explain(self, X: Any, *, outputs: Any = None) -> Explanations:
        """The global ridge, told as if it were local."""
        found = self.explainer.explain(X, outputs=outputs)
        fits, fit = found.fits, self.explainer.global_fit_
        shape = fits.coefficients.shape
        spread = np.broadcast_to(self.explainer.training_.feature_deviation, shape)
        everywhere = replace(
            fits,
            coefficients=np.broadcast_to(fit.coefficients, shape).copy(),
            feature_means=np.broadcast_to(fit.feature_means, shape).copy(),
            feature_spread=spread.copy(),
            levels=np.full(len(found), fit.level),
            residual_mean_square=np.full(len(found), fit.residual_mean_square),
            spread_mean_square=np.full(len(found), fit.spread_mean_square),
            weights=sp.csr_array(np.ones((len(found), len(self.explainer.training_)))),
        )
        return replace(found, fits=everywhere, bound=None)
