"""The ways in which damaged_segments.py damages a file, all of them by chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np


def kind_of(path: Path) -> str:
    """Return what a file is called in the table."""
    names = {".arrow": "segment", ".parquet": "scores", ".npy": "order"}
    text = "text" if path.parent.name == "text" else path.name
    return path.name if path.name == "weights.npy" else names.get(path.suffix, text)


def choose(out: Path, way: str, random: np.random.Generator) -> Path:
    """Choose a file, two times of three a segment of training pairs."""
    files = [path for path in sorted((out / "data").rglob("*")) if path.is_file()]
    files += sorted(out.glob("*.parquet"))
    unread = {"train.en-de.scores.npy"}
    if way.startswith("version 0.4"):
        unread |= {"prepared.json", "train.en-de.npy", "train.en-de.json"}
    files = [path for path in files if path.name not in unread]
    segments = [path for path in files if path.parent.name.startswith("train.") and path.suffix == ".arrow"]
    candidates = segments if random.random() < 2 / 3 else files
    return candidates[random.integers(len(candidates))]


def damage(path: Path, random: np.random.Generator, others: dict[Path, bytes]) -> str:
    """Damage a file, and say how; `others` gets the content of any other that is touched."""
    siblings = [file for file in sorted(path.parent.glob("*.arrow")) if file != path]
    name = str(random.choice([*DAMAGES, "another in its place"] if siblings else [*DAMAGES]))
    content = bytearray(path.read_bytes())
    if name in DAMAGES:
        place, length = int(random.integers(len(content))), int(2 ** random.uniform(0, 10))
        content = DAMAGES[name](content, place, length, random)
    else:
        sibling = siblings[random.integers(len(siblings))]
        others[sibling] = sibling.read_bytes()
        sibling.write_bytes(content)
        content = bytearray(others[sibling])
    path.write_bytes(content)
    return f"{path.parent.name}/{path.name}: {name}"


def _flip(content: bytearray, place: int, length: int, random: np.random.Generator) -> bytearray:
    """Flip some bits near each other."""
    for bit in random.integers(8 * length, size=random.integers(1, 9)).tolist():
        content[(place + bit // 8) % len(content)] ^= 1 << bit % 8
    return content


def _overwrite(content: bytearray, place: int, length: int, random: np.random.Generator) -> bytearray:
    length = min(length, len(content) - place)
    return content[:place] + random.bytes(length) + content[place + length :]


def _blank(content: bytearray, place: int, length: int, random: np.random.Generator) -> bytearray:
    length = min(length, len(content) - place)
    return content[:place] + bytes(length) + content[place + length :]


def _exchange(content: bytearray, place: int, length: int, random: np.random.Generator) -> bytearray:
    """Exchange two stretches of the same length."""
    length = min(length, len(content) // 2)
    first, second = sorted(random.integers(len(content) - 2 * length + 1, size=2).tolist())
    second += length
    one, other = content[first : first + length], content[second : second + length]
    return content[:first] + other + content[first + length : second] + one + content[second + length :]


def _cut(content: bytearray, place: int, length: int, random: np.random.Generator) -> bytearray:
    return content[:place]


def _append(content: bytearray, place: int, length: int, random: np.random.Generator) -> bytearray:
    return content + random.bytes(length)


DAMAGES: Mapping[str, Callable[[bytearray, int, int, np.random.Generator], bytearray]] = {
    "bits flipped": _flip,
    "bytes overwritten": _overwrite,
    "zeros": _blank,
    "stretches exchanged": _exchange,
    "cut off": _cut,
    "appended to": _append,
}
