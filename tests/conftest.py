"""Settings and fixtures shared by all tests."""

import socket
import threading
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from limis import LimisExplainer
from limis.training import slopes

# How long an example takes depends on what else the machine does: speed is no test's business.
settings.register_profile("limis", deadline=None)
settings.load_profile("limis")

# Most tests need towers that are trained, not towers that are good; those that do set the number of steps themselves.
slopes.STEPS = 40


# --- served: a table whose names and values try to become markup --------------------------------------------------

MARKUP = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'


class Grants:
    """A classifier of two classes, quick to ask, that uses every kind of column."""

    classes_ = np.array(["no", f"yes {MARKUP}"])

    def predict_proba(self, rows):
        score = 0.08 * (rows["age"] - 40) + 0.5 * rows[f"pay {MARKUP}"].fillna(0)
        score += np.where(rows["job"] == IMAGE, 1.5, -0.5) + np.where(rows["member"].astype(float) == 1, 0.7, 0)
        # What no straight line follows, so that not all explanations are trusted.
        score += np.where(rows["job"] == "nurse", 2 * np.sin(3 * rows["age"]), 0)
        score += 0.3 * (pd.to_datetime(rows["since"]) - pd.Timestamp("2020-01-01")).dt.days / 365
        chance = 1 / (1 + np.exp(-np.asarray(score, dtype=float)))
        return np.column_stack([1 - chance, chance])


def grant_rows(n, seed):
    rng = np.random.default_rng(seed)
    pay = rng.normal(0, 2, n)
    pay[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            f"pay {MARKUP}": pay,
            "job": rng.choice(["clerk", "nurse", IMAGE], n),
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D"),
        }
    )


@pytest.fixture(scope="session")
def served_explainer():
    return LimisExplainer(Grants(), random_state=0).fit(grant_rows(400, seed=0))


@pytest.fixture(scope="session")
def served_rows():
    return grant_rows(120, seed=1)


@pytest.fixture(scope="session")
def serving():
    """A context in which an app is served on a free port; it gives the address."""
    uvicorn = pytest.importorskip("uvicorn")

    @contextmanager
    def served(app):
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
        with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
            thread.start()
            while not server.started:
                time.sleep(0.01)
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            finally:
                server.should_exit = True
                thread.join(20)

    return served
