from hypothesis import settings

# How long an example takes depends on what else the machine does.
settings.register_profile("mnmt", deadline=None)
settings.load_profile("mnmt")
