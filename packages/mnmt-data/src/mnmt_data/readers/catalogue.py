"""Gettext catalogues: messages with their context, plurals and translations, whatever the file's format."""

from __future__ import annotations

import codecs
import gettext
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

SEVERAL = 5
"""The number whose form in another language stands beside the English plural.

Languages with more than two forms keep some of them for 2, 3 and 4 (Slavic) or for 2 (Slovenian, Arabic).
"""

CREDITS = frozenset({"translator-credits", "NAME OF TRANSLATORS", "EMAIL OF TRANSLATORS"})
"""English strings and contexts under which translators enter their names: no translations."""

_CHARSET = re.compile(r"charset\s*=\s*([\w.:-]+)", re.IGNORECASE)
_PLURAL = re.compile(r"plural\s*=\s*([^;\n]+)")


@dataclass(frozen=True, kw_only=True)
class Message:
    """One entry of a catalogue."""

    context: str
    """What tells it from other messages with the same English (`msgctxt`), or `""`."""

    english: Sequence[str]
    """The English string, and its plural if it has one."""

    translations: Sequence[str]
    """The translation, or one for each plural form of the language; `""` where there is none."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a catalogue says of itself: the translation of the empty string, lines `Name: value`."""

    text: str = ""

    def value(self, name: str) -> str:
        """Return the value of a field, or `""`."""
        lines = (line.partition(":") for line in self.text.split("\n"))
        return next((value.strip() for key, _, value in lines if key.strip().lower() == name.lower()), "")

    @property
    def language(self) -> str:
        """The language, as the catalogue writes it, or `""`."""
        return self.value("Language")

    def plural_rule(self) -> Callable[[int], int]:
        """Return the function from a number to its plural form: English's if no other one works."""
        match = _PLURAL.search(self.value("Plural-Forms").partition(";")[2])
        try:
            rule: Callable[[int], int] = gettext.c2py(match[1].strip()) if match else _germanic
            works = rule(1) >= 0 and rule(SEVERAL) >= 0
        except (ValueError, ZeroDivisionError):
            works = False
        return rule if works else _germanic


def _germanic(number: int) -> int:
    return int(number != 1)


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The messages of one catalogue in one language."""

    header: Header = field(default_factory=Header)
    messages: Sequence[Message] = ()

    def singulars(self) -> Iterator[tuple[str, str, str]]:
        """Yield `(context, English, translation)` of all translated messages, of plural ones for 1.

        That form is not always the first: in Arabic it is the second, after the one for 0.
        """
        rule = self.header.plural_rule()
        for message in self.messages:
            yield from _string(message, 0, rule(1))

    def strings(self) -> Iterator[tuple[str, str, str]]:
        """Yield `(context, English, translation)` of all translated strings, but for names of translators.

        A message with a plural has two: the singular with the form for 1, and the plural with the form for
        `SEVERAL`.
        """
        rule = self.header.plural_rule()
        for message in self.messages:
            yield from _string(message, 0, rule(1))
            yield from _string(message, 1, rule(SEVERAL))


def _string(message: Message, number: int, form: int) -> Iterator[tuple[str, str, str]]:
    """Yield the singular (0) or plural (1) of a message with a form of its translation, if both are there."""
    has_plural = len(message.english) > 1
    form = form if has_plural else 0
    if message.context in CREDITS or message.english[0] in CREDITS:
        return
    if number < len(message.english) and form < len(message.translations) and message.translations[form]:
        yield message.context, message.english[number], message.translations[form]


def charset_of(header: str) -> str:
    """Return the character set that a header names; UTF-8 if it names none that is known."""
    match = _CHARSET.search(header)
    name = match[1] if match else "utf-8"
    try:
        bytes(4).decode(name)  # some codecs, such as hex, are not of text
        return codecs.lookup(name).name
    except (LookupError, UnicodeError):
        return "utf-8"
