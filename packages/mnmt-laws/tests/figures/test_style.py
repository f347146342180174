"""Sizes are short."""

from __future__ import annotations

import pytest

from mnmt_laws.figures.style import format_size


@pytest.mark.parametrize(("size", "text"), [(999, "999"), (37216, "37.2K"), (1.3e6, "1.3M"), (2e9, "2B")])
def test_sizes_are_short(size: float, text: str) -> None:
    assert format_size(size) == text
