import os

from hypothesis import settings

# How long an example takes depends on what else the machine does.
settings.register_profile("ci", deadline=None, max_examples=15, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
