"""Ways to decode the same exported T5, for decoding_speed.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.measurement import is_installed
from mnmt_eval.search import LengthPenalty, MaxLength, SearchConfig, search
from mnmt_model.export import convert_to_ctranslate2, export_hugging_face
from mnmt_model.transformer import IncrementalModel, TranslationModel

PAD, EOS = 0, 1
OURS = "ours"

Output = list[list[int]]
"""Tokens of the best translation of each source, with `</s>` where it has one."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How sentences are decoded."""

    beam: int
    batch: int
    """Sentences translated at a time."""
    threads: int
    exact: bool
    """Whether to stop only when no better translation can follow, or when `beam` have ended."""

    def __str__(self) -> str:
        return f"{'greedy' if self.beam == 1 else f'beam {self.beam}'}, {self.batch} at a time"


Way = Callable[[Tensor, int, int, Setting], Output]
"""Translates `src (batch, src_len)` into at least and at most so many tokens."""


def make_ways(model: TranslationModel, vocabulary: Path, folder: Path, device: str) -> Mapping[str, Way]:
    """Return all ways to decode the model, which is exported to `folder`."""
    export_hugging_face(model.config, model.state_dict(), vocabulary, folder)
    ways: dict[str, Way] = {OURS: ours(model, device)}
    if is_installed("transformers"):
        ways["transformers"] = transformers(folder, device)
        if is_installed("ctranslate2") and _ctranslate2_runs_on(device):
            convert_to_ctranslate2(folder, folder / "ctranslate2")
            for compute in ("float32", "int8"):
                ways[f"ctranslate2 {compute}"] = _CTranslate2(folder / "ctranslate2", device, compute)
    return ways


def ours(model: TranslationModel, device: str) -> Way:
    """Return `mnmt_eval.search`."""
    searched = IncrementalModel(model.to(device))

    def translate(src: Tensor, fewest: int, most: int, setting: Setting) -> Output:
        config = SearchConfig(
            beam=setting.beam,
            length_penalty=LengthPenalty(kind="power", alpha=1.0),
            max_length=MaxLength(ratio=0.0, extra=most),
            min_length=fewest,
            early_stopping="exact" if setting.exact else "filled",
        )
        return [list(hypotheses[0].tokens) for hypotheses in search(searched, src.to(device), config)]

    return translate


def transformers(folder: Path, device: str) -> Way:
    """Return `generate` of `T5ForConditionalGeneration`."""
    model = import_module("transformers").T5ForConditionalGeneration.from_pretrained(folder).eval().to(device)

    @torch.inference_mode()
    def translate(src: Tensor, fewest: int, most: int, setting: Setting) -> Output:
        src = src.to(device)
        options: dict[str, Any] = {}
        if setting.beam > 1:
            options = {"length_penalty": 1.0, "early_stopping": "never" if setting.exact else True}
        outputs = model.generate(
            input_ids=src,
            attention_mask=(src != PAD).long(),
            num_beams=setting.beam,
            min_new_tokens=fewest,
            max_new_tokens=most,
            do_sample=False,
            **options,
        )
        return [_up_to_end(row[1:]) for row in outputs.tolist()]

    return translate


class _CTranslate2:
    """`Translator.translate_batch`.

    It has one rule, whatever `exact` says: it stops when `num_hypotheses` have ended and the best of the beam
    is one of them. Of as many as the beam is wide, that is about when `beam` have ended.
    """

    def __init__(self, folder: Path, device: str, compute: str) -> None:
        self._options = {"device": device, "compute_type": compute, "inter_threads": 1}
        self._folder = folder
        vocabulary = (folder / "shared_vocabulary.json").read_text(encoding="utf-8")
        self._vocabulary: list[str] = json.loads(vocabulary)
        self._ids = {token: number for number, token in enumerate(self._vocabulary)}
        self._loaded: tuple[int, Any] = (0, None)

    def __call__(self, src: Tensor, fewest: int, most: int, setting: Setting) -> Output:
        sources = [[self._vocabulary[token] for token in row if token != PAD] for row in src.tolist()]
        results = self._translator(setting.threads).translate_batch(
            sources,
            beam_size=setting.beam,
            num_hypotheses=setting.beam,
            length_penalty=1.0,
            min_decoding_length=fewest,
            max_decoding_length=most,
            max_input_length=0,
            return_end_token=True,
        )
        return [[self._ids[token] for token in result.hypotheses[0]] for result in results]

    def _translator(self, threads: int) -> Any:
        if self._loaded[0] != threads:
            make = import_module("ctranslate2").Translator
            self._loaded = threads, make(str(self._folder), intra_threads=threads, **self._options)
        return self._loaded[1]


def _ctranslate2_runs_on(device: str) -> bool:
    """Return whether this build of CTranslate2 can use the device."""
    return device == "cpu" or import_module("ctranslate2").get_cuda_device_count() > 0


def _up_to_end(tokens: list[int]) -> list[int]:
    if EOS in tokens:
        return tokens[: tokens.index(EOS) + 1]
    return [token for token in tokens if token != PAD]
