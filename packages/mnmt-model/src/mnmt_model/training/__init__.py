"""Training a run: its steps, by one process or several, its evaluations, and who watches it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
