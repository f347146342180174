"""Language codes as corpora write them: `de`, `deu`, `de-AT`, `deu_DE` and `deu_Latn` are all German."""

from __future__ import annotations

import re
from functools import lru_cache

from langcodes import Language

_CODE = r"[a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}|[0-9]{3}))*"
_HYPHENATED = re.compile(rf"({_CODE})-({_CODE})")
"""Two codes of language, script and region, such as `zh-Hans` and `es-419`, joined by a hyphen."""


def languages(task: str) -> tuple[str, str]:
    """Return the source and the target code of a task `SRC-TGT`.

    Raises:
        ValueError: If the task is not two codes and a hyphen.
    """
    src, _, tgt = task.partition("-")
    if not src or not tgt or "-" in tgt:
        raise ValueError(f"`task` must be SRC-TGT, such as en-de, but is {task!r}.")
    return src, tgt


def canonical_task(task: str) -> str:
    """Return a task with `_` within its codes: `en-zh_Hans` for `en-zh-Hans`; other names are unchanged."""
    match = _HYPHENATED.fullmatch(task)
    return "-".join(code.replace("-", "_") for code in match.groups()) if match else task


def task_spellings(task: str) -> tuple[str, ...]:
    """Return the task itself, and for `en-zh_Hans` also `en-zh-Hans`."""
    hyphenated = task.replace("_", "-")
    return (task, hyphenated) if hyphenated != task == canonical_task(hyphenated) else (task,)


def opposite(task: str) -> str:
    """Return the task in the other direction."""
    src, tgt = languages(task)
    return f"{tgt}-{src}"


@lru_cache(maxsize=4096)
def serves(tag: str, code: str) -> bool:
    """Return whether text tagged `tag` can be used as text in `code`.

    The languages must agree, in ISO 639-1 or 639-3; so must script and region if `code` has them: `en_GB` and
    `eng` serve `en`, but `en` does not serve `en_GB`.
    """
    if tag.lower() == code.lower():
        return True
    parsed, requested = _parse_tag(tag), _parse_tag(code)
    if parsed is None or requested is None:
        return False
    same = parsed.language == requested.language and parsed.language is not None
    return (
        same and requested.script in (None, parsed.script) and requested.territory in (None, parsed.territory)
    )


@lru_cache(maxsize=4096)
def best_tag(tags: tuple[str, ...], code: str) -> str | None:
    """Return the tag that serves `code` best: the code itself, else the first that serves, else None."""
    serving = [tag for tag in tags if serves(tag, code)]
    return next((tag for tag in serving if tag.lower() == code.lower()), serving[0] if serving else None)


def spellings(code: str) -> tuple[str, ...]:
    """Return the code itself, with a hyphen for `_`, and its ISO 639-1 and 639-3 forms if it has them."""
    parsed, written = _parse_tag(code), (code, code.replace("_", "-"))
    if parsed is None or parsed.language is None:
        return tuple(dict.fromkeys(written))
    try:
        return tuple(dict.fromkeys((*written, parsed.language, parsed.to_alpha3())))
    except LookupError:
        return tuple(dict.fromkeys(written))


def is_reversed(name: str, task: str) -> bool:
    """Return whether a file's name gives the opposite direction: `x.de-en.tsv` for the task `en-de`."""
    return not _names(name, task) and _names(name, opposite(task))


@lru_cache(maxsize=4096)
def origin_code(origin: str | None, task: str) -> str:
    """Return the code of the task that an origin tag means; the tag itself if neither, `""` without a tag."""
    return next((code for code in languages(task) if origin and serves(origin, code)), origin or "")


def _names(name: str, task: str) -> bool:
    src, tgt = ("|".join(map(re.escape, spellings(code))) for code in languages(task))
    return re.search(rf"(?<![a-z0-9])({src})-({tgt})(?![a-z0-9])", name, re.IGNORECASE) is not None


@lru_cache(maxsize=4096)
def _parse_tag(tag: str) -> Language | None:
    try:
        return Language.get(tag)
    except ValueError:
        return None


def is_language(code: str) -> bool:
    """Return whether a code is that of a language, or is reserved for private use."""
    parsed = _parse_tag(code)
    return parsed is not None and parsed.language is not None and parsed.is_valid()


@lru_cache(maxsize=4096)
def gettext_language(locale: str) -> str:
    """Return the shortest code of the language of a gettext locale.

    `de_DE.UTF-8` is `de`, and so is `de`; `pt_BR` and `zh_TW` stay, as `pt` is the language of Portugal, and
    `zh_Hant` is `zh_TW`. A variant stays: `sr@latin`.
    """
    name, at, variant = locale.partition("@")
    name = name.partition(".")[0].replace("-", "_")
    parsed = _parse_tag(name)
    if parsed is None or parsed.language is None:
        return locale
    if parsed.language == "zh":
        return f"zh_{parsed.maximize().territory}"
    home = "PT" if parsed.language == "pt" else Language.get(parsed.language).maximize().territory
    region = parsed.territory if parsed.territory != home else None
    return "_".join(filter(None, (parsed.language, parsed.script, region))) + at + variant
