"""What the first bytes of a file tell of its encoding."""

from __future__ import annotations

import codecs
import re

from mnmt_data.errors import DataError

_OTHER_MARKS = {
    codecs.BOM_UTF16_LE: "UTF-16 or UTF-32 text (it starts with that byte-order mark); convert it to UTF-8",
    codecs.BOM_UTF16_BE: "UTF-16 text (it starts with that byte-order mark); convert it to UTF-8",
    b"\x1f\x8b": "gzip-compressed; let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "zstd-compressed; let its name end in .zst",
    b"\xfd7zXZ\x00": "xz-compressed; compress it as .gz or .zst",
}
_HEAD_BYTES = 4096
_UTF16 = re.compile(rb"(?:[\t\n\r -~]\x00){16}|(?:\x00[\t\n\r -~]){16}")


def without_mark(head: bytes, name: str) -> bytes:
    """The first chunk of a UTF-8 file, less its byte-order mark.

    Raises:
        DataError: If it starts as UTF-16 or compressed files do; a few NULs alone are text.
    """
    for mark, what in _OTHER_MARKS.items():
        if head.startswith(mark):
            raise DataError(f"{name}: is {what}.")
    if _UTF16.search(head[:_HEAD_BYTES]):
        raise DataError(f"{name}: every other byte is NUL, as in UTF-16 text; convert it to UTF-8.")
    return head.removeprefix(codecs.BOM_UTF8)
