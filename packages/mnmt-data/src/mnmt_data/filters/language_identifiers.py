"""Libraries that tell languages apart: py3langid and lingua, which ship models, fastText with the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError, missing_extra

Library = Literal["py3langid", "lingua", "fasttext"]
"""Names of the libraries in a study."""

LEAST = 1e-5
"""Probabilities below this fastText need not give, of models with thousands of labels; they count as this."""

_LABEL = "__label__"


class Identifier(Protocol):
    """A library and its model; pickled, it is its name and that of a file, and each process loads it once."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The model's names of languages, such as `de` or `deu_Latn`.

        Raises:
            DataError: If the library is not installed, or the model is none.
        """
        ...

    def probabilities(self, texts: Sequence[str], labels: tuple[str, ...]) -> NDArray[np.float64]:
        """Return probabilities up to a factor of each text: (texts, labels)."""
        ...


def open_identifier(library: Library, model: Path | None) -> Identifier:
    """Return a library with its model; `model` is for fastText alone."""
    if library == "fasttext" and model is not None:
        return FastText(model)
    return Lingua() if library == "lingua" else Py3langid()


@dataclass(frozen=True)
class Py3langid:
    """A naive Bayes model over n-grams of bytes, whose probabilities are tempered by the length of a text."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Two- and three-letter codes."""
        return _py3langid_labels()

    def probabilities(self, texts: Sequence[str], labels: tuple[str, ...]) -> NDArray[np.float64]:
        """Return probabilities among the labels alone: (texts, labels)."""
        rank = _py3langid(frozenset(labels)).rank
        rankings = (dict(rank(text)) for text in texts)
        return _table(([ranking[label] for label in labels] for ranking in rankings), labels)


@dataclass(frozen=True)
class Lingua:
    """N-grams of one to five letters, and rules for alphabets: best of the three on short text."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Two-letter codes."""
        return tuple(sorted(language.iso_code_639_1.name.lower() for language in _lingua().Language.all()))

    def probabilities(self, texts: Sequence[str], labels: tuple[str, ...]) -> NDArray[np.float64]:
        """Return probabilities among the labels alone, all 0 for a text without letters: (texts, labels)."""
        # Its parallel functions would take all cores in every worker process.
        values = map(_detector(labels).compute_language_confidence_values, texts)
        rankings = (
            {entry.language.iso_code_639_1.name.lower(): entry.value for entry in row} for row in values
        )
        return _table(([ranking[label] for label in labels] for ranking in rankings), labels)


@dataclass(frozen=True)
class FastText:
    """A supervised fastText model, such as lid.176, NLLB's or GlotLID."""

    path: Path

    @property
    def labels(self) -> tuple[str, ...]:
        """The model's labels without `__label__`."""
        model = _fasttext(self.path)
        return tuple(label.removeprefix(_LABEL) for label in model.get_labels())

    def probabilities(self, texts: Sequence[str], labels: tuple[str, ...]) -> NDArray[np.float64]:
        """Return probabilities among all labels of the model: (texts, labels)."""
        names, values = _fasttext(self.path).predict(list(texts), k=-1, threshold=LEAST)
        columns = {f"{_LABEL}{label}": column for column, label in enumerate(labels)}
        table = np.full((len(texts), len(labels)), LEAST)
        for row, (row_names, row_values) in enumerate(zip(names, values, strict=True)):
            for name, value in zip(row_names, row_values, strict=True):
                if name in columns:
                    table[row, columns[name]] = value
        return table


def _table(rows: Any, labels: tuple[str, ...]) -> NDArray[np.float64]:
    return np.array(list(rows), dtype=np.float64).reshape(-1, len(labels))


@cache
def _py3langid_labels() -> tuple[str, ...]:
    return tuple(sorted(set(_load_py3langid().labels) - {"zxx"}))


@cache
def _py3langid(labels: frozenset[str]) -> Any:
    identifier = _load_py3langid()
    identifier.set_languages(labels)
    return identifier


def _load_py3langid() -> Any:
    """Load the model that py3langid ships, which takes half a second; one that is limited stays limited."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError as error:
        raise _missing("py3langid", "langid") from error
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _detector(labels: tuple[str, ...]) -> Any:
    lingua = _lingua()
    codes = [getattr(lingua.IsoCode639_1, label.upper()) for label in labels]
    return lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()


def _lingua() -> Any:
    try:
        import lingua
    except ImportError as error:
        raise _missing("lingua", "lingua") from error
    return lingua


@cache
def _fasttext(path: Path) -> Any:
    try:
        import fasttext
    except ImportError as error:
        raise _missing("fasttext", "fasttext") from error
    try:
        model = fasttext.load_model(str(path))
        model.predict("")  # refused by models of words alone
    except ValueError as error:
        raise DataError(
            f"{path}: no fastText model that labels text ({error}); give one such as lid.176."
        ) from None
    return model


def _missing(library: str, extra: str) -> DataError:
    return DataError(f"[data.clean] `language_id` = {library!r} {missing_extra(extra)}.")
