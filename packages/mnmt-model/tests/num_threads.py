"""Torch's threads during a test."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def num_threads(number: int) -> Iterator[None]:
    """Let torch use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
