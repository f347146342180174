from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.errors import EvalError
from mnmt_eval.rerank import read_candidates
from mnmt_eval.rerank.candidates import Candidates
from mnmt_eval.translate.lines import SourceLine
from mnmt_eval.translate.translation import FORMATS, ScoredTranslation, Translation

TEXTS = st.text(st.characters(exclude_characters="\n\r\t", exclude_categories=("Cs",)), max_size=8)
N_BEST = st.lists(
    st.builds(ScoredTranslation, text=TEXTS, score=st.floats(-9, 0), log_prob=st.just(-1.0)),
    min_size=1,
    max_size=4,
)


def read(path: Path, content: str) -> list[Candidates]:
    path.write_text(content, encoding="utf-8", newline="\n")
    return read_candidates(path)


@given(translations=st.lists(N_BEST.map(tuple), min_size=1, max_size=4))
def test_what_translate_writes_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, translations: list[tuple[ScoredTranslation, ...]]
) -> None:
    path = tmp_path_factory.mktemp("candidates") / "n-best"
    lines = [SourceLine(text="", target="de", number=n) for n in range(1, len(translations) + 1)]
    pairs = [(line, Translation(n_best=each)) for line, each in zip(lines, translations, strict=True)]
    expected = [tuple(candidate.text for candidate in each) for each in translations]
    for form in ("table", "json"):
        content = "".join(FORMATS[form](line, each) for line, each in pairs)  # type: ignore[index]
        assert read(path, content) == expected


@pytest.mark.parametrize(
    ("content", "column"),
    [
        ("1\ta\t-1\n1\tb\t-2\n2\tc\t-1\n", "2"),
        ("score\tmt\tline\n-1\ta\t1\n-2\tb\t1\n-1\tc\t2\n", "mt"),
        ('{"line": 1, "mt": "a"}\n{"line": 1, "mt": "b"}\n{"line": 2, "mt": "c"}\n', "mt"),
    ],
)
def test_candidates_may_be_in_another_column(tmp_path: Path, content: str, column: str) -> None:
    (tmp_path / "file").write_text(content, encoding="utf-8")
    assert read_candidates(tmp_path / "file", column) == [("a", "b"), ("c",)]


def test_a_json_object_may_be_one_candidate(tmp_path: Path) -> None:
    content = "".join(
        f'{{"line": {line}, "text": "{text}"}}\n' for line, text in [(0, "a"), (0, "b"), (1, "c")]
    )
    assert read(tmp_path / "file", content) == [("a", "b"), ("c",)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("1\t-1\ta\n3\t-1\tb\n", "file:2: must be of source line 1 or 2, but is of 3"),
        ("1\t-1\ta\n2\t-1\tb\n1\t-1\tc\n", "file:3: must be of source line 2 or 3, but is of 1"),
        ("7\t-1\ta\n", "file:1: must be of source line 0 or 1, but is of 7"),
        ("1\ta\n", "file:1: must have line number, score and text, but has 2 columns"),
        ("1\t-1\ta\nx\t-1\tb\n", "file:2: must have the number of its source line, but has 'x'"),
        ('{"line": 1, "text": "a"}\n5\n', "file:2: must be a JSON object, but is 5"),
        ('{"line": 1, "n_best": []}\n', "file:1: must be a JSON object with `line` and `text`"),
        ('{"line": 1}\n', "file:1: must be a JSON object with `line` and `text`"),
    ],
)
def test_what_is_no_list_of_candidates_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(EvalError, match=message):
        read(tmp_path / "file", content)
