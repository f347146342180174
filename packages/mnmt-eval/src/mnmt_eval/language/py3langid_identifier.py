"""py3langid."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from mnmt_eval.language.identifier import NO_LANGUAGE, check_known, has_letters


class Py3langidIdentifier:
    """py3langid (Lui and Baldwin 2012): naive Bayes over byte n-grams; its model comes with it."""

    def __init__(self, candidates: tuple[str, ...]) -> None:
        """Load the model and restrict it.

        Raises:
            EvalError: If it does not know a language.
        """
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        check_known("py3langid", candidates, self._identifier.labels)
        self._identifier.set_languages(candidates)
        self.candidates = candidates
        self.version = f"py3langid-{version('py3langid')}"

    def identify(self, texts: Sequence[str]) -> list[str]:
        """The most probable candidate for each text; `NO_LANGUAGE` for a text without letters."""
        return [self._identifier.classify(text)[0] if has_letters(text) else NO_LANGUAGE for text in texts]
