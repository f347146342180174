"""The options of mnmt-data fetch: languages, pairs of them, and the name of the test set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_data.errors import DataError

ALL = "all"

Pair = tuple[str, str]
"""Codes of a source and a target language."""


@dataclass(frozen=True, kw_only=True)
class LanguageSelection:
    """The languages and pairs to write, as a corpus has them."""

    names: dict[str, str]
    """{code: the corpus' name of the language}."""
    pairs: tuple[Pair, ...]
    open_ended: bool
    """Whether all languages were requested, so that one without text is no mistake."""

    def only(self, codes: Collection[str]) -> LanguageSelection:
        """Return the selection of only these languages, and of the pairs between them."""
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
    """Languages, separated by commas, or `all`; variants of one language side by side keep their region in
    the names of tasks: `zh` alone, but `zh_CN` and `zh_TW`."""
    pairs: str | None = None
    """Pairs of them such as `en-de,de-fr`, or `all`; by default English with every other language."""
    multiway: Annotated[bool, Parameter(negative="")] = False
    """Only what is translated into all languages; row i is then the same in every pair."""
    testset: str = "train"
    """Name of the text in the folder, such as `train` or `test`."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w-]*", self.testset):
            raise DataError(f"--testset must be letters, digits, '_' and '-', but is {self.testset!r}.")
        if self.langs != ALL:
            self._check_languages()
            self._select(task_codes(self._languages()))

    def select(self, available: Sequence[str], *, corpus: str) -> LanguageSelection:
        """Select from the languages that are available, and pair them.

        Raises:
            DataError: If a language is not available.
        """
        requested = self._languages() if self.langs != ALL else self._every(available)
        selected = find_languages(requested, available, corpus=corpus)
        return self._select(task_codes(selected))

    def check_languages(self) -> None:
        """Check that the languages are some, where only what is fetched tells which of them are there.

        Raises:
            DataError: If one is none that is known.
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
        names = [plain(language) for language in self._languages()]
        for name in names:
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
    """Debian packages, separated by commas, whose catalogues to take; by default a list that ships with
    mnmt-data."""
    catalogues: Path | None = None
    """Folder with .po and .mo files to take instead of packages."""
    keep_markup: Annotated[bool, Parameter(negative="")] = False
    """Whether tags, entities and the marks of keyboard accelerators stay."""
    keep_placeholders: Annotated[bool, Parameter(negative="")] = False
    """Whether placeholders stay as they are, `%s` and `%2$d`; otherwise they are `{1}` and `{2}`."""
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


ENGLISH = "en"


def plain(language: str) -> str:
    """Return a comparable name: `zh-cn` for `zh_CN`, `sr-latin` for `sr@latin`, `en` for `en-US`."""
    name = re.sub("[_@]", "-", language.strip().lower())
    return ENGLISH if name == "en-us" else name


def full_code(language: str) -> str:
    """Return the code of a language with its region or variant: `pt_BR`, `zh_TW`, `sr_latin`, `de`."""
    base, *variants = plain(language).split("-")
    return "_".join([base, *(part.upper() if len(part) == 2 else part for part in variants)])


def task_codes(languages: Sequence[str]) -> dict[str, str]:
    """Return the code of each language in the names of tasks.

    It is the language alone, `zh` for `zh-CN`, unless others of `languages` or English would share it: then
    it keeps the region, `zh_CN` beside `zh_TW`.

    Returns:
        {language: code}, the codes all different if the languages are.
    """
    bases = {language: plain(language).split("-")[0] for language in languages}
    shared = Counter(bases.values())
    if ENGLISH not in map(plain, languages):
        shared[ENGLISH] += 1
    return {name: base if shared[base] == 1 else full_code(name) for name, base in bases.items()}


def find_languages(requested: Sequence[str], available: Sequence[str], *, corpus: str) -> tuple[str, ...]:
    """Return the languages of `available` that `requested` names, in the order of `requested`.

    Raises:
        DataError: Naming a language that is not there, and those that are.
    """
    from mnmt_data.readers.language_codes import gettext_language

    names = {plain(name): name for name in available}
    keys = [plain(language) for language in requested]
    # `zh` is there as zh_CN, and de_DE as `de`.
    keys = [key if key in names else plain(gettext_language(key)) for key in keys]
    for language, key in zip(requested, keys, strict=True):
        if key not in names:
            choice = ", ".join(sorted(map(full_code, names)))
            raise DataError(f"--langs: no {language!r} in {corpus}; there are {choice}.")
        if keys.count(key) > 1:
            raise DataError(f"--langs names {key} twice; take one of them.")
    return tuple(names[key] for key in keys)
