"""Files that a pattern names: `{lang}` stands for the codes; `*`, `?` and `[…]` are as in a shell."""

from __future__ import annotations

import re
from glob import escape
from itertools import zip_longest
from pathlib import Path

from mnmt_data.errors import DataError, folder_holds
from mnmt_data.readers.byte_sources import File, check_is_file, path_of
from mnmt_data.readers.language_codes import best_tags, languages, serves
from mnmt_data.readers.text_pairs import TextPairs
from mnmt_data.store.remote import is_url, matches

LANG = "{lang}"
"""Placeholder of the language code in the name of a source that is two texts."""

_WILD = re.compile(r"(\*|\?|\[!?[^\]]+\])")

_SHELL = {"*": "([^/]*)", "?": "([^/])", "": ""}

Texts = dict[str, str]
"""{code in the name: path or URL} of a text in several languages."""


def files_named(source: str) -> list[Path]:
    """Return the files and folders of a source, sorted by name; its own path if it has no wildcards.

    Those at URLs, in which only `*` is a wildcard, are fetched.

    Raises:
        DataError: If it has, and nothing matches.
    """
    if is_url(source) and "*" in source:
        if not (urls := matches(source)):
            raise DataError(f"{source}: no file matches; see to its name.")
        return [path_of(url) for url in urls]
    path = path_of(source)
    if path.exists() or not _WILD.search(source):
        return [path]
    if not (paths := _matches(str(path))):
        raise DataError(f"{path}: no file matches; {folder_holds(path)}.")
    return paths


def texts_named(source: str, task: str) -> list[TextPairs]:
    """Return the pairs of texts of a pattern with `{lang}`, sorted by what its wildcards stand for.

    Their names may have any codes of the two languages. If wildcards match one file in each language, the two
    may differ there, as in `test-*.{lang}` for `test-src.de` and `test-ref.en`. Texts in other
    languages are left out.

    Raises:
        DataError: If a text is missing in one of the languages, or one file serves both.
    """
    if is_url(source) and "*" not in source:
        src, tgt = (File(path_of(source.replace(LANG, code))) for code in languages(task))
        return [TextPairs(task=task, src=src, tgt=tgt)]
    name = source if is_url(source) else str(path_of(source))
    texts = _texts(name, wild=False) or _texts(name, wild=True)
    single = [each for each in texts if len(each) == 1 and any(_has(each, code) for code in languages(task))]
    whole = [each for each in texts if _is_whole(each, task)]
    if not whole and len(single) == 2 and _is_whole(single[0] | single[1], task):
        whole, single = [single[0] | single[1]], []
    if single or not whole:
        raise _incomplete(name, task, single)
    return [_pair(each, task, name) for each in whole]


def _texts(name: str, *, wild: bool) -> list[Texts]:
    """Return the files of a pattern, those in which wildcards stand for the same together."""
    texts: dict[tuple[str, ...], Texts] = {}
    parts = _WILD.split(name) if wild else [name]  # every other one is a wildcard
    shell, pattern = "", ""
    for literal, wildcard in zip_longest(parts[::2], parts[1::2], fillvalue=""):
        shell += "*".join(map(escape, literal.split(LANG))) + wildcard
        pattern += re.escape(literal) + _SHELL.get(wildcard, f"({wildcard.replace('[!', '[^')})")
    first, *others = pattern.split(re.escape(LANG))
    whole = re.compile(r"(?P<lang>[\w-]+)".join((first, "(?P=lang)".join(others))))
    for path in matches(shell) if is_url(name) else map(str, _matches(shell)):
        if (match := whole.fullmatch(path)) and (is_url(path) or Path(path).is_file()):
            stands_for = list(match.groups())
            code = stands_for.pop(whole.groupindex["lang"] - 1)
            texts.setdefault(tuple(stands_for), {})[code] = path
    return [texts[wildcards] for wildcards in sorted(texts)]


def _matches(shell: str) -> list[Path]:
    """Return what matches a shell's pattern, sorted; no hidden files, unless it begins like them."""
    pattern = Path(shell)
    paths = Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
    return sorted(path for path in paths if pattern.name[0] == "." or path.name[0] != ".")


def _has(texts: Texts, code: str) -> bool:
    return any(serves(tag, code) for tag in texts)


def _is_whole(texts: Texts, task: str) -> bool:
    return all(_has(texts, code) for code in languages(task))


def _incomplete(name: str, task: str, single: list[Texts]) -> DataError:
    """Return the error about a pattern that lacks a text of the task."""
    for code in languages(task):
        if not _WILD.search(name) and not any(_has(each, code) for each in single):
            check_is_file(Path(name.replace(LANG, code)))
    alone = ", ".join(Path(path).name for each in single[:3] for path in each.values())
    held = f"these lack their other side: {alone}" if single else folder_holds(Path(name))
    return DataError(f"{name}: no two files match for {task}; {held}.")


def _pair(texts: Texts, task: str, name: str) -> TextPairs:
    if (sides := best_tags(tuple(sorted(texts)), task, name)) is None:
        raise DataError(f"{name}: one text serves both languages of {task}; give two.")
    src, tgt = (File(path_of(texts[side])) for side in sides)
    return TextPairs(task=task, src=src, tgt=tgt)
