"""Names of languages: as users, packages and tasks write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mnmt_data.errors import DataError

ENGLISH = "en"


def plain(language: str) -> str:
    """A language as it compares: `zh-cn` for `zh_CN`, `sr-latin` for `sr@latin`, and `en` for `en-US`."""
    name = re.sub("[_@]", "-", language.strip().lower())
    return ENGLISH if name == "en-us" else name


def full_code(language: str) -> str:
    """The code of a language with its region or variant: `pt_BR`, `zh_TW`, `sr_latin`, `de`."""
    base, *variants = plain(language).split("-")
    return "_".join([base, *(part.upper() if len(part) == 2 else part for part in variants)])


def task_codes(languages: Sequence[str]) -> dict[str, str]:
    """The code that names each language in a task.

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


def find(wanted: Sequence[str], available: Sequence[str], *, corpus: str) -> tuple[str, ...]:
    """The languages of `available` that `wanted` names, in the order of `wanted`.

    Raises:
        DataError: Naming a language that is not there, and those that are.
    """
    names = {plain(name): name for name in available}
    for language in wanted:
        if plain(language) not in names:
            choice = ", ".join(sorted(map(full_code, names)))
            raise DataError(f"--langs: no {language!r} in {corpus}; there are {choice}.")
    return tuple(names[plain(language)] for language in wanted)
