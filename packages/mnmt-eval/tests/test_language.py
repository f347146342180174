from __future__ import annotations

from pathlib import Path

import pytest

from mnmt_data.errors import DataError
from mnmt_eval.errors import EvalError
from mnmt_eval.language import group_directions, languages_of
from mnmt_eval.metrics.config import MetricConfig
from mnmt_eval.metrics.registry import MetricSet
from mnmt_eval.runs.texts import TextFiles


@pytest.mark.parametrize(
    ("task", "languages"),
    [("en-de", ("en", "de")), ("en-zh-Hans", ("en", "zh_Hans")), ("zh-CN-en", ("zh_CN", "en"))],
)
def test_languages_of_a_task(task: str, languages: tuple[str, str]) -> None:
    assert languages_of(task) == languages


@pytest.mark.parametrize("task", ["en", "en_zh", "en-", "-de", "en-de-fr", "en-zh-cn"])
def test_other_names_are_no_pairs(task: str) -> None:
    with pytest.raises(EvalError, match="a language pair must be SRC-TGT"):
        languages_of(task)


@pytest.mark.parametrize("code", ["cn", "CN", "jp", "english"])
def test_a_country_or_a_name_is_no_language(tmp_path: Path, code: str) -> None:
    (tmp_path / "ref").write_text("one\n")
    files = TextFiles(task=f"en-{code}", references=(tmp_path / "ref",))
    scores = MetricSet(names=("bleu",))
    for refused in (
        lambda: files.read("test"),
        lambda: scores.make(task=f"en-{code}", tasks=()),
    ):
        with pytest.raises(DataError, match=rf"^'{code}' is no language code: \w+ is \w\w\.$"):
            refused()
    chosen = MetricSet(names=("bleu", "chrf"), config=MetricConfig(tokenizer="zh"))
    assert len(chosen.make(task=f"en-{code}", tasks=())) == 2


def test_directions_are_told_apart_by_english() -> None:
    tasks = ["en-de", "de-en", "fr-en_GB", "eng_Latn-fra_Latn", "de-fr"]
    assert group_directions(tasks) == {
        "En→XX": ["en-de", "eng_Latn-fra_Latn"],
        "XX→En": ["de-en", "fr-en_GB"],
        "XX→YY": ["de-fr"],
    }
    assert group_directions(["xx-aa", "xx-bb"]) == {"XX→YY": ["xx-aa", "xx-bb"]}
