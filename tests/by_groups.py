"""Shapley values by brute force: all groups of columns of a small table."""

from itertools import combinations
from math import factorial

import numpy as np


def shapley_values(say, row, others, names):
    """Of a row against others, by what ``say`` answers for frames; names : the columns, all of them."""
    worth = {}
    for size in range(len(names) + 1):
        for group in combinations(names, size):
            mixed = others.copy()
            for name in group:
                mixed[name] = row[name]
            worth[group] = float(np.mean(say(mixed)))
    n, order = len(names), list(names)
    share = [factorial(size) * factorial(n - size - 1) / factorial(n) for size in range(n)]
    with_it = {(name, group): tuple(sorted((*group, name), key=order.index)) for name in names for group in worth}
    return np.array(
        [
            sum(
                share[len(group)] * (worth[with_it[name, group]] - worth[group]) for group in worth if name not in group
            )
            for name in names
        ]
    )
