"""Language codes as corpora write them: `de`, `deu`, `de-AT`, `deu_DE` and `deu_Latn` are all German."""

from __future__ import annotations

import re
from functools import lru_cache

from langcodes import Language

from mnmt_data.errors import DataError

_SUBTAGS = r"(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}|[0-9]{3}))*"
_CODE = rf"[a-z]{{2,3}}{_SUBTAGS}"
_HYPHENATED = re.compile(rf"({_CODE})-({_CODE})")
"""Two codes of language, script and region, such as `zh-Hans` and `es-419`, joined by a hyphen."""
ANY_CASE = rf"[A-Za-z]{{2,3}}{_SUBTAGS}"
"""Pattern of a code in the name of a file."""
_PAIR_IN_NAME = re.compile(rf"(?<![A-Za-z0-9])(?=({ANY_CASE})-({ANY_CASE})(?![A-Za-z0-9]))")

_PARTS = {"nb": "no", "nn": "no", "pbt": "ps", "quy": "qu", "fuv": "ff"}
"""{individual language: macrolanguage} of which CLDR has no form, or FLORES another one than CLDR."""

_NAMES = """
albanian sq arabic ar belarusian be bengali bn bulgarian bg chinese zh croatian hr czech cs danish da dutch nl
english en estonian et farsi fa persian fa finnish fi french fr georgian ka german de greek el hebrew he hindi
hi hungarian hu indonesian id italian it japanese ja korean ko latvian lv lithuanian lt norwegian no polish pl
portuguese pt romanian ro russian ru serbian sr slovak sk slovenian sl spanish es swahili sw swedish sv thai
th turkish tr ukrainian uk urdu ur vietnamese vi
"""
LANGUAGE_NAMES: dict[str, str] = dict(re.findall(r"(\w+)\s(\w+)", _NAMES))
"""{English name: code} of languages that have much text."""

_MISTAKEN = {"kr": "ko", "sp": "es", "jap": "ja", "hk": "zh", "chs": "zh_Hans", "cht": "zh_Hant", "gb": "en"}
"""{mistake: code} beside names of languages, and countries that are no codes."""


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

    The languages must agree, in ISO 639-1 or 639-3, and so must script and region if `code` has them: `en_GB`
    and `eng` serve `en`, but `en` does not serve `en_GB`. A tag without a script has that of its region or
    language: `zh_CN` and `zh` serve `zh_Hans`. An individual language serves its macrolanguage if
    it is the one that CLDR, or else FLORES, writes for it: `arb` serves `ar`, but `arz` and `yue` serve only
    themselves.
    """
    return _rank(tag, code) is not None


@lru_cache(maxsize=4096)
def best_tags(tags: tuple[str, ...], task: str, where: str = "") -> tuple[str, str] | None:
    """Return the tags that serve source and target of a task best; None if a side has none, or both the same.

    Best is the code itself, then the language without a region, then with one, then a part of it: `pes_Arab`
    serves `fa` before `prs_Arab`, the Persian of Afghanistan. The script that the language has by default
    comes before others, but for Chinese, where both are in wide use.

    Args:
        tags: The tags that there are.
        task: The language pair.
        where: File or folder, for the message; without it, the first tag of several equal ones is taken.

    Raises:
        DataError: If several tags serve a side equally well, such as `zho_Hans` and `zho_Hant` for `zh`.
    """
    codes = languages(task)
    src, tgt = best = [_best(tags, code) for code in codes]
    for place, several in enumerate(best):
        if len(several) > 1 and where:
            named = "-".join(
                several[0].replace("-", "_") if n == place else code for n, code in enumerate(codes)
            )
            what = f"{codes[place]} may be {' or '.join(several)}; write in the task which"
            raise DataError(f"{where}: {what}, such as {named}.")
    if not src or not tgt or src == tgt:
        return None
    return src[0], tgt[0]


def _best(tags: tuple[str, ...], code: str) -> list[str]:
    """Return the tags that serve a code best, several if they serve it equally well."""
    ranks = {tag: rank for tag in tags if (rank := _rank(tag, code)) is not None}
    return [tag for tag, rank in ranks.items() if rank == min(ranks.values())]


@lru_cache(maxsize=4096)
def _rank(tag: str, code: str) -> tuple[int, bool] | None:
    """Return how well a tag serves a code, the least the best; None if it does not."""
    if tag.lower().replace("-", "_") == code.lower().replace("-", "_"):
        return 0, False
    parsed, requested = _parse_tag(tag), _parse_tag(code)
    if parsed is None or requested is None or parsed.language is None:
        return None
    script = parsed.script or parsed.maximize().script
    if requested.script not in (None, script) or requested.territory not in (None, parsed.territory):
        return None
    if requested.script is not None:
        is_other = parsed.script is None
    else:
        is_other = requested.language != "zh" and script != requested.maximize().script
    if parsed.language == requested.language:
        return (1 if parsed.territory == requested.territory else 2), is_other
    return (3, is_other) if _PARTS.get(parsed.language) == requested.language else None


def is_reversed(name: str, task: str) -> bool:
    """Return whether a file's name gives the opposite direction: `x.de-en.tsv` for the task `en-de`."""
    return not _names(name, task) and _names(name, opposite(task))


