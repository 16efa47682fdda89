"""Settings shared by all tests."""

from hypothesis import settings

# How long an example takes depends on what else the machine does: speed is no test's business.
settings.register_profile("limis", deadline=None)
settings.load_profile("limis")
