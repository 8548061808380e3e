"""Settings for tests of the core: properties have no deadline, since a busy machine is not a defect."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
