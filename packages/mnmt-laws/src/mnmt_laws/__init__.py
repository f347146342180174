"""Scaling laws of multilingual translation (Fernandes et al. 2023), fitted to tables of losses.

`fit` takes a path, a frame, a run table or observations, and returns a `LawFit`. From fits follow
`effective_fractions`, `frontier`, `smallest_model` and `predict_held_out`. `forecast` averages over the laws
that a table admits, `recommend` decides the mixture by what a choice costs over its draws, and `design` says
whether another run is worth training. `compare` asks which parameter the mixture acts through, and
`build_report` puts all of it on a page.
"""

import lazy_loader

_load_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used; the version too, which is slow to find."""
    if name == "__version__":
        from importlib.metadata import version

        return version("mnmt-laws")
    return _load_name(name)
