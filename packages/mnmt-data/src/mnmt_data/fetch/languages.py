"""Corpora's names of languages, and their codes in the names of tasks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mnmt_data.errors import DataError

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

    It is the bare language, `zh` for `zh-CN`, unless another of `languages`, or English, has the same: then
    it keeps the region, `zh_CN` and `zh_TW`.

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
        DataError: If a language is missing; the message lists the available ones.
    """
    from mnmt_data.readers.language_codes import gettext_language

    names = {plain(name): name for name in available}
    keys = [plain(language) for language in requested]
    # `zh` may be available as zh_CN, and de_DE as `de`.
    keys = [key if key in names else plain(gettext_language(key)) for key in keys]
    for language, key in zip(requested, keys, strict=True):
        if key not in names:
            choice = ", ".join(sorted(map(full_code, names)))
            raise DataError(f"--langs: no {language!r} in {corpus}; there are {choice}.")
        if keys.count(key) > 1:
            raise DataError(f"--langs names {key} twice; take one of them.")
    return tuple(names[key] for key in keys)