@lru_cache(maxsize=4096)
def origin_code(origin: str | None, task: str) -> str:
    """Return the code of the task that an origin tag means; the tag itself if neither, `""` without a tag."""
    return next((code for code in languages(task) if origin and serves(origin, code)), origin or "")


def _names(name: str, task: str) -> bool:
    src, tgt = languages(task)
    pairs = (match.groups() for match in _PAIR_IN_NAME.finditer(name))
    return any(serves(first, src) and serves(second, tgt) for first, second in pairs)


@lru_cache(maxsize=4096)
def _parse_tag(tag: str) -> Language | None:
    """Return a tag parsed, with the macrolanguage for the language that CLDR writes so: `ar` for `arb`."""
    try:
        return Language.get(tag).prefer_macrolanguage()
    except ValueError:
        return None


def base_language(code: str) -> str:
    """Return the shortest code of a language without script and region: `zh` of `zho_Hans`, `ja` of `jpn`."""
    parsed = _parse_tag(code)
    if parsed is None or parsed.language is None:
        return re.split("[-_@]", code)[0].lower()
    return parsed.language


def is_language(code: str) -> bool:
    """Return whether a code is that of a language, or is reserved for private use."""
    parsed = _parse_tag(code)
    return parsed is not None and parsed.language is not None and parsed.is_valid()


def is_code(text: str) -> bool:
    """Return whether a text is the code of a language: `de`, `deu_Latn` or `de-AT`, but not `Die`."""
    return re.fullmatch(_CODE, text) is not None and is_language(text)


def check_code(code: str) -> None:
    """Refuse a country and the name of a language in place of a code.

    Codes that no language has may be those of made-up or private ones, and pass.

    Raises:
        DataError: If the code is none, and the right one is known: `zh` for `cn`, `en` for `english`.
    """
    base = re.split("[-_]", code.lower())[0]
    meant = LANGUAGE_NAMES.get(base) or _MISTAKEN.get(base) or _language_of_country(base)
    if meant is not None:
        names = {short: name.title() for name, short in LANGUAGE_NAMES.items()}
        name = names.get(meant.partition("_")[0], "the language of that country")
        other = "; Kanuri is kau" if base == "kr" else ""
        raise DataError(f"{code!r} is no language code: {name} is {meant}{other}.")


@lru_cache(maxsize=4096)
def _language_of_country(code: str) -> str | None:
    """Return the language whose home is a country: `zh` for `cn`; None for the code of a language."""
    if is_language(code) or len(code) != 2 or code[0] == code[1]:  # doubled letters name made-up languages
        return None
    country = _parse_tag(f"und-{code.upper()}")
    language = country.maximize().language if country else None
    home = Language.make(language=language).maximize().territory
    return language if home == code.upper() else None


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
