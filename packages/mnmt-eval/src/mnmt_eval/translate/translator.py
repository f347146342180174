"""Translation of lines with a model, its vocabulary and the options of a search."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mnmt_eval.errors import EvalError
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.text import join_lines
from mnmt_eval.translate.engine import Engine
from mnmt_eval.translate.lines import SourceLine, SourceVocabulary
from mnmt_eval.translate.translation import ScoredTranslation, Translation
from mnmt_eval.translate.window import (
    BATCH_TOKENS,
    WINDOW_LINES,
    CandidateList,
    LineWindow,
    Sources,
)

WINDOW_CHARACTERS = 2**22
"""The characters after which a window of long lines ends early, to bound memory."""

LEAST_MAX_SOURCE = 8
"""Room for a tag, `</s>`, and any one character, in bytes if need be."""

OnLines = Callable[[int], object]
"""A function that is called with the number of lines that were translated since the last call."""

SearchBatches = Callable[[Iterable[Sources]], Iterator[list[CandidateList]]]
"""A function that searches batches of sources, and yields their results in order."""


@dataclass(frozen=True, kw_only=True)
class Translator:
    """An engine with the vocabulary of its model, ready to translate lines.

    Raises:
        EvalError: If a field is out of its range.
    """

    engine: Engine
    """The model and its search."""
    vocab: SourceVocabulary
    """The vocabulary that the model was trained with; it knows where sources have their target tag."""
    max_source: int | None = None
    """The largest number of tokens of a source, its tag and `</s>` included; longer lines are translated in
    parts."""
    batch_tokens: int = BATCH_TOKENS
    """The source tokens searched at a time, padding included."""
    window_lines: int = WINDOW_LINES
    """The lines that are read, and sorted by length, before the first is translated."""

    def __post_init__(self) -> None:
        for name in ("batch_tokens", "window_lines"):
            if (value := getattr(self, name)) < 1:
                raise EvalError(f"`{name}` must be at least 1, but is {value}.")
        if self.max_source is not None and self.max_source < LEAST_MAX_SOURCE:
            raise EvalError(f"`max_source` must be at least {LEAST_MAX_SOURCE}, but is {self.max_source}.")

    def search(self, sources: Sources) -> list[CandidateList]:
        """Search a batch of sources, or its halves one after the other if memory does not suffice for all.

        Raises:
            EvalError: If the model has diverged, or there is no memory for a single source.
        """
        if not len(sources):
            return []
        try:
            n_bests = self.engine.search(sources)
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error):
                raise
            middle = len(sources) // 2
            if not middle:
                raise EvalError(
                    f"a source of {sources.shape[1]} tokens does not fit into memory; take a smaller "
                    "`beam`, or `max_source` in Python."
                ) from None
        else:
            return [tuple(map(self._candidate, n_best)) for n_best in n_bests]
        return self.search(sources[:middle]) + self.search(sources[middle:])

    def translate(
        self,
        lines: Iterable[SourceLine],
        *,
        search_batches: SearchBatches | None = None,
        on_lines: OnLines = lambda lines: None,
    ) -> Iterator[list[tuple[SourceLine, Translation]]]:
        """Translate lines, window by window.

        Args:
            lines: The lines; the next one is read when all work on earlier ones is handed out.
            search_batches: The function that searches; by default `search`, in this process, batch by batch.
            on_lines: A function that is called after each batch.

        Yields:
            Lines in their order with their translations, as they get ready.

        Raises:
            EvalError: If the model has diverged.
            DataError: If the vocabulary has no such target language.
            Exception: The exception of `lines`, after all earlier lines.
        """
        windows: deque[LineWindow] = deque()
        search_batches = search_batches or partial(map, self.search)
        for results in search_batches(self._batches(lines, windows)):
            on_lines(windows[0].add(results))
            yield windows[0].take()
            if windows[0].is_done:
                windows.popleft()

    def _batches(self, lines: Iterable[SourceLine], windows: deque[LineWindow]) -> Iterator[Sources]:
        """Yield the batches of all windows; put each window into `windows` when its turn has come."""
        for window_lines in _make_windows(lines, self.window_lines):
            window = LineWindow(
                self.vocab,
                window_lines,
                batch_tokens=self.batch_tokens,
                max_source=self.max_source,
            )
            windows.append(window)
            yield from window.batches()

    def _candidate(self, hypothesis: Hypothesis) -> ScoredTranslation:
        return ScoredTranslation(
            text=join_lines(self.vocab.decode(hypothesis.tokens)),
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            complete=hypothesis.is_complete,
        )


def translate(
    engine: Engine,
    vocab: SourceVocabulary,
    lines: Sequence[str],
    *,
    target: str,
    max_source: int | None = None,
    batch_tokens: int = BATCH_TOKENS,
    on_lines: OnLines = lambda lines: None,
) -> list[Translation]:
    """Translate lines into one language.

    Args:
        engine: The model and its search.
        vocab: The vocabulary that the model was trained with; it knows where sources have their target tag.
        lines: Source sentences; a blank one has an empty translation.
        target: The target language, such as `de`.
        max_source: The largest number of tokens of a source; longer lines are translated in parts. None: no
            such limit.
        batch_tokens: The source tokens searched at a time; sentences of similar length go together.
        on_lines: A function that is called after each batch.

    Returns:
        A translation per line, in the order of the lines; line breaks within one become spaces.

    Raises:
        EvalError: If an argument is out of its range, or the model has diverged.
        DataError: If the vocabulary has no such target language.
    """
    translator = Translator(
        engine=engine,
        vocab=vocab,
        max_source=max_source,
        batch_tokens=batch_tokens,
        window_lines=max(1, len(lines)),
    )
    vocab.encode_sources([], target=target)  # refuses an unknown language even if there is no line

    sources = (SourceLine(text=line, target=target) for line in lines)
    groups = translator.translate(sources, on_lines=on_lines)
    return [translation for group in groups for _, translation in group]


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether memory did not suffice; not all engines raise a specific exception."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text


def _make_windows(lines: Iterable[SourceLine], window_lines: int) -> Iterator[list[SourceLine]]:
    """Divide lines into windows; if `lines` raises, the lines before it are yielded first."""
    window: list[SourceLine] = []
    failure: Exception | None = None
    characters = 0
    try:
        for line in lines:
            window.append(line)
            characters += len(line.text)
            if len(window) == window_lines or characters >= WINDOW_CHARACTERS:
                yield window
                window, characters = [], 0
    except Exception as error:
        failure = error
    if window:
        yield window
    if failure is not None:
        raise failure
