"""Whether hypotheses, references and sources belong together, line by line."""

from __future__ import annotations

from collections.abc import Sequence

from mnmt_eval.errors import EvalError

_NAMED_LINES = 5


def check_alignment(
    metric: str,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    sources: Sequence[str] = (),
    *,
    num_references: int,
) -> None:
    """Refuse texts that a metric would only seem to measure.

    A blank line is a sentence like any other; but where its source (without sources, its hypothesis) is not
    blank, one of its references must not be blank either.

    Args:
        metric: Its name, for the message.
        hypotheses: A system's output.
        references: The sentences of the first reference, those of the second, …
        sources: What was translated; may be empty.
        num_references: How many references there must be.

    Raises:
        EvalError: If there is no sentence, the numbers differ, or sentences have no reference.
        TypeError: If `references` holds sentences, not references.
    """
    if any(isinstance(reference, str) for reference in references):
        raise TypeError(
            "`references` must hold a sequence of sentences for each reference, but holds sentences."
        )
    if not hypotheses:
        raise EvalError(f"{metric}: must have at least one sentence, but has none.")
    if len(references) != num_references:
        raise EvalError(
            f"{metric}: must have {num_references} reference(s) a sentence, but has {len(references)}."
        )
    named = [(f"sentences in reference {i}", reference) for i, reference in enumerate(references, start=1)]
    for what, sentences in [*named, ("sources", sources or hypotheses)]:
        if len(sentences) != len(hypotheses):
            raise EvalError(
                f"{metric}: must have as many {what} as hypotheses ({len(hypotheses)}), "
                f"but has {len(sentences)}."
            )
    if references:
        _check_references(metric, references, sources or hypotheses)


def _check_references(metric: str, references: Sequence[Sequence[str]], sources: Sequence[str]) -> None:
    missing = [
        str(line)
        for line, (source, *translations) in enumerate(zip(sources, *references, strict=True), start=1)
        if source.strip() and not any(map(str.strip, translations))
    ]
    if missing:
        more = f" and {len(missing) - _NAMED_LINES} more" if len(missing) > _NAMED_LINES else ""
        raise EvalError(
            f"{metric}: must have a reference for every sentence, but has none in line(s) "
            f"{', '.join(missing[:_NAMED_LINES])}{more}."
        )
