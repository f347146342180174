"""The options of mnmt-data fetch: languages, language pairs, and the name of the test set."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from mnmt_data.errors import DataError
from mnmt_data.fetch.languages import ENGLISH, find_languages, full_code, plain, task_codes

ALL = "all"

Pair = tuple[str, str]
"""Codes of a source and a target language."""


@dataclass(frozen=True, kw_only=True)
class LanguageSelection:
    """The languages and pairs to write, with a corpus' names of the languages."""

    names: dict[str, str]
    """{code: the corpus' name of the language}."""
    pairs: tuple[Pair, ...]
    open_ended: bool
    """Whether all languages were requested; then a language without text is no error."""

    def only(self, codes: Collection[str]) -> LanguageSelection:
        """Return the selection restricted to these languages, and to pairs between them."""
        return LanguageSelection(
            names={code: name for code, name in self.names.items() if code in codes},
            pairs=tuple(pair for pair in self.pairs if set(pair) <= set(codes)),
            open_ended=self.open_ended,
        )


@dataclass(frozen=True, kw_only=True)
class FetchConfig:
    """Options of `mnmt-data fetch`.

    Raises:
        DataError: If the languages or pairs contradict each other or `testset` cannot name a file.
    """

    langs: str = "en,de,fr,zh-CN"
    """Languages, separated by commas, or `all`. Several variants of one language keep their region in the
    names of tasks: `zh_CN` and `zh_TW`, but `zh` if there is one."""
    pairs: str | None = None
    """Language pairs such as `en-de,de-fr`, or `all`; by default English with every other language."""
    testset: str = "train"
    """Name of the text in the folder, such as `train` or `test`."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w-]*", self.testset):
            raise DataError(f"--testset must be letters, digits, '_' and '-', but is {self.testset!r}.")
        if self.langs != ALL:
            self._check_languages()
            self._select(task_codes(self._languages()))

    def select(self, available: Sequence[str], *, corpus: str) -> LanguageSelection:
        """Select from the available languages, and pair them.

        Raises:
            DataError: If a language is not available.
        """
        requested = self._languages() if self.langs != ALL else self._every(available)
        selected = find_languages(requested, available, corpus=corpus)
        return self._select(task_codes(selected))

    def check_languages(self) -> None:
        """Check the language codes before anything is fetched.

        Raises:
            DataError: If a code is not that of a language.
        """
        from mnmt_data.readers.language_codes import is_language

        for language in self._languages() if self.langs != ALL else ():
            if not is_language(plain(language).partition("-")[0]):
                raise DataError(f"--langs: {language!r} is no language; write codes such as de or pt_BR.")

    def _languages(self) -> list[str]:
        return [language.strip() for language in self.langs.split(",")]

    def _every(self, available: Sequence[str]) -> list[str]:
        """Return all languages, English first."""
        return sorted(available, key=lambda name: (plain(name) != ENGLISH, plain(name)))

    def _check_languages(self) -> None:
        from mnmt_data.readers import check_code

        names = [plain(language) for language in self._languages()]
        for name in names:
            check_code(name)
            if names.count(name) > 1:
                raise DataError(f"--langs names {name} twice; take one of them.")
        if len(names) < 2 or "" in names or (self.pairs is None and ENGLISH not in names):
            raise DataError(
                f"--langs must be 'en' and other languages, such as en,de,zh-CN, but is {self.langs!r}."
            )

    def _select(self, codes: dict[str, str]) -> LanguageSelection:
        names = {code: name for name, code in codes.items()}
        if self.pairs is None:
            pairs = [(ENGLISH, code) for code in names if code != ENGLISH]
        elif self.pairs == ALL:
            pairs = list(combinations(names, 2))
        else:
            pairs = _named_pairs(self.pairs, names)
        open_ended = self.langs == ALL and self.pairs in (None, ALL)
        return LanguageSelection(names=names, pairs=tuple(pairs), open_ended=open_ended)


@dataclass(frozen=True, kw_only=True)
class CataloguesConfig(FetchConfig):
    """Options of `mnmt-data fetch gettext`.

    Raises:
        DataError: If they contradict each other.
    """

    packages: str | None = None
    """Debian packages, separated by commas, whose catalogues to take; by default the list that ships with
    mnmt-data."""
    catalogues: Path | None = None
    """Folder with .po and .mo files to take instead of packages."""
    min_words: int = 3
    """Fewest words of an English string; shorter ones are labels with many translations each."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.packages is not None and self.catalogues is not None:
            raise DataError("--packages and --catalogues are two sources; give one of them.")
        if self.min_words < 1:
            raise DataError(f"--min-words must be at least 1, but is {self.min_words}.")


def _named_pairs(text: str, names: dict[str, str]) -> list[Pair]:
    """Parse pairs such as `en-de,de-pt_BR`; a language with a short code may be written with its region."""
    codes = {full_code(name): code for code, name in names.items()} | {code: code for code in names}
    pairs: list[Pair] = []
    for part in text.split(","):
        src, _, tgt = (side.strip() for side in part.partition("-"))
        if src not in codes or tgt not in codes or src == tgt:
            raise DataError(f"--pairs must be pairs such as en-de of {', '.join(names)}, but has {part!r}.")
        pair = codes[src], codes[tgt]
        if pair in pairs or pair[::-1] in pairs:
            raise DataError(f"--pairs has {part.strip()} twice; one serves both directions.")
        pairs.append(pair)
    return pairs
