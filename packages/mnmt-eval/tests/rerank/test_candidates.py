from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_eval.errors import EvalError
from mnmt_eval.rerank import Candidates, read_candidates
from mnmt_eval.translate.lines import SourceLine
from mnmt_eval.translate.translation import FORMATS, ScoredTranslation, Translation

TEXTS = st.text(st.characters(exclude_characters="\n\r\t", exclude_categories=("Cs",)), max_size=8)
N_BEST = st.lists(
    st.builds(ScoredTranslation, text=TEXTS, score=st.floats(-9, 0), log_prob=st.just(-1.0)),
    min_size=1,
    max_size=4,
)


def read(path: Path, content: str, score: str | None = None) -> list[Candidates]:
    path.write_text(content, encoding="utf-8", newline="\n")
    return read_candidates(path, score_column=score)


@given(translations=st.lists(N_BEST.map(tuple), min_size=1, max_size=4))
def test_what_translate_writes_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, translations: list[tuple[ScoredTranslation, ...]]
) -> None:
    path = tmp_path_factory.mktemp("candidates") / "n-best"
    lines = [SourceLine(text="", target="de", number=n) for n in range(1, len(translations) + 1)]
    pairs = [(line, Translation(n_best=each)) for line, each in zip(lines, translations, strict=True)]
    expected = [tuple(candidate.text for candidate in each) for each in translations]
    for form, score in (("table", "2"), ("json", "score")):
        content = "".join(FORMATS[form](line, each) for line, each in pairs)  # type: ignore[index]
        sources = read(path, content, score=score)
        assert [source.texts for source in sources] == expected
        assert [source.scores for source in sources] == [
            pytest.approx(tuple(candidate.score for candidate in each), abs=1e-6) for each in translations
        ]
        assert [source.scores for source in read(path, content)] == [()] * len(translations)


@pytest.mark.parametrize(
    ("content", "score"),
    [
        ("line\ttext\tkiwi\n0\ta\t.5\n0\tb\t.7\n1\tc\t.1\n", "kiwi"),
        ("1\t.5\ta\n1\t.7\tb\n2\t.1\tc\n", "2"),
        (
            '{"line": 1, "text": "a", "kiwi": 0.5}\n{"line": 1, "text": "b", "kiwi": 0.7}\n'
            '{"line": 2, "text": "c", "kiwi": 0.1}\n',
            "kiwi",
        ),
    ],
)
def test_anybodys_tables_and_json_lines(tmp_path: Path, content: str, score: str) -> None:
    assert read(tmp_path / "file", content, score) == [
        Candidates(texts=("a", "b"), scores=(0.5, 0.7)),
        Candidates(texts=("c",), scores=(0.1,)),
    ]


@pytest.mark.parametrize(
    ("content", "score", "message"),
    [
        ("", None, "is empty"),
        ("1\t-1\ta\n3\t-1\tb\n", None, "file:2: must be of source line 1 or 2, but is of 3"),
        ("1\t-1\ta\n2\t-1\tb\n1\t-1\tc\n", None, "file:3: must be of source line 2 or 3, but is of 1"),
        ("7\t-1\ta\n", None, "file:1: must be of source line 0 or 1, but is of 7"),
        ("1\ta\n", None, "must have one column 3, but its columns are 1, 2"),
        ("line\tb\n1\ta\n", None, "must have one column text, but its columns are line, b"),
        ("1\t-1\ta\n1\tb\n", None, r"file:2: must have as many columns as the first line \(3\), but has 2"),
        ("1\t-1\ta\nx\t-1\tb\n", None, "file:2: must have the number of its source line, but has 'x'"),
        ("1\tnan\ta\n", "2", "file:1: must have a finite number as its score, but has 'nan'"),
        ('{"line": 1, "text": "a"}\n5\n', None, "file:2: must be a JSON object"),
        ('{"line": 1, "n_best": []}\n', None, "file:1: 'n_best' must be a list of at least one object"),
        ('{"line": 1}\n', None, "file:1: has no key 'text'; it has line"),
        ('{"line": 1, "text": 2}\n', None, "file:1: 'text' must be text, but is 2"),
    ],
)
def test_what_is_no_list_of_candidates_is_refused(
    tmp_path: Path, content: str, score: str | None, message: str
) -> None:
    with pytest.raises(EvalError, match=message):
        read(tmp_path / "file", content, score)
