"""Remarks on translations and references that miss a step, so that their scores mislead."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
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
_WORD = re.compile(r"\w{4,}|\d+")
_ORDER_LINES = 20_000
"""Lines in which the order is looked at."""


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
    translations; another case, Unicode form or order of lines than the references'; the same outputs twice.

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
            yield from filter(None, (check(output, reference) for check in _CHECKS))
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


def _case(output: NamedLines, reference: NamedLines) -> str | None:
    """Return a remark if either side alone is in lower or upper case."""
    for one, other in ((output, reference), (reference, output)):
        for what, turn, back in (("capital", str.lower, str.upper), ("small", str.upper, str.lower)):
            letters, others = (sum(turn(line) != line for line in each.lines) for each in (one, other))
            cased = any(back(line) != line for line in one.lines)
            if cased and others > 0.3 * len(other.lines) and letters < 0.01 * len(one.lines):
                but = f"but {other.name} has, and scores count case; compare texts of one case"
                return f"{one.name}: has no {what} letters, {but}"
    return None


def _unicode_form(output: NamedLines, reference: NamedLines) -> str | None:
    """Return a remark if lines of one side alone are not in the form NFC."""
    sides = [
        (_numbers(not unicodedata.is_normalized("NFC", line) for line in each.lines), each)
        for each in (output, reference)
    ]
    (few, other), (many, one) = sorted(sides, key=lambda side: len(side[0]))
    if not many or len(many) < 0.05 * len(one.lines) or len(few) > 0.2 * len(many):
        return None
    what = f"are not in Unicode's composed form (NFC), unlike those of {other.name}"
    return one.remark(many, what, "equal letters differ, so convert both to NFC")


def _order(output: NamedLines, reference: NamedLines) -> str | None:
    """Return a remark if outputs are in another order than the references.

    Two words that each occur in one line only, on both sides, tell to which reference an output belongs.
    """
    places = _places_of_rare_words(reference.lines)
    pairs = list[tuple[int, int]]()
    by_line: dict[int, Counter[int]] = {}
    for word, number in _places_of_rare_words(output.lines).items():
        if word in places:
            by_line.setdefault(number, Counter())[places[word]] += 1
    for number, votes in by_line.items():
        ((place, count),) = votes.most_common(1)
        if count > 1:
            pairs.append((number, place))
    moved = [place - number for number, place in pairs if place != number]
    if len(moved) < max(5, 0.9 * len(pairs)):
        return None
    ((shift, count),) = Counter(moved).most_common(1)
    by = f": by {shift:+d} lines" if count > 0.8 * len(moved) else ""
    return (
        f"{output.name}: {len(moved):,} of {len(pairs):,} lines that share rare words with a line of "
        f"{reference.name} stand in another place than it{by}; put both in one order"
    )


def _places_of_rare_words(lines: Sequence[str]) -> dict[str, int]:
    """Return {word: the number of its line} of the words that stand in one line only."""
    places: dict[str, int] = {}
    for number, line in enumerate(lines[:_ORDER_LINES], start=1):
        for word in set(_WORD.findall(line)):
            places[word] = 0 if word in places else number
    return {word: number for word, number in places.items() if number}


_CHECKS = (_blank_lines, _case, _unicode_form, _order)
"""Checks of outputs against a reference."""
