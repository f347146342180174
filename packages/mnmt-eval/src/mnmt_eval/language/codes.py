"""Codes of languages."""

from __future__ import annotations

import re


def base_language(code: str) -> str:
    """The language of a code without script and region: `zh` of `zh_CN`, `pt` of `pt-BR`."""
    return re.split(r"[-_]", code)[0].lower()
