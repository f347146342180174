from __future__ import annotations

import pytest

from mnmt_eval.language import base_language, group_directions


@pytest.mark.parametrize(
    ("code", "language"), [("zh_CN", "zh"), ("pt-BR", "pt"), ("DE", "de"), ("zho_Hans", "zho"), ("en", "en")]
)
def test_the_base_language(code: str, language: str) -> None:
    assert base_language(code) == language


def test_directions_are_told_apart_by_english() -> None:
    tasks = ["en-de", "de-en", "fr-en_GB", "eng_Latn-fra_Latn", "de-fr"]
    assert group_directions(tasks) == {
        "En→XX": ["en-de", "eng_Latn-fra_Latn"],
        "XX→En": ["de-en", "fr-en_GB"],
        "XX→YY": ["de-fr"],
    }
    assert group_directions(["xx-aa", "xx-bb"]) == {"XX→YY": ["xx-aa", "xx-bb"]}
