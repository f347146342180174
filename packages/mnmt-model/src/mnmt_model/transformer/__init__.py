"""The models: attention, layers, stacks, architectures, loss and initial weights.

Its names are imported when they are used, since a config needs no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
