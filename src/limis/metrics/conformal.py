"""Bounds that hold for a stated share of new cases."""

import numpy as np


def conformal_quantile(scores: np.ndarray, coverage: float) -> float:
    """The smallest score that bounds a new one with the given probability; infinite when there are too few.

    Examples
    --------
    >>> import numpy as np
    >>> float(conformal_quantile(np.arange(1.0, 100.0), 0.95))
    95.0
    >>> float(conformal_quantile(np.arange(1.0, 10.0), 0.95))
    inf
    """
    rank = int(np.ceil((len(scores) + 1) * coverage))
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else float("inf")
