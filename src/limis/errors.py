"""What limis raises, and the one way it asks for an optional package."""

import importlib
from types import ModuleType

__all__ = [
    "BlackBoxError",
    "InputError",
    "LimisError",
    "MissingExtraError",
    "StoreError",
    "require",
]


class LimisError(ValueError):
    """Base of every error that limis raises on purpose."""


class InputError(LimisError):
    """The rows, columns or options given cannot be used as they are."""


class BlackBoxError(LimisError):
    """The black box raised, or answered with something that is not one number a row."""


class StoreError(LimisError):
    """A saved explainer cannot be written or read."""


class MissingExtraError(LimisError, ImportError):
    """A feature needs a package that only an extra installs."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra brings it.

    Parameters
    ----------
    module : str
        Name of the module, such as ``"lightgbm"``.
    extra : str
        Extra of limis that installs it.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingExtraError
        If the module is not installed. A module that is there but broken raises its own error.

    Examples
    --------
    >>> require("json", extra="plots").dumps([1, 2])
    '[1, 2]'
    >>> require("no_such_module", extra="plots")
    Traceback (most recent call last):
    ...
    limis.errors.MissingExtraError: no_such_module is not installed; get it with:
    pip install "limis-xai[plots]"
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing != module.partition(".")[0]:
            raise
        message = f'{missing} is not installed; get it with: pip install "limis-xai[{extra}]"'
        raise MissingExtraError(message) from error
