"""A progress bar on standard error, with the time left; silent unless asked for."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

__all__ = ["progress"]


def progress(iterable_or_total: Iterable | int, description: str, enabled: bool) -> Any:
    """Show how far a long piece of work is.

    Parameters
    ----------
    iterable_or_total : iterable or int
        What to walk through, or the number of steps of work that counts its own.
    description : str
        A few words for what is being done.
    enabled : bool
        Whether to show anything.

    Returns
    -------
    tqdm
        With an iterable, loop over it. With a total, use it in a ``with`` block and call
        ``update(steps)``.

    Examples
    --------
    >>> [step * 2 for step in progress([1, 2, 3], "doubling", enabled=False)]
    [2, 4, 6]
    >>> with progress(100, "fitting", enabled=False) as bar:
    ...     shown = bar.update(40)
    """
    counted = isinstance(iterable_or_total, int)
    return tqdm(
        None if counted else iterable_or_total,
        total=iterable_or_total if counted else None,
        desc=description,
        disable=not enabled,
        file=sys.stderr,
        # A log file keeps every redrawing of the bar, so redraw it seldom there.
        mininterval=0.2 if sys.stderr.isatty() else 10.0,
        dynamic_ncols=True,
    )
