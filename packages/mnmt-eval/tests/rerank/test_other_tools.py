"""N-best lists of Moses, Marian and fairseq."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mnmt_eval.errors import EvalError
from mnmt_eval.rerank import read_candidates
from mnmt_eval.rerank.candidates import Candidates

CANDIDATES: list[Candidates] = [("Do it.", "Do this."), ("", "a | b"), ("Hello there.",)]


def read(path: Path, lines: list[str], column: str | None = None) -> list[Candidates]:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_candidates(path, column)


def rows(first: int = 0) -> list[tuple[int, str]]:
    return [(number, text) for number, texts in enumerate(CANDIDATES, start=first) for text in texts]


@pytest.mark.parametrize("form", ["{} ||| {} ||| F0= -1.38 ||| -0.43", "{} ||| {}", "{}|||{}|||-1"])
@pytest.mark.parametrize("first", [0, 1])
def test_fields_of_moses_and_marian(tmp_path: Path, form: str, first: int) -> None:
    assert read(tmp_path / "list", [form.format(*row) for row in rows(first)]) == CANDIDATES


def fairseq_lines(kinds: str, *, seed: int = 0) -> list[str]:
    """What fairseq-generate prints, in any order of the sources."""
    order = list(range(len(CANDIDATES)))
    random.Random(seed).shuffle(order)
    lines = ["2024-01-01 | INFO | fairseq | loading"]
    for number in order:
        lines += [f"S-{number}\tsource", f"T-{number}\ttarget"]
        for text in CANDIDATES[number]:
            # Words of the model, which detokenising joins.
            lines += [f"H-{number}\t-0.25\t{text if kinds == 'H' else f'▁{text}'}", f"P-{number}\t-0.1 -0.4"]
            if kinds == "HD":
                lines.append(f"D-{number}\t-0.25\t{text}")
    return [*lines, "Generate test with beam=2: BLEU4 = 30.1"]


@pytest.mark.parametrize("kinds", ["H", "HD"])
@pytest.mark.parametrize("seed", range(4))
def test_fairseq_by_number_and_detokenised(tmp_path: Path, kinds: str, seed: int) -> None:
    lines = fairseq_lines(kinds, seed=seed)
    assert read(tmp_path / "generate", lines) == CANDIDATES
    assert read(tmp_path / "grep", [line for line in lines if line[:2] == f"{kinds[-1]}-"]) == CANDIDATES


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["-0.4 ||| Do it.", "-0.5 ||| Do this."], "list:1: must be `0 ||| text ||| …`, the number"),
        (["0 ||| Do it.", "Do this."], "list:2: must be `0 ||| text"),
        (["0 ||| Do it.", "2 ||| Do this."], "list:2: must be of source line 0 or 1, but is of 2"),
        (["H-0\t-0.1\tDo it.", "H-2\t-0.1\tHello."], "list: has H-2, but no H-1; generate all sentences"),
        (["H-0\tDo it."], "list:1: must have a score, a tab and the text, but is 'Do it.'"),
        (
            ["0\tDo it.\t-0.4", "0\tDo this.\t-0.5"],
            "list: column 3 holds only numbers, such as -0.4; .* --column 2.",
        ),
        (
            ["line\tscore\ttext\tmt", "1\t-0.4\t7\tHello."],
            "list: column text holds only numbers, .* --column mt.",
        ),
    ],
)
def test_what_cannot_be_read_says_what_would_be_right(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(EvalError, match=message.replace("|", r"\|")):
        read(tmp_path / "list", lines)


def test_translations_that_are_numbers_are_candidates(tmp_path: Path) -> None:
    assert read(tmp_path / "list", ["1\t-0.4\t7", "1\t-0.5\t8"]) == [("7", "8")]
