"""Settings shared by all tests."""

from hypothesis import settings

from limis.training import slopes

# How long an example takes depends on what else the machine does: speed is no test's business.
settings.register_profile("limis", deadline=None)
settings.load_profile("limis")

# Most tests need towers that are trained, not towers that are good; those that do set the number of steps themselves.
slopes.STEPS = 40
