"""Options that several commands have in common, and those of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, Token

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import BleurtConfig, LanguageConfig, MetricConfig
from mnmt_eval.metrics.registry import DEFAULT_METRICS, MetricSet

if TYPE_CHECKING:
    from mnmt_eval.compare import TranslatedText
    from mnmt_eval.compare.systems import System
    from mnmt_eval.runs.texts import TextFiles

Json = Annotated[bool, Parameter("--json", negative="")]
Flag = Annotated[bool, Parameter(negative="")]
Paths = Annotated[list[Path] | None, Parameter(negative="", consume_multiple=True)]
Columns = Annotated[tuple[str, ...], Parameter(negative="")]
Systems = Annotated[list[str], Parameter(negative="")]
"""Files, folders and runs to compare, as `open_systems` reads them."""


def _split_at_commas(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for token in tokens for name in map(str.strip, token.value.split(","))))


def _join_with_commas(names: Sequence[str]) -> str:
    return ",".join(names) or "all"


def _metrics_or_default(names: Sequence[str]) -> str:
    return ",".join(names or DEFAULT_METRICS)


Names = Annotated[
    tuple[str, ...], Parameter(converter=_split_at_commas, negative="", show_default=_join_with_commas)
]
"""Names with commas between them, or one by one."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TextFlags:
    """Options of the text that systems translated."""

    reference: Paths = None
    """A file with a reference a line, or several. By default the references of the runs' data."""
    source: Path | None = None
    """A file with a source sentence a line, for language, groups by length and the page."""
    task: str | None = None
    """The language pair, such as `en-de`, which bleu and language need; for runs by default every pair."""
    testset: str = "test"
    """The runs' test set."""
    column: Columns = ()
    """The column with translations, if files are TSV, CSV or JSON lines; each of several is a system."""
    reference_column: Columns = ()
    """The column with references; by default of the systems' file."""
    source_column: str | None = None
    """The column with source sentences; by default of the references' file."""
    documents: Path | None = None
    """A file with the document of each sentence, a name a line: intervals and tests then draw and exchange
    whole documents."""

    def open(self, systems: list[str], *, reference_free: bool = False) -> list[TranslatedText]:
        """Read the texts, with the systems' translations of each; see `open_systems`.

        Raises:
            EvalError: If there is a source, but no reference, which only `reference_free` allows.
        """
        from mnmt_eval.compare import name_systems, open_systems

        named = name_systems(systems, self.column)
        files = self._files(named, reference_free)
        translated = open_systems(named, testset=self.testset, task=self.task, files=files)
        return translated if self.documents is None else [self._with_documents(self.documents, translated)]

    def _with_documents(self, path: Path, translated: Sequence[TranslatedText]) -> TranslatedText:
        from mnmt_eval.runs.texts import read_documents

        if len(translated) > 1:
            raise EvalError(f"--documents {path}: is of one text; name a pair with --task.")
        (each,) = translated
        return replace(each, text=replace(each.text, documents=read_documents(path, len(each.text))))

    def _files(self, systems: Sequence[System], reference_free: bool) -> TextFiles | None:
        """Return the files of references and sources; None if no option names any."""
        from mnmt_eval.runs.texts import TextFiles

        references, tables = tuple(self.reference or ()), {system.path for system in systems}
        if self.reference_column and not references:
            if len(tables) != 1 or any(system.column is None for system in systems):
                raise EvalError("--reference-column: of which file? Name it with --reference.")
            references = tuple(tables)
        if not references and (not reference_free or any(system.is_run for system in systems)):
            for option, value in (("--source", self.source), ("--source-column", self.source_column)):
                if value is not None:
                    raise EvalError(
                        f"{option} {value}: is of use only with references; name them with --reference."
                    )
            return None
        return TextFiles(
            task=self.task or "",
            references=references,
            source=self.source or (next(iter(references or tables)) if self.source_column else None),
            reference_columns=self.reference_column,
            source_column=self.source_column,
        )


DEFAULT_TEXT_FLAGS = TextFlags()


@dataclass(frozen=True, kw_only=True)
class LanguageFlags:
    """Options of language accuracy."""

    candidates: Names = ()
    """The languages that outputs may be in; by default those of all tasks."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MetricFlags:
    """Metrics and their options."""

    metric: Annotated[Names, Parameter(show_default=_metrics_or_default)] = ()
    """Metrics: bleu, chrf, chrf++, ter, language, bleurt."""
    tokenizer: str | None = None
    """BLEU's tokenizer, one of sacreBLEU's; by default the target language decides."""
    bleurt: BleurtConfig = field(default_factory=BleurtConfig)
    language: LanguageFlags = field(default_factory=LanguageFlags)

    @property
    def metric_set(self) -> MetricSet:
        """The requested metrics.

        Raises:
            EvalError: If one is unknown.
        """
        language = LanguageConfig(candidates=self.language.candidates)
        config = MetricConfig(tokenizer=self.tokenizer, bleurt=self.bleurt, language=language)
        return MetricSet(names=self.metric or DEFAULT_METRICS, config=config)


DEFAULT_METRIC_FLAGS = MetricFlags()
