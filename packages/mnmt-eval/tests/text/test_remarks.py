"""Remarks: one for each mistake that is made on purpose, and none on sound text."""

from __future__ import annotations

import html
import random
import re
import unicodedata
from collections.abc import Callable, Sequence

import pytest

from mnmt_eval.text import NamedLines, marks_in, remarks_on

SYLLABLES = ("ka", "lo", "mi", "ru", "té", "va", "zö", "ni")


def words(count: int, generator: random.Random) -> list[str]:
    return ["".join(generator.choices(SYLLABLES, k=generator.randint(2, 4))) for _ in range(count)]


def sentences(count: int, *, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    return [f"{' '.join(words(9, generator)).capitalize()}." for _ in range(count)]


def imperfect(lines: Sequence[str], *, seed: int = 1) -> list[str]:
    """The lines, with every third word another."""
    generator = random.Random(seed)
    return [
        " ".join(word if generator.random() < 2 / 3 else words(1, generator)[0] for word in line.split(" "))
        for line in lines
    ]


REFERENCES = sentences(60)
OUTPUTS = imperfect(REFERENCES)


def remarks_of(
    output: Sequence[str], reference: Sequence[str] = REFERENCES, source: Sequence[str] = ()
) -> list[str]:
    return list(
        remarks_on([NamedLines(name="out", lines=output)], [NamedLines(name="ref", lines=reference)], source)
    )


def test_sound_outputs_have_no_remark() -> None:
    assert remarks_of(OUTPUTS) == []
    assert remarks_of(OUTPUTS, source=sentences(60, seed=5)) == []


def split_words(line: str, mark: str) -> str:
    return re.sub(r"(\w{3})(?=\w)", rf"\1{mark}", line)


BROKEN: dict[str, tuple[Callable[[str], str], str]] = {
    "SentencePiece": (lambda line: f"▁{line.replace(' ', ' ▁')}", "60 of 60 lines have SentencePiece's ▁"),
    "BPE": (lambda line: split_words(line, "@@ "), "60 of 60 lines have BPE's @@"),
    "byte-level BPE": (lambda line: line.replace(" ", " Ġ"), "60 of 60 lines have a byte-level BPE's Ġ"),
    "WordPiece": (lambda line: split_words(line, " ##"), "60 of 60 lines have WordPiece's ##"),
    "tokenizer": (lambda line: line.replace(" ", " @-@ ", 1), "60 of 60 lines have a tokenizer's @-@"),
    "joiner": (lambda line: line.replace(".", "￭."), r"\d+ of 60 lines have a tokenizer's ￭"),
    "escapes": (
        lambda line: html.escape(line.replace(" ", "'", 1)),
        "60 of 60 lines have escapes such as &apos;",
    ),
    "unknown": (
        lambda line: line.replace("ka", "<unk>"),
        r"\d+ of 60 lines have special tokens such as <unk>",
    ),
    "fairseq's tag": (lambda line: f"__de__ {line}", "60 of 60 lines have tags of languages"),
    "NLLB's tag": (lambda line: f"deu_Latn {line}", "60 of 60 lines have tags of languages"),
    "mBART's tag": (lambda line: f"{line} de_DE", "60 of 60 lines have tags of languages"),
    "OPUS-MT's tag": (lambda line: f">>deu<< {line}", "60 of 60 lines have tags of languages"),
    "tokenised": (
        lambda line: line.replace(".", " ."),
        r"\d+ of 60 lines have spaces before full stops or commas",
    ),
    "lower-cased": (str.lower, "has no capital letters, but ref has"),
    "upper-cased": (str.upper, "has no small letters, but ref has"),
    "decomposed": (
        lambda line: unicodedata.normalize("NFD", line),
        r"\d+ of 60 lines are not in Unicode's composed form \(NFC\), unlike those of ref",
    ),
    "blank": (lambda line: "" if "ka" in line else line, r"\d+ of 60 lines are blank"),
    "numbers": (lambda line: f"-0.{len(line)}", "holds only numbers, such as -0."),
    "features": (lambda line: f"F0= -{len(line)}.5 F1=3", "holds only numbers, such as F0= -"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_step_that_is_missing_is_one_remark(name: str) -> None:
    breaks, message = BROKEN[name]
    (remark,) = remarks_of([breaks(line) for line in OUTPUTS])
    assert re.match(f"out: {message}", remark)
    assert "\n" not in remark


@pytest.mark.parametrize("name", ["SentencePiece", "BPE", "escapes", "tokenised", "tokenizer"])
def test_marks_in_both_are_the_references_fault(name: str) -> None:
    breaks, message = BROKEN[name]
    (remark,) = remarks_of(*([breaks(line) for line in lines] for lines in (OUTPUTS, REFERENCES)))
    assert re.match(f"ref: {message}", remark)


def test_references_in_another_form_are_named() -> None:
    (lower,) = remarks_of(OUTPUTS, [line.lower() for line in REFERENCES])
    assert lower.startswith("ref: has no capital letters, but out has")
    decomposed = [unicodedata.normalize("NFD", line) for line in REFERENCES]
    (form,) = remarks_of(OUTPUTS, decomposed)
    assert form.startswith("ref: ")
    assert remarks_of([unicodedata.normalize("NFD", line) for line in OUTPUTS], decomposed) == []
    # As in Bengali, whose text has letters that NFC decomposes: most of them are in both.
    some = [line if number % 4 else decomposed[number] for number, line in enumerate(REFERENCES)]
    fewer = [line if number % 5 else decomposed[number] for number, line in enumerate(REFERENCES)]
    assert not any("NFC" in remark for remark in remarks_of(imperfect(fewer), some))


@pytest.mark.parametrize(
    "line", ["Was ist das ?", "« Non » !", "He wrote 5 , 000", "A&B; C", "## Title", "@home", "#tag"]
)
def test_a_few_odd_lines_are_no_mark(line: str) -> None:
    assert remarks_of([*OUTPUTS[:-1], line]) == []


def test_french_spaces_before_marks_are_right() -> None:
    french = [f"{line[:-1]} ?" for line in REFERENCES]
    assert remarks_of(imperfect(french), french) == []
    assert list(marks_in(NamedLines(name="ref", lines=french))) == []


def test_the_source_or_the_reference_in_place_of_outputs() -> None:
    assert remarks_of(REFERENCES) == ["out: is the same text as the reference ref"]
    source = sentences(60, seed=5)
    (remark,) = remarks_of(source, source=source)
    assert remark.startswith("out: 60 of 60 lines are the same as the source")


def test_the_same_outputs_twice() -> None:
    outputs = [NamedLines(name=name, lines=OUTPUTS) for name in ("a", "b")]
    found = list(remarks_on(outputs, [NamedLines(name="ref", lines=REFERENCES)]))
    assert found == ["a and b: hold the same translations"]


def test_another_order_of_lines() -> None:
    by_length = sorted(OUTPUTS, key=len)
    (remark,) = remarks_of(by_length)
    assert re.match(
        r"out: \d+ of \d+ lines that share rare words with a line of ref stand in another place", remark
    )
    (shifted,) = remarks_of(["Ka.", *OUTPUTS[:-1]])
    assert "by -1 lines" in shifted


@pytest.mark.parametrize("seed", range(5))
def test_bad_outputs_in_the_right_order_are_no_other_order(seed: int) -> None:
    unrelated = sentences(60, seed=100 + seed)
    assert remarks_of(unrelated) == []
    half = [*imperfect(imperfect(REFERENCES[:30], seed=seed), seed=seed + 9), *unrelated[30:]]
    assert remarks_of(half) == []
