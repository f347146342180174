"""Language codes, language pairs and their directions."""

from __future__ import annotations

from collections.abc import Iterable

from mnmt_data.readers import base_language, canonical_task
from mnmt_eval.errors import EvalError


def languages_of(task: str) -> tuple[str, str]:
    """Return a task's source and target language: `en` and `zh_Hans` of `en-zh_Hans`, or of `en-zh-Hans`.

    Raises:
        EvalError: If `task` is not a language pair.
    """
    src, dash, tgt = canonical_task(task).partition("-")
    if not (src and dash and tgt) or "-" in tgt:
        raise EvalError(f"a language pair must be SRC-TGT, such as en-de, but is {task!r}.")
    return src, tgt


def group_directions(tasks: Iterable[str]) -> dict[str, list[str]]:
    """Return `{"En→XX": tasks out of English, "XX→En": into it, "XX→YY": others}`, without empty ones.

    Raises:
        EvalError: If a task is not a language pair.
    """
    directions: dict[str, list[str]] = {"En→XX": [], "XX→En": [], "XX→YY": []}
    for task in tasks:
        src, tgt = (base_language(code) == "en" for code in languages_of(task))
        directions["XX→YY" if src == tgt else "En→XX" if src else "XX→En"].append(task)
    return {name: members for name, members in directions.items() if members}


def has_letters(text: str) -> bool:
    """Return whether a text contains letters, without which it is in no language."""
    return any(map(str.isalpha, text))
