"""Remarks on translations and references that miss a step, so that their scores mislead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What a tool leaves in text that was not taken back."""

    what: str
    """Its name, such as `BPE's @@`."""
    pattern: re.Pattern[str]
    cure: str
    share: float = 0.01
    """Least share of the lines of outputs, more than of the references, for a remark."""
    in_references: float = 0.05
    """Least share of the lines of references for a remark."""


_JOIN = "join the pieces of words"
_TAG = (
    r"__[a-z]{2,3}__|>>\w{2,8}<<|<2[a-z]{2,3}>"
    r"|(?<!\S)(?:[a-z]{3}_[A-Z][a-z]{3}|\[?[a-z]{2}_[A-Z]{2}\]?)(?!\S)"
)
MARKS = (
    Mark(what="SentencePiece's ▁", pattern=re.compile("▁"), cure=_JOIN),
    Mark(what="BPE's @@", pattern=re.compile(r"@@(?=\s|$)"), cure=_JOIN),
    Mark(what="BPE's </w>", pattern=re.compile(r"</w>"), cure=_JOIN),
    Mark(what="a byte-level BPE's Ġ", pattern=re.compile(r" Ġ\S+ Ġ"), cure=_JOIN),
    Mark(what="WordPiece's ##", pattern=re.compile(r"(?<=\S )##\w"), cure=_JOIN),
    Mark(what="a tokenizer's ￭", pattern=re.compile("￭"), cure="detokenise it"),
    Mark(what="a tokenizer's @-@", pattern=re.compile(r"(?<!\S)@[-/.,:]@(?!\S)"), cure="detokenise it"),
    Mark(
        what="escapes such as &apos;",
        pattern=re.compile(r"&(?:apos|quot|amp|lt|gt|nbsp|#\d+|#x[\da-fA-F]+);"),
        cure="write the characters themselves",
    ),
    Mark(
        what="special tokens such as <unk>",
        pattern=re.compile(r"</?s>|<(?:unk|pad|bos|eos)>|⁇"),
        cure="drop them",
    ),
    Mark(
        what="tags of languages such as __de__",
        pattern=re.compile(rf"^\s*(?:{_TAG})|(?:{_TAG})\s*$"),
        cure="drop them",
    ),
    # No language writes them; French has spaces before : ; ! and ?.
    Mark(
        what="spaces before full stops or commas",
        pattern=re.compile(r" [.,。，、](?= |$)"),
        cure="detokenise it",
        share=0.3,
        in_references=0.5,
    ),
)

_NUMBER = r"(\w+=\s*)?([-+]?(\d+([.,]\d*)?|[.,]\d+)(e[-+]?\d+)?|nan|-?inf)"
_NUMBERS = re.compile(rf"{_NUMBER}(\s+{_NUMBER})*", re.I)  # also features, as `F0= -1.38`


@dataclass(frozen=True, kw_only=True)
class NamedLines:
    """Lines with the name of their file."""

    name: str
    lines: Sequence[str]

    def remark(self, numbers: Sequence[int], what: str, cure: str) -> str:
        """Return a remark on some lines, by their numbers from 1."""
        count = f"{len(numbers):,} of {len(self.lines):,} lines"
        return f"{self.name}: {count} {what}, first line {numbers[0]}; {cure}"


def remarks_on(
    outputs: Sequence[NamedLines], references: Sequence[NamedLines], source: Sequence[str] = ()
) -> Iterator[str]:
    """Yield a line for whatever looks wrong in outputs of one text, which the metrics would score as it is.

    Marks of subwords, tokenizers and escapes; blank lines, numbers, the source or the reference in place of
    translations; the same outputs twice.

    Args:
        outputs: Translations, a line for each line of the references.
        references: The references, if there are any.
        source: The source sentences; empty if unknown.
    """
    for reference in references:
        yield from marks_in(reference)
    for output in outputs:
        if remark := _other_text(output, references, source):
            yield remark
            continue
        yield from _more_marks(output, references)
        for reference in references[:1]:
            yield from filter(None, [_blank_lines(output, reference)])
    for one, other in combinations(outputs, 2):
        if list(one.lines) == list(other.lines):
            both = f"{one.name} and {other.name}" if one.name != other.name else f"two systems of {one.name}"
            yield f"{both}: hold the same translations"


def marks_in(text: NamedLines) -> Iterator[str]:
    """Yield a line for each kind of mark that a good part of a text has."""
    for mark in MARKS:
        marked = _marked(text.lines, mark)
        # A single line may be about them.
        if len(marked) >= max(2, mark.in_references * len(text.lines)):
            yield text.remark(marked, f"have {mark.what}", mark.cure)


def _more_marks(output: NamedLines, references: Sequence[NamedLines]) -> Iterator[str]:
    """Yield a line for each kind of mark that outputs have oftener than all references."""
    for mark in MARKS:
        marked = _marked(output.lines, mark)
        usual = max((len(_marked(each.lines, mark)) for each in references), default=0) if marked else 0
        if len(marked) - usual >= max(1, mark.share * len(output.lines)):
            yield output.remark(marked, f"have {mark.what}", mark.cure)


def _marked(lines: Sequence[str], mark: Mark) -> list[int]:
    """Return the numbers of the lines that have a mark."""
    return _numbers(mark.pattern.search(line) for line in lines)


def _numbers(flags: Iterable[object]) -> list[int]:
    """Return the numbers, from 1, of the true ones."""
    return [number for number, flag in enumerate(flags, start=1) if flag]


def _other_text(output: NamedLines, references: Sequence[NamedLines], source: Sequence[str]) -> str | None:
    """Return a remark if outputs are the source, a reference or no text."""
    for reference in references:
        if list(output.lines) == list(reference.lines):
            return f"{output.name}: is the same text as the reference {reference.name}"
    copied = _numbers(line.strip() and line == src for line, src in zip(output.lines, source, strict=False))
    if len(copied) > 0.9 * len(output.lines):
        return output.remark(copied, "are the same as the source", "is it the right file?")
    originals = references[0].lines if references else source
    if holds_numbers(output.lines) and not holds_numbers(originals):
        return f"{output.name}: holds only numbers, such as {output.lines[0]}; are they scores?"
    return None


def holds_numbers(lines: Iterable[str]) -> bool:
    """Return whether lines that are not blank are all numbers, at least one."""
    texts = [line.strip() for line in lines if line.strip()]
    return bool(texts) and all(map(_NUMBERS.fullmatch, texts))


def _blank_lines(output: NamedLines, reference: NamedLines) -> str | None:
    blank = _numbers(
        ref.strip() and not line.strip() for line, ref in zip(output.lines, reference.lines, strict=True)
    )
    if not blank or len(blank) < 0.01 * len(output.lines):
        return None
    return output.remark(blank, "are blank", f"those of {reference.name} are not")
