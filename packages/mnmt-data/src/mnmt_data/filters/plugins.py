"""Filters that other distributions offer, switched on by `[data.clean.plugins]`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np

from mnmt_data.errors import DataError
from mnmt_data.filters.pair_filters import Drops, PairFilter
from mnmt_data.filters.report import BUILT_IN
from mnmt_data.readers.plugins import FILTERS, Plugin, find_plugin, plugin_names


@dataclass(frozen=True, kw_only=True)
class PluginFilter:
    """A filter of another distribution; pickled, it is its name and settings, and each process makes it."""

    name: str
    """Name of the entry point, and in reports."""

    settings: str
    """The filter's table of the study, as JSON."""

    task: str
    languages: tuple[str, ...]
    """The languages of the study."""

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any], task: str, languages: Iterable[str]) -> Self:
        """Make the filter, so that wrong settings are found before any text is read.

        Raises:
            DataError: If there is no such filter, it cannot be loaded, or it refuses its settings.
        """
        try:
            written = json.dumps(settings, sort_keys=True)
        except TypeError:
            what = "must hold strings, numbers, booleans, arrays and tables alone"
            raise DataError(f"[data.clean.plugins.{name}] {what}.") from None
        plugin = cls(name=name, settings=written, task=task, languages=tuple(languages))
        _make(plugin)
        return plugin

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> Drops:
        """Return which pairs to drop.

        Raises:
            DataError: If the filter gives anything but one truth value a pair.
        """
        try:
            drops = np.asarray(_make(self)(src, tgt))
        except Exception as error:
            error.add_note(f"The filter is `{self.name}` of {filter_plugin(self.name).origin}.")
            raise
        if drops.dtype != np.bool_ or drops.shape != (len(src),):
            answer = f"gave {drops.dtype} of shape {drops.shape} for {len(src)} pairs"
            raise DataError(f"{filter_plugin(self.name)} {answer}; it must give a bool for each.")
        return drops


def filter_plugin(name: str) -> Plugin:
    """Return the entry point of a filter that a study names.

    Raises:
        DataError: If no distribution offers it, or several do.
    """
    plugin = find_plugin(FILTERS, name, built_in=name in BUILT_IN)
    if plugin is None:
        installed = ", ".join(plugin_names(FILTERS)) or "none"
        what = f"no installed distribution offers a filter `{name}`"
        raise DataError(f"[data.clean.plugins.{name}] {what}; those that are offered: {installed}.")
    return plugin


@cache
def _make(plugin: PluginFilter) -> PairFilter:
    factory: Callable[..., PairFilter] = filter_plugin(plugin.name).load()
    try:
        return factory(json.loads(plugin.settings), plugin.task, plugin.languages)
    except (DataError, ValueError, TypeError, KeyError) as error:
        reason = (
            f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error).splitlines()[0]
        )
        raise DataError(f"[data.clean.plugins.{plugin.name}] {reason.rstrip('.')}.") from error
