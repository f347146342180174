"""Search with CTranslate2, in a model that mnmt-model or its own converter has exported."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from mnmt_eval.errors import EvalError
from mnmt_eval.search.config import SearchConfig
from mnmt_eval.search.hugging_face import TargetTag
from mnmt_eval.search.hypotheses import Hypothesis
from mnmt_eval.search.next_tokens import check_finite
from mnmt_eval.search.protocol import EOS, PAD
from mnmt_eval.translate.engine_config import Compute
from mnmt_eval.translate.window import Sources

_NO_PENALTY = 1e-30
"""The exponent that turns the length penalty off: with 0, CTranslate2 would stop by another rule."""

Pieces = list[str]
"""A sentence as CTranslate2 takes it."""


@dataclass(frozen=True, kw_only=True)
class CTranslate2Engine:
    """The search of CTranslate2, whose model is loaded when it is first used.

    Its beam keeps the same hypotheses as ours, and stops by the rule `filled`.

    A hardly trained model may predict padding, which then has to be forbidden. CTranslate2 forbids it before
    the softmax, which raises the probabilities of all other tokens, so such hypotheses are scored again.
    """

    folder: Path
    """The folder of CTranslate2's files."""
    config: SearchConfig
    """The options of the search, which `obstacle` must allow."""
    compute: Compute = "float32"
    device: str = "cpu"
    """The processor, or a GPU and its number, as torch names devices."""
    pieces: Sequence[str] = ()
    """The text of every token id; by default the model's vocabulary in its order."""
    target_tag: TargetTag = "none"
    """How the language of targets is set; if it is, every source begins with its token."""

    def search(self, sources: Sources) -> Sequence[Sequence[Hypothesis]]:
        """Return the translations of each source, best score first.

        CTranslate2 has one maximal length a call, so only sources of one such length are searched together.

        Raises:
            EvalError: If the model has diverged, or the device lacks the compute type.
            RuntimeError: If memory does not suffice.
        """
        limits = self.config.max_length.limits(torch.from_numpy(sources))
        results: dict[int, Sequence[Hypothesis]] = {}
        for limit in np.unique(limits).tolist():
            rows = np.flatnonzero(limits == limit)
            results |= zip(rows.tolist(), self._search(sources[rows], limit), strict=True)
        return [results[row] for row in range(len(sources))]

    def to(self, device: str) -> Self:
        """Return the engine on a device, where the model is loaded when it is first used."""
        return replace(self, device=device)

    def _search(self, sources: Sources, limit: int) -> Iterator[Sequence[Hypothesis]]:
        """Yield the translations of each source, of at most `limit` tokens."""
        src = [[self._pieces[token] for token in row if token != PAD] for row in sources.tolist()]
        options, pad = self._options(limit), self._pieces[PAD]
        if self.target_tag != "none":
            options["target_prefix"] = [[row.pop(0)] for row in src]
        results = self._translator.translate_batch(src, **options)
        expects_pad = any(pad in hypothesis for result in results for hypothesis in result.hypotheses)
        if expects_pad:
            results = self._translator.translate_batch(src, **options, suppress_sequences=[[pad]])
        n_bests = [result.hypotheses for result in results]
        log_probs = self._log_probs(src, n_bests) if expects_pad else self._search_log_probs(results)
        for n_best in n_bests:
            yield self._rank([(hypothesis, next(log_probs)) for hypothesis in n_best])

    @property
    def _alpha(self) -> float:
        return max(self.config.length_penalty.alpha, _NO_PENALTY)

    def _options(self, limit: int) -> dict[str, Any]:
        config = self.config
        return {
            "beam_size": config.beam,
            "num_hypotheses": config.n_best,
            "length_penalty": self._alpha,
            "min_decoding_length": 0,
            "max_decoding_length": limit,
            "max_input_length": 0,
            "return_end_token": True,
            "return_scores": True,
        }

    def _search_log_probs(self, results: Sequence[Any]) -> Iterator[float]:
        """Yield the log-probability of each hypothesis of each source.

        CTranslate2's score is the log-probability over len^alpha; the length counts `</s>`, as ours does.
        """
        for result in results:
            for tgt, score in zip(result.hypotheses, result.scores, strict=True):
                yield score * len(tgt) ** self._alpha

    def _log_probs(self, sources: Sequence[Pieces], n_bests: Sequence[Sequence[Pieces]]) -> Iterator[float]:
        """Score the hypotheses of each source again, and yield their log-probabilities."""
        pairs = [(src, tgt) for src, n_best in zip(sources, n_bests, strict=True) for tgt in n_best]
        # CTranslate2 appends </s> to targets, and scores it.
        targets = [tgt[:-1] if tgt[-1] == self._pieces[EOS] else tgt for _, tgt in pairs]
        scores = self._translator.score_batch([src for src, _ in pairs], targets, max_input_length=0)
        for (_, tgt), score in zip(pairs, scores, strict=True):
            yield math.fsum(score.log_probs[: len(tgt)])

    def _rank(self, n_best: Sequence[tuple[Pieces, float]]) -> Sequence[Hypothesis]:
        """Return hypotheses with their scores, best first."""
        check_finite(np.array([log_prob for _, log_prob in n_best]))
        divisors = self.config.length_penalty.divisors(np.array([len(tgt) for tgt, _ in n_best]))
        hypotheses = [
            Hypothesis(tokens=tuple(map(self._id, tgt)), log_prob=log_prob, score=log_prob / divisor)
            for (tgt, log_prob), divisor in zip(n_best, divisors.tolist(), strict=True)
        ]
        return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)

    @cached_property
    def _translator(self) -> Any:
        """CTranslate2's model, with torch's number of threads."""
        import ctranslate2

        kind, index = device_of(self.device)
        try:
            return ctranslate2.Translator(
                str(self.folder),
                device=kind,
                device_index=index,
                compute_type=self.compute,
                inter_threads=1,
                intra_threads=torch.get_num_threads(),
            )
        except RuntimeError as error:
            raise EvalError(f"{self.folder}: CTranslate2 cannot load it: {error}") from None

    @cached_property
    def _pieces(self) -> Sequence[str]:
        if self.pieces:
            return self.pieces
        pieces: list[str] = json.loads((self.folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
        return pieces

    def _id(self, piece: str) -> int:
        if piece not in self._ids:
            raise EvalError(
                f"{self.folder}: has the token {piece!r}, which the tokenizer lacks; copy its own."
            )
        return self._ids[piece]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {piece: number for number, piece in enumerate(self._pieces)}


def check_compute(compute: Compute, device: str) -> None:
    """Check that CTranslate2 has a compute type on a device.

    Raises:
        EvalError: If it cannot.
    """
    import ctranslate2

    try:
        supported = ctranslate2.get_supported_compute_types(*device_of(device))
    except (RuntimeError, ValueError) as error:
        raise EvalError(f"CTranslate2 cannot use {device} ({error}); take `--device cpu`.") from None
    if compute not in supported:
        types = ", ".join(sorted(supported))
        raise EvalError(f"`--compute` must be one of {types} on {device}, but is {compute}.")


def device_of(name: str) -> tuple[str, int]:
    """Return CTranslate2's name of a device such as `cuda:0`, and its number."""
    kind, _, number = name.partition(":")
    return kind, int(number or 0)
