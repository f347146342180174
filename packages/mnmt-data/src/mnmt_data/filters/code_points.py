"""Text as arrays of code points, for what is decided character by character over a whole block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_CODE_POINTS = 0x110000


def code_points(text: str) -> NDArray[np.uint32]:
    """`(characters,)`: the number of each character."""
    return np.frombuffer(text.encode("utf-32-le"), np.dtype("<u4"))


def text_of(points: NDArray[np.uint32]) -> str:
    """The characters with these numbers."""
    return points.tobytes().decode("utf-32-le")


def table(property_of: Callable[[str], str], values: str) -> NDArray[np.bool_]:
    """Whether `property_of` each character is among `values`, `(code points,)`: index it by code points."""
    found = (property_of(chr(point)) in values for point in range(_CODE_POINTS))
    return np.fromiter(found, np.bool_, _CODE_POINTS)
