"""Languages: their codes, and programs that identify the language of a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol

from mnmt_eval.errors import EvalError


def base_language(code: str) -> str:
    """Return a language code without script and region: `zh` of `zh_CN`, `pt` of `pt-BR`."""
    return re.split(r"[-_]", code)[0].lower()


def languages_of(task: str) -> tuple[str, str]:
    """Return a task's source and target language: `en` and `de` of `en-de`.

    Raises:
        EvalError: If `task` is not a language pair.
    """
    src, dash, tgt = task.partition("-")
    if not (src and dash and tgt) or "-" in tgt:
        raise EvalError(f"a language pair must be SRC-TGT, such as en-de, but is {task!r}.")
    return src, tgt


_ENGLISH = ("en", "eng")


def group_directions(tasks: Iterable[str]) -> dict[str, list[str]]:
    """Return `{"En→XX": tasks out of English, "XX→En": tasks into it, "XX→YY": others}`, those with tasks.

    Raises:
        EvalError: If a task is not a language pair.
    """
    directions: dict[str, list[str]] = {"En→XX": [], "XX→En": [], "XX→YY": []}
    for task in tasks:
        src, tgt = (base_language(code) in _ENGLISH for code in languages_of(task))
        directions["XX→YY" if src == tgt else "En→XX" if src else "XX→En"].append(task)
    return {name: members for name, members in directions.items() if members}


NO_LANGUAGE = ""
"""The language of a text without letters."""

_LINGUA_CODES = {"no": "nb"}
"""Codes that lingua writes differently."""


class Identifier(Protocol):
    """A program that identifies languages."""

    @property
    def version(self) -> str:
        """The program's name and version, such as `py3langid-0.4.0`."""

    @property
    def candidates(self) -> tuple[str, ...]:
        """The languages that the program chooses among, in order."""

    def identify(self, texts: Sequence[str]) -> list[str]:
        """Return the most probable candidate for each text; `NO_LANGUAGE` for a text without letters."""


class Py3langidIdentifier:
    """py3langid (Lui and Baldwin 2012): naive Bayes over byte n-grams. Its model is part of the package."""

    def __init__(self, candidates: tuple[str, ...]) -> None:
        """Load the model and restrict it to the candidates.

        Raises:
            EvalError: If it does not know a candidate.
        """
        from importlib.metadata import version

        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        _check_known("py3langid", candidates, self._identifier.labels)
        self._identifier.set_languages(candidates)
        self.candidates = candidates
        self.version = f"py3langid-{version('py3langid')}"

    def identify(self, texts: Sequence[str]) -> list[str]:
        """Return the most probable candidate for each text; `NO_LANGUAGE` for a text without letters."""
        return [self._identifier.classify(text)[0] if has_letters(text) else NO_LANGUAGE for text in texts]


class LinguaIdentifier:
    """lingua: n-gram models with rules for alphabets. Its models are part of the package."""

    def __init__(self, candidates: tuple[str, ...]) -> None:
        """Load the models of the candidates.

        Raises:
            EvalError: If it does not know a candidate.
        """
        from importlib.metadata import version

        from lingua import Language, LanguageDetectorBuilder

        by_code = {language.iso_code_639_1.name.lower(): language for language in Language.all()}
        by_code |= {code: by_code[lingua_code] for code, lingua_code in _LINGUA_CODES.items()}
        _check_known("lingua", candidates, list(by_code))
        self._codes = {by_code[code]: code for code in candidates}
        self._detector = LanguageDetectorBuilder.from_languages(*self._codes).build()
        self.candidates = candidates
        self.version = f"lingua-{version('lingua-language-detector')}"

    def identify(self, texts: Sequence[str]) -> list[str]:
        """Return the most probable candidate for each text; `NO_LANGUAGE` without letters, or for a tie."""
        return [self._identify(text) if has_letters(text) else NO_LANGUAGE for text in texts]

    def _identify(self, text: str) -> str:
        language = self._detector.detect_language_of(text)
        return NO_LANGUAGE if language is None else self._codes[language]


_CLASSES: dict[str, type[Py3langidIdentifier | LinguaIdentifier]] = {
    "py3langid": Py3langidIdentifier,
    "lingua": LinguaIdentifier,
}

IDENTIFIERS = tuple(_CLASSES)
"""The programs' names; the second is for cross-checks."""


def load_identifier(name: str, candidates: Sequence[str]) -> Identifier:
    """Load a program and restrict it to some languages.

    Args:
        name: One of `IDENTIFIERS`.
        candidates: Codes of languages, as `de` or `zh_CN`, at least two different ones.

    Raises:
        EvalError: If `name` is unknown, the program does not know a language, or the extra is not installed.
    """
    if name not in IDENTIFIERS:
        raise EvalError(f"`identifier` must be one of {', '.join(IDENTIFIERS)}, but is {name!r}.")
    languages = tuple(sorted({base_language(code) for code in candidates}))
    if len(languages) < 2:
        listed = ", ".join(languages) or "none"
        raise EvalError(
            "language: must have at least 2 `candidates`, all the languages that outputs may be in, such as "
            f"de,en,fr, but has {listed}."
        )
    try:
        return _load(name, languages)
    except ImportError:
        raise EvalError(
            f"language: {name} is missing; `pip install './packages/mnmt-eval[language]'` installs it."
        ) from None


def has_letters(text: str) -> bool:
    """Return whether a text contains letters, without which it is in no language."""
    return any(map(str.isalpha, text))


# All directions of a study have the same candidates, and loading takes a second.
@lru_cache(maxsize=4)
def _load(name: str, languages: tuple[str, ...]) -> Identifier:
    return _CLASSES[name](languages)


def _check_known(name: str, candidates: Sequence[str], known: Sequence[str]) -> None:
    """Refuse candidates that a program does not know."""
    unknown = [code for code in candidates if code not in known]
    if unknown:
        raise EvalError(f"language: {name} knows {len(known)} languages, but not {', '.join(unknown)}.")
