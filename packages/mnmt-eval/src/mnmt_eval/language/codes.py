"""Codes of languages, and pairs of them."""

from __future__ import annotations

import re

from mnmt_eval.errors import EvalError


def base_language(code: str) -> str:
    """The language of a code without script and region: `zh` of `zh_CN`, `pt` of `pt-BR`."""
    return re.split(r"[-_]", code)[0].lower()


def languages_of(pair: str) -> tuple[str, str]:
    """Source and target language: `en` and `de` of `en-de`.

    Raises:
        EvalError: If it is no language pair.
    """
    src, dash, tgt = pair.partition("-")
    if not (src and dash and tgt) or "-" in tgt:
        raise EvalError(f"a language pair must be SRC-TGT, such as en-de, but is {pair!r}.")
    return src, tgt
