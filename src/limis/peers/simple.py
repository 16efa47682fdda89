"""The two that every explanation must beat: one model for all rows, and a neighbourhood's mean without any columns."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from limis.explainer import LimisExplainer
from limis.explanation import Explanations
from limis.peers.base import Peer, Rows
from limis.peers.everywhere import fits_everywhere
from limis.walk import GlobalFit, LocalFits


@dataclass
class LocalMean:
    """The mean output of the rows an explainer selects, with every coefficient zero.

    It can follow the black box closely at the row and foresees no change at all: what error at the row alone is worth.
    """

    explainer: LimisExplainer

    def explain(self, X: Any, *, outputs: Any = None) -> Explanations:
        """The explainer's neighbourhoods, without its slopes, trees or curves."""
        found, training = self.explainer.explain(X, outputs=outputs), self.explainer.training_
        fits = found.fits
        if not fits.has_coefficients:  # what else they would say of changes is left behind
            fits = LocalFits(**{one.name: getattr(fits, one.name) for one in fields(LocalFits) if one.init})
        total = np.asarray(fits.weights.sum(axis=1)).ravel()
        sums = fits.weights @ training.outputs
        means = np.divide(sums, total, out=np.full(len(total), training.overall_mean), where=total > 0)
        flat = replace(
            fits,
            coefficients=np.zeros_like(fits.coefficients),
            levels=np.where(fits.empty, self.explainer.global_fit_.level, means),
            residual_mean_square=fits.spread_mean_square,
        )
        return replace(found, fits=flat, bound=None)


@dataclass
class GlobalModel(Peer):
    """One ridge over all training rows, the same for every row."""

    def fits(self, rows: Rows) -> LocalFits:
        """The global ridge, told as if it were local."""
        fit = GlobalFit.of(self.training)
        return fits_everywhere(
            self.training, rows, level=fit.level, residual=fit.residual_mean_square, coefficients=fit.coefficients
        )
