"""Codes of languages, and tasks, which are pairs of them."""

from __future__ import annotations

import re

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
