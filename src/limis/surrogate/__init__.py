"""The interpretable model g: small, readable, fitted for one row on the training rows that matter for it."""

from limis.surrogate.ridge import LocalRidge, RidgeSolution, fit_local_ridge, solve_ridge

__all__ = ["LocalRidge", "RidgeSolution", "fit_local_ridge", "solve_ridge"]
