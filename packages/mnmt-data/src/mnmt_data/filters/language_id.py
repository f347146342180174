"""The language of sentences: identification libraries, and the filter that uses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mnmt_data.errors import DataError, missing_extra
from mnmt_data.readers.language_codes import base_language, serves

Library = Literal["py3langid", "fasttext"]
"""Names of the libraries in a study: py3langid has a model, fastText needs one from the user."""

LEAST = 1e-5
"""Floor of fastText's probabilities, so that models with thousands of labels return few of them."""

CHARACTERS = 150
"""Characters of a side that are classified; more would only take more time."""

Labels = tuple[str, ...]
"""A model's names of one language: `("zho_Hans", "zho_Hant")` of Chinese."""

_LABEL = "__label__"


class Identifier(Protocol):
    """A library and its model. Pickles hold only their names; each process loads the model once."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The model's names of languages, such as `de` or `deu_Latn`.

        Raises:
            DataError: If the library is not installed, or the model cannot be loaded.
        """
        ...

    def probabilities(self, texts: Sequence[str], labels: tuple[str, ...]) -> NDArray[np.float64]:
        """Return the probabilities of each text, up to a factor: (texts, labels)."""
        ...


def open_identifier(library: Library, model: Path | None = None) -> Identifier:
    """Return a library with its model; only fastText needs a path."""
    if library == "fasttext" and model is not None:
        return FastText(model)
    return Py3langid()


@dataclass(frozen=True)
class Py3langid:
    """A naive Bayes model over byte n-grams, with probabilities tempered by the length of a text."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Two- and three-letter codes."""
        return _py3langid()[1]

    def probabilities(self, texts: Sequence[str], labels: tuple[str, ...]) -> NDArray[np.float64]:
        """Return probabilities among the labels: (texts, labels)."""
        identifier, _ = _py3langid()
        identifier.set_languages(labels)
        rankings = (dict(identifier.rank(text)) for text in texts)
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
def _py3langid() -> tuple[Any, tuple[str, ...]]:
    """Load py3langid's model, in half a second; return it with its languages."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    try:
        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    except OSError as error:  # it unpacks the model into a temporary file
        raise OSError(error.errno, error.strerror, gettempdir()) from error
    return identifier, tuple(sorted(set(identifier.labels) - {"zxx"}))


@cache
def _fasttext(path: Path) -> Any:
    try:
        import fasttext
    except ImportError as error:
        needed = missing_extra("fasttext")
        raise DataError(f"[data.clean] `language_id` = 'fasttext' {needed}.") from error
    try:
        model = fasttext.load_model(str(path))
        model.predict("")  # refused by models of words
    except ValueError as error:
        raise DataError(
            f"{path}: no fastText model that labels text ({error}); give one such as lid.176."
        ) from None
    return model


def language_scores(
    texts: Sequence[str],
    candidates: Sequence[str],
    *,
    library: Library = "py3langid",
    model: Path | None = None,
) -> NDArray[np.float64]:
    """Return the likelihood of each candidate language: (texts, candidates), comparable within a text.

    Args:
        texts: The texts.
        candidates: Codes of languages, such as `de` and `zh_Hant`.
        library: The library.
        model: The model, for fastText.

    Raises:
        DataError: If the library is not installed, or does not know a language.
    """
    identifier = open_identifier(library, model)
    labels = tuple(labels_of(code, identifier.labels) for code in candidates)
    for code, known in zip(candidates, labels, strict=True):
        if not known:
            raise DataError(
                f"{library} does not know the language {code!r}; {_like(code, identifier.labels)}."
            )
    return _likelihoods(identifier, texts, labels)


def _likelihoods(
    identifier: Identifier, texts: Sequence[str], candidates: Sequence[Labels]
) -> NDArray[np.float64]:
    """Return the likelihood of each candidate, summed over its labels: (texts, candidates)."""
    labels = tuple(sorted({label for one in candidates for label in one}))
    membership = np.array([[label in one for one in candidates] for label in labels])
    return np.asarray(identifier.probabilities(texts, labels) @ membership)


@dataclass(frozen=True, kw_only=True)
class WrongLanguage:
    """Drops pairs with a side that is far more likely in another candidate language than in its own.

    The likelihood of a language is the sum over its labels. A short sentence that could be in either of two
    languages has odds near 1, so it stays: no minimum length is needed.
    """

    identifier: Identifier
    candidates: tuple[Labels, ...]
    """The candidate languages, source and target first."""

    odds: float
    """Odds of another language against a side's own above which to drop."""

    @classmethod
    def of(cls, task: str, languages: Iterable[str], *, identifier: Identifier, odds: float) -> Self:
        """Return the filter of a task `SRC-TGT`.

        Args:
            task: Its two languages are candidates, and English.
            languages: More candidates; those unknown to the model are ignored.
            identifier: The library and its model.
            odds: Odds of another candidate above which to drop.

        Raises:
            DataError: If the model does not know a language of the task, or cannot be loaded.
        """
        known = identifier.labels
        sides = [labels_of(code, known) for code in task.split("-")]
        for code, labels in zip(task.split("-"), sides, strict=True):
            if not labels:
                raise _unknown(task, code, known)
        others = dict.fromkeys(labels_of(code, known) for code in ("en", *languages))
        candidates = (*sides, *(labels for labels in others if labels and labels not in sides))
        return cls(identifier=identifier, candidates=candidates, odds=odds)

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> NDArray[np.bool_]:
        """Return which pairs to drop."""
        return self._are_other(src, 0) | self._are_other(tgt, 1)

    def _are_other(self, texts: Sequence[str], expected: int) -> NDArray[np.bool_]:
        """Return which texts are in another language than candidate `expected`."""
        if len({label for one in self.candidates for label in one}) == 1:
            return np.zeros(len(texts), dtype=np.bool_)
        heads = [text[:CHARACTERS] for text in texts]
        likelihood = _likelihoods(self.identifier, heads, self.candidates)
        return np.asarray(likelihood.max(axis=1) > self.odds * likelihood[:, expected])


def labels_of(code: str, labels: Labels) -> Labels:
    """Return a model's labels of a language, only those in the script of `code` if there are any.

    `de` is `deu_Latn`, `pt_BR` is `pt`, `nb` is `no`; `zh` is `zho_Hans` and `zho_Hant`; `zh_Hant` is only
    `zho_Hant`, or `zh` for a model without it. Empty if the model does not know the language.
    """
    base = base_language(code)
    same = [label for label in labels if serves(label, base)] or [one for one in labels if serves(base, one)]
    return tuple([label for label in same if serves(label, code)] or same)


def _unknown(task: str, code: str, labels: Labels) -> DataError:
    remedy = f"set it to false, or {_like(code, labels)}"
    return DataError(f"task {task}: `language_id` cannot recognise {code!r}; {remedy}.")


def _like(code: str, labels: Labels) -> str:
    near = ", ".join(sorted(get_close_matches(code, labels, n=8, cutoff=0.0)))
    return f"name a language that its model knows, such as {near}"
