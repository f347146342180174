"""A pytest plugin that writes into reports how many CPU seconds each test takes, its processes included."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, and of its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Measure the fixtures that a test is the first to use."""
    yield from measure(item, "setup_seconds")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Measure a test."""
    yield from measure(item, "test_seconds")


def measure(item: pytest.Item, name: str) -> Generator[None]:
    """Record the CPU seconds of a phase as a property of the test."""
    start = cpu_seconds()
    try:
        yield
    finally:
        item.user_properties.append((name, round(cpu_seconds() - start, 3)))
