"""What commands print."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd


def print_json(document: Mapping[str, Any]) -> None:
    """The document and nothing else; NaN and infinities, which JSON does not know, as null."""
    print(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """A value in the types of JSON."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, pd.DataFrame):
        return [plain(row) for row in value.to_dict("records")]
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def warn(warnings: Iterable[str]) -> None:
    """A line each on stderr."""
    for line in dict.fromkeys(warnings):
        print(f"warning: {line}", file=sys.stderr)


def print_frame(frame: pd.DataFrame, formats: Mapping[str, str]) -> None:
    """A table to read; unknown numbers as a dash."""
    shown = frame.copy()
    for column, pattern in formats.items():
        shown[column] = [_cell(value, pattern) for value in frame[column]]
    print(shown.to_string(index=False))


def _cell(value: float, pattern: str) -> str:
    return "–" if math.isnan(value) else pattern.format(value)
