"""Transformers for multilingual translation, trained over sizes and mixture weights."""

from importlib.metadata import version

import lazy_loader

# Names in __init__.pyi are imported at first use, so that users of torch-free names need not wait for torch.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("mnmt-model")
