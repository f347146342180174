"""Identifying the language of a sentence among some candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from mnmt_eval.errors import EvalError
from mnmt_eval.language.codes import base_language

IDENTIFIERS = ("py3langid", "lingua")
"""Their names; the second is for cross-checks."""

NO_LANGUAGE = ""
"""What a text without letters is in."""


class Identifier(Protocol):
    """A program that identifies languages."""

    @property
    def version(self) -> str:
        """Its name and version: `py3langid-0.4.0`."""

    @property
    def candidates(self) -> tuple[str, ...]:
        """The languages that it chooses among, in order."""

    def identify(self, texts: Sequence[str]) -> list[str]:
        """The most probable candidate for each text; `NO_LANGUAGE` for a text without letters."""


def identifier(name: str, candidates: Sequence[str]) -> Identifier:
    """An identifier restricted to some languages.

    Args:
        name: One of `IDENTIFIERS`.
        candidates: Codes of languages, as `de` or `zh_CN`, at least two different ones.

    Raises:
        EvalError: If there is none of that name, it does not know a language, or the extra is not installed.
    """
    if name not in IDENTIFIERS:
        raise EvalError(f"`identifier` must be one of {', '.join(IDENTIFIERS)}, but is {name!r}.")
    languages = tuple(sorted({base_language(code) for code in candidates}))
    if len(languages) < 2:
        named = ", ".join(languages) or "none"
        raise EvalError(
            "language: must have at least 2 `candidates`, all the languages that outputs may be in, such as "
            f"de,en,fr, but has {named}."
        )
    try:
        return _load(name, languages)
    except ImportError:
        raise EvalError(
            f"language: {name} is missing; `pip install 'mnmt-eval[language]'` installs it."
        ) from None


def has_letters(text: str) -> bool:
    """Whether a text can be in a language at all."""
    return any(map(str.isalpha, text))


# All directions of a study have the same candidates, and loading takes a second.
@lru_cache(maxsize=4)
def _load(name: str, languages: tuple[str, ...]) -> Identifier:
    if name == "lingua":
        from mnmt_eval.language.lingua_identifier import LinguaIdentifier

        return LinguaIdentifier(languages)
    from mnmt_eval.language.py3langid_identifier import Py3langidIdentifier

    return Py3langidIdentifier(languages)


def check_known(name: str, candidates: Sequence[str], known: Sequence[str]) -> None:
    """Refuse languages that an identifier does not know.

    Raises:
        EvalError: Naming them.
    """
    unknown = [code for code in candidates if code not in known]
    if unknown:
        raise EvalError(f"language: {name} knows {len(known)} languages, but not {', '.join(unknown)}.")
