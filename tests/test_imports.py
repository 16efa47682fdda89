"""The core needs only its core dependencies; the public names are listed."""

import subprocess
import sys

import limis


def test_the_core_imports_without_any_extra():
    blocked = ["xgboost", "lightgbm", "matplotlib", "shap", "lime", "fastapi", "ray", "dice_ml"]
    code = f"""
import sys
for name in {blocked}:
    sys.modules[name] = None
import numpy as np
from limis import LimisExplainer
X = np.random.default_rng(0).normal(size=(80, 2))
print(len(LimisExplainer(lambda rows: rows[:, 0]).fit(X).explain(X[:3]).to_html()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000


def test_every_public_name_is_there():
    assert all(hasattr(limis, name) for name in limis.__all__)
