"""Runs: their configuration, their record on the disk, their data, and their models, loaded and measured."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
