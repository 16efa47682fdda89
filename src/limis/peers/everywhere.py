"""One global model told as if it were the local model of every row."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from limis.function_fits import Function, make_fits
from limis.peers.base import Rows
from limis.rows import TrainingRows
from limis.walk import LocalFits


def fits_everywhere(
    training: TrainingRows,
    rows: Rows,
    *,
    level: float,
    residual: float,
    coefficients: np.ndarray | None = None,
    function: Function | None = None,
    parts: np.ndarray | None = None,
) -> LocalFits:
    """The same model for every row, all training rows counting alike.

    level : what it says where its telling starts. residual : mean square of what it misses on the training rows.
    coefficients : of a linear model, (features,). function, parts : of another one, with what leads from the level
    to its answer at each row, (rows, features).
    """
    shape = rows.features.shape
    features = training.features.double().numpy()
    weight = np.ones(len(training)) if training.sample_weight is None else training.sample_weight
    spread = np.average((training.outputs - training.overall_mean) ** 2, weights=weight)
    numbers = {
        "features": rows.features,
        "coefficients": np.zeros(shape) if coefficients is None else np.tile(coefficients, (len(rows), 1)),
        "feature_means": np.tile(np.average(features, axis=0, weights=weight), (len(rows), 1)),
        "feature_spread": np.tile(training.feature_deviation, (len(rows), 1)),
        "levels": np.full(len(rows), level),
        "residual_mean_square": np.full(len(rows), residual),
        "spread_mean_square": np.full(len(rows), float(spread)),
        "empty": np.zeros(len(rows), dtype=bool),
        "scale": np.ones(len(rows)),
    }
    weights = sp.csr_array(np.tile(weight / weight.max(), (len(rows), 1)))
    return make_fits(numbers, weights, None if function is None else [function] * len(rows), parts)
