"""Source text as lines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from mnmt_data.errors import DataError
from mnmt_eval.errors import EvalError
from mnmt_eval.text import decode_line
from mnmt_eval.translate.window import Line

TargetOf = Callable[[str], str]
"""Target language of a pair such as `en-de`; raises EvalError or DataError if it cannot be translated."""


def read_lines(stream: Iterable[bytes], *, name: str, target: str) -> Iterator[Line]:
    r"""Line of UTF-8 that all go into one language; each ends with \n or \r\n and nothing else.

    Args:
        stream: The lines as bytes.
        name: What messages call it.
        target: The language.

    Raises:
        EvalError: Naming the line that is not UTF-8.
    """
    for number, text, digest in _decoded(stream, name):
        yield Line(text=text, target=target, number=number, digest=digest)


def read_tagged_lines(stream: Iterable[bytes], *, name: str, target_of: TargetOf) -> Iterator[Line]:
    """Lines that each begin with their pair and a tab: `en-de<TAB>text`.

    Args:
        stream: The lines as bytes.
        name: What messages call it.
        target_of: Tells the target language of a pair.

    Raises:
        EvalError: Naming the line that is not UTF-8, has no pair, or has one that cannot be translated.
    """
    targets: dict[str, str] = {}
    for number, tagged, digest in _decoded(stream, name):
        pair, tab, text = tagged.partition("\t")
        if not tab:
            raise EvalError(f"{name}:{number}: must begin with its pair and a tab, such as `en-de<TAB>text`.")
        if pair not in targets:
            try:
                targets[pair] = target_of(pair)
            except (EvalError, DataError) as error:
                raise EvalError(f"{name}:{number}: {error}") from None
        yield Line(text=text, target=targets[pair], number=number, digest=digest)


def _decoded(stream: Iterable[bytes], name: str) -> Iterator[tuple[int, str, str]]:
    """Number from 1, text and digest of each line."""
    digest = hashlib.blake2b(digest_size=16)
    for number, line in enumerate(stream, start=1):
        text = decode_line(line, name=name, number=number)
        digest.update(text.encode() + b"\n")
        yield number, text, digest.hexdigest()
