"""The interpretable model g: small, readable, fitted for one row on the training rows that matter for it."""

from limis.surrogate.ridge import LocalRidge, RidgeSolution, fit_local_ridge, solve_ridge
from limis.surrogate.tree import Bins, LocalTrees, fit_local_trees

__all__ = ["Bins", "LocalRidge", "LocalTrees", "RidgeSolution", "fit_local_ridge", "fit_local_trees", "solve_ridge"]
