"""Train a run: steps in one process or several, evaluations, checkpoints and watchers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
