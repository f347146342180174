"""Signatures: everything that changes a value, as `nrefs:1|key:value|…`."""

from __future__ import annotations


def signature(*, nrefs: int, **settings: str) -> str:
    """The signature of a metric that is not sacreBLEU's, in sacreBLEU's form."""
    return "|".join([f"nrefs:{nrefs}", *(f"{key}:{value}" for key, value in settings.items())])


def resampled_signature(metric: str, **settings: int) -> str:
    """A metric's signature with how was resampled, where sacreBLEU puts it: after the references."""
    nrefs, *rest = metric.split("|")
    return "|".join([nrefs, *(f"{key}:{value}" for key, value in settings.items()), *rest])
