"""Checkpoints: folders of safetensors that appear complete or not at all, and are verified by checksums."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
