"""Parameters, training FLOPs and least memory of a model, in closed form, and published models by name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
