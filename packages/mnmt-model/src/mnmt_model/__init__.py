"""Transformers for multilingual translation, trained over sizes and mixture weights."""

import lazy_loader

_load_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used; the version too, which is slow to find."""
    if name == "__version__":
        from importlib.metadata import version

        return version("mnmt-model")
    return _load_name(name)
