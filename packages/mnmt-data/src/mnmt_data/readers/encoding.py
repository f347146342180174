"""Tell text from other files, and UTF-8 from other encodings, by the bytes."""

from __future__ import annotations

import codecs
import re

from mnmt_data.errors import DataError
from mnmt_data.readers.byte_sources import CODECS, kind_of

_HEAD_BYTES = 2**16
_FEWEST_NULS = 16
"""NULs that text never has: at even or odd places of its start, which show UTF-16, or in a row."""

_NULS = "\0" * _FEWEST_NULS

MARKUP = (".sgm", ".xml")
"""Endings of names of test sets in WMT's mark-up, which is refused."""

_COMMENTS = rb"\s*(?:(?><!--.*?-->)\s*)*"
_MARKUP = re.compile(
    _COMMENTS + rb"(<(?:\?xml|!doctype|tmx|xliff|tstset|refset|srcset|mteval|dataset|doc(?=\s))\b[^\n>]{0,40}"
    rb"|<html\b[^\n>]*>(?=\s*(?:[\r\n]|<head)))",
    re.I | re.S,
)
_WMT = re.compile(r"<(?:!doctype\s+)?(tstset|refset|srcset|mteval|dataset|doc)\b", re.I)
_XML = re.compile(rb"\s*<\?xml\b[^>]*>" + _COMMENTS + rb"(<[^\n>]{0,40})", re.S)
_DECLARED = re.compile(rb"<\?xml[^>]*?\bencoding\s*=\s*[\"']([\w.-]+)")
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF16_STARTS = {b"<\0?\0": "utf-16-le", b"\0<\0?": "utf-16-be"}
_NO_LETTERS = bytes(byte for byte in range(0x80) if not chr(byte).isalpha())
_MOST_ACCENTS = 0.4
"""Share of letters that are not ASCII up to which they are accented ones among Latin letters."""


def check_head(head: bytes, name: str) -> bytes:
    """Return the start of a UTF-8 text without its byte-order mark.

    Args:
        head: The first bytes of the text, or all.
        name: The name for messages.

    Raises:
        DataError: If it starts like UTF-16, a compressed file, an archive or mark-up, or its lines end in
            carriage returns alone.
    """
    if head.startswith(_UTF16_MARKS):
        what = "is UTF-16 or UTF-32 text (it starts with that byte-order mark)"
        raise DataError(f"{name}: {what}; convert it to UTF-8.")
    if (kind := kind_of(head)) is not None:
        ending = next((ending for ending, codec in CODECS.items() if codec == kind), None)
        remedy = f"-compressed; unpack it, or let its name end in {ending}" if ending else ", not text"
        raise DataError(f"{name}: is {kind}{remedy}.")
    if _is_utf16(head[:_HEAD_BYTES]):
        raise DataError(f"{name}: every other byte is NUL, as in UTF-16 text; convert it to UTF-8.")
    head = head.removeprefix(codecs.BOM_UTF8)
    _check_markup(head, name)
    _check_line_ends(head, name)
    return head


def check_nuls(text: str, name: str, lines: int = 0) -> None:
    """Refuse a run of NULs, which a file has that was not written whole; `lines` come before the text.

    Raises:
        DataError: If there is one; the message names the line.
    """
    if (place := text.find(_NULS)) >= 0:
        line = lines + text.count("\n", 0, place) + 1
        what = f"has {_FEWEST_NULS} NUL bytes or more in a row, as a file that was not written whole"
        raise DataError(f"{name}:{line}: {what}; write or fetch it again.")


def _check_markup(head: bytes, name: str) -> None:
    """Refuse a document of SGML, XML or HTML, by how it begins."""
    head = head[:_HEAD_BYTES]
    if (match := _XML.match(head) or _MARKUP.match(head)) is None:
        return
    begin = match[1].decode("utf-8", errors="replace").strip()
    what, remedy = "mark-up", "give text"
    if kind := re.match(r"<(tmx|xliff)\b", begin):
        remedy = f"give text, or to mnmt-data a file whose name ends in .{kind[1]}"
    if kind := _WMT.match(begin):
        echo = ", as `sacrebleu -t wmt19 -l en-de --echo src` writes it, or `ref`, or `docid`"
        what, remedy = "WMT's mark-up", "give text" + echo
        if kind[1].lower() == "tstset":
            remedy = "give its segments as text"
    raise DataError(f"{name}: is {what} ({begin}), not a sentence a line; {remedy}.")


def _is_utf16(head: bytes) -> bool:
    """Return whether NULs stand at even or at odd places only, as in UTF-16 text with ASCII characters."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    return min(even, odd) == 0 and max(even, odd) >= _FEWEST_NULS


def _check_line_ends(head: bytes, name: str) -> None:
    """Refuse text with more carriage returns alone than half its line feeds; one or a few are stray ones."""
    alone = head.count(b"\r") - head.count(b"\r\n") - head.endswith(b"\r")
    if 2 * alone > (ends := head.count(b"\n")) and (alone > 1 or not ends):
        remedy = r"convert them, as in `tr '\r' '\n' < OLD > NEW`"
        raise DataError(f"{name}: its lines end in carriage returns alone (CR, of classic Mac OS); {remedy}.")


def document_encoding(head: bytes, name: str) -> str:
    """Return the encoding of a document of mark-up, by its byte-order mark or XML declaration, else UTF-8.

    Raises:
        DataError: If it declares an unknown encoding.
    """
    if head.startswith((*_UTF16_MARKS, *_UTF32_MARKS)):
        return "utf-32" if head.startswith(_UTF32_MARKS) else "utf-16"
    if head[:4] in _UTF16_STARTS:
        return _UTF16_STARTS[head[:4]]
    declared = _DECLARED.match(head.lstrip())
    encoding = declared[1].decode() if declared else "utf-8"
    try:
        "a".encode(encoding)  # refuses what is no encoding of text, such as hex
        name_of_codec = codecs.lookup(encoding).name
    except (LookupError, UnicodeError):
        raise DataError(f"{name}: declares the unknown encoding {encoding}; convert it to UTF-8.") from None
    is_false = name_of_codec.startswith(("utf-16", "utf-32"))  # its declaration is ASCII
    return "utf-8-sig" if is_false or name_of_codec == "utf-8" else name_of_codec


def not_utf8(name: str, line: int, error: UnicodeDecodeError, remedy: str) -> str:
    """Return the message about a line, numbered from 1, that is not UTF-8; see `utf8_remedy`."""
    return f"{name}:{line}: not valid UTF-8 (byte 0x{error.object[error.start]:02x}); {remedy}."


def utf8_remedy(data: bytes) -> str:
    """Return what to do about lines that are not all UTF-8: mend one, or convert all from their encoding."""
    lines = [line for line in data.split(b"\n") if not line.isascii()]
    if 2 * sum(map(_is_utf8, lines)) > len(lines):
        return "other lines are, so mend or remove this one"
    letters = b"".join(lines).translate(None, _NO_LETTERS)
    if sum(byte > 0x7F for byte in letters) <= _MOST_ACCENTS * len(letters):
        return "perhaps it is Windows-1252 or ISO-8859-1; convert the file to UTF-8"
    return "perhaps it is Windows-1251, GB18030 or Shift_JIS; convert the file to UTF-8"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
