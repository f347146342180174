"""Gettext's `.po` files: catalogues as translators write them, parsed by Babel."""

from __future__ import annotations

from babel.messages import Catalog
from babel.messages import Message as BabelMessage
from babel.messages.pofile import PoFileError, PoFileParser

from mnmt_data.errors import DataError
from mnmt_data.readers.catalogue import Catalogue, Header, Message, charset_of
from mnmt_data.readers.lines import without_mark

_MOST_FORMS = 6
"""Plural forms of Arabic, which has the most."""
_PREVIOUS_OBSOLETE = "#~|"
"""Begins a line with the earlier English of an obsolete entry, which Babel takes for a mistake."""


def read_po(content: bytes, name: str) -> Catalogue:
    """Read a `.po` file without its fuzzy and obsolete entries, which translators have not confirmed.

    Args:
        content: The file.
        name: What messages call it.

    Raises:
        DataError: If it cannot be parsed, or is not in the character set that its header names.
    """
    lines = _decode(content, name).split("\n")
    collector = _Collector()
    parser = PoFileParser(collector, ignore_obsolete=True, abort_invalid=True)
    try:
        parser.parse("" if line.startswith(_PREVIOUS_OBSOLETE) else line for line in lines)
    except PoFileError as error:
        problem = str(error).rpartition(" on ")[0] or "is no entry"
        raise DataError(f"{name}:{error.lineno + 1}: {problem}; mend it as `msgfmt --check` says.") from None
    except (ValueError, LookupError, AttributeError) as error:
        what = f"cannot be read as a .po file ({error})"
        raise DataError(f"{name}: {what}; mend it as `msgfmt --check` says.") from None
    return Catalogue(header=Header(text=collector.header), messages=collector.messages)


def _decode(content: bytes, name: str) -> str:
    content = without_mark(content, name)
    charset = charset_of(content.decode("latin-1"))
    try:
        return content.decode(charset)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"not {charset} (byte 0x{content[error.start]:02x})"
        raise DataError(f"{name}:{line}: {what}; its header must name the right charset.") from None


class _Collector(Catalog):
    """Takes what the parser finds as it is; Babel's catalogue refuses a file for a wrong date."""

    def __init__(self) -> None:
        super().__init__()
        self.header = ""
        self.messages: list[Message] = []

    @property
    def num_plurals(self) -> int:
        return _MOST_FORMS

    def __setitem__(self, english: object, message: BabelMessage) -> None:
        if not message.id:
            self.header = self.header or str(message.string)
        elif not message.fuzzy:
            self.messages.append(
                Message(
                    context=message.context or "",
                    english=_strings(message.id),
                    translations=_strings(message.string),
                )
            )


def _strings(value: object) -> tuple[str, ...]:
    """Return the one string or the several strings of Babel's message."""
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else (str(value),)
