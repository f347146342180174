from __future__ import annotations

import json

import pytest

from mnmt_eval.translate import ScoredTranslation, SourceLine, Translation
from mnmt_eval.translate.boundaries import Joint
from mnmt_eval.translate.translation import FORMATS, join_parts

LINE = SourceLine(text="x", target="de", number=7)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("de", "eins zwei"),
        ("zh", "einszwei"),
        ("zh_TW", "einszwei"),
        ("ja-JP", "einszwei"),
        ("th", "eins zwei"),
        ("ko", "eins zwei"),
    ],
)
def test_parts_are_joined_as_the_language_joins_sentences(target: str, text: str) -> None:
    parts = [(candidate("eins"),), (candidate(""),), (candidate("zwei"),)]
    assert join_parts(parts, joints=["spaced"] * 3, target=target).text == text


@pytest.mark.parametrize(
    ("target", "joint", "text"),
    [
        ("de", "spaced", "eins zwei"),
        ("de", "run", "eins zwei"),
        ("de", "word", "einszwei"),
        ("th", "spaced", "eins zwei"),
        ("th", "run", "einszwei"),
        ("km_KH", "run", "einszwei"),
        ("zh", "run", "einszwei"),
        ("zh", "word", "einszwei"),
    ],
)
def test_parts_of_a_word_or_run_are_joined_as_the_target_writes_them(
    target: str, joint: Joint, text: str
) -> None:
    parts = [(candidate(""),), (candidate("eins"),), (candidate("zwei"),)]
    assert join_parts(parts, joints=["spaced", "spaced", joint], target=target).text == text


def candidate(text: str, score: float = -1.0, *, complete: bool = True) -> ScoredTranslation:
    return ScoredTranslation(text=text, score=score, log_prob=2 * score, complete=complete)


def test_the_n_best_of_parts_are_joined_place_by_place() -> None:
    first = (candidate("a", -1.0), candidate("b", -3.0), candidate("c", -4.0))
    second = (candidate("d", -2.0), candidate("e", -2.5, complete=False))
    line = join_parts([first, second], joints=["spaced", "spaced"], target="de")
    assert [(c.text, c.score, c.log_prob, c.complete) for c in line.n_best] == [
        ("a d", -1.5, -6.0, True),
        ("b e", -2.75, -11.0, False),
    ]
    assert (line.parts, line.truncated) == (2, False)


def test_what_is_written_of_a_translation() -> None:
    two = Translation(n_best=(candidate("eins", -0.5), candidate("z\twei", -1.5)))
    assert FORMATS["text"](LINE, two) == "eins\n"
    assert FORMATS["table"](LINE, two) == "7\t-0.500000\teins\n7\t-1.500000\tz\twei\n"
    cut_off = candidate("eins \u2028 ä", -0.5, complete=False)
    written = FORMATS["json"](LINE, Translation(n_best=(cut_off,), parts=2))
    assert written.count("\n") == 1
    assert json.loads(written) == {
        "line": 7,
        "target": "de",
        "text": "eins \u2028 ä",
        "score": -0.5,
        "truncated": True,
        "parts": 2,
        "n_best": [{"text": "eins \u2028 ä", "score": -0.5, "log_prob": -1.0, "complete": False}],
    }
