"""Transformers for multilingual translation, trained over sizes and mixture weights."""

from importlib.metadata import version

import lazy_loader

# What needs no torch does not wait for it: the names in __init__.pyi are imported when they are first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("mnmt-model")
