"""What to measure of every run."""

from __future__ import annotations

from dataclasses import dataclass, field

from mnmt_eval.errors import EvalError
from mnmt_eval.kept_translations import SENTENCES
from mnmt_eval.metric_choice import MetricChoice
from mnmt_eval.runs import TrainedRun
from mnmt_eval.search import SearchConfig
from mnmt_eval.translate import BATCH_TOKENS


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What to measure of every run.

    Raises:
        EvalError: If a field is out of its range.
    """

    testsets: tuple[str, ...] = ()
    """Test sets; all of them if none is named."""

    metrics: MetricChoice = field(default_factory=MetricChoice)
    """Metrics."""

    search: SearchConfig = field(default_factory=SearchConfig)
    """How to translate."""

    max_source: int | None = None
    """Most tokens of a source; longer ones are translated in parts. By default as many as in training."""

    max_sentences: int | None = None
    """Sentences of each test set, from its start; all by default."""

    batch_tokens: int = BATCH_TOKENS
    """Source tokens translated at a time, padding included."""

    device: str = "cpu"
    """Where to translate."""

    def __post_init__(self) -> None:
        if self.max_sentences is not None and self.max_sentences < 1:
            raise EvalError(f"`max_sentences` must be at least 1, but is {self.max_sentences}.")
        if self.batch_tokens < 1:
            raise EvalError(f"`batch_tokens` must be at least 1, but is {self.batch_tokens}.")

    def signature(self, run: TrainedRun) -> str:
        """All beyond a metric's own signature that changes its value: `beam:1|…|maxsrc:128|sentences:200`."""
        sentences = "all" if self.max_sentences is None else self.max_sentences
        return f"{self.search.signature}|maxsrc:{self.max_source_of(run)}|{SENTENCES}:{sentences}"

    def max_source_of(self, run: TrainedRun) -> int:
        """Most tokens of a source that the run translates in one."""
        return run.max_length if self.max_source is None else self.max_source
