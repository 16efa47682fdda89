"""A data set for tests of experiments on real data, small and made up."""

import numpy as np
import pandas as pd

from limis.datasets import Dataset

N = 400


def small(task):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=N), "b": rng.integers(0, 9, N), "c": rng.choice(["x", "y"], N)})
    value = 2 * frame["a"] + frame["b"] * (frame["c"] == "x") + 0.3 * rng.normal(size=N)
    target = value if task == "regression" else pd.Series(np.where(value > 2, ">50K", "<=50K"))
    return Dataset("small", frame, target, task, "", "", "")
