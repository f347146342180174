"""Lingua."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from lingua import Language, LanguageDetectorBuilder

from mnmt_eval.language.identifier import NO_LANGUAGE, check_known, has_letters

_OTHER_CODES = {"no": "nb"}


class LinguaIdentifier:
    """lingua: n-gram models with rules for alphabets; its models come with it."""

    def __init__(self, candidates: tuple[str, ...]) -> None:
        """Load the models of the candidates.

        Raises:
            EvalError: If it does not know a language.
        """
        by_code = {language.iso_code_639_1.name.lower(): language for language in Language.all()}
        by_code |= {code: by_code[other] for code, other in _OTHER_CODES.items()}
        check_known("lingua", candidates, list(by_code))
        self._codes = {by_code[code]: code for code in candidates}
        self._detector = LanguageDetectorBuilder.from_languages(*self._codes).build()
        self.candidates = candidates
        self.version = f"lingua-{version('lingua-language-detector')}"

    def identify(self, texts: Sequence[str]) -> list[str]:
        """The most probable candidate for each text; `NO_LANGUAGE` for a text without letters, or a tie."""
        return [self._identify(text) if has_letters(text) else NO_LANGUAGE for text in texts]

    def _identify(self, text: str) -> str:
        language = self._detector.detect_language_of(text)
        return NO_LANGUAGE if language is None else self._codes[language]
