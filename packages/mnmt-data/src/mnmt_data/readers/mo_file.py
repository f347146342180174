"""Gettext's `.mo` files: compiled catalogues, in either byte order.

The libraries at hand each lose something: Python's `gettext` the English plural, Babel the character set.
The format is in the GNU gettext manual, "The Format of GNU MO Files".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mnmt_data.errors import DataError
from mnmt_data.readers.catalogue import Catalogue, Header, Message, charset_of

_BYTE_ORDERS = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}
_CONTEXT_END = b"\x04"
_REVISIONS = (0, 1)
"""Major revisions; the second only adds tables of strings that depend on the system."""


def read_mo(content: bytes, name: str) -> Catalogue:
    """Read a `.mo` file.

    Args:
        content: The file.
        name: What messages call it.

    Raises:
        DataError: If it is no such file, truncated, or not in the character set that its header names.
    """
    entries = list(_entries(content, name))
    header = next((text for original, text in entries if not original), b"").decode("utf-8", "replace")
    charset = charset_of(header)
    try:
        messages = [_message(original, text, charset) for original, text in entries if original]
    except UnicodeDecodeError as error:
        what = f"has a string that is not {charset} ({error.object[:40]!r})"
        raise DataError(f"{name}: {what}; its header must name the right charset.") from None
    return Catalogue(header=Header(text=header), messages=messages)


def _entries(content: bytes, name: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the original string and its translation of every entry, plurals divided by NUL."""
    order = _BYTE_ORDERS.get(content[:4])
    if order is None:
        raise DataError(f"{name}: does not begin as a .mo file does; give one that msgfmt has made.")
    try:
        revision, count, originals, texts = struct.unpack_from(f"{order}4I", content, 4)
        if revision >> 16 not in _REVISIONS:
            what = f"has revision {revision >> 16}, but must have 0 or 1"
            raise DataError(f"{name}: {what}; make it again with msgfmt.")
        tables = [struct.unpack_from(f"{order}{2 * count}I", content, place) for place in (originals, texts)]
    except struct.error:
        raise _truncated(name) from None
    columns = (zip(table[::2], table[1::2], strict=True) for table in tables)
    for (length, start), (text_length, text_start) in zip(*columns, strict=True):
        if max(start + length, text_start + text_length) > len(content):
            raise _truncated(name)
        yield content[start : start + length], content[text_start : text_start + text_length]


def _truncated(name: str) -> DataError:
    return DataError(f"{name}: ends before its last string; it is truncated, make it again with msgfmt.")


def _message(original: bytes, text: bytes, charset: str) -> Message:
    context, _, english = original.rpartition(_CONTEXT_END)
    return Message(
        context=context.decode(charset),
        english=english.decode(charset).split("\0"),
        translations=text.decode(charset).split("\0"),
    )
