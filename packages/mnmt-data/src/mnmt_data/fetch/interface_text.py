"""Plain text of interface strings: remove accelerators and mark-up, and unify placeholders."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator
from itertools import count

MARKS = "_&"
"""Marks of keyboard accelerators: of GTK; of Qt and wxWidgets."""
ACCELERATED = 0.01
"""Fraction of strings with `&x` or `_x` above which the mark is an accelerator key."""
LABEL_WORDS = 6
"""Most words of a string in which a mark inside a word is an accelerator (`E_xit`), not part of a name."""

_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d+|#x[0-9a-fA-F]+);")
_ATTRIBUTES = r"(?:\s+[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*"
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>[A-Za-z][\w:-]*){_ATTRIBUTES}\s*/?>")
_BREAK = re.compile(
    "br|dd|div|dt|h[1-6]|hr|item|li|list|nl|note|ol|p|para|table|td|title|tr|ul", re.IGNORECASE
)
"""Elements that separate words."""
_EMPTY = frozenset({"br", "hr", "li", "nl", "p"})
"""Elements that need no end."""

_CHARACTERS = {"%%": "%", "%<": "'", "%>": "'"}
_PLACEHOLDER = re.compile(
    r"%[%<>]"
    r"|%\((?P<python>\w+)\)[-+0#]*\d*(?:\.\d+)?[a-zA-Z]"
    r"|[%$]\{(?P<variable>[\w.]+)\}"
    r"|(?<!\{)\{(?P<brace>\w*)(?:![rsa])?(?::[^{}\s]*)?\}(?!\})"
    r"|%(?P<place>[1-9]\d?)(?![\d$.]*[a-zA-Z$])%?"
    r"|%(?:(?P<position>[1-9]\d?)\$)?[-+0#'I]*(?:\d+|\*)?(?:\.(?:\d+|\*))?"
    r"(?:hh|h|ll|l|q|j|z|t|L)?[a-zA-Z@]"
)


def accelerator_mark(strings: Collection[str]) -> str:
    """Return the mark of keyboard accelerators in a catalogue's English strings, or `""`."""
    for mark in MARKS:
        starts = re.compile(rf"(?:^|\s){mark}[A-Za-z]\w")
        if sum(1 for string in strings if starts.search(string)) > ACCELERATED * len(strings):
            return mark
    return ""


def plain_text(string: str, mark: str) -> str:
    """Return a string as text on one line, without accelerators and tags, with unified placeholders.

    Args:
        string: A string of a catalogue.
        mark: Mark of keyboard accelerators in this catalogue, one of `MARKS`, or `""`.
    """
    text = plain_placeholders(without_markup(without_accelerator(string, mark)))
    return " ".join(text.split())


def without_accelerator(string: str, mark: str) -> str:
    """Return a label such as `_File` or `ファイル(_F)` without the mark of its accelerator.

    A string with several marks has no accelerator. A doubled mark is the character itself.
    """
    if not mark or mark not in string:
        return string
    string = re.sub(rf"\s*\({mark}\w\)", "", string)
    literal = string.replace(mark * 2, "\0")
    place = re.search(rf"(\w?){mark}(?!(?:amp|lt|gt|quot|apos|nbsp|#\w+);)(\w)", literal)
    if place and literal.count(mark) == 1 and _is_accelerator(place[1], place[2], string):
        literal = literal.replace(mark, "")
    return literal.replace("\0", mark)


def _is_accelerator(before: str, after: str, string: str) -> bool:
    """Return whether a mark between two characters is an accelerator, unlike in `R&D` or a file name."""
    is_initials = before.isupper() and after.isupper()
    return not before or (not is_initials and len(string.split()) <= LABEL_WORDS)


def without_markup(string: str) -> str:
    """Remove the tags of elements that are closed in a string, and replace entities by characters.

    An unclosed `<file>` is a word, as in the messages of commands.
    """
    if "<" in string:
        closed = {tag["name"] for tag in _TAG.finditer(string) if tag["close"]} | _EMPTY
        string = _TAG.sub(lambda tag: _replacement(tag) if tag["name"] in closed else tag[0], string)
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), string) if "&" in string else string


def _replacement(tag: re.Match[str]) -> str:
    return " " if _BREAK.fullmatch(tag["name"]) else ""


def plain_placeholders(string: str) -> str:
    """Write placeholders as `{1}`, `{2}` by argument, or as `{name}`, and `%%` as `%`.

    Known are those of C (`%s`, `%2$d`), Qt (`%1`), Boost (`%1%`), Python (`%(name)s`, `{}`, `{0}`, `{name}`)
    and shells (`${name}`, `%{name}`). The first argument is 1, even if the program counts from 0. The quotes
    of GCC's messages, `%<int%>`, become `'int'`.
    """
    if "%" not in string and "{" not in string:
        return string
    arguments = count(1)
    return _PLACEHOLDER.sub(lambda match: _plain(match, arguments), string)


def _plain(match: re.Match[str], arguments: Iterator[int]) -> str:
    """Return the unified placeholder; without a name or number it takes the next of `arguments`."""
    if match[0] in _CHARACTERS:
        return _CHARACTERS[match[0]]
    key = match[match.lastgroup] if match.lastgroup else ""
    if match.lastgroup == "brace" and key.isdecimal():
        key = str(int(key) + 1)
    return f"{{{key or next(arguments)}}}"
