"""Walking rows down the trees of a forest, compiled."""

from __future__ import annotations

import numpy as np
from numba import prange

from limis.threads import in_parallel

# What is asked of a node stands together: of a large forest nearly every step has to wait for the memory.
NODE = np.dtype([("threshold", "f8"), ("feature", "i4"), ("left", "i4"), ("right", "i4")], align=True)


@in_parallel
def walk(inputs: np.ndarray, nodes: np.ndarray, roots: np.ndarray, ends: np.ndarray) -> None:
    """Write the node that each row, (rows, features) float32, ends at in each tree into ``ends``, (trees, rows).

    At a leaf both children are the leaf itself.
    """
    # All rows go down one tree before the next: a tree fits into the processor's cache, a forest does not.
    for tree in prange(len(roots)):
        for row in range(len(inputs)):
            own, at = inputs[row], roots[tree]
            node = nodes[at]
            while node.left != at:
                at = node.left if own[node.feature] <= node.threshold else node.right
                node = nodes[at]
            ends[tree, row] = at
